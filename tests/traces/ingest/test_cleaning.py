"""Repairs and sharing: against plain loops over the rows, and nothing lost uncounted."""

import hashlib
from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapt.core.errors import BadInput, UsageError
from adapt.core.lint.findings import judged
from adapt.traces.ingest.cleaning import HEX_DIGITS, Cleaning, ClockShift, salt_of
from adapt.traces.ingest.ingest import IngestOptions, ingest
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.sources.names import FormatName
from adapt.traces.sources.sniff import ReadOptions
from adapt.traces.store.trace import overview

HEADED = ReadOptions(FormatName.CSV, ",", header=True)
BASE = 1_700_000_000
SALT = "a salt of enough characters"


def made(folder, rows, cleaning=Cleaning(), dedup="", salt=None, stream="at"):
    """A trace of (second, key, stream, id) rows, from two files."""
    source = folder / "source"
    source.mkdir(parents=True, exist_ok=True)
    half = len(rows) // 2
    for name, some in (("a", rows[:half]), ("b", rows[half:])):
        lines = "".join(f"{BASE + second},{key},{at},{number}\n" for second, key, at, number in some)
        (source / f"{name}.csv").write_text("t,key,at,id\n" + lines)
    mapping = Mapping("key", "t", stream=stream, keep=("id",), dedup=dedup)
    return ingest(
        [str(source)],
        folder / "x.trace",
        mapping,
        IngestOptions(reading=HEADED, cleaning=cleaning, salt=salt),
        force=True,
    ).trace


def kept(trace):
    rows = pa.Table.from_batches(trace.batches()).to_pylist()
    return [(int(row["ts"].timestamp()) - BASE, row["key"], row["stream"], row["id"]) for row in rows]


def refused(trace):
    return trace.manifest.summary["rejects"]["reasons"]


ROWS = [(at * 7 % 50, f"k{at % 5}", "we"[at % 2] + "st", str(at % 13)) for at in range(60)]

rows = st.lists(
    st.tuples(st.integers(0, 20), st.sampled_from("abc"), st.sampled_from(["x", "y:1"]), st.sampled_from("0123 ")),
    min_size=1,
    max_size=25,
)


@pytest.mark.usefixtures("spark")
def test_a_clock_is_set_right_for_the_streams_that_it_names(tmp_path):
    clocks = (ClockShift.parse("w*=5h"), ClockShift.parse("?st=-2s"))
    trace = made(tmp_path, ROWS, Cleaning(clocks))
    wanted = [(at + (18_000 if stream == "wst" else -2), key, stream, number) for at, key, stream, number in ROWS]
    assert kept(trace) == sorted(wanted, key=lambda row: row[0])
    told = trace.manifest.made.parameters["cleaning"]["clock_shifts"]
    assert told == [{"streams": "w*", "forward_us": 18_000_000_000}, {"streams": "?st", "forward_us": -2_000_000}]


@pytest.mark.usefixtures("spark")
def test_a_clock_of_no_stream_is_refused_with_the_streams_there_are(tmp_path):
    with pytest.raises(UsageError, match=r"--shift-clock 'west' matches no stream; available: est, wst"):
        made(tmp_path, ROWS, Cleaning((ClockShift("west", 1),)))
    with pytest.raises(UsageError, match="--shift-clock needs --stream"):
        made(tmp_path, ROWS, Cleaning((ClockShift("west", 1),)), stream="")


@pytest.mark.usefixtures("spark")
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=rows, bound=st.integers(0, 10))
def test_rows_that_repeat_or_come_too_late_are_refused_and_counted(tmp_path, rows, bound):
    trace_rows, late, repeated = [], 0, 0
    good, seen = [], set()
    half = len(rows) // 2
    for some in (rows[:half], rows[half:]):
        latest = -1
        for row in some:
            if row[0] < latest - bound:
                late += 1
            else:
                latest = max(latest, row[0])
                good.append(row)
    for row in good:
        number = row[3].strip()
        if number and number in seen:
            repeated += 1
        else:
            seen.add(number)
            trace_rows.append(row)
    trace = made(tmp_path, rows, Cleaning(max_lateness_us=bound * 1_000_000), dedup="id")
    assert kept(trace) == sorted(trace_rows, key=lambda row: row[0])
    counts = {"repeats an earlier row": repeated, f"late by more than {bound}s": late}
    if not bound:
        counts = {"repeats an earlier row": repeated, "late by more than 0h": late}
    assert refused(trace) == {reason: count for reason, count in counts.items() if count}


@pytest.mark.usefixtures("spark")
def test_rows_alike_in_all_that_is_kept_are_one(tmp_path):
    trace = made(tmp_path, ROWS + ROWS[10:20], dedup="*")
    assert kept(trace) == sorted(dict.fromkeys(ROWS), key=lambda row: row[0])
    assert refused(trace)["repeats an earlier row"] == len(ROWS) + 10 - len(dict.fromkeys(ROWS))
    assert len(pq.read_table(trace.path / "_rejects")) == sum(refused(trace).values())


@pytest.mark.usefixtures("spark")
def test_keys_are_hashed_with_a_salt_that_is_nowhere(tmp_path):
    bad = [*ROWS, ("x", "secret", "est", "1")]
    lines = "".join(f"{BASE + at if at != 'x' else at},{key},{number}\n" for at, key, _, number in bad)
    (tmp_path / "a.csv").write_text("t,key,id\n" + lines)
    trace = ingest(
        [str(tmp_path / "a.csv")],
        tmp_path / "x.trace",
        Mapping("key", "t"),
        IngestOptions(reading=HEADED, cleaning=Cleaning(hash_keys=True), salt=SALT),
    ).trace
    keys = pa.Table.from_batches(trace.batches())["key"].to_pylist()
    order = sorted(range(len(ROWS)), key=lambda at: (ROWS[at][0], at))
    assert keys == [hashlib.sha256((SALT + ROWS[at][1]).encode()).hexdigest()[:HEX_DIGITS] for at in order]
    assert refused(trace) == {"time cannot be read": 1}
    for path in trace.path.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert SALT.encode() not in content
            assert b"secret" not in content
            assert b"k3" not in content or path.suffix == ".parquet"  # two bytes occur by chance in packed data


@pytest.mark.usefixtures("spark")
def test_a_sample_has_all_rows_of_its_keys_and_tells_of_the_others(tmp_path):
    many = [(at % 50, f"key {at % 400}", "s", str(at)) for at in range(2000)]
    trace = made(tmp_path, many, Cleaning(sample=Fraction(1, 4)))
    keys = {row[1] for row in kept(trace)}
    assert kept(trace) == sorted((row for row in many if row[1] in keys), key=lambda row: row[0])
    assert 60 < len(keys) < 140  # 100, four and a half deviations
    larger = {row[1] for row in kept(made(tmp_path / "more", many, Cleaning(sample=Fraction(1, 2))))}
    assert keys < larger
    finding = next(one for one in judged(trace.profile) if one.id == "key-sample")
    assert finding.figures == {"share": 0.25, "rows": trace.rows, "source_rows": 2000}
    table = overview(trace)
    told = dict(zip((column.name for column in table.columns), table.rows[0], strict=True))
    assert told["source_rows"] == 2000
    assert told["source_keys"] == 4 * len(keys)
    with pytest.raises(BadInput, match="--sample-keys keeps 0 of"):
        made(tmp_path, ROWS, Cleaning(sample=Fraction(1, 10**9)))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: ClockShift.parse("5h"), "STREAMS=DURATION"),
        (lambda: ClockShift.parse("x=5"), r"--shift-clock x: 5 needs a unit: 5s or 5h\?"),
        (lambda: Cleaning(sample=Fraction(0)), r"--sample-keys must be above 0% and at most 100% \(got 0%\)"),
        (lambda: salt_of("short"), r"ADAPT_SALT must have at least 16 characters, .* \(got 5\)"),
    ],
)
def test_what_cannot_be_is_refused(wrong, says):
    with pytest.raises(UsageError, match=says):
        wrong()
