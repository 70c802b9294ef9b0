"""`adapt replay repartition`, and what is counted on the way: a small trace, and the real reviews."""

import shutil

import pytest

from adapt.cli.main import run
from adapt.core.table import Kind
from adapt.traces.ingest.ingest import ingest
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.store.runs import read_run
from tests.tiers import soak

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture(scope="module")
def day(spark, tmp_path_factory):
    """A folder with a day of rows every ten seconds, as they are and as a trace."""
    folder = tmp_path_factory.mktemp("day")
    times = [divmod(second, 3600) for second in range(0, 86_400, 10)]
    rows = "".join(
        f"2026-05-01T{hour:02}:{rest // 60:02}:{rest % 60:02}Z,k{number % 5 * (number % 3)},{number % 11}\n"
        for number, (hour, rest) in enumerate(times)
    )
    (folder / "day.csv").write_text("t,k,c\n" + rows)
    ingest([str(folder / "day.csv")], folder / "day.trace", Mapping("k", "t", cost="c", cost_unit="us"))
    return folder


@pytest.fixture
def trace(day, tmp_path, monkeypatch):
    """That day in the current folder, which nothing else uses."""
    shutil.copytree(day, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return "day.trace"


def test_a_run_is_printed_and_kept_the_same(adapt, trace, tmp_path):
    line = ("replay", "repartition", trace, "--channels", 3, "--period", "6h")
    told = adapt.json(*line, "-o", "day.run")
    assert told["schema"] == "adapt.run/2"
    kept = read_run(tmp_path / "day.run")
    assert kept.as_data() == {name: part for name, part in told.items() if name != "readings"}
    assert [row["period"] for row in kept.periods.records()] == [0, 1, 2, 3]
    assert sum(row["rows"] for row in kept.periods.records()) == 8640
    for format in ("table", "csv", "md"):
        assert "imbalance" in adapt.done(*line, "--format", format).out


def test_counting_weighs_by_cost_where_there_is_one(adapt, trace):
    counted = adapt.json("partition", "count", trace, "-o", "day.freq")
    assert (counted["schema"], counted["weight"], counted["rows"]) == ("adapt.frequencies/2", "cost", 8640)
    by_rows = adapt.json("partition", "count", trace, "--weight", "count")
    assert by_rows["total"] == 8640
    for format in ("table", "csv", "md"):
        assert "k1" in adapt.done("partition", "count", trace, "--format", format).out
    assert "count the trace again" in adapt.refused(
        2, "partition", "build", "day.freq", "--channels", 2, "--weight", "count"
    )


@pytest.mark.parametrize(
    ("code", "line", "told"),
    [
        (2, "repartition day.trace --channels 2 --weight bytes", "ingest it with --bytes COLUMN"),
        (3, "repartition day.csv --channels 2", "day.csv"),
        (4, "repartition day.trace --channels 2 -o day.csv --force", "is a file"),
    ],
)
def test_what_does_not_fit_is_refused_and_leaves_nothing(adapt, trace, tmp_path, code, line, told):
    before = sorted(tmp_path.iterdir())
    assert told in adapt.refused(code, "replay", *line.split())
    assert sorted(tmp_path.iterdir()) == before


@pytest.fixture(scope="module")
def reviews(spark, real_traces, tmp_path_factory):
    """The real reviews by vendor, as a trace."""
    source = real_traces("reviews/anonreviews.csv.bz2")
    path = tmp_path_factory.mktemp("reviews") / "reviews.trace"
    assert run(["ingest", str(source), "--key", "vendorId", "-o", str(path), "-q", "--json"]) == 0
    return path


@soak
def test_reviews_by_vendor_week_by_week_over_eight_channels(adapt, reviews, tmp_path):
    out = tmp_path / "reviews.run"
    adapt.done("replay", "repartition", reviews, "--channels", 8, "--period", "7d", "-o", out)
    run = read_run(out)
    periods = run.periods.records()
    assert sum(row["rows"] for row in periods) == 578_805
    assert {row["channels"] for row in periods} == {8}
    for row in periods:
        assert row["imbalance"] is None or row["imbalance"] >= row["best_possible"] - 1e-9
    week_us = 7 * 86_400_000_000
    assert all((row["end"] - row["start"]) == week_us for row in periods)
    assert {column.kind for column in run.periods.columns if column.name in ("start", "end")} == {Kind.TIME}
