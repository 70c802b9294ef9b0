"""The command as it was typed."""

import shlex
import tempfile

from hypothesis import given
from hypothesis import strategies as st

from adapt.cli.failures import explain
from adapt.cli.terminal.command_line import command_line, typed
from adapt.core.errors import BadInput
from adapt.traces.store.manifest import Provenance


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


def test_a_secret_is_neither_in_a_message_nor_in_a_traceback_nor_in_a_manifest(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    url = "jdbc:mysql://h/db?user=a&password=HUSH&x=1"
    conf = [f"spark.sql.catalog.c.url={url}", "spark.kafka.sasl.jaas.config=x password='HUSH'"]
    with typed(["ingest", *conf, "https://a:HUSH@h/x?X-Amz-Signature=HUSH&p=1"]):
        explain(BadInput(f"{url} cannot be read"), debug=True)
        explain(ValueError(url), debug=False)
        made = Provenance(
            command_line(), {"streams": [{"source": url}], "where": "token=3"}, [{"name": url}, {"name": "x?sig=HUSH"}]
        )
    (kept,) = tmp_path.glob("adapt-bug-*")
    for text in (capsys.readouterr().err, kept.read_text(), repr(made)):
        assert "HUSH" not in text
        assert "jdbc:mysql://h/db?user=a&password=...&x=1" in text
    assert made.parameters["where"] == "token=3"
    assert Provenance("", {"source": url}) != Provenance("", {"source": url.replace("x=1", "x=2")})
