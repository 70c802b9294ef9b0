"""Memory and time of the stage simulator by number of tuples.

Claim: ten times the tuples take at most 1.2 times the memory, and 1.2 times the time per tuple. It simulates 10 and 100
million tuples on 32 workers, random ones and timed rows of a stream in chunks of a million; with `--huge` also 1000
million. Each run has its own process, whose peak the operating system reports. The peak includes the time series, whose
size is printed too.
"""

import json
import subprocess
import sys
from collections.abc import Iterator

MOST_MEMORY, MOST_TIME = 1.2, 1.2
WORKERS, CHUNK = 32, 1_000_000
SERVED = WORKERS / 45.5e-6
"""Tuples per second that all workers can process."""


def main() -> int:
    """Measure all sizes of both sources; 0 if the claim is met."""
    if sys.argv[1:2] == ["simulate"]:
        print(json.dumps(simulated(sys.argv[2], int(sys.argv[3]))))
        return 0
    sizes = [10**7, 10**8] + [10**9] * ("--huge" in sys.argv)
    met = [grows_little(source, sizes) for source in ("drawn", "rows")]
    return 0 if all(met) else 1


def grows_little(source: str, sizes: list[int]) -> bool:
    """Print memory and time by size; whether the claim holds."""
    apart(source, CHUNK)  # compiles, so that no peak includes the compiler
    met, least = True, {}
    for size in sizes:
        took = apart(source, size)
        least = least or took
        memory, time = took["peak_mib"] / least["peak_mib"], took["ns_a_tuple"] / least["ns_a_tuple"]
        holds = memory <= MOST_MEMORY and time <= MOST_TIME
        met &= holds
        print(
            f"{took['tuples']:,} tuples {source}: peak {took['peak_mib']:,.1f} MiB, {memory:.3f}x, of which "
            f"{took['series_kib']:,.0f} KiB for the series of {took['intervals']:,} s; {took['ns_a_tuple']:.0f} ns of "
            f"CPU per tuple, {time:.2f}x; claimed at most {MOST_MEMORY:g}x and {MOST_TIME:g}x: "
            f"{'met' if holds else 'NOT MET'}",
            flush=True,
        )
    return met


def apart(source: str, size: int) -> dict[str, float]:
    """Simulate about this many tuples in a separate process."""
    command = [sys.executable, __file__, "simulate", source, str(size)]
    took: dict[str, float] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return took


def simulated(source: str, size: int) -> dict[str, float]:
    """Simulate about this many tuples in this process."""
    import pickle
    import resource
    from time import process_time

    import numpy as np

    from adapt.core.stage.conditions.arrivals import Chunk, Drawn, Rows
    from adapt.core.stage.conditions.settings import StageSettings, even_groups, even_owners
    from adapt.core.stage.simulate import simulate

    settings = StageSettings(WORKERS, even_owners(WORKERS, 64), even_groups(16384, WORKERS * 64))
    rate = 0.8 * SERVED
    chance = np.random.default_rng(0)
    groups = chance.integers(0, 16384, CHUNK).astype(np.int32)
    producers = chance.integers(0, WORKERS, CHUNK).astype(np.int32)
    rising_s = np.arange(CHUNK) / rate

    def chunks() -> Iterator[Chunk]:
        for number in range(size // CHUNK):
            yield Chunk(groups, producers, rising_s + number * CHUNK / rate)

    simulate(settings, Drawn(), 0.1)  # loads the compiled code
    simulate(settings, Rows(lambda: iter([Chunk(groups[:10], producers[:10], rising_s[:10])])))
    began = process_time()
    run = simulate(settings, Drawn(), size / SERVED) if source == "drawn" else simulate(settings, Rows(chunks))
    return {
        "tuples": run.census.processed,
        "intervals": len(run.intervals),
        "ns_a_tuple": 1e9 * (process_time() - began) / run.census.processed,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "series_kib": len(pickle.dumps(run.intervals)) / 1024,
    }


if __name__ == "__main__":
    sys.exit(main())
