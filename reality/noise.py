"""Noise of the machine: a fixed loop and a fixed wait beside a run.

`python -m reality.noise` waits 25 ms and runs the loop, again and again until standard input ends. It prints how long
each loop took, and how much too long each wait was, in seconds.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from select import select
from subprocess import PIPE, Popen
from time import perf_counter

import numpy as np

PERIOD_S = 0.025
ROUNDS = 60_000


def loop() -> float:
    """Run a fixed loop, of about a millisecond; returns its seconds."""
    began_s = perf_counter()
    total = 0
    for number in range(ROUNDS):
        total += number
    return perf_counter() - began_s


def main() -> None:
    """Run the loop until standard input ends."""
    found = []
    waited_s = perf_counter()
    while not select([sys.stdin], [], [], PERIOD_S)[0]:
        late_s = perf_counter() - waited_s - PERIOD_S
        found.append((loop(), late_s))
        waited_s = perf_counter()
    print(json.dumps(found))


@contextmanager
def beside(found: dict[str, float]) -> Iterator[None]:
    """Run the loop beside a block; its times are then in `found`."""
    with Popen([sys.executable, "-m", __name__], stdin=PIPE, stdout=PIPE, text=True) as process:
        try:
            yield
        finally:
            printed, _ = process.communicate("\n")
    loops_s, late_s = np.array(json.loads(printed) or [(loop(), 0.0)]).T
    found.update(loop_least_s=float(loops_s.min()), loop_p50_s=float(np.median(loops_s)))
    found.update(loop_p99_s=float(np.quantile(loops_s, 0.99)), wait_p50_s=float(np.median(late_s)))
    found["wait_p99_s"] = float(np.quantile(late_s, 0.99))


if __name__ == "__main__":
    main()
