"""Load shedding at ingress, where ordered work exceeds capacity."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError
from adapt.core.ordered.chain.bound import BoundChain, BoundOperator, Words
from adapt.core.ordered.chain.names import OperatorKind
from adapt.core.ordered.engine.scaling import PERIODS, check_period
from adapt.core.random_bits import substream, uniforms
from adapt.core.table import Column, Kind, Table
from adapt.core.values import share

_AT_ONCE = 1 << 20
"""Tuples of a block."""

_OF_DROPS = 0x0D5ED
"""Makes draws of drops differ from others of the same seed."""


@dataclass(frozen=True, slots=True, eq=False)
class OfferedWork:
    """What a planner is given: a chain of operators on one node.

    Attributes:
        names: Operators.
        costs_s: CPU seconds of a tuple, by operator.
        selectivities: Outputs per tuple, by operator.
        capacity: CPU seconds per second: the workers, or fewer where one of them has work for itself.
        rates: Rows per second in each tick; shape (ticks,).
        tick_s: Length of a tick.
    """

    names: Sequence[str]
    costs_s: Floats
    selectivities: Floats
    capacity: float
    rates: Floats
    tick_s: float

    @property
    def row_s(self) -> float:
        """CPU seconds of a row in all operators."""
        return float((self.costs_s * np.cumprod(np.append(1.0, self.selectivities[:-1]))).sum())


@dataclass(frozen=True, slots=True)
class Shedding:
    """How rows are dropped before they enter.

    Attributes:
        name: The planner.
        plan: Gives the share of rows to keep in each tick; shape (ticks,).
        tick_s: Planning interval; None for a hundredth of the time until the last arrival.
        described: What it is made from, as JSON data.

    Raises:
        UsageError: the interval is out of range.
    """

    name: str
    plan: Callable[[OfferedWork], Floats]
    tick_s: float | None = None
    described: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_period(self.tick_s)

    def shed(
        self,
        chain: BoundChain,
        arrivals_ns: Words,
        costs: tuple[Sequence[float], Sequence[float]],
        workers: int,
        seed: int,
    ) -> "Shed":
        """Which rows are kept.

        By the seed and their numbers alone; punctuations always are.

        Args:
            arrivals_ns: When each tuple arrives, ascending.
            costs: Mean microseconds of a tuple and its outputs, by operator.
        """
        if chain.graph is not None:
            raise UsageError("--shed needs operators that follow each other; a graph has several paths to drop from")
        last_s = float(arrivals_ns[-1]) / 1e9 if len(arrivals_ns) else 0.0
        tick_s = max(last_s / PERIODS, 1e-6) if self.tick_s is None else self.tick_s
        counts = np.zeros(int(last_s / tick_s) + 1, np.int64)
        for _, ticks, is_row in _by_blocks(chain, arrivals_ns, tick_s):
            counts += np.bincount(ticks[is_row], minlength=len(counts))
        costs_s, through = np.array(costs[0]) / 1e6, np.array(costs[1], np.float64)
        names = [bound.operator.name for bound in chain.operators]
        capacity = min(workers, 1 / max(_alone(chain.by_workers(workers), costs_s, through), 1e-9))
        work = OfferedWork(names, costs_s, through, capacity, counts / tick_s, tick_s)
        keeps = self.plan(work)

        def kept() -> Iterator[Words]:
            stream = substream(seed, _OF_DROPS)
            for first, ticks, is_row in _by_blocks(chain, arrivals_ns, tick_s):
                drawn = uniforms(stream, np.arange(first, first + len(ticks)))
                yield first + np.flatnonzero(~is_row | (drawn < keeps[ticks]))

        return Shed(self.name, work, keeps, kept, chain.rows)


@dataclass(frozen=True, slots=True, eq=False)
class Shed:
    """Rows that were dropped before they entered.

    Attributes:
        name: The planner.
        work: What it was given.
        keeps: Share of rows to keep in each tick; shape (ticks,).
        kept: Gives the places of the tuples that are kept, ascending, in blocks.
        rows: Rows that arrived.
    """

    name: str
    work: OfferedWork
    keeps: Floats
    kept: Callable[[], Iterator[Words]]
    rows: int

    def rest(self, chain: BoundChain) -> BoundChain:
        """The chain over the rows that are kept."""
        return chain.taken(self.kept())

    def drop_rate(self, rows: int) -> float:
        """Share of rows that were dropped, given the rows kept."""
        return 1 - rows / self.rows if self.rows else 0.0

    @property
    def least(self) -> float:
        """Share of rows that must be dropped at full capacity."""
        could = np.minimum(self.work.rates, self.work.capacity / max(self.work.row_s, 1e-12))
        return float(1 - could.sum() / self.work.rates.sum()) if self.work.rates.any() else 0.0

    def sentence(self, rows: int) -> str:
        """What was dropped, and what had to be."""
        dropped = self.drop_rate(rows)
        quality = (1 - dropped) / (1 - self.least) if self.least < 1 else 1.0
        return (
            f"{self.name} dropped {share(dropped)} of {self.rows:,} rows before they entered, where {share(self.least)}"
            f" exceed the capacity of {self.work.capacity:.3g} workers: {share(min(quality, 1.0))} of the rows that"
            " could be processed were. Order and output are those of a serial run over the rows that were kept."
        )

    def table(self) -> Table:
        """Shares that the planner kept, by tick."""
        columns = (
            Column("end", Kind.SECONDS, "s", "end of the planning interval"),
            Column("rate", Kind.NUMBER, "rows/s", "at which rows arrived"),
            Column("load", Kind.SHARE, about="work that arrived over the capacity"),
            Column("kept", Kind.SHARE, about="share of the rows that the plan keeps"),
        )
        work = self.work
        ends_s = (np.arange(len(self.keeps)) + 1) * work.tick_s
        loads = work.rates * work.row_s / work.capacity
        rows = zip(*(each.tolist() for each in (ends_s, work.rates, loads, self.keeps)), strict=True)
        return Table.from_rows("Shedding at ingress", columns, list(rows))


def _by_blocks(chain: BoundChain, arrivals_ns: Words, tick_s: float) -> Iterator[tuple[int, Words, NDArray[np.bool_]]]:
    """The first place of each block, the ticks of its tuples, and which of them are rows."""
    at = chain.punctuations
    for first in range(0, max(len(arrivals_ns), 1), _AT_ONCE):
        ticks = (arrivals_ns[first : first + _AT_ONCE] / 1e9 / tick_s).astype(np.int64)
        is_row = np.ones(len(ticks), bool)
        is_row[at[(at >= first) & (at < first + len(ticks))] - first] = False
        yield first, ticks, is_row


def _alone(chain: BoundChain, costs_s: Floats, selectivities: Floats) -> float:
    """Largest share of all work that one worker at a time must do: a stateful operator, or the largest partition."""
    work = costs_s * np.cumprod(np.append(1.0, selectivities[:-1]))
    total = float(work.sum())
    if not total:
        return 0.0
    return max(float(each) / total * _largest(chain, bound) for each, bound in zip(work, chain.operators, strict=True))


def _largest(chain: BoundChain, bound: BoundOperator) -> float:
    """Share of an operator's tuples that one worker at a time processes; 0 if any may process any."""
    match bound.operator.kind:
        case OperatorKind.STATELESS:
            return 0.0
        case OperatorKind.STATEFUL:
            return 1.0
        case OperatorKind.PARTITIONED:
            key = bound.fields[bound.key_at]
            if bound.partition_of is None or key not in chain.fields:
                return 1 / bound.partitions
            keys, counts = chain.column(key), np.zeros(bound.partitions, np.int64)
            for first in range(0, len(keys), _AT_ONCE):
                counts += np.bincount(bound.partition_of[keys[first : first + _AT_ONCE]], minlength=bound.partitions)
            return float(counts.max() / max(counts.sum(), 1))
