"""Ordered engine against Python threads on an empty operator.

Claim: one worker has 5 times the rate, by CPU time, of a Python thread that keeps the order with a queue, a lock, and a
dictionary of outputs that wait for their turn.
"""

import sys
import threading
from collections import deque

import numpy as np
import pyarrow as pa
from ratio import cpu_measured, holds

from adapt.core.ordered.chain.bound import bind
from adapt.core.ordered.chain.chain import Chain, Operator
from adapt.core.ordered.chain.names import OperatorKind
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.engine.threads import run_by_workers

LEAST_RATIO = 5
TUPLES, REPEATS = 500_000, 5


def main() -> int:
    """Time both in turns; 0 if the claim is met."""
    operator = Operator("empty", OperatorKind.STATELESS)
    chain = bind(Chain((operator,)), {"row": pa.array(np.arange(TUPLES))})

    def ours() -> None:
        run_by_workers(chain, RunSettings(), pace=1)

    def theirs() -> None:
        python_threads(chain.tuples[:, -1].tolist(), workers=1)

    ratio = cpu_measured(ours, theirs, REPEATS)
    return 0 if holds("an empty stateless operator against threads of Python, by CPU time", ratio, LEAST_RATIO) else 1


def python_threads(values: list[int], workers: int) -> list[int]:
    """Lock-based scheme of the paper (Figure 2), in plain Python."""
    waiting: dict[int, int] = {}
    queue = deque(enumerate(values))
    out: list[int] = []
    lock = threading.Lock()

    def work() -> None:
        while True:
            try:
                serial, value = queue.popleft()
            except IndexError:
                return
            output = value + 1
            with lock:
                waiting[serial] = output
                while len(out) in waiting:
                    out.append(waiting.pop(len(out)))

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return out


if __name__ == "__main__":
    sys.exit(main())
