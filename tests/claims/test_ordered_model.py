"""Ordered streams, sections 4, 6 and 7: shapes of Figures 8, 9, 10 and 12 and of the heuristics, by the model.

The figures' numbers are lost in the text we have, so that only shapes are claimed. The constants of contention are
assumptions, given with each claim; what they do to it is seen where two sets stand beside each other.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from statistics import fmean

import numpy as np
import pytest

from adapt.core.ordered.chain.bound import BoundChain
from adapt.core.ordered.chain.names import Heuristic, Reorder, WorkQueue
from adapt.core.ordered.engine.settings import Contention, RunSettings
from adapt.core.ordered.model.model import run_model
from paper.ordered.measured import Ran, every
from paper.ordered.pipelines import one_partitioned, one_stateless, query
from tests.tiers import SOAK

JITTER = 0.3
WORKERS = 16
ROWS = 1_000_000 if SOAK else 300_000
SEEDS = range(3) if SOAK else range(1)
KAPPAS_US = (0.02, 0.05, 0.1, 0.2, 0.3) if SOAK else (0.02, 0.3)
PIPELINED = ("Q1", "Q2", "Q3", "Q4")
HEURISTICS = (Heuristic.CT, Heuristic.LP, Heuristic.ET, Heuristic.QST)


def run(chain: BoundChain, settings: RunSettings, contention: Contention, seed: int) -> Ran:
    timed = replace(settings, mark_every=every(len(chain.tuples)))
    return Ran.of(len(chain.tuples), run_model(chain, timed, contention, np.random.default_rng([seed, 1])).run)


@cache
def of_query(name: str, seed: int, heavier: float = 1.0) -> BoundChain:
    return query(name, ROWS, seed, heavier=heavier)


@cache
def by_heuristic(name: str, kappa_us: float, seed: int) -> Mapping[Heuristic, Ran]:
    """Work queues are long, as the paper's are."""
    return {
        heuristic: run(
            of_query(name, seed),
            RunSettings(WORKERS, heuristic=heuristic, queue_capacity=1 << 16),
            Contention(JITTER, kappa_us),
            seed,
        )
        for heuristic in HEURISTICS
    }


def mean_of(measure: Callable[[Ran], float], name: str, kappa_us: float) -> dict[Heuristic, float]:
    """Of each heuristic, over the seeds, as the paper takes the mean of three runs."""
    runs = [by_heuristic(name, kappa_us, seed) for seed in SEEDS]
    return {heuristic: fmean(measure(run[heuristic]) for run in runs) for heuristic in HEURISTICS}


@pytest.mark.parametrize("name", PIPELINED)
@pytest.mark.parametrize("kappa_us", KAPPAS_US)
def test_figure_8a_ct_passes_most_tuples_wherever_crowding_costs_anything(name: str, kappa_us: float) -> None:
    rates = mean_of(lambda ran: ran.rate, name, kappa_us)
    assert max(rates, key=lambda heuristic: rates[heuristic]) is Heuristic.CT, rates


@pytest.mark.parametrize("name", PIPELINED)
@pytest.mark.parametrize("kappa_us", KAPPAS_US)
def test_figure_8b_lp_has_the_lowest_latency_and_et_ten_times_that_of_ct(name: str, kappa_us: float) -> None:
    latency_ms = mean_of(lambda ran: ran.latency_ms, name, kappa_us)
    level = 1.25 if kappa_us == min(KAPPAS_US) else 1  # with so little crowding CT is level with LP, and may pass it
    assert latency_ms[Heuristic.LP] <= level * min(latency_ms.values()), latency_ms
    assert latency_ms[Heuristic.ET] >= 10 * latency_ms[Heuristic.CT], latency_ms


@pytest.mark.parametrize(("sigma", "least", "most"), [(0.1, 4.0, 16.0), (3.0, 1.0, 1.1)])
def test_figure_9_the_hybrid_queue_minds_no_skew_and_the_partitioned_one_collapses(
    sigma: float, least: float, most: float
) -> None:
    for seed in SEEDS:
        hybrid, partitioned = (
            run(
                one_partitioned(60_000, seed, 10, partitions, sigma),
                RunSettings(WORKERS, work_queue=work_queue),
                Contention(JITTER),
                seed,
            ).rate
            for work_queue, partitions in ((WorkQueue.HYBRID, 100), (WorkQueue.PARTITIONED, WORKERS))
        )
        assert least <= hybrid / partitioned <= most


@pytest.mark.parametrize("cost_us", [10.0, 100.0, 1000.0, 10_000.0] if SOAK else [10.0, 1000.0])
def test_figure_10_latency_is_near_the_cost_with_the_hybrid_queue_only(cost_us: float) -> None:
    for seed in SEEDS:
        chain = one_partitioned(30_000, seed, cost_us, 100)
        hybrid, partitioned = (
            run(chain, RunSettings(8, work_queue=work_queue), Contention(JITTER), seed)
            for work_queue in (WorkQueue.HYBRID, WorkQueue.PARTITIONED)
        )
        assert hybrid.latency_ms * 1000 <= 1.5 * cost_us
        assert partitioned.latency_ms * 1000 >= 20 * cost_us
        assert hybrid.rate == pytest.approx(partitioned.rate, rel=0.05)


@pytest.mark.parametrize(
    ("cost_us", "send_us", "lock_handover_us", "least", "most"),
    [
        (1.0, 0.05, 0.15, 1.5, 16.0),
        # The paper has its gap at tens of microseconds. A section as long as ours was measured to be has none there;
        (10.0, 0.05, 0.15, 0.98, 1.02),
        # one ten times as long does.
        (10.0, 0.5, 0.5, 1.3, 16.0),
    ],
)
def test_figure_12_a_lock_bounds_what_many_workers_can_do(
    cost_us: float, send_us: float, lock_handover_us: float, least: float, most: float
) -> None:
    contention = Contention(JITTER, send_us=send_us, lock_handover_us=lock_handover_us)
    for seed in SEEDS:
        chain = one_stateless(40_000, seed, cost_us)
        free, locked = (
            run(chain, RunSettings(WORKERS, reorder), contention, seed).rate
            for reorder in (Reorder.CLAIM, Reorder.LOCK)
        )
        assert least <= free / locked <= most


def test_ct_as_it_is_printed_starves_operators_of_low_selectivity() -> None:
    for seed in SEEDS:
        printed, upstream = (
            run(
                of_query("Q1", seed, 10.0),
                RunSettings(WORKERS, heuristic=heuristic, queue_capacity=1 << 16),
                Contention(JITTER),
                seed,
            )
            for heuristic in (Heuristic.CT_LITERAL, Heuristic.CT)
        )
        assert printed.latency_ms >= 50 * upstream.latency_ms
        assert printed.rate <= upstream.rate
