"""Initial workers of an elastic stage, before a trace exists."""

from collections.abc import Sequence

import numpy as np

from adapt.core.elastic.policies.thresholds import initial_workers
from adapt.core.errors import UsageError
from adapt.core.stage.conditions.shed_factor import Overload, Thresholds
from adapt.core.table import Column, Kind, Table

TAUS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
"""Values of tau1 shown with the given one."""


def initial_workers_table(
    rate_per_s: float, overload: Overload, thresholds: Thresholds, imbalance: float = 1.0
) -> Table:
    """Initial workers by tau1, with the rise of the rate they take.

    Args:
        rate_per_s: Expected rate of the stream, in rows per second.
        overload: Buffer of a worker.
        imbalance: Load of the busiest worker / mean load, which is then at tau1; 1 if keys spread evenly.

    Source: ESJ, initial deployment, M = ceil(E(rate) window / (W tau1)); the rest is ours.
    """
    if not 1 <= imbalance < np.inf:
        raise UsageError(f"--imbalance is the busiest worker's load over the mean, at least 1 (got {imbalance:g})")
    taus = sorted({tau for tau in TAUS if tau < thresholds.tau2} | {thresholds.tau1})
    rows = [_row(tau, rate_per_s, overload, thresholds, imbalance) for tau in taus]
    columns = (
        Column("tau1", Kind.NUMBER, about="utilization that the busiest worker starts with, at most"),
        Column("workers", Kind.COUNT, about="workers at the start"),
        Column("busiest", Kind.SHARE, about="share of its buffer that the busiest worker fills"),
        Column("shedding_from", Kind.NUMBER, "rows/s", "rate at which the busiest worker begins to shed"),
        Column("rise", Kind.RATIO, about="that rate over the expected one"),
        Column("connections", Kind.COUNT, about="between workers, each of which sends to all"),
        Column("given", Kind.TEXT, about="tau1 of --shed tau"),
    )
    note = (
        "A small tau1 takes a large rise of the rate without shedding; it costs idle workers, and connections grow with"
        " the square of the workers."
    )
    return Table.from_rows("Workers at the start", columns, rows, note)


def _row(
    tau1: float, rate_per_s: float, overload: Overload, thresholds: Thresholds, imbalance: float
) -> Sequence[float | int | str | None]:
    workers = initial_workers(rate_per_s * imbalance, overload.window_s, overload.capacity_tuples, tau1)
    busiest = rate_per_s * imbalance * overload.window_s / (overload.capacity_tuples * workers)
    shedding_from = thresholds.tau2 * overload.capacity_tuples * workers / (overload.window_s * imbalance)
    rise = shedding_from / rate_per_s if rate_per_s else None
    return tau1, workers, busiest, shedding_from, rise, workers**2, "yes" if tau1 == thresholds.tau1 else ""
