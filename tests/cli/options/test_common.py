"""Options that several commands share."""

import shlex
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.cli.options.common import channel_counts, command_line, spark_options, typed
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
        "a",
        "1:",
        ":3",
        "1.5",
        "1,,2",
        "0",
        "1:0",
        "3,-1",
        "1000001",
        "1:9999999999999",
        "1:10001",
        "1:9000,1:9000",
        "9" * 5000,
    ],
)
def test_other_channel_counts_are_refused(text):
    with pytest.raises(UsageError):
        channel_counts(text)


def test_a_spark_setting_is_a_name_and_a_value_that_may_hold_the_sign():
    options = spark_options("local[2]", ["spark.a=1", "spark.b=x=y", "spark.c="])
    assert options.conf == {"spark.a": "1", "spark.b": "x=y", "spark.c": ""}
    for wrong in ("spark.a", "=1"):
        with pytest.raises(UsageError, match="NAME=VALUE"):
            spark_options("local[2]", [wrong])


def test_the_command_line_is_that_of_the_innermost_command():
    with typed(["demo"]):
        with typed(["ingest", "a b", "--key", "k"]):
            assert command_line() == "adapt ingest 'a b' --key k"
        assert command_line() == "adapt demo"


@given(st.lists(st.text(st.characters(exclude_characters="=", exclude_categories=["Cs"]))))
def test_a_command_line_reads_back_as_what_was_typed(words):
    with typed(words):
        assert shlex.split(command_line()) == ["adapt", *words]


def test_secrets_among_settings_are_not_recorded():
    with typed(["ingest", "--conf", "spark.hadoop.fs.s3a.secret.key=hush", "--conf", "spark.driver.memory=4g"]):
        assert command_line() == (
            "adapt ingest --conf spark.hadoop.fs.s3a.secret.key=... --conf spark.driver.memory=4g"
        )
