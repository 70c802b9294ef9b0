"""The command as it was typed."""

import shlex

from hypothesis import given
from hypothesis import strategies as st

from adapt.cli.terminal.command_line import command_line, typed


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
    with typed(
        ["ingest", "--spark-conf", "spark.hadoop.fs.s3a.secret.key=hush", "--spark-conf", "spark.driver.memory=4g"]
    ):
        assert command_line() == (
            "adapt ingest --spark-conf spark.hadoop.fs.s3a.secret.key=... --spark-conf spark.driver.memory=4g"
        )
