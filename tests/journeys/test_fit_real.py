"""Quotes of two venues through the example network, sized at 60 % of its peak, with every planner on one page."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.fit.network.names import DropPlanner
from adapt.core.fit.network.network import ColumnEquals
from adapt.core.fit.network.wiring import Wiring
from adapt.traces.replay.fit import open_network
from adapt.traces.store.runs import read_run
from adapt.traces.store.trace import open_trace
from tests.tiers import soak

EXAMPLE = Path(__file__).parents[2] / "examples" / "fx-ticks.toml"
DOCS = Path(__file__).parents[2] / "docs" / "shedding.md"
ALONE = ("none", "greedy-local")
MINUTE_US = 60_000_000


def ingested(adapt, source, trace):
    venue, instrument = "regexp_extract(_path, '([a-z]+)/tick/', 1)", "regexp_extract(_path, 'tick/([a-z]+)/', 1)"
    midnight = "to_timestamp(regexp_extract(_path, '([0-9]{8})_quote', 1), 'yyyyMMdd')"
    clock = f"if({venue} = 'fxcm', 5 * 3600000, 0)"
    time = f"timestamp_micros(unix_micros({midnight}) + bigint(round((double(_c0) + {clock}) * 1000)))"
    stream = f"concat({venue}, ':', {instrument})"
    mapping = ["--key", stream, "--time", time, "--stream", stream]
    adapt.done("ingest", source, "--format", "csv", "--delimiter", ",", "--no-header", *mapping, "-o", trace)
    return trace


def peak_loads(trace, network):
    """CPU seconds a second that each node needs in its busiest minute, counted from the rows."""
    rows = pa.Table.from_batches(open_trace(trace).batches(["ts", "stream"]))
    times = rows["ts"].cast("int64").to_numpy()
    minutes = (times - times[0]) // MINUTE_US
    streams = rows["stream"].to_numpy()
    rates = np.zeros((minutes[-1] + 1, len(network.inputs)))
    for at, entering in enumerate(network.inputs):
        assert isinstance(entering.stream, ColumnEquals)
        mine = minutes[streams == entering.stream.value]
        rates[:, at] = np.bincount(mine, minlength=len(rates)) / 60
    wiring = Wiring.from_network(network)
    return (wiring.unshed(rates) @ wiring.use.T).max(axis=0)


def documented(row):
    """A planner's line in `docs/shedding.md`."""
    cells = [f"{row['optimum_share_full']:.1%}".replace("%", " %"), f"{row['wait_max']:.1f} s"]
    cells += [f"{row['messages']:,}", f"{row['message_bytes']:,} B"] if row["messages"] else ["none"] * 2
    return f"| {' | '.join((str(row['planner']), *cells))} |"


def check_page(adapt, trace, folder):
    """Every planner over the trace, and what their page and tables say."""
    network = open_network(EXAMPLE).read.network
    capacities = [node.capacity for node in network.nodes]
    assert capacities == pytest.approx(0.6 * peak_loads(trace, network), rel=1e-3)
    planners = ",".join(DropPlanner)
    adapt.done("replay", "fit", trace, "-n", EXAMPLE, "--planner", planners, "-o", folder / "fx.fit", "-q")
    adapt.done("report", EXAMPLE, folder / "fx.fit", "--html", folder / "fx.html", "-q")
    page = (folder / "fx.html").read_text()
    assert all(f">{planner}<" in page for planner in DropPlanner)
    run = read_run(folder / "fx.fit")
    assert 5 < run.summary.records()[0]["full"] < 50
    rows = {str(row["planner"]): row for row in run.tables["planners"].records()}
    best = {name: row["optimum_share_full"] for name, row in rows.items()}
    assert best["exact"] == pytest.approx(best["lp"], abs=2e-3)
    assert best["exact"] == pytest.approx(best["d-fit-cuts"], abs=2e-3)
    assert best["exact"] > best["greedy-local"] > best["proportional"] > best["none"]
    assert best["exact"] > best["c-fit"] > best["d-fit"]
    assert all(rows[name]["wait_max"] < 0.2 * rows["none"]["wait_max"] for name in rows if name != "none")
    assert rows["d-fit-cuts"]["message_bytes"] < 0.01 * rows["d-fit"]["message_bytes"]
    assert "\n".join(map(documented, rows.values())) in DOCS.read_text()
    assert {name: row["messages"] > 0 for name, row in rows.items()} == {name: name not in ALONE for name in rows}


@soak
@pytest.mark.usefixtures("spark")
def test_all_planners_over_fx_ticks_at_60_percent_of_the_peak_are_on_one_page(adapt, real_traces, tmp_path):
    check_page(adapt, ingested(adapt, real_traces("fx-ticks"), tmp_path / "fx.trace"), tmp_path)


def test_the_example_network_is_drawn_as_it_stands(adapt):
    (artefact,) = adapt.json("report", EXAMPLE)["artefacts"]
    elements, nodes = artefact["tables"]
    assert [row["node"] for row in nodes["rows"]] == ["gateway", "desk"]
    assert sum(row["kind"] == "input" for row in elements["rows"]) == 5
