"""`adapt replay fit`: what it prints and keeps, what it warns of, and every way to get it wrong."""

import json
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.fit.distributed.messages import HEADER_BYTES
from adapt.core.phrases import percent
from adapt.traces.store.manifest import read_manifest
from adapt.traces.store.runs import read_run
from tests.traces.small_traces import write_trace

ROWS = 4_000
NETWORK = """
[settings]
tick = "100ms"
planner = "exact"
lag_ticks = 0

[[node]]
name = "edge"

[[input]]
name = "clicks"
stream = { column = "stream", equals = "s0" }

[[input]]
name = "orders"
stream = { keys = ["k1", "k3"] }

[[input]]
name = "rest"
stream = { bucket = 1, of = 3 }

[[operator]]
name = "both"
node = "edge"
kind = "union"
inputs = ["clicks", "orders"]
cost = 0.001

[[operator]]
name = "few"
node = "edge"
kind = "filter"
inputs = ["rest"]
cost = 0.0001
selectivity = 0.5

[[output]]
name = "out"
from = "both"

[[output]]
name = "less"
from = "few"
weight = 0.1
"""


TWO_NODES = """
[settings]
tick = "100ms"
lag_ticks = 0

[[node]]
name = "edge"

[[node]]
name = "desk"

[[input]]
name = "clicks"
stream = { column = "stream", equals = "s0" }

[[input]]
name = "orders"
stream = { column = "stream", equals = "s1" }

[[operator]]
name = "read"
node = "edge"
kind = "map"
inputs = ["clicks"]
cost = 0.0004

[[operator]]
name = "book"
node = "edge"
kind = "map"
inputs = ["orders"]
cost = 0.0008

[[operator]]
name = "pages"
node = "desk"
kind = "map"
inputs = ["read"]
cost = 0.0012

[[operator]]
name = "sales"
node = "desk"
kind = "map"
inputs = ["book"]
cost = 0.0004

[[output]]
name = "out"
from = "pages"

[[output]]
name = "sold"
from = "sales"
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A trace of four thousand rows in a second, and networks, in the current folder."""
    monkeypatch.chdir(tmp_path)
    chance = np.random.default_rng(1)
    keys = chance.integers(0, 9, ROWS)
    columns = {
        "ts": np.arange(ROWS) * 1_000_000 // ROWS,
        "key": pa.array([f"k{key}" for key in keys]),
        "stream": pa.array([f"s{key % 3}" for key in keys]),
    }
    write_trace(tmp_path / "x.trace", columns)
    write_trace(tmp_path / "bare.trace", {name: columns[name] for name in ("ts", "key")})
    write_trace(tmp_path / "back.trace", {"ts": [1, 3, 2], "key": ["a", "b", "c"], "stream": ["s0", "s0", "s0"]})
    for name, text in (
        ("n", NETWORK),
        ("two", TWO_NODES),
        ("odd", NETWORK.replace('"s0"', '"s7"')),
        ("ints", NETWORK.replace('["k1", "k3"]', "[1, 3]")),
        ("unbound", NETWORK.replace('stream = { column = "stream", equals = "s0" }', "")),
        ("broken", NETWORK.replace("cost = 0.001", "cost = -1")),
    ):
        (tmp_path / f"{name}.toml").write_text(text)
    return tmp_path


def told(adapt, *line):
    return adapt.json("replay", "fit", *line)


def test_a_run_is_printed_and_kept_the_same(adapt, here):
    document = told(
        adapt, *"x.trace -n n.toml --planner none,exact --planner solver --network headroom=0.02 -o x.fit".split()
    )
    assert document["schema"] == "adapt.run/2"
    assert document["mechanism"] == "fit"
    none, exact, solver = document["planners"]
    assert [none["planner"], exact["planner"], solver["planner"]] == ["none", "exact", "solver"]
    assert 0.9 < solver["optimum_share"] <= exact["optimum_share"] + 0.02
    assert exact["wait_max"] < none["wait_max"] / 3
    assert len(document["ticks"]) == 30
    assert document["summary"]["rows"] == ROWS
    assert read_run(here / "x.fit").as_data() == document
    for format in ("table", "csv", "md"):
        assert "exact" in adapt.done("replay", "fit", "x.trace", "-n", "n.toml", "--format", format).out


def test_solver_w_plans_for_the_rates_that_are_given(adapt, here):
    line = "x.trace -n two.toml --planner solver-w --network epsilon=0.05 --tables max-plans=12 --flow fluid".split()
    learned = told(adapt, *line)
    (here / "calm.csv").write_text("clicks,orders\n1,1\n2,2\n")
    calm = told(adapt, *line, "--workload", "calm.csv", "-o", "calm.fit")
    assert calm["planners"][0]["score"] < learned["planners"][0]["score"]
    assert read_manifest(here / "calm.fit").made.parameters["workload"]["name"] == "calm.csv"


def test_options_override_the_settings_of_the_network(adapt, here):
    line = "x.trace -n n.toml:tick=250ms,lag=2,headroom=0.2,smoothing=0.5,min-rate-change=0.05,feedback"
    document = told(
        adapt, *line.split(), *"--planner none,c-fit --network epsilon=0.1 --true-costs 1.2 --speedup 2".split()
    )
    assert document["parameters"]["settings"] == {
        "tick_us": 250_000,
        "epsilon": 0.1,
        "headroom": 0.2,
        "lag_ticks": 2,
        "smoothing": 0.5,
        "min_rate_change": 0.05,
        "feedback": True,
        "drops": "random",
        "batch": 100,
    }
    assert [tick["planner"] for tick in document["ticks"]] == ["none", "none", "c-fit", "c-fit"]
    assert document["parameters"]["network"]["text"] == NETWORK


def test_plans_made_in_advance_are_kept_shown_and_used_again(adapt, here):
    line = "replay fit x.trace -n n.toml --planner c-fit,solver --plans n.plans".split()
    assert "wrote n.plans" in adapt.done(*line).err
    shown = adapt.json("report", "n.plans")
    (artefact,) = shown["artefacts"]
    assert [table["title"] for table in artefact["tables"]] == ["Drop plans of c-fit", "Drop plans of solver"]
    assert artefact["tables"][0]["rows"][0]["plan"] == 1
    assert "wrote" not in adapt.done(*line).err
    adapt.done("report", "n.plans", "--html", "plans.html")
    refused = adapt.refused(3, *line, "--network", "headroom=0.5")
    assert "n.plans was made with headroom 0.05, not 0.5; give another folder or remove it" in refused


def test_nodes_whose_messages_take_time_plan_by_what_they_have_heard(adapt, here):
    line = "replay fit x.trace -n two.toml --planner d-fit --network epsilon=0.2 --format json".split()
    at_once = json.loads(adapt.done(*line).out)
    late = json.loads(adapt.done(*line, "--messages", "delay=150ms").out)
    assert [row["stale"] for row in at_once["ticks"]] == ["no"] * 10
    assert [row["stale"] for row in late["ticks"]][:2] == ["yes", "yes"]
    assert late["parameters"]["message_delay_s"] == 0.15
    assert late["planners"][0]["message_rows"] == sum(row["message_rows"] for row in late["ticks"]) > 0
    assert late["planners"][0]["score"] < at_once["planners"][0]["score"]
    small = json.loads(adapt.done(*line, "--tables", "table-bytes=0.5KiB").out)
    sent = [
        next(row["bytes"] for row in run["traffic"] if row["about"] == "table") - HEADER_BYTES
        for run in (at_once, small)
    ]
    assert sent[1] <= small["parameters"]["table_bytes"] == 512 < sent[0]


def test_a_link_and_costs_times_1000_are_planned_for_and_what_tables_may_lose_is_said(adapt, here):
    desk = '[[operator]]\nname = "pages"\nnode = "desk"'
    link = '[[link]]\nfrom = "edge"\nto = "desk"\nbytes_per_s = 2000\n\n' + desk
    text = TWO_NODES.replace(desk, link).replace("cost =", "out_bytes = 4\ncost =")
    (here / "link.toml").write_text(text)
    (here / "dear.toml").write_text(re.sub(r"cost = (\S+)", lambda cost: f"cost = {float(cost[1]) * 1000}", text))
    line = "--planner c-fit,d-fit,exact --flow fluid --network headroom=0".split()
    for name, grid in (("link", "guaranteed"), ("dear", "guaranteed"), ("link", "paper")):
        document = told(adapt, "x.trace", "-n", f"{name}.toml", *line, "--tables", f"grid={grid}")
        for row in document["planners"]:
            assert row["overloaded"] == 0
            assert row["optimum_share"] >= 1 - (row["epsilon"] or 0) - 0.01
            if row["epsilon"] is not None:
                said = f"{row['planner']} may lose {percent(row['epsilon'])} of the best score"
                assert (said in document["summary"]["notes"]) == (row["epsilon"] > 0.05)
        assert (document["planners"][0]["epsilon"] <= 0.05) == (grid == "guaranteed")


def test_costs_are_fitted_to_measurements_and_recorded(adapt, here):
    rates = np.random.default_rng(0).integers(1, 900, (20, 2))
    edge, desk = rates @ [0.0004, 0.0016], rates @ [0.0012, 0.0004]
    rows = [",".join(map(str, (*pair, a, b))) for pair, a, b in zip(rates.tolist(), edge, desk, strict=True)]
    (here / "used.csv").write_text("\n".join(("clicks,orders,edge,desk", *rows)))
    line = "x.trace -n two.toml --planner exact --flow fluid --utilization used.csv".split()
    costs = told(adapt, *line)["parameters"]["costs"]
    assert costs == pytest.approx({"read": 0.0004, "book": 0.0016, "pages": 0.0012, "sales": 0.0004})
    assert "Fitted costs" in adapt.done("replay", "fit", *line, "--all").out
    refused = adapt.refused(2, "replay", "fit", *line, "--planner", "c-fit", "--plans", "p")
    assert "--plans cannot be combined with --utilization" in refused
    (here / "used.csv").write_text("clicks,orders,edge,shop\n1,1,1,1\n")
    assert "column 'shop' is not an input or node of the network" in adapt.refused(3, "replay", "fit", *line)


def test_rules_are_printed_kept_and_written_as_a_shedder(adapt, here):
    line = "replay fit x.trace -n two.toml --planner exact --network headroom=0 --rules two.rules".split()
    document = json.loads(adapt.done(*line, "--format", "json", "-o", "two.fit").out)
    rule = document["rules"][1]
    kept = r"Keep 500 tuples/s of clicks while more arrives \(3\d%\); keep 1000 tuples/s of orders while more arrives"
    assert re.match(kept, rule["keep"])
    assert (rule["ticks"], rule["bottleneck"]) == (10, "edge, then desk")
    assert [row["node"] for row in document["capacities"]] == ["edge", "desk"]
    adapt.done("report", "two.fit", "--html", "two.html")
    assert "keep 1000 tuples/s of orders" in (here / "two.html").read_text()
    script = [sys.executable, "two.rules/shedder.py", "clicks=1000", "orders=100"]
    assert "clicks -> read" in subprocess.run(script, capture_output=True, text=True, check=True).stdout
    assert "two.rules exists; add --force" in adapt.refused(4, *line)


def test_a_network_is_reported_with_the_load_of_its_nodes(adapt, here):
    said = adapt.done("report", "n.toml")
    assert "└─ few" in said.out.replace("\u00a0", " ")
    assert "1 node, 3 inputs, 2 operators, 2 outputs. No input rates are given" in said.err
    (artefact,) = adapt.json("report", "n.toml")["artefacts"]
    assert artefact["kind"] == "network"
    assert artefact["tables"][1]["rows"][0]["node"] == "edge"


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (("cost = 0.001", "cost = -1"), "operator 'both': cost must be"),
        (('from = "few"', 'from = "fev"'), "output 'less' reads 'fev', which is neither an input nor an operator"),
        (('tick = "100ms"', 'tack = "100ms"'), "settings has an unknown field 'tack'; did you mean 'tick'?"),
    ],
)
def test_a_network_that_cannot_be_is_reported_by_the_element_at_fault(adapt, here, wrong, sentence):
    (here / "wrong.toml").write_text(NETWORK.replace(*wrong))
    said = adapt.refused(3, "report", "wrong.toml", "--html", "n.html")
    assert re.search(rf"wrong.toml: line \d+: {re.escape(sentence)}", said)
    assert not (here / "n.html").exists()


def test_windows_are_dropped_as_the_network_or_an_option_says(adapt, here):
    window = 'kind = "aggregate"\nwindow = { size = "10ms", slide = "10ms" }'
    text = NETWORK.replace('kind = "filter"', window).replace("[settings]", '[settings]\ndrops = "window"\nbatch = 2')
    (here / "w.toml").write_text(text)
    asked = told(adapt, *"x.trace -n w.toml --planner proportional".split())
    assert (asked["parameters"]["settings"]["drops"], asked["parameters"]["settings"]["batch"]) == ("window", 2)
    other = told(adapt, *"x.trace -n w.toml --planner proportional --network drops=random".split())
    assert other["parameters"]["settings"]["drops"] == "random"
    by_arc = [{row["arc"]: row["dropped"] for row in run["drops"]} for run in (asked, other)]
    assert by_arc[0]["clicks -> both"] == by_arc[1]["clicks -> both"]
    assert by_arc[0]["rest -> few"] != by_arc[1]["rest -> few"]


def test_an_input_without_rows_is_warned_of_with_counts(adapt, here):
    said = adapt.done("replay", "fit", "x.trace", "-n", "odd.toml")
    assert "warning: input 'clicks' (stream = 's7') matches none of the 4,000 rows" in said.err


@pytest.mark.parametrize("flow", ["tuples", "fluid"])
def test_the_report_of_a_run_has_its_verdict_its_tables_and_charts_of_every_node(adapt, here, flow):
    document = told(adapt, *f"x.trace -n n.toml --planner none,exact --flow {flow} -o x.fit".split())
    verdict = document["summary"]["verdict"]
    said = adapt.done("report", "x.fit", "--html", "x.html")
    assert " ".join(verdict.split()) in " ".join(said.out.split())
    page = (here / "x.html").read_text()
    assert "Utilization of edge" in page
    assert (">Latency<" in page) == (flow == "tuples")
    assert "Shedders" in page


@pytest.mark.parametrize(
    ("code", "line", "sentence"),
    [
        (2, "x.trace", "--network"),
        (
            3,
            "x.trace -n broken.toml",
            "broken.toml: line 27: operator 'both': cost must be a finite number, at least 0 (got -1)",
        ),
        (3, "x.trace -n unbound.toml", "input 'clicks' has no stream"),
        (3, "bare.trace -n n.toml", "input 'clicks' reads column 'stream', which the trace does not have"),
        (3, "x.trace -n ints.toml", "input 'orders' selects 1, but the column holds string"),
        (3, "back.trace -n n.toml", "is earlier than the row before it; sort the trace by 'ts'"),
        (2, "x.trace -n n.toml --planner exakt", "--planner 'exakt' does not exist; did you mean 'exact'?"),
        (
            2,
            "x.trace -n n.toml --planner exact --plans p",
            "--plans p needs one of solver, solver-w, c-fit, d-fit (got exact)",
        ),
        (3, "x.trace -n n.toml --planner c-fit --plans x.trace", "x.trace is a trace, not a drop-plan table"),
        (2, "x.trace -n n.toml:epsilon=1", "--network epsilon must be above 0 and below 1 (got 1)"),
        (2, "x.trace -n n.toml --planner d-fit --tables table-bytes=30", "--tables table-bytes 30 needs a unit"),
        (2, "x.trace -n n.toml --queue 5 --queue tau2=1", "--queue tau2 must be above 0 and below 1 (got 1)"),
        (2, "x.trace -n n.toml --queue 5 --flow fluid", "--queue has no effect with --flow fluid"),
        (4, "x.trace -n n.toml -o x.trace", "exists; add --force"),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(adapt, here, code, line, sentence):
    before = sorted(here.iterdir())
    assert sentence in adapt.refused(code, "replay", "fit", *line.split())
    assert sorted(here.iterdir()) == before
