"""A trace on disk through a query network, and what is kept of it."""

from dataclasses import replace
from itertools import count

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.errors import BadInput, UsageError
from adapt.core.fit.network.names import DropPlanner
from adapt.core.fit.network.settings import Observing, SheddingSettings
from adapt.core.fit.planners.solver import Observed
from adapt.core.fit.registry import planner_of
from adapt.traces.replay.files.workloads import open_true
from adapt.traces.replay.fit import FitReplay, open_network
from adapt.traces.replay.replay import replay
from adapt.traces.reports.reporting import reported
from adapt.traces.store.drop_plans import read_drop_plans
from adapt.traces.store.manifest import read_manifest
from adapt.traces.store.runs import read_run
from adapt.traces.store.trace import open_trace
from tests.core.fit.options import fit_options, planner_options
from tests.traces.small_traces import write_trace

ROWS = 4_000
NETWORK = """
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
name = "parse"
node = "edge"
kind = "map"
inputs = ["clicks"]
cost = 0.001

[[operator]]
name = "book"
node = "edge"
kind = "map"
inputs = ["orders"]
cost = 0.0005

[[operator]]
name = "tally"
node = "desk"
kind = "map"
inputs = ["parse"]
cost = 0.0016

[[operator]]
name = "alarm"
node = "desk"
kind = "map"
inputs = ["tally"]
cost = 0.0002

[[operator]]
name = "sum"
node = "desk"
kind = "map"
inputs = ["tally"]
cost = 0.0004

[[output]]
name = "alarms"
from = "alarm"

[[output]]
name = "pages"
from = "sum"

[[output]]
name = "sales"
from = "book"
weight = 3.0
"""

TABLES = (DropPlanner.SOLVER, DropPlanner.C_FIT, DropPlanner.D_FIT)
SETTINGS = SheddingSettings(tick_us=100_000, lag_ticks=0)


@pytest.fixture
def here(tmp_path):
    """A trace of four thousand rows in a second, and a network."""
    chance = np.random.default_rng(1)
    columns = {
        "ts": np.arange(ROWS) * 1_000_000 // ROWS,
        "key": pa.array([f"k{key}" for key in chance.integers(0, 9, ROWS)]),
        "stream": pa.array([f"s{side}" for side in chance.integers(0, 2, ROWS)]),
    }
    write_trace(tmp_path / "x.trace", columns)
    (tmp_path / "n.toml").write_text(NETWORK)
    return tmp_path


def replayed(
    here, out=None, step=1.0, planners=(DropPlanner.EXACT, *TABLES), settings=SETTINGS, options=None, **others
):
    seconds, warn = count(step=step), others.pop("warn", None)
    shedding = fit_options(planners, settings, **(options or {}))
    network, clock = open_network(here / "n.toml"), lambda: next(seconds)
    fit = FitReplay(network, shedding, clock=clock, warn=warn, **others)
    return replay(open_trace(here / "x.trace"), fit, out and here / out)


def test_the_content_hash_of_a_run_is_of_what_was_measured_not_of_how_long_planning_took(here):
    fast, slow = replayed(here, "fast.fit"), replayed(here, "slow.fit", step=7.0)
    other = replayed(here, "other.fit", planners=TABLES)
    assert fast.outcomes[0].planned_s < slow.outcomes[0].planned_s
    hashes = {name: read_run(here / f"{name}.fit").manifest.content_hash for name in ("fast", "slow", "other")}
    assert hashes["fast"] == hashes["slow"] != hashes["other"]
    assert other.parameters != fast.parameters


def test_the_report_of_a_run_with_true_values_shows_how_wrong_they_were_known(here):
    (here / "true.toml").write_text('[[change]]\nat = "300ms"\noperator = "book"\ncost = 0.001\n')
    named = open_network(here / "n.toml")
    options = {"true": open_true(str(here / "true.toml"), named.read.network), "observing": Observing(4)}
    made = replayed(here, "true.fit", planners=(DropPlanner.EXACT, DropPlanner.D_FIT), options=options)
    stored = read_run(here / "true.fit")
    assert stored.parameters["observing"] == {"window": 4, "important": 0.2}
    assert {row["operator"] for row in stored.tables["changes"].records()} == {"book"}
    assert stored.tables["statistics"] == made.tables()["statistics"]
    told = reported(here / "true.fit")
    titles = [table.title for table in told.tables]
    assert {"Observed statistics", "Estimates", "Important changes"} <= set(titles)
    assert "The optimum knows the true values." in made.notes()
    (here / "true.toml").write_text('[[change]]\nat = "300ms"\noperator = "pars"\ncost = 0.002\n')
    with pytest.raises(BadInput, match=r"true.toml: change 1: operator 'pars' does not exist; did you mean 'parse'"):
        open_true(str(here / "true.toml"), named.read.network)
    with pytest.raises(BadInput, match="cannot be read"):
        open_true(str(here / "none.toml"), named.read.network)


def test_plans_made_in_advance_are_used_again_and_change_nothing(here):
    alone = replayed(here)
    made = replayed(here, plans=here / "n.plans")
    read = replayed(here, "again.fit", plans=here / "n.plans")
    assert made.parameters == read.parameters
    assert made.parameters["plans"] == read_manifest(here / "n.plans").content_hash
    assert [run_without_times(run) for run in (made, read)] == [run_without_times(alone)] * 2
    kept = [each["name"] for each in read_run(here / "again.fit").manifest.made.inputs]
    assert kept == ["x.trace", "n.plans"]


def run_without_times(run):
    return [outcome.scores.tolist() for outcome in run.outcomes], [outcome.plans for outcome in run.outcomes]


def test_tables_come_back_bit_for_bit_with_the_plans_they_find(here):
    made = replayed(here, plans=here / "n.plans", planners=(*TABLES, DropPlanner.SOLVER_W))
    kept = read_drop_plans(here / "n.plans").plans
    rates = np.random.default_rng(2).uniform(0, 2 * made.rates.max(axis=0), (500, 2))
    for name in (*TABLES, DropPlanner.SOLVER_W):
        options = planner_options(
            settings=SETTINGS, max_rates=kept.max_rates, workload=Observed(made.rates), grid=kept.grid
        )
        fresh, back = planner_of(name, made.network, options).plan(rates), kept.planners[name].plan(rates)
        assert fresh.keeps.tolist() == back.keeps.tolist()
        assert fresh.ids.tolist() == back.ids.tolist()


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (("cost = 0.0005", "cost = 0.0007"), "operator 'book' has cost 0.0005 there and 0.0007 here"),
        (('name = "sales"', 'name = "bought"'), "output 'bought' is only in the given network"),
        (("weight = 3.0", "weight = 2.0"), "output 'sales' has weight 3 there and 2 here"),
    ],
)
def test_plans_of_another_network_are_refused_by_what_differs(here, changed, sentence):
    replayed(here, plans=here / "n.plans")
    (here / "n.toml").write_text(NETWORK.replace(*changed))
    with pytest.raises(BadInput, match=sentence) as refused:
        replayed(here, plans=here / "n.plans")
    assert "n.plans belongs to another network" in str(refused.value)


def test_plans_made_otherwise_or_of_other_planners_are_refused(here):
    replayed(here, plans=here / "n.plans", planners=(DropPlanner.SOLVER,))
    with pytest.raises(BadInput, match="has no plans of c-fit, only of solver"):
        replayed(here, plans=here / "n.plans")
    with pytest.raises(BadInput, match=r"made with epsilon 0.05, not 0.2"):
        replayed(here, plans=here / "n.plans", settings=replace(SETTINGS, epsilon=0.2))
    with pytest.raises(UsageError, match=r"needs one of .* \(got exact, none\)"):
        replayed(here, plans=here / "other.plans", planners=(DropPlanner.EXACT, DropPlanner.NONE))
    with pytest.raises(BadInput, match="a trace, not a drop-plan table"):
        replayed(here, plans=here / "x.trace")


def test_rows_that_come_faster_than_plans_are_for_are_warned_of(here):
    replayed(here, plans=here / "n.plans")
    said = []
    replayed(here, plans=here / "n.plans", options={"speedup": 2.0}, warn=said.append)
    assert len(said) == 2
    assert said[0].startswith("input 'clicks' reaches 4,")


def test_what_comes_in_is_no_part_of_the_network_that_plans_are_for(here):
    replayed(here, plans=here / "n.plans")
    (here / "n.toml").write_text(NETWORK.replace('equals = "s0"', 'equals = "s1"').replace("[[node]]", "\n[[node]]"))
    replayed(here, plans=here / "n.plans")


@pytest.mark.parametrize("settings", [SETTINGS, replace(SETTINGS, feedback=True)])
def test_nodes_go_on_from_kept_tables_as_they_would_have(here, settings):
    told = {"delay_s": 0.15, "distance": 0.01, "cost_scale": 1.4}
    made, read = (
        replayed(here, planners=(DropPlanner.D_FIT,), settings=settings, plans=here / "n.plans", options=told)
        for _ in range(2)
    )
    assert made.outcomes[0].sent == read.outcomes[0].sent
    assert made.outcomes[0].sent.rows > 0
    keeps = [[decision.keeps.tolist() for decision in run.outcomes[0].decisions] for run in (made, read)]
    assert keeps[0] == keeps[1]
    stale = [decision.stale for decision in read.outcomes[0].decisions]
    assert any(stale) == settings.feedback, "what was made in advance was told in advance"


def test_the_report_shows_every_plan_with_its_conditions_and_score(here):
    replayed(here, plans=here / "n.plans")
    told = reported(here / "n.plans")
    assert told.kind == "drop-plan table"
    solver, c_fit, edge, desk, messages = told.tables
    assert [solver.title, c_fit.title] == ["Drop plans of solver", "Drop plans of c-fit"]
    assert [edge.title, desk.title] == ["Drop plans of d-fit, node edge", "Drop plans of d-fit, node desk"]
    assert {"plan", "parse -> tally from", "score", "keep tally -> sum"} <= {column.name for column in desk.columns}
    assert {tuple(row[:3]) for row in messages.rows} == {
        ("edge", "desk", "bounds"),
        ("desk", "edge", "table"),
        ("desk", "edge", "conditions"),
    }
    assert solver.values("plan") == list(range(1, len(solver.rows) + 1))
    assert max(solver.values("error")) <= SETTINGS.epsilon
    assert {"clicks from", "orders to", "score", "keep clicks -> parse"} <= {column.name for column in c_fit.columns}
    assert any("Drop plans of solver: " in sentence for sentence in told.sentences)


def test_any_changed_byte_of_kept_plans_is_found(here):
    replayed(here, plans=here / "n.plans")
    path = here / "n.plans" / "solver-0-0-regions.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:40] + bytes([whole[40] ^ 1]) + whole[41:])
    with pytest.raises(BadInput, match="solver-0-0-regions"):
        replayed(here, plans=here / "n.plans")
