"""Ordered replays: real workers against the serial run, the model against known results."""

from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.errors import UsageError
from adapt.core.ordered.chain.bound import BoundChain, bind
from adapt.core.ordered.chain.names import Backend, CostSource, Heuristic, Reorder, WorkQueue
from adapt.core.ordered.engine.reference import Egress, Marks, OperatorTally, WorkersRun, run_serially
from adapt.core.ordered.engine.settings import Contention, RunSettings
from adapt.core.ordered.presets.presets import PRESETS
from adapt.core.ordered.replay.arrivals import Ordered
from adapt.core.ordered.replay.outcome import Latency, Repeats, WorkersOutcome, bound_of, median_of
from adapt.core.ordered.replay.replay import replay_ordered
from adapt.core.ordered.replay.tables import OrderedRun
from tests.core.ordered.chains import bound, counting, partitioned, stateful, stateless

NONE = Contention()
ROWS = 2000


def replayed(chain: BoundChain, ordered: Ordered) -> OrderedRun:
    """Replay with a clock that advances a millisecond per call."""
    ticks = count()
    return replay_ordered(chain, ordered, clock=lambda: next(ticks) / 1000, cpu_clock=lambda: next(ticks) / 1000)


def some_chain() -> BoundChain:
    return bound([stateless("a", 0.5), partitioned("b", 8), counting("c", 4), stateful("d")], ROWS)


def test_real_workers_give_the_egress_of_the_serial_run() -> None:
    chain = some_chain()
    settings = RunSettings(
        reorder=Reorder.LOCK, work_queue=WorkQueue.PARTITIONED, heuristic=Heuristic.LP, ring_buffer=64
    )
    run = replayed(chain, Ordered((1, 3), settings=settings, cores=2))
    serial = run_serially(chain)
    assert [one.is_ordered for one in run.outcomes] == [True, True]
    assert run.egress == serial.egress
    records = run.tables()["operators"].records()
    assert [(row["workers"], row["operator"]) for row in records] == [(n, name) for n in (1, 3) for name in "abcd"]
    assert [row["inputs"] for row in records[:4]] == list(serial.inputs)
    assert all(float(row["cost"] or 0) > 0 for row in records)
    shares = [row["share"] for row in run.tables()["partitions"].records() if row["operator"] == "b"]
    assert sum(map(float, shares)) == pytest.approx(1)  # type: ignore[arg-type]
    assert shares == sorted(shares, reverse=True)  # type: ignore[type-var]
    assert all(row["up_to"] <= 127 for row in run.tables()["occupancy"].records())  # type: ignore[operator]
    verdict = " ".join([run.conclusion(), *run.notes()])
    assert "This machine has only 2 cores, so the results for 3 workers" in verdict
    assert "The output equals that of the serial run, tuple for tuple." in verdict


def test_an_egress_that_differs_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    real = run_serially(some_chain())
    wrong = replace(real, egress=Egress(real.egress.tuples, real.egress.hash ^ 1))
    monkeypatch.setattr("adapt.core.ordered.replay.replay.run_serially", lambda *_, **__: wrong)
    summary = replayed(some_chain(), Ordered((1, 2))).summary().records()[0]
    assert summary["order_violations"] == 2
    assert "OUT OF ORDER: the output of 1 and 2 workers" in str(summary["verdict"])


def test_without_the_serial_run_nothing_is_compared_with_it() -> None:
    run = replayed(some_chain(), Ordered((1,), check=0))
    summary = run.summary().records()[0]
    assert run.outcomes[0].is_ordered is None
    assert summary["order_violations"] is None
    assert "The output was not compared with a serial run." in run.notes()


def test_workers_of_a_model_without_contention_scale_linearly() -> None:
    chain = bound([stateless("a", cost=10.0)], ROWS)
    run = replayed(chain, Ordered((1, 2, 8), Backend.SIM, contention=NONE))
    assert [one.throughput for one in run.outcomes] == [pytest.approx(n * 1e5, rel=0.01) for n in (1, 2, 8)]
    assert [row["speed_up"] for row in run.tables()["workers"].records()] == pytest.approx([1, 2, 8], rel=0.01)
    assert run.costs is not None
    assert run.costs.sources == (CostSource.CHAIN,)
    assert all(one.is_ordered for one in run.outcomes)
    assert [row["value"] for row in run.tables()["constants"].records()] == [0] * 8
    assert run.conclusion().startswith("In the model, use 8 workers: they process ")


def test_the_model_says_the_same_again_and_otherwise_with_another_seed() -> None:
    chain = bound([stateless("a", 0.5, cost=1.0), replace(stateful("b"), cost=1.0)], ROWS)
    how = Ordered((2,), Backend.SIM, contention=Contention(jitter=0.5), seed=3)
    first, again, other = (replayed(chain, one).as_data() for one in (how, how, replace(how, seed=4)))
    assert first == again
    assert first["workers"] != other["workers"]


def test_costs_that_the_chain_does_not_say_are_measured_with_one_real_worker() -> None:
    chain = bound([stateless("a", 0.25), counting("c", 4), replace(stateful("d"), cost=2.0)], ROWS)
    run = replayed(chain, Ordered((4,), Backend.SIM, settings=RunSettings(reorder=Reorder.LOCK), contention=NONE))
    assert run.costs is not None
    assert run.costs.sources == (CostSource.THREADS, CostSource.THREADS, CostSource.CHAIN)
    assert run.costs.selectivities[0] == run_serially(chain).inputs[1] / ROWS
    assert all(us is not None and us >= 0 for us in run.costs.us)
    assert run.outcomes[0].is_ordered
    assert run.tables()["workers"].note == "No speed-up: it needs a run with 1 worker; add 1 to --workers."


@pytest.mark.parametrize("backend", Backend)
def test_a_ring_buffer_that_retry_makes_larger_is_named(backend: Backend) -> None:
    settings = RunSettings(ring_buffer=64, reorder=Reorder.RETRY, work_queue=WorkQueue.PARTITIONED)
    run = replayed(bound([stateless("a"), partitioned("b", 64)], ROWS), Ordered((2,), backend, settings))
    operators = run.tables()["operators"]
    assert operators.values("ring_buffer") == [64, 4096]
    assert operators.note.startswith("Operator 'b' has a ring buffer of 4,096 instead of 64")
    assert run.outcomes[0].is_ordered
    claims = replace(settings, reorder=Reorder.CLAIM)
    assert not replayed(bound([partitioned("b", 64)], ROWS), Ordered((1,), settings=claims)).tables()["operators"].note


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"workers": ()}, "workers must name at least one"),
        ({"workers": (1, 0)}, r"workers must be from 1 to 256 \(got 0\)"),
        ({"workers": (257,)}, r"workers must be from 1 to 256 \(got 257\)"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        Ordered(**{"workers": (1,), **given})


def outcome(*operators: tuple[str, float, list[int]]) -> WorkersOutcome:
    """Of a second, with so much time and such partitions of each operator."""
    tallies = tuple(
        OperatorTally(name, sum(loads), 0, np.array(loads), round(busy_s * 1e9)) for name, busy_s, loads in operators
    )
    nothing = np.zeros(0, np.int64)
    marks = Marks(nothing, nothing, nothing)
    return WorkersOutcome(2, 100, WorkersRun(Egress(0, 0), 1.0, tallies, marks, np.zeros((0, 1), np.int64)), True, 1.5)


def test_what_one_worker_at_a_time_has_to_do_bounds_the_speed_up() -> None:
    operators = some_chain().operators
    told = outcome(("a", 0.5, [100]), ("b", 0.3, [50, 10, 10, 10, 10, 10, 0, 0]), ("c", 0.1, [25] * 4), ("d", 0.1, [9]))
    found = bound_of(operators, told)
    assert found is not None
    assert (found.operator, found.speed_up, found.share) == ("b", pytest.approx(1 / 0.15), pytest.approx(0.15))
    told = outcome(("a", 0.5, [100]), ("b", 0.1, [10] * 8), ("c", 0.1, [25] * 4), ("d", 0.3, [9]))
    found = bound_of(operators, told)
    assert found is not None
    assert (found.operator, found.speed_up) == ("d", pytest.approx(1 / 0.3))
    assert bound_of(bound([stateless("a")], 10).operators, outcome(("a", 1.0, [10]))) is None
    assert (told.throughput, told.cores, told.share_of_time(told.run.operators[0].busy_ns)) == (100, 1.5, 0.25)
    assert told.imbalance == 1.0


def test_latency_is_of_the_timed_rows_between_the_20th_and_the_80th_hundredth() -> None:
    """Of a hundred that take 0, 1, 2, ... seconds, those from 20 to 79."""
    fed = np.arange(100, dtype=np.int64) * 10**9
    marks = Marks(fed, fed + 10**8, fed + np.arange(100) * 10**9)
    assert Latency.from_seconds(marks.end_to_end_s()) == Latency(49.5, 49.0, 76.0, 79.0)
    assert Latency.from_seconds(np.zeros(0)) is None


def test_the_model_says_whose_skew_it_does_not_know() -> None:
    clicks = pa.table({"ts": np.arange(200), "key": np.arange(200) % 7, "item": np.arange(200) % 5})
    pages = pa.array([("view", "view", "checkout")[row % 3] for row in range(200)])
    columns = {**{name: clicks[name] for name in clicks.column_names}, "page": pages}
    columns["ts"] = clicks["ts"].cast(pa.timestamp("us", "UTC"))
    run = replayed(bind(PRESETS["retail-q3"].chain, columns), Ordered((1, 2), Backend.SIM))
    assert "The keys of operator 'top' are made in the chain, so the model ignores their skew." in run.notes()
    assert "ignores their skew" not in " ".join(replayed(some_chain(), Ordered((1,), Backend.SIM)).notes())


def test_of_several_runs_the_median_is_shown_with_the_spread():
    run = replayed(some_chain(), Ordered((1, 2), repeats=3))
    for outcome, row in zip(run.outcomes, run.tables()["workers"].records(), strict=True):
        assert row["runs"] == 3
        assert row["throughput_low"] <= outcome.throughput <= row["throughput_high"]
        assert row["noise"] >= 1
        assert row["processing_p50"] + row["wait_p50"] > 0
    assert "median of 3 runs" in run.conclusion()


def test_the_median_of_runs_is_the_lower_of_the_two_in_the_middle():
    run = replayed(some_chain(), Ordered((1,))).outcomes[0]
    four = [replace(run, rows=rows, is_ordered=rows != 3) for rows in (4, 2, 1, 3)]
    found = median_of(four, [1.0, 3.0, 2.0, 1.5])
    assert found.rows == 2
    assert not found.is_ordered
    latencies = {"processing": run.processing, "wait": run.wait, "end_to_end": run.end_to_end}  # all runs have the same
    assert found.repeats == Repeats(4, four[2].throughput, four[0].throughput, 3.0, latencies)


def test_each_percentile_of_a_latency_is_the_median_over_the_runs():
    run = replayed(some_chain(), Ordered((1,))).outcomes[0]
    ends = ([10] * 100, [20] * 100, [1] * 50 + [90] * 50)  # medians of p50: 10; of p95 and p99: 20; of the mean: 20
    none = np.zeros(100, np.int64)
    runs = [replace(run, repeats=None, run=replace(run.run, marks=Marks(none, none, np.array(each)))) for each in ends]
    found = median_of(runs, [1.0] * 3).end_to_end
    assert found is not None
    ns = [1e9 * each for each in (found.mean, found.p50, found.p95, found.p99)]
    assert ns == pytest.approx([20, 10, 20, 20])


def test_no_run_is_refused():
    with pytest.raises(UsageError, match="at least 1"):
        Ordered((1,), repeats=0)
