"""Series of a stage, as tables."""

import numpy as np

from adapt.core.table import Column, Kind, Table

OF_INTERVALS = "throughput capacity latency_p50 latency_p99 in_pools in_connections source_queue on_disk"


def stage_tables(cases=("static", "load"), seconds=20, sites=4, queue=0, on_disk=0, moves=5, busy=None):
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
    of_sites = [
        Column("case"),
        Column("end", Kind.SECONDS, "s"),
        Column("site", Kind.COUNT),
        Column("utilization", Kind.SHARE),
    ]
    shares = np.random.default_rng(1).random((seconds, sites)) if busy is None else np.asarray(busy)
    by_site = [
        (case, end + 1.0, site, float(shares[end, site]))
        for case in cases
        for end in range(seconds)
        for site in range(sites)
    ]
    moved = [(cases[-1], 0.5 + at / 7) for at in range(moves)]
    return (
        Table.from_rows("Intervals", columns, rows),
        Table.from_rows("Sites", of_sites, by_site),
        Table.from_rows("Moves", [Column("case"), Column("decided", Kind.SECONDS, "s")], moved),
    )
