"""Numbers that the pages claim are those that the program gives on the streams that they name."""

import csv
import gzip
import json
import re
from collections import Counter

import pyarrow as pa
import pytest

from adapt.core.counting.exact import count_keys, frequencies_of
from adapt.core.engines.names import Engine
from adapt.core.partitioning.plans.registry import make_partitioner
from adapt.core.verdict.stream_verdict import judge
from tests.docs.pages import ROOT, blocks, text_of
from tests.tiers import soak


def rows_of(page, header):
    """The rows of the table of a page whose first column has this head, as lists of cells."""
    table = text_of(page).partition(f"\n| {header} |")[2].partition("\n\n")[0]
    lines = table.splitlines()[2:]
    assert lines, f"{page} has no table of {header}"
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]


def test_the_flights_at_8_channels(adapt, real_traces, tmp_path):
    miles = Counter()
    with gzip.open(real_traces("flights/flights.csv.gz"), "rt") as source:
        for row in csv.DictReader(source):
            miles[row["dest"]] += int(row["distance"])
    counts = tmp_path / "miles.csv"
    counts.write_text("".join(f"{key},{count}\n" for key, count in miles.items()))
    document = adapt.json("partition", "compare", counts, "--channels", "1:8")
    made = {(row["scheme"], row["construction"] or ""): row for row in document["rows"] if row["channels"] == 8}
    for scheme, imbalance, floor, m, mapped in rows_of("docs/which-partitioner.md", "scheme"):
        name, construction = re.fullmatch(r"(\w+)(?: \((\w+).*\))?", scheme).groups()
        row = made[name, construction or ""]
        found = (row["imbalance"], row["best_possible"], row["m"])
        assert [f"{value:.3f}" for value in found] == [imbalance, floor, m], scheme
        assert row["pinned_keys"] == int(mapped)


def test_the_verdict_on_wikipedia(real_traces):
    with gzip.open(real_traces("wiki-edits/wikiticker-2015-09-12-sampled.json.gz")) as source:
        counted = frequencies_of(count_keys(pa.array([json.loads(line)["channel"] for line in source])))
    verdict = judge(counted, make_partitioner(Engine.SPARK, 8), "spark")
    page = text_of("docs/more-workers.md")
    assert f"{counted.rows:,} edits of Wikipedia" in page
    assert f"{100 * verdict.top_share:.1f} %: at most {verdict.useful_workers:.1f} workers" in page


def test_the_web_log_at_8_and_12_channels(real_traces):
    """One line of the log is cut off, and is no row."""
    lines = real_traces("weblog-2015/apache_logs").read_text(errors="replace").splitlines()
    hosts = pa.array([line.split(" ", 1)[0] for line in lines if line.endswith('"')])
    counted = frequencies_of(count_keys(hosts))
    page = text_of("docs/how-many-channels.md")
    for channels in (8, 12):
        verdict = judge(counted, make_partitioner(Engine.SPARK, channels), "spark")
        assert f"{verdict.imbalance:.3f} times" in page
    assert f"{100 * verdict.top_share:.2f} % of the requests" in page
    assert f"so that {verdict.useful_workers:.1f} channels" in page


def test_the_key_groups_of_flink(adapt):
    line = ["advise", "salts", "--parallelism", 120, "--max-parallelism", 256, "--format", "json"]
    excesses = [row["excess"] for row in json.loads(adapt.done(*line).out)["flink"] if row["parallelism"] == 120]
    assert any(f"{100 * excess:.1f} %" == "40.6 %" for excess in excesses)
    assert all("40.6 %" in text_of(f"docs/{page}.md") for page in ("lint", "how-many-channels"))


def test_what_which_md_says_stands_on_the_page_that_it_names():
    checked = 0
    for _, _, because, _ in rows_of("docs/which.md", "what the trace shows"):
        target = re.search(r"\]\(([\w-]+\.md)", because)
        if target:
            there = text_of(f"docs/{target[1]}")
            for number in re.findall(r"\d+\.\d+", because):
                assert number in there, f"{number} of {because!r} is not on {target[1]}"
                checked += 1
    assert checked > 20
    assert (ROOT / "docs" / "which.md").exists()


@soak
@pytest.mark.usefixtures("spark")
def test_the_reviews_by_workers_in_the_model(adapt, real_traces, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (chain,) = [block.text for block in blocks("docs/ordered.md") if block.file == "vendors.toml"]
    (tmp_path / "vendors.toml").write_text(chain)
    adapt.done("ingest", real_traces("reviews/anonreviews.csv.bz2"), "--key", "vendorId", "-o", "reviews.trace")
    line = "replay ordered reviews.trace --chain vendors.toml --workers 1,2,4,8,16 --backend sim -o reviews.ordered"
    document = adapt.json(*line.split())
    assert f"more than {document['summary']['speed_up_bound']:.1f} times" in text_of("docs/ordered.md")
    made = {row["workers"]: row for row in document["workers"]}
    shown = re.findall(r"^ +(\d+) +([\d,]+) +([\d.]+) +\S+ \w+  yes$", text_of("docs/ordered.md"), re.MULTILINE)
    assert len(shown) == len(made)
    for workers, rate, speed_up in shown:
        row = made[int(workers)]
        assert f"{row['throughput']:,.0f}" == rate
        assert f"{row['speed_up']:.3f}" == speed_up


@soak
@pytest.mark.usefixtures("spark")
def test_the_web_log_under_every_mechanism(adapt, real_traces, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = real_traces("weblog-2015/apache_logs")
    adapt.done("ingest", source, "--format", "clf", "--key", "host", "--bytes", "bytes", "-o", "web.trace")
    line = "replay compare web.trace --channels 8 --seeds 1 -o web.run --format json"
    made = {row["scenario"]: row for row in json.loads(adapt.done(*line.split()).out)["scenarios"]}
    for name, p50, p99, shed, worker_time, *_ in rows_of("docs/mechanisms.md", "scenario"):
        row = made.pop(name)
        for told, value in ((p50, row["latency_p50"]), (p99, row["latency_p99"]), (worker_time, row["worker_time"])):
            amount, unit = told.split()
            assert float(amount) / {"ms": 1000, "s": 1}[unit] == pytest.approx(value, rel=5e-3), f"{name}: {told}"
        assert (f"{row['drop_rate']:.1%}" if row["drop_rate"] else "") == shed
