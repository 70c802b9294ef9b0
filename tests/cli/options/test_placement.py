"""Parameters of `--engine`: what plans become of them, and where they are refused."""

import json

import pytest

COMMANDS = ["partition compare counts.csv"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "counts.csv").write_text("key,count\n" + "".join(f"k{n},{3000 // n}\n" for n in range(1, 300)))


def built(adapt, *line):
    return json.loads(adapt.done("partition", "build", "counts.csv", *line, "--format", "json").out)


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
