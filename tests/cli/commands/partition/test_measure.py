"""Resources measured by columns, through the commands: a CSV without Spark, and a real log, skewed in bytes."""

import json
import shutil
from collections import defaultdict

import pyarrow.parquet as pq
import pytest

from adapt.traces.ingest.ingest import IngestOptions, ingest
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.sources.names import FormatName
from adapt.traces.sources.sniff import ReadOptions
from adapt.traces.store.frequencies import read_frequencies
from adapt.traces.store.plans import read_plan

CHANNELS = 4


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty current folder but for counts.csv: keys that come often hold little state, and the other way about."""
    monkeypatch.chdir(tmp_path)
    rows = [f"k{n},{3000 // n},{n * n},{n / 8}" for n in range(1, 200)]
    (tmp_path / "counts.csv").write_text("\n".join(["key,count,state_bytes,cpu", *rows]) + "\n")
    return tmp_path


def document(said):
    return json.loads(said.out, parse_constant=lambda name: pytest.fail(name))


def loads_by_hand(plan, of):
    """What some loads by key come to on each channel of a plan."""
    on = defaultdict(float)
    partitioner = plan.partitioner()
    for key, load in of.items():
        on[partitioner.channel_of(key)] += load
    return [on[channel] for channel in range(plan.channels)]


@pytest.mark.parametrize("scheme", ["hybrid", "uniform"])
def test_a_plan_foretells_what_the_columns_add_up_to(adapt, here, scheme):
    line = f"partition build counts.csv --channels {CHANNELS} --scheme {scheme} -o P --format json"
    told = document(adapt.done(*line.split(), "--measure", "state=state_bytes,computation=cpu"))
    assert told["parameters"]["measured"] == {"state": "state_bytes", "computation": "cpu"}
    plan = read_plan(here / "P")
    by_hand = {
        "state": loads_by_hand(plan, {f"k{n}": n * n for n in range(1, 200)}),
        "computation": loads_by_hand(plan, {f"k{n}": n / 8 for n in range(1, 200)}),
        "network": loads_by_hand(plan, {f"k{n}": 3000 // n for n in range(1, 200)}),
    }
    for resource, ratio in (("state", "r_s"), ("computation", "r_c"), ("network", "r_n")):
        assert told["predicted_loads"][resource] == pytest.approx(by_hand[resource])
        assert told["metrics"][ratio] == pytest.approx(max(by_hand[resource]) / min(by_hand[resource]))


@pytest.mark.parametrize("construction", ["level", "readj"])
def test_every_construction_sees_what_was_measured(adapt, here, construction):
    build = f"partition build counts.csv --channels {CHANNELS} --construction {construction} --format json".split()
    adapt.done(*build, "-o", "by-count.plan")
    measured = document(adapt.done(*build, "--measure", "state=state_bytes"))
    on = loads_by_hand(read_plan(here / "by-count.plan"), {f"k{n}": n * n for n in range(1, 200)})
    assert measured["metrics"]["r_s"] < max(on) / min(on)
    assert "k199" in measured["explicit"]


def test_compare_and_diff_measure_too(adapt, here):
    compare = f"partition compare counts.csv --channels 2,{CHANNELS} --measure network=cpu -o plans --format json"
    told = document(adapt.done(*compare.split()))
    level = next(row for row in told["rows"] if row["construction"] == "level" and row["channels"] == CHANNELS)
    plan = read_plan(here / "plans" / "hybrid-level.plan")
    on = loads_by_hand(plan, {f"k{n}": n / 8 for n in range(1, 200)})
    assert level["r_n"] == pytest.approx(max(on) / min(on))
    adapt.done("partition", "build", "counts.csv", "--channels", 2, "-o", "P2")
    diff = ("partition", "diff", "counts.csv", "P2", "plans/hybrid-level.plan", "--format", "json")
    moved = document(adapt.done(*diff, "--measure", "state=state_bytes"))
    before, after = read_plan(here / "P2").partitioner(), plan.partitioner()
    expected = sum(n * n for n in range(1, 200) if before.channel_of(f"k{n}") != after.channel_of(f"k{n}"))
    assert moved["state_moved"] == expected


@pytest.mark.parametrize(
    ("code", "measure", "told"),
    [
        (2, "state=bytes", "counts.csv has no column 'bytes'"),
        (2, "stat=cpu", "unknown resource 'stat'; did you mean 'state'?"),
        (2, "cpu", "--measure takes RESOURCE=COLUMN"),
        (2, "state=cpu,state=count", "state is measured by 'cpu' already"),
    ],
)
def test_what_cannot_be_meant_is_refused(adapt, here, code, measure, told):
    assert told in adapt.refused(code, "partition", "build", "counts.csv", "--channels", 3, "--measure", measure)


def test_a_bad_number_is_refused_with_its_line(adapt, here):
    (here / "bad.csv").write_text("key,count,cpu\na,1,2\nb,1,-2\n")
    line = ("partition", "build", "bad.csv", "--channels", 2)
    assert "bad.csv line 3: the cpu must be a number, at least 0 (got '-2')" in adapt.refused(
        3, *line, "--measure", "state=cpu"
    )
    adapt.done(*line)


@pytest.fixture(scope="module")
def ingested(spark, real_traces, tmp_path_factory):
    """The log by path, with its bytes."""
    log, made = real_traces("weblog-2015/apache_logs"), tmp_path_factory.mktemp("web") / "web.trace"
    ingest([str(log)], made, Mapping("path", bytes="bytes"), IngestOptions(reading=ReadOptions(FormatName.CLF)))
    return made


@pytest.fixture
def weblog(here, ingested):
    """The log as a trace in the current folder, which nothing else uses."""
    shutil.copytree(ingested, here / "web.trace")


@pytest.mark.usefixtures("weblog")
def test_a_log_that_is_skewed_in_bytes_is_placed_by_bytes(adapt, here):
    """The most requested path has 8 % of the requests; the one with the most bytes has 47 % of them."""
    count = "partition count web.trace --measure bytes,count -o web.freq --format json"
    counted = document(adapt.done(*count.split()))
    rows = pq.read_table(sorted(here.glob("web.trace/part-*.parquet")), columns=["key", "bytes"])
    by_path: dict = defaultdict(int)
    for path, size in zip(rows["key"].to_pylist(), rows["bytes"].to_pylist(), strict=True):
        by_path[path] += size or 0
    assert counted["measured"]["bytes"] == {"total": sum(by_path.values()), "unlisted": 0}
    column = read_frequencies(here / "web.freq")[0]
    assert dict(zip(column.keys.to_pylist(), column.column("bytes").values.tolist(), strict=True)) == by_path

    build = "--channels 2 --measure state=bytes,network=bytes --engine consistent --format json"
    placed = document(adapt.done("partition", "build", "web.freq", *build.split(), "-o", "web.plan"))
    again = document(adapt.done("partition", "build", "web.trace", *build.split()))
    assert placed["explicit"] == again["explicit"]
    on = loads_by_hand(read_plan(here / "web.plan"), by_path)
    assert placed["metrics"]["r_n"] == pytest.approx(max(on) / min(on))
    assert placed["metrics"]["r_n"] < 1.01
    assert max(by_path.values()) / sum(by_path.values()) > 0.47

    refused = adapt.refused(2, "partition", "build", "web.trace", "--channels", 2, "--measure", "state=cost")
    assert "web.trace has no cost column; ingest it with --cost COLUMN" in refused
    refused = adapt.refused(2, "partition", "count", "web.trace", "--measure", "bytes", "--window", "1h")
    assert "--window" in refused
