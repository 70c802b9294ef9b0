"""Runs that crash and are restored from their last checkpoint."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from adapt.core.ordered.chain.bound import BoundChain
from adapt.core.ordered.engine.checkpoint import START
from adapt.core.ordered.engine.serial import Egress
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.engine.threads import Crash, crash_segment, run_segment


@dataclass(frozen=True, slots=True)
class RestoredRun:
    """A run in segments, with crashes.

    Attributes:
        workers: Number of workers of each attempt, in order.
        crashes: Attempts that crashed.
        repeated: Tuples that were entered and lost, to be entered again.
        egress: The output.
        output_hash: SHA-256 of the words of the output.
        state_hash: SHA-256 of all states at the end.
    """

    workers: tuple[int, ...]
    crashes: int
    repeated: int
    egress: Egress
    output_hash: str
    state_hash: str


def run_with_crashes(
    chain: BoundChain,
    settings_of: Callable[[np.random.Generator], RunSettings],
    crashes: int,
    random: np.random.Generator,
    pace: int | None = None,
) -> RestoredRun:
    """Run a chain with checkpoints at punctuations and random crashes.

    After a crash, other workers go on from the last checkpoint. Output since then is given up, so that each output
    tuple counts once.

    Args:
        settings_of: Draws the settings of an attempt.
        crashes: Number of crashes, each between two punctuations.

    Source: ordered streams, section 1: replicas agree because order makes a run deterministic.
    """
    segments = list(segments_of(chain))
    crashes_in = np.bincount(random.integers(0, len(segments), crashes), minlength=len(segments)).tolist()
    at, output, workers, repeated = START, sha256(), list[int](), 0
    for segment, due in zip(segments, crashes_in, strict=True):
        for _ in range(due):
            crash, settings = Crash(*sorted(random.integers(0, len(segment.tuples), 2).tolist())), settings_of(random)
            workers.append(settings.workers)
            crash_segment(segment, settings, at, crash, pace)
            repeated += crash.entered
        settings = settings_of(random)
        workers.append(settings.workers)
        at = run_segment(segment, settings, at, lambda rows: output.update(rows.tobytes()), pace)
    return RestoredRun(tuple(workers), crashes, repeated, at.egress, output.hexdigest(), at.digest)


def segments_of(chain: BoundChain) -> Iterator[BoundChain]:
    """Parts of a chain, each up to a punctuation or the end."""
    ends = [*(chain.punctuations + 1).tolist(), len(chain.tuples)]
    for first, end in zip([0, *ends], ends, strict=False):
        if end > first:
            yield chain.part(first, end)
