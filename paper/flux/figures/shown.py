"""Shared names, colors, tables over time and claims of the Flux figures."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.table import Column, Kind, Table
from paper import charts, claims
from paper.claims import ONE_RUN
from paper.estimates import Estimate
from paper.flux.beyond import Beyond, Compared
from paper.flux.measured import Ran, Seen
from paper.flux.scenarios import DISTURBED_S
from paper.flux.scope import OTHER_COLLECTION_S
from paper.report import averaged, cells

LABELS: Mapping[Compared, str] = {
    FluxPolicy.NONE: "static",
    FluxPolicy.LOAD: "Flux",
    FluxPolicy.MEMORY: "memory policy",
    FluxPolicy.HYBRID: "hybrid policy",
    FluxPolicy.LOAD_GUARDED: "guarded",
    FluxPolicy.LOAD_SEVERAL: "several moves",
    Beyond.LOAD_AUTO: "auto-tuned",
    Beyond.OPTIMUM: "optimum",
    FluxPolicy.MEMORY_SEVERAL: "several moves for memory",
    FluxPolicy.HYBRID_SEVERAL: "several moves, hybrid",
}
"""Display names of the policies."""

OTHER_READING = f"Flux, {1000 * OTHER_COLLECTION_S:g} ms"
"""The paper's policy with the other reading of delta_min."""

ORDER = (
    "static",
    "Flux",
    "several moves",
    "guarded",
    "auto-tuned",
    OTHER_READING,
    "optimum",
    "memory policy",
    "hybrid policy",
    "Exchange",
    "several moves for memory",
    "several moves, hybrid",
)
"""Order of policies, which fixes their colors in every chart."""

lines = partial(charts.lines, series="policy", order=ORDER)
dots = partial(charts.dots, series="policy", order=ORDER)

BEYOND = (FluxPolicy.LOAD_SEVERAL, Beyond.LOAD_AUTO, Beyond.OPTIMUM)
"""Policies beyond the paper where load is balanced; the last knows the run in advance and is the bound."""

STEADY = (*BEYOND, FluxPolicy.LOAD_GUARDED)
"""Policies that should be steadier with a few hot partitions, and otherwise like the paper's."""

judged = partial(claims.judged, runs=ONE_RUN)
"""Judge as one run of the paper."""

POLICY = Column("policy")
THROUGHPUT = Column("throughput", Kind.NUMBER, "tuples/s")
SHARE = Column("of unloaded", Kind.RATIO, about="throughput over that of the undisturbed stage")
MOVES = Column("moves", Kind.NUMBER, about="partitions moved in a run")
LATENCY = Column("latency", Kind.NUMBER, "us", "mean time from when a consumer takes a tuple until it is processed")
ON_DISK = Column("on disk", Kind.NUMBER, "partitions")
SECOND = Column("second", Kind.NUMBER, about="end of the interval")


def over_time(
    title: str, runs: Mapping[str, Sequence[Ran]], metrics: Mapping[Column, Callable[[Seen], float | None]]
) -> Table:
    """Table of policies by second, means over seeds."""
    rows = []
    for name, seeds in runs.items():
        for together in zip(*(run.by_second() for run in seeds), strict=True):
            measured = [estimate(metric(one) for one in together) for metric in metrics.values()]
            rows.append((name, together[0].end_s, *cells(*measured)))
    return Table.from_rows(title, [POLICY, SECOND, *averaged(list(metrics))], rows)


def estimate(values: Iterable[float | None]) -> Estimate | None:
    """The mean over seeds; None if a seed has no number."""
    known = list(values)
    numbers = [value for value in known if value is not None]
    return Estimate.of(numbers) if numbers and len(numbers) == len(known) else None


def shares(rates: Sequence[float], full: Sequence[float]) -> list[float]:
    """Ratio of two series, seed by seed."""
    return [rate / whole for rate, whole in zip(rates, full, strict=True)]


def mean(values: Sequence[float]) -> float:
    """Mean over seeds."""
    return Estimate.of(values).mean


def straightness(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Coefficient of determination (r squared) of a straight line."""
    return float(np.corrcoef(xs, ys)[0, 1] ** 2)


def within(run: Ran, after_s: float | None) -> float:
    """Seconds from a disturbance until an event.

    Until the end of the run if it never happens.
    """
    return run.lasted_s - DISTURBED_S if after_s is None else after_s
