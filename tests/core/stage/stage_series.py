"""Series of a stage, as tables."""

import numpy as np

from adapt.core.table import Column, Kind, Table

OF_INTERVALS = "throughput capacity latency_p50 latency_p99 in_pools in_connections source_queue on_disk"


def stage_tables(cases=("static", "load"), seconds=20, workers=4, queue=0, on_disk=0, moves=5, busy=None):
    """The series of a stage whose rate rises with the seconds."""
    columns = [
        Column("case"),
        Column("end", Kind.SECONDS, "s"),
        *(Column(name, Kind.NUMBER) for name in OF_INTERVALS.split()),
    ]
    rows = [
        (case, end + 1.0, 100.0 + end + at, 150.0, 1e-4, 0.01 * (end + 1), 40, 3, queue * end, on_disk)
        for at, case in enumerate(cases)
        for end in range(seconds)
    ]
    of_workers = [
        Column("case"),
        Column("end", Kind.SECONDS, "s"),
        Column("worker", Kind.COUNT),
        Column("utilization", Kind.SHARE),
    ]
    shares = np.random.default_rng(1).random((seconds, workers)) if busy is None else np.asarray(busy)
    by_worker = [
        (case, end + 1.0, worker, float(shares[end, worker]))
        for case in cases
        for end in range(seconds)
        for worker in range(workers)
    ]
    moved = [(cases[-1], 0.5 + at / 7) for at in range(moves)]
    return (
        Table.from_rows("Intervals", columns, rows),
        Table.from_rows("Workers", of_workers, by_worker),
        Table.from_rows("Moves", [Column("case"), Column("decided", Kind.SECONDS, "s")], moved),
    )
