"""`adapt report`, and small answers of whole commands by hand."""

import csv
import html
import io
import json
import re
import unicodedata
from pathlib import Path
from xml.etree import ElementTree

import mmh3
import numpy as np
import pytest

from tests.traces.small_traces import write_trace


@pytest.fixture
def plans(adapt, tmp_path, monkeypatch):
    """Two plans in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "counts.csv").write_text("".join(f"k{number},{2000 // number}\n" for number in range(1, 200)))
    for channels in (2, 60):
        adapt.done("partition", "build", "counts.csv", "--channels", channels, "-o", f"{channels}.plan")
    return tmp_path


def test_every_format_shows_the_same_plan(adapt, plans):
    read = adapt.json("report", "2.plan")
    assert read["schema"] == "adapt.report/2"
    (plan,) = read["artefacts"]
    assert (plan["kind"], plan["name"]) == ("plan", "2.plan")
    assert {table["title"] for table in plan["tables"]} >= {"Plan", "Predicted load of each channel"}
    assert adapt.done("report", "2.plan", "--format", "csv").out.startswith("# Plan\nscheme,")
    assert plan["verdict"]["channels"] == 2
    headline = f"Verdict: Pin {plan['verdict']['keys_to_pin']} keys (2 workers): imbalance"
    assert adapt.done("report", "2.plan", "--format", "md").out.startswith(f"### {headline}")
    assert adapt.done("report", "2.plan").out.startswith(headline)


def test_two_plans_are_told_with_what_differs(adapt, plans):
    adapt.done("partition", "build", "counts.csv", "--channels", 2, "--scheme", "uniform", "-o", "plain.plan")
    said = adapt.done("report", "plain.plan", "2.plan").out
    assert "2.plan compared with plain.plan" in said
    assert "2.plan is better than plain.plan in" in " ".join(said.split())
    read = adapt.json("report", "plain.plan", "2.plan")
    (told,) = read["differences"]
    assert (told["before"], told["after"]) == ("plain.plan", "2.plan")
    sides = {change["metric"]: change["side"] for change in told["changes"]}
    assert sides["imbalance"] == "better"
    assert sides["pinned_keys"] == "worse"
    adapt.done("report", "plain.plan", "2.plan", "--html", "two.html")
    assert "<h2>2.plan compared with plain.plan</h2>" in (plans / "two.html").read_text()
    alone = adapt.json("report", "2.plan")
    assert "differences" not in alone


def test_a_page_is_written_whole_and_not_over_another(adapt, plans):
    adapt.done("report", "2.plan", "--html", "page.html")
    page = (plans / "page.html").read_text()
    assert "page.html exists; add --force" in adapt.refused(4, "report", "60.plan", "--html", "page.html")
    assert (plans / "page.html").read_text() == page
    adapt.done("report", "60.plan", "--html", "page.html", "--force")
    assert (plans / "page.html").read_text() != page


def test_each_chart_is_written_as_svg_png_and_csv(adapt, plans):
    adapt.done("report", "2.plan", "--charts", "charts")
    assert "charts exists; add --force" in adapt.refused(4, "report", "2.plan", "--charts", "charts")
    names = {path.stem for path in (plans / "charts").iterdir()}
    assert names
    for name in names:
        svg, png, csv = (plans / "charts" / f"{name}{end}" for end in (".svg", ".png", ".csv"))
        assert ElementTree.fromstring(svg.read_text()).tag.endswith("svg")
        assert png.read_bytes().startswith(b"\x89PNG")
        assert len(csv.read_text().splitlines()) > 1
    (before,) = (plans / "charts").glob("*workers-before-and-after.csv")
    assert "worker,before,after" in before.read_text()


def test_the_page_starts_with_the_verdict(adapt, plans):
    adapt.done("report", "2.plan", "--html", "page.html")
    page = (plans / "page.html").read_text()
    (plan,) = adapt.json("report", "2.plan")["artefacts"]
    verdict = plan["verdict"]
    assert f"<b>Pin {verdict['keys_to_pin']} keys</b>" in page
    values = re.findall(r'<dd class="value [a-z]+">(?:<svg.*?</svg>)?([^<]*)</dd>', page)
    moved = f"{100 * verdict['state_to_move']:.3g}\u00a0%"
    assert values == [f"{verdict['imbalance']:.3f}", f"{verdict['imbalance_after']:.3f}", moved]
    command = html.unescape(re.search('<code tabindex="0">([^<]*)</code>', page)[1])
    assert command.startswith("adapt ")
    assert "2.plan" in command or "counts.csv" in command
    assert "<dd>–</dd>" not in page.split('id="made"')[1]


@pytest.mark.usefixtures("spark")
def test_lint_is_next_to_the_verdict_and_the_next_command_names_the_trace(adapt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{1_700_000_000 + at // 50},k{at * at % 97 % (9 if at < 1_000 else 40)}\n" for at in range(2_000))
    (tmp_path / "rows.csv").write_text(f"ts,key\n{rows}")
    adapt.done("ingest", "rows.csv", "--key", "key", "-o", "x.trace")
    adapt.done("partition", "compare", "x.trace", "--channels", "4", "-o", "x.plans")
    adapt.done("report", "x.trace", "x.plans", "--html", "x.html")
    page = (tmp_path / "x.html").read_text()
    verdict, rest = page.split('<section id="s2">')
    findings = adapt.json("lint", "x.trace")["findings"]
    assert re.findall('<span class="badge [a-z]+">([a-z]+)</span> <b>([a-z-]+)</b>', verdict) == [
        (finding["severity"], finding["id"]) for finding in findings
    ]
    assert findings
    assert "badge" not in rest
    assert "evidence, effect, fix" not in page
    assert re.search('<code tabindex="0">adapt [^<]*x[.](trace|plans)', verdict)


HOSTILE = [
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "\u202egnp.exe\u200f",
    "\x1b[31mred\x1b]0;title\x07",
    "=cmd|'/c calc'!A1",
    "@SUM(A1)",
    "a" * 65_536,
    "{{ 7 * 7 }}",
    "[red]x[/red]",
]


@pytest.fixture
def hostile_plan(adapt, tmp_path, monkeypatch):
    """A plan in the current folder whose keys are each up to no good."""
    monkeypatch.chdir(tmp_path)
    with open("counts.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("key", "count"), *((key, 900 - at) for at, key in enumerate(HOSTILE))])
    adapt.done("partition", "build", "counts.csv", "--channels", 2, "--max-pins", len(HOSTILE), "-o", "h.plan")
    return tmp_path / "h.plan"


@pytest.mark.usefixtures("hostile_plan")
def test_hostile_keys_are_given_back_by_json_as_they_are(adapt):
    said = adapt.done("report", "h.plan", "--format", "json").out
    keys = tables_of(json.loads(said)["artefacts"][0])["Pinned keys"]
    assert {row["key"] for row in keys} == set(HOSTILE)
    assert not any(acts(character) for character in said)


@pytest.mark.usefixtures("hostile_plan")
def test_hostile_keys_do_nothing_in_a_terminal(adapt):
    said = adapt.done("report", "h.plan", "--all").out
    assert not any(acts(character) for character in said)
    assert "\\x1b[31mred" in said
    assert "\\u202egnp.exe\\u200f" in said
    assert "[red]x[/red]" in said


@pytest.mark.usefixtures("hostile_plan")
def test_hostile_keys_are_text_to_a_spreadsheet(adapt):
    said = adapt.done("report", "h.plan", "--format", "csv").out
    block = said.split("# Pinned keys\n")[1]
    keys = {row[0] for row in csv.reader(io.StringIO(block, newline=""), strict=True) if row}
    assert {"'=cmd|'/c calc'!A1", "'@SUM(A1)", "a" * 65_536} <= keys
    assert not any(key[:1] in "=+-@" for key in keys)


@pytest.mark.usefixtures("hostile_plan")
def test_hostile_keys_are_text_in_a_page(adapt):
    adapt.done("report", "h.plan", "--html", "page.html")
    page = Path("page.html").read_text(encoding="utf-8")
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in page
    assert "<img" not in page
    assert "{{ 7 * 7 }}" in page
    assert not any(acts(character) for character in page)


def acts(character):
    """Whether a terminal or a browser acts upon it instead of showing it."""
    return character != "\n" and unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def tables_of(artefact):
    return {table["title"]: table["rows"] for table in artefact["tables"]}


COUNTS = {"user": 50, "key1": 30, "key2": 20, "key5": 10, "12345678": 5}
"""Keys of whole words of four bytes, whose hash in Spark is the standard one."""


@pytest.fixture
def spark_plan(adapt, tmp_path, monkeypatch):
    """A plan of Spark's own placement on 3 channels, and the load of each."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "counts.csv").write_text("".join(f"{key},{rows}\n" for key, rows in COUNTS.items()))
    line = "counts.csv --channels 3 --engine spark --max-pins 0 -o s.plan"
    adapt.done("partition", "build", *line.split())
    return np.bincount([mmh3.hash(key, 42) % 3 for key in COUNTS], [*COUNTS.values()], 3)


@pytest.mark.usefixtures("spark_plan")
def test_route_prints_where_spark_has_the_keys(adapt, tmp_path):
    (tmp_path / "keys").write_text("\n".join(COUNTS))
    printed = adapt.done("partition", "route", "s.plan", "keys").out
    assert printed.splitlines() == [f"{key}\t{mmh3.hash(key, 42) % 3}" for key in COUNTS]


def test_a_report_of_a_plan_has_the_loads_of_its_channels(adapt, spark_plan):
    (plan,) = adapt.json("report", "s.plan")["artefacts"]
    tables = {table["title"]: table["rows"] for table in plan["tables"]}
    assert tables["Plan"][0]["imbalance"] == pytest.approx(spark_plan.max() * 3 / sum(COUNTS.values()))
    assert {row["channel"]: row["computation"] for row in tables["Predicted load of each channel"]} == pytest.approx(
        dict(enumerate(spark_plan))
    )


def test_a_comparison_has_the_latency_of_rows_that_do_not_wait(adapt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    keys = ["user"] * 5 + ["key5", "key6", "key7"]
    write_trace(tmp_path / "x.trace", {"ts": np.arange(8) * 1_000_000, "key": keys}, parts=1)
    line = "x.trace --channels 2 --speedup 1 --scenario static-uniform --service-time constant(100ms) --jobs 1"
    told = adapt.json("replay", "compare", *line.split())
    (row,) = told["scenarios"]
    assert [row[name] for name in ("latency_p50", "latency_p99")] == pytest.approx([0.1, 0.1], abs=1e-4)
    assert (row["processed"], row["lag_max"]) == (8, 1)
    assert row["finished"] == pytest.approx(7.1, abs=1e-4)
    halves = [(h1 * 2**64 + h2) % 128 // 64 for h1, h2 in (mmh3.hash64(key, signed=False) for key in keys)]
    rate = (
        10 / (max(np.bincount(halves)) / 8) / (8 / 7)
    )  # of a worker, by its share of the rows, over that of the trace
    assert told["summary"]["speedup"] / told["summary"]["offered"] == pytest.approx(rate, 0.01)
