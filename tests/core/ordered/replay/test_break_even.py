"""Break-even of workers, against brute force and hand-made spreads."""

from dataclasses import replace

import numpy as np
import pytest

from adapt.core.ordered.chain.bound import BoundChain
from adapt.core.ordered.chain.names import Backend, Parallelism
from adapt.core.ordered.engine.reference import Egress, Marks, WorkersRun
from adapt.core.ordered.engine.settings import MOST_WORKERS, Contention, RunSettings
from adapt.core.ordered.replay.arrivals import Ordered
from adapt.core.ordered.replay.outcome import Repeats, WorkersOutcome
from adapt.core.ordered.replay.replay import replay_ordered
from adapt.core.ordered.replay.sustainable import (
    GAIN,
    Speed,
    break_even,
    searched_workers,
    speeds_of,
)
from adapt.core.ordered.replay.tables import _beyond
from tests.core.ordered.chains import bound, stateful, stateless


def outcome(workers: int, throughput: float, repeats: Repeats | None = None) -> WorkersOutcome:
    none = np.zeros(0, np.int64)
    run = WorkersRun(Egress(0, 0), 1000 / throughput, (), Marks(none, none, none), none.reshape(0, 1))
    return WorkersOutcome(workers, 1000, run, None, None, repeats)


def exact(*speeds: tuple[int, float]) -> list[Speed]:
    return speeds_of([outcome(workers, speed) for workers, speed in speeds])


def test_beyond_the_break_even_no_number_of_workers_gains_more_than_the_share() -> None:
    found = break_even(exact((1, 100), (2, 190), (4, 300), (8, 310), (16, 250)))
    assert found is not None
    assert found.workers == 4
    assert break_even(exact((1, 100), (2, 104), (4, 106))) == exact((2, 104))[0]  # 2 add 4 %, 4 add 6 %


def test_a_number_of_workers_is_judged_by_all_larger_ones() -> None:
    found = break_even(exact((1, 100), (2, 101), (4, 200)))
    assert found is not None
    assert found.workers == 4


def test_a_gain_within_the_spread_of_the_runs_does_not_count() -> None:
    alone = Repeats(5, 90.0, 130.0, 1.0, {})
    within, beyond = Repeats(5, 80.0, 140.0, 1.0, {}), Repeats(5, 131.0, 150.0, 1.0, {})
    slow = outcome(1, 100, alone)
    noisy = break_even(speeds_of([slow, outcome(2, 125, within)]))
    clear = break_even(speeds_of([slow, outcome(2, 140, beyond)]))
    assert (noisy and noisy.workers, clear and clear.workers) == (1, 2)
    speeds = speeds_of([slow, outcome(2, 125, within)])
    told = _beyond(speeds[0], speeds)
    assert told == "up to 2, more add less than 5 % of throughput or less than the noise of the runs"


def test_the_sentence_says_how_much_slower_the_most_workers_are() -> None:
    speeds = exact((1, 100), (2, 190), (4, 152))
    assert _beyond(speeds[1], speeds) == "up to 4, more add less than 5 % of throughput, and 4 are 20 % slower"


@pytest.mark.parametrize("peak", [1, 2, 3, 5, 11, 16, 30, 64, 100, 200, 256])
@pytest.mark.parametrize("fall", [0.0, 0.3, 2.0])
def test_the_search_finds_the_break_even_of_all_numbers_of_workers(peak: int, fall: float) -> None:
    def speed(workers: int) -> float:
        return workers / (1 + 0.002 * workers) if workers <= peak else speed(peak) / (1 + fall * (workers / peak - 1))

    tried = searched_workers(lambda workers: outcome(workers, speed(workers)))
    every = break_even(speeds_of([outcome(workers, speed(workers)) for workers in range(1, MOST_WORKERS + 1)]))
    assert break_even(speeds_of([*tried.values()])) == every
    assert [*tried] == sorted(tried)
    assert len(tried) <= 32


def replayed(chain: BoundChain, **more: object) -> tuple[list[int], int, str]:
    how = Ordered((1,), Backend.SIM, contention=Contention(), **more)  # type: ignore[arg-type]
    run = replay_ordered(chain, how, clock=float, cpu_clock=float)
    (found,) = run.summary().values("break_even")
    assert isinstance(found, int)
    return [one.workers for one in run.outcomes], found, run.conclusion()


def test_the_model_finds_how_many_workers_a_stateful_operator_can_be_fed_by() -> None:
    """Rows take 8 us and 1 us: with more than eight workers beside it, the stateful operator is always busy."""
    chain = bound([stateless("a", cost=8.0), replace(stateful("b"), cost=1.0)], 3000)
    tried, found, verdict = replayed(chain, finds_workers=True, settings=RunSettings(slice_us=10.0))
    assert 8 <= found <= 10
    assert found in tried
    assert len(tried) < 25
    assert verdict.startswith(f"In the model, use {found} workers: they process ")


def test_a_pipeline_has_its_break_even_at_the_number_of_operators() -> None:
    chain = bound([stateless("a", cost=2.0), stateless("b", cost=2.0), stateless("c", cost=2.0)], 2000)
    settings = RunSettings(parallelism=Parallelism.PIPELINE)
    _, found, verdict = replayed(chain, finds_workers=True, settings=settings)
    assert found == 3
    assert verdict.startswith("In the model, use 3 workers: they process ")
    assert GAIN == 0.05
