"""Arrivals of an ordered replay: their spacing, and what a run with them reports."""

from dataclasses import replace

import numpy as np
import pytest

from adapt.core.errors import UsageError
from adapt.core.ordered.chain.bound import BoundChain
from adapt.core.ordered.chain.names import Backend, Spacing
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.replay.arrivals import Arrivals, Ordered, Paced
from adapt.core.ordered.replay.charts import ordered_charts
from adapt.core.ordered.replay.replay import replay_ordered
from adapt.core.ordered.replay.tables import OrderedRun
from tests.core.ordered.chains import bound, counting, stateless

TIMES_US = np.array([10, 10, 30, 70])


def paced(arrivals: Arrivals, rows: int = 4, capacity: float | None = None, seed: int = 0) -> Paced:
    return arrivals.paced(bound([stateless("a")], rows), capacity, TIMES_US, seed)


def test_even_arrivals_have_equal_gaps() -> None:
    made = paced(Arrivals(rate=1000, spacing=Spacing.EVEN))
    assert made.arrivals_ns.tolist() == [0, 1_000_000, 2_000_000, 3_000_000]
    assert made.last_s == 0.003


def test_a_speed_up_divides_the_gaps_of_the_trace() -> None:
    assert paced(Arrivals(speedup=0.5)).arrivals_ns.tolist() == [0, 0, 40_000, 120_000]


def test_a_rate_with_the_spacing_of_the_trace_keeps_its_bursts() -> None:
    made = paced(Arrivals(rate=1_000_000, spacing=Spacing.TRACE))
    assert made.arrivals_ns.tolist() == [0, 0, 1000, 3000]  # three gaps in 3 us


def test_an_offered_load_is_a_share_of_the_capacity() -> None:
    offered, rate = Arrivals(offered=0.5, spacing=Spacing.EVEN), Arrivals(rate=500, spacing=Spacing.EVEN)
    assert paced(offered, capacity=1000.0).arrivals_ns.tolist() == paced(rate).arrivals_ns.tolist()


def test_random_gaps_are_exponential_and_only_scaled_by_the_rate() -> None:
    slow, fast = (paced(Arrivals(rate=rate), rows=20_000).arrivals_ns for rate in (1000.0, 4000.0))
    gaps = np.diff(slow) / 1e6
    assert gaps.mean() == pytest.approx(1, rel=0.03)
    assert gaps.std() == pytest.approx(1, rel=0.03)
    assert (gaps > 2).mean() == pytest.approx(np.exp(-2), rel=0.06)
    assert slow / 4 == pytest.approx(fast, abs=1)
    assert paced(Arrivals(rate=1000), seed=1).arrivals_ns.tolist() != slow[:4].tolist()


def test_a_punctuation_arrives_with_the_row_before_it() -> None:
    chain = bound([stateless("a")], 5)
    chain = replace(chain, punctuations=np.array([0, 3]))  # rows 1, 2 and 4
    made = Arrivals(rate=1e9, spacing=Spacing.EVEN).paced(chain, None, None, 0)
    assert made.arrivals_ns.tolist() == [0, 0, 1, 1, 2]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "one of rate, offered, sustained and speedup (got none)"),
        ({"rate": 1.0, "speedup": 2.0}, "(got rate, speedup)"),
        ({"rate": 0.0}, "rate must be above 0 (got 0)"),
        ({"offered": float("inf")}, "offered must be above 0 (got inf)"),
    ],
)
def test_arrivals_out_of_range_are_refused(given: dict[str, float], told: str) -> None:
    with pytest.raises(UsageError) as refused:
        Arrivals(**given)  # type: ignore[arg-type]
    assert told in str(refused.value)


def test_arrivals_that_the_trace_cannot_give_are_refused() -> None:
    chain = bound([stateless("a")], 4)
    with pytest.raises(UsageError, match="all rows have the same time"):
        Arrivals(speedup=2).paced(chain, None, np.array([5, 5, 5, 5]), 0)
    with pytest.raises(UsageError, match="times_us must be in ascending order"):
        Arrivals(speedup=2).paced(chain, None, np.array([5, 7, 6, 8]), 0)
    with pytest.raises(UsageError, match="the last row would arrive after 3e"):
        paced(Arrivals(rate=1e-9, spacing=Spacing.EVEN))


def replayed(chain: BoundChain, ordered: Ordered) -> OrderedRun:
    return replay_ordered(chain, ordered, clock=lambda: 0.0, cpu_clock=lambda: 0.0)


def at_load(load: float, workers: tuple[int, ...] = (1, 4), spacing: Spacing = Spacing.POISSON) -> OrderedRun:
    chain, arrivals = bound([stateless("a", cost=5.0)], 100_000), Arrivals(offered=load, spacing=spacing)
    settings = RunSettings(mark_every=1, chunk=1)
    return replayed(chain, Ordered(workers, Backend.SIM, settings, arrivals=(arrivals,), check=0))


def test_the_mean_wait_of_random_arrivals_is_that_of_pollaczek_and_khinchine() -> None:
    run = at_load(0.7, (1,))
    wait = run.outcomes[0].run.marks.entered - run.outcomes[0].run.marks.fed
    service_s = 1 / (run.outcomes[0].paced.capacity or 0.0)  # type: ignore[union-attr]
    assert wait.mean() / 1e9 == pytest.approx(0.7 * service_s / (2 * 0.3), rel=0.06)


def test_workers_keep_up_below_their_capacity_and_fall_behind_above_it() -> None:
    for load in (0.5, 0.9, 1.5):
        run = at_load(load)
        rows = run.tables()["workers"].records()
        assert [row["keeps_up"] for row in rows] == [load < 1] * 2
        for row in rows:
            assert row["rate"] == pytest.approx(load * float(row["capacity"] or 0), rel=0.02)  # type: ignore[arg-type]
            assert row["throughput"] == pytest.approx(min(load, 1) * float(row["capacity"] or 0), rel=0.03)  # type: ignore[arg-type]
        assert rows[1]["speed_up"] == rows[1]["capacity"] / rows[0]["capacity"]  # type: ignore[operator]
        assert ("fall behind" in run.conclusion()) == (load > 1)


def test_a_fixed_rate_gives_no_speed_up() -> None:
    chain = bound([stateless("a", cost=5.0)], 2000)
    run = replayed(chain, Ordered((1, 2), Backend.SIM, arrivals=(Arrivals(rate=1000.0),)))
    rows = run.tables()["workers"].records()
    assert [(row["speed_up"], row["capacity"], row["keeps_up"]) for row in rows] == [(None, None, True)] * 2
    rates = [{"rate": 1000.0, "offered": None, "sustained": None, "speedup": None, "spacing": "poisson"}]
    assert run.as_data()["parameters"]["arrivals"] == {"seed": 0, "rates": rates}
    assert "loads" not in run.tables()


def test_several_loads_have_a_table_and_a_chart_of_the_latency() -> None:
    chain = bound([stateless("a", cost=5.0)], 5000)
    loads = tuple(Arrivals(offered=load) for load in (0.3, 0.6, 0.9))
    run = replayed(chain, Ordered((1, 2), Backend.SIM, arrivals=loads))
    tables = run.tables()
    rows = tables["loads"].records()
    assert [row["workers"] for row in rows] == [1, 2] * 3
    assert [row["rate"] / row["capacity"] for row in rows] == pytest.approx([0.3, 0.3, 0.6, 0.6, 0.9, 0.9], rel=0.05)  # type: ignore[operator]
    assert all(row["ordered"] is True for row in rows)
    for workers in (1, 2):
        latencies = [float(row["end_to_end_p99"] or 0) for row in rows if row["workers"] == workers]  # type: ignore[arg-type]
        assert latencies == sorted(latencies)
        assert latencies[-1] == tables["workers"].records()[workers - 1]["end_to_end_p99"]
    shown = ordered_charts(tables["workers"], tables["operators"], tables["occupancy"], tables["loads"])[0]
    points = [each for each in shown.spec["data"]["values"] if each["series"] == "2 workers, p99"]
    assert [each["y"] for each in points] == [row["end_to_end_p99"] for row in rows if row["workers"] == 2]


def test_threads_report_the_lag_of_their_feeder_and_the_output_of_the_serial_run() -> None:
    chain = bound([stateless("a"), counting("b")], 2000)
    run = replayed(chain, Ordered((1, 2), arrivals=(Arrivals(offered=0.4), Arrivals(offered=0.5)), repeats=2))
    for one, row in zip(run.outcomes, run.tables()["workers"].records(), strict=True):
        assert one.is_ordered
        assert 0 <= float(row["feeder_lag_p99"] or 0) <= float(row["feeder_lag_max"] or 0)  # type: ignore[arg-type]
        assert row["runs"] == 2
        assert float(row["capacity"] or 0) > 0  # type: ignore[arg-type]


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("rate", [2_000.0, 100_000.0, 1e9])
def test_threads_start_no_row_before_it_arrives(workers: int, rate: float) -> None:
    rows = 50 if rate < 10_000 else 3_000
    chain, settings = bound([stateless("a"), counting("b")], rows), RunSettings(mark_every=1)
    run = replayed(chain, Ordered((workers,), settings=settings, arrivals=(Arrivals(rate=rate),)))
    marks, paced = run.outcomes[0].run.marks, run.outcomes[0].paced
    assert run.outcomes[0].is_ordered
    assert paced is not None
    assert np.diff(marks.fed).tolist() == np.diff(paced.arrivals_ns).tolist()
    assert (marks.entered >= marks.fed).all()
    assert (marks.left > marks.entered).all()
    assert (marks.lag >= 0).all()
    assert (marks.lag <= marks.entered - marks.fed).all()
