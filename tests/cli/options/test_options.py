"""Channel counts, engines' parameters and Spark settings as users type them."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.cli.options.channels import channel_counts
from adapt.cli.options.spark import Spark
from adapt.core.errors import UsageError

counts = st.integers(1, 40)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("8", [8]), ("1:4", [1, 2, 3, 4]), ("4:2", [4, 3, 2]), ("1,2,4,8", [1, 2, 4, 8]), ("1:3,8:7", [1, 2, 3, 8, 7])],
)
def test_channel_counts_are_a_count_a_range_or_a_list(text, expected):
    assert channel_counts(text) == expected


@given(counts, counts)
def test_a_range_has_both_ends_and_steps_of_one(first, last):
    chain = channel_counts(f"{first}:{last}")
    assert (chain[0], chain[-1]) == (first, last)
    assert all(abs(after - before) == 1 for before, after in pairwise(chain))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1:",
        "1,,2",
        "0",
        "1:0",
        "1000001",
        "1:9999999999999",
        "1:9000,1:9000",
        "9" * 5000,
    ],
)
def test_other_channel_counts_are_refused(text):
    with pytest.raises(UsageError):
        channel_counts(text)


COMMANDS = ["partition compare counts.csv"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "counts.csv").write_text("key,count\n" + "".join(f"k{n},{3000 // n}\n" for n in range(1, 300)))


def built(adapt, *line):
    return adapt.json("partition", "build", "counts.csv", *line)


def test_replicas_are_of_the_ring_and_of_the_plans_that_follow(adapt, here):
    few = built(adapt, "--channels", 4, "--engine", "consistent:replicas=20", "--max-pins", 0, "-o", "few.plan")
    many = built(adapt, *"--channels 4 --engine consistent --max-pins 0".split())
    assert (few["replicas"], many["replicas"]) == (20, 1000)
    assert few["metrics"]["r_n"] != many["metrics"]["r_n"]
    follows = built(adapt, *"--channels 4 --from few.plan --max-pins 0".split())
    assert (follows["replicas"], follows["metrics"]["m"]) == (20, 0)
    assert (
        built(adapt, *"--channels 4 --from few.plan --max-pins 0 --engine consistent:replicas=40".split())["metrics"][
            "m"
        ]
        > 0
    )


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("engine", "told"),
    [
        ("consistent:replicas=100001", "at most 100000 (got"),
        ("kafka:replicas=5", "--engine replicas is for consistent; write --engine consistent:replicas=N"),
    ],
)
def test_parameters_of_another_engine_are_refused(adapt, here, command, engine, told):
    assert told in adapt.refused(2, *command.split(), "--channels", 3, "--engine", engine)


@pytest.mark.parametrize(
    ("name", "ours"), [("alpha", "--tolerance"), ("beta", "--resources"), ("algorithm", "--construction")]
)
def test_the_names_of_the_paper_lead_to_our_options(adapt, name, ours):
    told = adapt.refused(2, *"partition build counts.csv --channels 3".split(), f"--{name}", "1.2")
    assert f"no such option: --{name}; write {ours}" in told


def test_a_spark_setting_is_a_name_and_a_value_that_may_hold_the_sign():
    options = Spark("local[2]", spark_conf=["spark.a=1", "spark.b=x=y", "spark.c="]).options()
    assert options.conf == {"spark.a": "1", "spark.b": "x=y", "spark.c": ""}
    for wrong in ("spark.a", "=1"):
        with pytest.raises(UsageError, match="NAME=VALUE"):
            Spark("local[2]", spark_conf=[wrong]).options()
