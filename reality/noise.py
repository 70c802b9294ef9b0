"""Noise of the machine: a fixed loop beside a run.

`python -m reality.noise` runs the loop 40 times a second until standard input ends, and prints how long each took, in
seconds.
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
ROUNDS = 20_000


def loop() -> float:
    """Run a fixed loop, of about a millisecond; returns its seconds."""
    began_s = perf_counter()
    total = 0
    for number in range(ROUNDS):
        total += number
    return perf_counter() - began_s


def main() -> None:
    """Run the loop until standard input ends."""
    took_s = []
    while not select([sys.stdin], [], [], PERIOD_S)[0]:
        took_s.append(loop())
    print(json.dumps(took_s))


@contextmanager
def beside(found: dict[str, float]) -> Iterator[None]:
    """Run the loop beside a block; its times are then in `found`."""
    with Popen([sys.executable, "-m", __name__], stdin=PIPE, stdout=PIPE, text=True) as process:
        try:
            yield
        finally:
            took_s, _ = process.communicate("\n")
    sample = np.array(json.loads(took_s) or [loop()])
    found.update(least_s=float(sample.min()), p50_s=float(np.median(sample)), p99_s=float(np.quantile(sample, 0.99)))


if __name__ == "__main__":
    main()
