"""`adapt ingest`: what it says of good and of bad input, and that it leaves a whole trace or nothing."""

import json
import shlex
import subprocess

import pytest

from adapt.traces.store.trace import open_trace

pytestmark = pytest.mark.usefixtures("spark")

ROWS = "when,user,spent\n" + "".join(f"2026-05-01T00:{n // 60:02}:{n % 60:02}Z,u{n % 7},{n}\n" for n in range(600))

COSTS = "when,user,spent_ms\n2026-05-01,ann,3\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A current folder that holds rows.csv."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text(ROWS)
    return tmp_path


def test_the_result_is_a_table_or_one_document_and_the_guesses_are_said(adapt, here):
    line = ("ingest", "rows.csv", "--key", "user", "--cost", "spent", "--cost-unit", "us")
    said = adapt.done(*line, "-o", "rows.trace")
    assert said.out.startswith("Trace\n")
    assert "guessed: " in said.err
    assert "time from when" in said.err
    assert "wrote rows.trace" in said.err
    again = adapt.done(*line, "-o", "again.trace", "--json", "-q")
    told = json.loads(again.out)
    assert again.err == ""
    assert (told["schema"], told["rows"], told["rejects"]["rows"]) == ("adapt.trace/1", 600, 0)
    first, second = (open_trace(here / name).manifest for name in ("rows.trace", "again.trace"))
    assert first.content_hash == second.content_hash == told["content_hash"]
    assert first.made.command == "adapt ingest rows.csv --key user --cost spent --cost-unit us -o rows.trace"


def test_bad_rows_are_counted_shown_and_warned_of(adapt, here):
    (here / "some.csv").write_text(ROWS + "yesterday,u1,3\n" * 20)
    said = adapt.done("ingest", "some.csv", "--key", "user", "--time", "when", "-o", "some.trace")
    assert "Rejected rows" in said.out
    assert "warning: some.trace: 3.23 % of all rows were rejected" in said.err
    assert "some.csv line 602" in " ".join(said.err.split())


@pytest.mark.parametrize(
    ("code", "line", "told"),
    [
        (2, "--key usr", "did you mean 'user'?"),
        (2, "--key 'substr(user,'", "--key 'substr(user,': Syntax error"),
        (2, "--key user --cost spent", "--cost 'spent' needs a unit: add --cost-unit us, ms, s or ns"),
        (2, "--time when", "the column or expression that partitions the stream; available: when, user, spent"),
        (2, "--key user --spark-conf spark.driver.memory=1g", "spark.driver.memory"),
        (3, "--key user --time user", "u"),
        (4, "--key user --force", "is a folder that adapt did not create"),
    ],
)
def test_what_cannot_be_is_one_sentence_and_leaves_nothing(adapt, here, code, line, told):
    if code == 4:
        (here / "x.trace").mkdir()
        (here / "x.trace" / "mine.txt").write_text("precious")
    before = sorted(here.rglob("*"))
    sentence = adapt.refused(code, "ingest", "rows.csv", *shlex.split(line), "-o", "x.trace")
    assert told in sentence
    assert "Exception" not in sentence
    assert sorted(here.rglob("*")) == before


def test_an_output_that_exists_is_replaced_only_by_force(adapt, here):
    line = ("ingest", "rows.csv", "--key", "user", "-o", "x.trace")
    adapt.done(*line)
    manifest = (here / "x.trace" / "_manifest.json").read_bytes()
    assert "x.trace exists; add --force" in adapt.refused(4, *line)
    assert (here / "x.trace" / "_manifest.json").read_bytes() == manifest
    (here / "rows.csv").write_text(ROWS + "2026-05-02T00:00:00Z,late,1\n")
    adapt.done(*line, "--force")
    assert open_trace(here / "x.trace").rows == 601
    assert sorted(path.name for path in here.iterdir()) == ["rows.csv", "x.trace"]


@pytest.fixture
def tiny_disk(tmp_path):
    """A file system of 64 KiB, where one may be made."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True)
    if made.returncode:
        pytest.skip("a small file system can be mounted by root only")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_truly_full_disk_is_one_sentence_too(adapt, tiny_disk, tmp_path):
    rows = "".join(f"{1_700_000_000 + n},k{n * 7919 % 100_003}\n" for n in range(100_000))
    (tmp_path / "many.csv").write_text("t,k\n" + rows)
    out = tiny_disk / "x.trace"
    assert "disk" in adapt.refused(4, "ingest", tmp_path / "many.csv", "--key", "k", "--time", "t", "-o", out)
    assert list(tiny_disk.iterdir()) == []


@pytest.mark.parametrize(
    ("expression", "unit", "first_us"),
    [
        ("spent_ms", None, 3_000.0),
        ("spent_ms", "us", 3.0),
        ("spent_ms + 1", "2.5s", 10_000_000.0),
        ("spent_ms", "ns", 0.003),
    ],
)
def test_a_cost_is_stored_in_microseconds(adapt, here, expression, unit, first_us):
    (here / "costs.csv").write_text(COSTS)
    line = ("ingest", "costs.csv", "--key", "user", "--cost", expression, "-o", "c.trace")
    said = adapt.done(*line, *(() if unit is None else ("--cost-unit", unit)))
    assert ("spent_ms in ms" in said.err) == (unit is None)
    trace = open_trace(here / "c.trace")
    assert next(trace.batches()).column("cost_us").to_pylist() == [first_us]
    assert trace.manifest.made.parameters["mapping"]["cost_unit"] == (unit or "ms")


def test_a_mapping_file_gives_the_unit_of_a_cost(adapt, here):
    (here / "costs.csv").write_text(COSTS)
    (here / "m.toml").write_text('key = "user"\ncost = "3 * spent_ms"\ncost-unit = "ms"\n')
    line = ("ingest", "costs.csv", "--mapping", "m.toml", "-o", "c.trace")
    adapt.done(*line)
    assert next(open_trace(here / "c.trace").batches()).column("cost_us").to_pylist() == [9_000.0]
    # another cost has another unit
    assert "--cost 'spent_ms * 1' needs a unit" in adapt.refused(2, *line, "--cost", "spent_ms * 1", "--force")


def test_a_wide_source_lists_a_dozen_columns_nearest_first(adapt, here):
    columns = [f"user_{at:05}" for at in range(10_000)]
    values = ",".join("1" for _ in columns)
    (here / "wide.csv").write_text(f"when,{','.join(columns)}\n2026-05-01,{values}\n")
    sentence = adapt.refused(2, "ingest", "wide.csv", "--key", "usr_00017", "--time", "when", "-o", "x.trace")
    assert "column 'usr_00017' does not exist; did you mean 'user_00017'? Available: user_00017, " in sentence
    assert sentence.endswith(" and 9,989 more")
    assert len(sentence) < 400
    adapt.done("ingest", "wide.csv", "--key", "user_09999", "--time", "when", "-o", "x.trace")


def test_rows_that_are_piped_in_give_the_trace_of_the_file(adapt, here, monkeypatch):
    adapt.done("ingest", "rows.csv", "--key", "user", "-o", "file.trace")
    with (here / "rows.csv").open() as piped:
        monkeypatch.setattr("sys.stdin", piped)
        adapt.done("ingest", "-", "--key", "user", "-o", "piped.trace")
    file, piped_in = (open_trace(here / name) for name in ("file.trace", "piped.trace"))
    assert file.manifest.content_hash == piped_in.manifest.content_hash
    assert file.manifest.made.inputs[0]["sha256"] == piped_in.manifest.made.inputs[0]["sha256"]
    assert not (here / "piped.trace" / "_stdin").exists()
