"""Time of a step on the frontier: 1,000 Zipf keys on 32 channels, within a budget of state and pins.

Claim: the search of one placement and its bound take less than 0.1 s of CPU time. The whole frontier is
printed too."""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from time import process_time

from references import from_tests

from adapt.core.partitioning.frontier.bound import bound_of_today
from adapt.core.partitioning.frontier.frontier import frontier
from adapt.core.partitioning.frontier.search import rebalance
from adapt.core.partitioning.frontier.today import Budget, Today

KEYS, CHANNELS, STEPS = 1000, 32, 9
CLAIM = 0.1


def main() -> int:
    """Time steps; 0 if the claim is met."""
    cases = from_tests("core/partitioning/frontier/cases.py")
    steps = [cases.zipf_step(seed, KEYS, KEYS, CHANNELS)[0] for seed in range(STEPS)]
    budgets = {"2 % of state": Budget(0.02), "20 pins": Budget(None, 20), "no budget": Budget()}
    worst = max([_timed(name, partial(_step, budget), steps) for name, budget in budgets.items()])
    _timed("whole frontier", frontier, steps)
    print(f"slowest step {worst:.4f} s, claimed less than {CLAIM:g} s: {'met' if worst < CLAIM else 'NOT MET'}")
    return 0 if worst < CLAIM else 1


def _step(budget: Budget, today: Today) -> None:
    rebalance(today, budget, bound_of_today(today, budget))


def _timed(name: str, work: Callable[[Today], object], steps: Sequence[Today]) -> float:
    """Print the CPU times of some work over steps, after a warm-up; returns the longest."""
    work(steps[0])
    times = []
    for step in steps:
        start = process_time()
        work(step)
        times.append(process_time() - start)
    print(f"{KEYS} keys, {CHANNELS} channels, {name}: median {median(times):.4f} s, longest {max(times):.4f} s of CPU")
    return max(times)


if __name__ == "__main__":
    sys.exit(main())
