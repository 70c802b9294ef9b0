"""Replicas: runs with other workers and schedules, crashed and restored."""

from collections.abc import Sequence

import numpy as np

from adapt.core.errors import UsageError
from adapt.core.ordered.chain.bound import BoundChain
from adapt.core.ordered.chain.names import Heuristic, Reorder, WorkQueue
from adapt.core.ordered.engine.crashes import RestoredRun, run_with_crashes
from adapt.core.ordered.engine.serial import Egress
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.own.function import obstacles
from adapt.core.phrases import counted
from adapt.core.table import Column, Kind, Table

MOST_CRASHES = 3
"""Crashes of a replica, at most; the first replica has none."""

_HALVED = 4
"""Ring buffers and work queues of a replica are made smaller by up to this power of two."""


def check_replicas(chain: BoundChain) -> None:
    """Check that a chain can be restored.

    Raises:
        UsageError: it has no punctuations, at which states are saved, or a function that cannot be compiled.
    """
    for why in obstacles(chain.operators):
        raise UsageError(f"{why}; without that it runs serially, and has no replicas")
    if not len(chain.punctuations):
        raise UsageError("replicas need checkpoints, which are taken at punctuations; add [punctuations] to the chain")


def replicas_of(
    chain: BoundChain, settings: RunSettings, most_workers: int, count: int, pace: int
) -> tuple[RestoredRun, ...]:
    """Runs with random workers and schedules, each with its own seed.

    Args:
        settings: Largest sizes of ring buffers and work queues.
    """
    chain = chain.by_workers(most_workers)  # the same partitions in all checkpoints

    def drawn(random: np.random.Generator) -> RunSettings:
        return RunSettings(
            int(random.integers(1, most_workers + 1)),
            list(Reorder)[random.integers(len(Reorder))],
            (WorkQueue.HYBRID, WorkQueue.PARTITIONED)[random.integers(2)],
            list(Heuristic)[random.integers(len(Heuristic))],
            max(settings.ring_buffer >> int(random.integers(_HALVED + 1)), 1),
            max(settings.queue_capacity >> int(random.integers(_HALVED + 1)), 1),
            settings.chunk,
        )

    runs = []
    for seed in range(count):
        random = np.random.default_rng(seed)
        crashes = int(random.integers(1, MOST_CRASHES + 1)) if seed else 0
        runs.append(run_with_crashes(chain, drawn, crashes, random, pace))
    return tuple(runs)


def differing(replicas: Sequence[RestoredRun], egress: Egress) -> int:
    """Number of replicas whose state or output differs.

    States are compared with that of the first, outputs with it and with the serial run's.
    """
    first = replicas[0]
    return sum(
        (one.egress, one.output_hash, one.state_hash) != (egress, first.output_hash, first.state_hash)
        for one in replicas
    )


def replicas_sentence(replicas: Sequence[RestoredRun], egress: Egress) -> str:
    """Whether all replicas agree."""
    crashes = sum(one.crashes for one in replicas)
    runs = counted(len(replicas), "replica")
    if wrong := differing(replicas, egress):
        return f"{wrong} of {runs} differ in state or output: this is a bug."
    after = f"after {counted(crashes, 'crash', 'crashes')}"
    return (
        f"{runs} with other workers and schedules, restored from checkpoints {after}, ended with the same state and "
        "output, byte for byte."
    )


def replicas_table(replicas: Sequence[RestoredRun], egress: Egress) -> Table:
    """One row per replica."""
    columns = (
        Column("replica", Kind.COUNT),
        Column("most_workers", Kind.COUNT, about="most workers of an attempt"),
        Column("attempts", Kind.COUNT, about="runs from a checkpoint to the next one or to a crash"),
        Column("crashes", Kind.COUNT, about="moments at which all workers were stopped and their state was lost"),
        Column("repeated_rows", Kind.COUNT, about="rows that had entered before a crash, and entered again"),
        Column("output", about="first digits of SHA-256 over the output"),
        Column("state", about="first digits of SHA-256 over the states of all operators at the end"),
        Column("agrees", about="whether both are those of the first replica, and the output is that of the serial run"),
    )
    rows = [
        (
            number,
            max(one.workers),
            len(one.workers),
            one.crashes,
            one.repeated,
            one.output_hash[:16],
            one.state_hash[:16],
            not differing((replicas[0], one), egress),
        )
        for number, one in enumerate(replicas, 1)
    ]
    return Table.from_rows("Replicas", columns, rows)
