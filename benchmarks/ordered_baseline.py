"""Ordered engine against C on a stateless operator.

Claims: one worker reaches half the rate of the same algorithm in C with an empty operator, and 95 % of it with 1 us per
tuple, both by CPU time. The C program (ordered_baseline.c) has one fixed operator; it is compiled here, and its output
must be the same. Without a C compiler the benchmark is skipped with a message.
"""

import ctypes
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from ratio import cpu_measured, holds

from adapt.core.ordered.chain.bound import BoundChain, bind
from adapt.core.ordered.chain.chain import Chain, Operator
from adapt.core.ordered.chain.mixing import mixed
from adapt.core.ordered.chain.names import OperatorKind
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.engine.threads import run_by_workers
from adapt.core.ordered.functions.work import measured_pace

CASES = {0.0: (0.5, 3_000_000), 1.0: (0.95, 300_000)}
"""Claimed ratio and number of tuples, by microseconds per tuple."""

REPEATS = 15
SOURCE = Path(__file__).with_suffix(".c")


def main() -> int:
    """Time both in turns; 0 if met, or without a compiler."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        print("the ordered engine against C: skipped, no C compiler found (cc, gcc or clang)")
        return 0
    with TemporaryDirectory() as folder:
        library = Path(folder) / "baseline.so"
        options = ["-O3", "-std=gnu11", "-shared", "-fPIC", "-o", str(library), str(SOURCE)]
        subprocess.run([compiler, *options], check=True)
        baseline = ctypes.CDLL(str(library))
        baseline.run_rows.restype = ctypes.c_int64
        met = [against(baseline, cost_us, *case) for cost_us, case in CASES.items()]
    return 0 if all(met) else 1


def against(baseline: ctypes.CDLL, cost_us: float, least_ratio: float, tuples: int) -> bool:
    """Compare at one cost, with one worker."""
    operator = Operator("operator", OperatorKind.STATELESS, cost=cost_us)
    chain = bind(Chain((operator,)), {"row": pa.array(np.arange(tuples))})
    pace, settings = measured_pace(), RunSettings()

    def ours() -> tuple[int, int]:
        egress = run_by_workers(chain, settings, pace).egress
        return egress.tuples, egress.hash

    theirs = in_c(baseline, chain, settings, (round(cost_us * 1000) * pace) >> 10)
    if ours() != theirs():
        raise RuntimeError("the output of the C baseline differs")
    ratio = cpu_measured(ours, theirs, REPEATS)
    return holds(f"a stateless operator of {cost_us:g} us against C, by CPU time", ratio, least_ratio)


def in_c(baseline: ctypes.CDLL, chain: BoundChain, settings: RunSettings, steps: int) -> Callable[[], tuple[int, int]]:
    """Run the same rows in C; returns output count and hash."""
    rows = np.ascontiguousarray(chain.tuples[:, chain.operators[0].value_at])
    seed = mixed(chain.operators[0].number + 1)

    def run() -> tuple[int, int]:
        fold = ctypes.c_uint64()
        left = baseline.run_rows(
            ctypes.c_void_p(rows.ctypes.data),
            ctypes.c_int64(len(rows)),
            ctypes.c_int64(settings.ring_buffer),
            ctypes.c_uint64(seed),
            ctypes.c_int64(steps),
            ctypes.byref(fold),
        )
        return left, fold.value

    return run


if __name__ == "__main__":
    sys.exit(main())
