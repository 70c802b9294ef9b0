"""Every command that writes refuses an output that is being written, and never writes through a link."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from adapt.traces.store import disk
from adapt.traces.store.atomic import claim
from tests.any_trace import VISITS

WRITERS = [
    "ingest x.csv --key key -o out.csv",
    "verdict x.csv --key key --channels 2 -o out.csv",
    "generate zipf --rows 100 --keys 9 -o out.csv",
    "partition count x.trace -o out.csv",
    "partition build x.trace --channels 2 -o out.csv",
    "partition compare x.trace --channels 2 -o out.csv",
    "partition export x.plan --to plan -o out.csv",
    "partition export x.plan --to rekey -o out.csv",
    "report x.trace --html out.csv",
    "check x.trace --channels 2 --limit keys<=9 -o out.csv",
    "replay repartition x.trace --channels 2 -o out.csv",
    "replay flux x.trace --workers 2 -o out.csv",
    "replay elastic x.trace --workers 1 --pool 2 -o out.csv",
    "replay compare x.trace --channels 2 --scenario rebuild --seeds 1 --jobs 1 -o out.csv",
    "replay ordered x.trace --chain visits.toml --workers 1 --backend threads --check 0 --output out.csv",
]


@pytest.mark.parametrize("line", WRITERS)
def test_an_output_that_is_being_written_or_is_a_link_is_refused(adapt, tmp_path, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    Path("x.csv").write_text("key\n" + "a\nb\na\n" * 40)
    Path("visits.toml").write_text(VISITS)
    adapt.done(*"generate zipf --rows 100 --keys 9 -o x.trace".split())
    adapt.done(*"partition build x.trace --channels 2 -o x.plan".split())
    before = {path.name for path in tmp_path.iterdir()}
    partial = tmp_path / ".out.csv.partial"
    with ExitStack() as locks:
        claim(partial, tmp_path / "out.csv", disk.make_folder, locks)
        assert_refused(adapt, line, "out.csv is being written by another run")
    partial.rmdir()
    partial.symlink_to("aside")
    assert_refused(adapt, line, ".out.csv.partial first, but that is a link or a pipe; remove it")
    left = {path.name for path in tmp_path.iterdir()} - before
    assert left <= {partial.name, ".out.csv.scenarios", ".adapt-counts"}


def assert_refused(adapt, line, sentence):
    said = adapt(*line.split())
    *_, last = said.err.splitlines()
    assert (said.code, said.out) == (4, "")
    assert sentence in last
