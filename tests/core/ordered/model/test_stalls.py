"""The model with stalls of workers against a plain simulation of each nanosecond of work."""

import numpy as np
import pytest

from adapt.core.errors import BadInput
from adapt.core.ordered.calibrate.stalls import measured_stalls, stalls_of
from adapt.core.ordered.chain.mixing import FOLD, MASK, mixed
from adapt.core.ordered.engine.contention import Contention, Stalls
from adapt.core.ordered.engine.costs import EngineCosts
from adapt.core.ordered.engine.outcome import WorkersRun
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.model.model import run_model
from tests.core.ordered.chains import bound, stateless

COST_NS, ROWS = 2000, 400
STALLS = Stalls(1, 20_000.0, (3.0, 10.0, 40.0), ())


def arrivals(load: float, rows: int = ROWS) -> list[int]:
    return np.cumsum(np.random.default_rng(2).exponential(COST_NS / load, rows)).astype(np.int64).tolist()


def modeled(times: list[int], stalls: Stalls | None, workers: int = 1, seed: int = 1) -> WorkersRun:
    chain, random = bound([stateless("a")], len(times)), np.random.default_rng(seed)
    settings = RunSettings(workers, chunk=1, mark_every=1)
    arrivals_ns, costs = np.array(times, np.int64), EngineCosts({}, stalls=stalls)
    return run_model(chain, settings, Contention(), random, [COST_NS / 1000], arrivals_ns=arrivals_ns, engine=costs).run


def intervals(stalls: Stalls, until_ns: int) -> list[tuple[int, int]]:
    """The stalls of the only worker: the model's draws, SplitMix64 by seed and number."""
    seed, draw, at, found = int(np.random.default_rng(1).integers(2**62)), 0, 0, list[tuple[int, int]]()

    def even() -> float:
        nonlocal draw
        draw += 1
        return ((mixed(seed ^ (((1 << 40) + draw) * FOLD & MASK)) >> 11) + 0.5) / 2**53

    while at <= until_ns:
        start = at + int(-np.log(even()) * round(1e9 / stalls.per_s))
        at = start + round(1000 * stalls.us[int(even() * len(stalls.us))])
        found.append((start, at))
    return found


@pytest.mark.parametrize("load", [0.3, 0.6, 1.5])
def test_a_stalled_worker_does_nothing_in_its_stalls(load: float) -> None:
    times = arrivals(load)
    left = modeled(times, STALLS).marks.left.tolist()
    stopped = np.zeros(left[-1] + COST_NS, bool)
    for start, end in intervals(STALLS, left[-1]):
        stopped[start:end] = True
    free, expected = 0, list[int]()
    for arrival in times:
        done, free = 0, max(arrival, free)
        while done < COST_NS:
            done += not stopped[free]
            free += 1
        while stopped[free - 1 : free].any():
            free += 1
        expected.append(free)
    late = np.array(left) - np.array(expected)
    assert np.abs(late).max() <= 1


def test_stalls_take_their_share_of_the_throughput() -> None:
    times = [0] * 20_000
    slower = modeled(times, STALLS).elapsed_s / modeled(times, None).elapsed_s
    assert slower == pytest.approx(1 / (1 - STALLS.lost), rel=0.02)


def test_workers_stall_apart_and_by_seed() -> None:
    times = arrivals(1.2)
    runs = [modeled(times, STALLS, 2, seed).marks.left.tolist() for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]
    assert modeled(times, Stalls(1, 0.0, (), ()), 2).marks.left.tolist() == modeled(times, None, 2).marks.left.tolist()


def test_a_worker_that_sleeps_long_wakes_late() -> None:
    late = Stalls(1, 0.0, (), (7.0, 7.0))
    times = [0, 50_000, 60_000, 400_000]  # only the last comes after a long sleep
    entered = [modeled(times, each).marks.entered.tolist() for each in (None, late)]
    assert (np.array(entered[1]) - np.array(entered[0])).tolist() == [0, 0, 0, 7000]


def test_rate_and_lengths_are_those_of_the_gaps() -> None:
    gaps = np.array([10_000, 30_000, 60_000, 10_000], np.int64)
    found = stalls_of(2, [gaps], 1.0, np.array([0, 150_000, 350_000], np.int64))
    assert found.per_s == pytest.approx(4 / (2 - 110e-6))
    assert found.us == (10.0, 10.0, 30.0, 60.0)
    assert found.late_us == (0.0, 50.0, 250.0)
    assert (found.spans, found.rare_us) == (1, ())


@pytest.mark.parametrize(
    ("longest", "typical", "rare"),
    [
        ([20, 20, 20, 4000, 40], [20, 20, 20, 40], [4000]),  # most spans have none above 20 us; twice that is not rare
        ([20, 4000, 4000], [20, 4000, 4000], []),
        ([20, 40], [20, 40], []),  # one of two is half of the spans
        ([0, 0, 50], [], [50]),
    ],
)
def test_stalls_that_less_than_half_of_the_spans_have_are_kept_apart(
    longest: list[int], typical: list[float], rare: list[float]
) -> None:
    spans = [np.array([1000 * us] if us else [], np.int64) for us in longest]
    found = stalls_of(1, spans, 0.5, np.zeros(1, np.int64))
    assert ([*found.us], [*found.rare_us], found.spans) == (typical, rare, len(longest))
    running_s = 0.5 * len(longest) - sum(longest) / 1e6
    assert found.per_s == pytest.approx(len(typical) / running_s)


def test_a_machine_is_measured_in_the_time_that_was_asked_for() -> None:
    found = measured_stalls(1, 0.01)
    assert found.workers == 1
    assert all(one >= 5 for one in found.us)


@pytest.mark.parametrize("us", [(3.0, 2.0), (-1.0,), ()])
def test_stalls_that_cannot_be_are_refused(us: tuple[float, ...]) -> None:
    with pytest.raises(BadInput, match="us must have"):
        Stalls(1, 5.0, us, ())
