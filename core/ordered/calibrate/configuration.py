"""Configurations that a calibration runs: to fit costs, and held out."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pyarrow as pa

from adapt.core.ordered.chain.bound import BoundChain, bind
from adapt.core.ordered.chain.chain import Chain, Operator
from adapt.core.ordered.chain.names import Heuristic, OperatorKind
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.phrases import counted
from adapt.core.values import size

CHUNKS = (1, 4, 16, 64, 512)
"""Chunk sizes of the fit."""

SENT_CHUNKS = (16, 64, 512)
"""Chunk sizes whose sending is timed alone; that of smaller ones is too short for a clock."""

NO_TIME_US = 0.001
"""A slice so short that it has one chunk."""

QUERIED = (1, 4, 16)
"""Operators of the chains that queries are measured with."""

KEYS = 1000
"""Keys of the generated stream, equally frequent."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """A chain of synthetic operators and how it is run.

    Attributes:
        kinds: Kinds of its operators.
        workers: Number of workers.
        chunk: Tuples of a chunk; 0 to adapt it to their cost.
        partitions: Of its partitioned operators.
        selectivity: Of its first operator.
        cost_us: Of each operator's function.
        heuristic: Scheduling heuristic.
        slice_us: Time slice.
        share: It runs the rows of a run divided by this.
        alone: Only one of its workers runs.
        tuple_bytes: Payload that each operator reads.
        state_bytes: State of each key; 0 for a word.
        keys: Keys of the generated stream, equally frequent.
    """

    kinds: tuple[OperatorKind, ...]
    workers: int = 1
    chunk: int = 64
    partitions: int = 64
    selectivity: float = 1.0
    cost_us: float = 0.0
    heuristic: Heuristic = Heuristic.CT
    slice_us: float = 100.0
    share: int = 1
    alone: bool = False
    tuple_bytes: int = 0
    state_bytes: int = 0
    keys: int = KEYS

    @property
    def running(self) -> int:
        """Workers that run."""
        return 1 if self.alone else self.workers

    def rows_of(self, rows: int) -> int:
        """Rows of its run."""
        return max(rows // self.share, 1)

    def chain(self, rows: int) -> BoundChain:
        """The chain over generated rows."""
        operators = [
            Operator(
                f"{number} {kind}",
                kind,
                key="key" if kind is OperatorKind.PARTITIONED else None,
                partitions=self.partitions if kind is OperatorKind.PARTITIONED else None,
                cost=self.cost_us,
                selectivity=1.0 if number else self.selectivity,
                tuple_bytes=self.tuple_bytes,
                state_bytes=0 if kind is OperatorKind.STATELESS else self.state_bytes,
            )
            for number, kind in enumerate(self.kinds)
        ]
        random = np.random.default_rng(0)
        columns = {"key": random.integers(0, self.keys, rows), "ts": np.arange(rows)}
        return bind(Chain(tuple(operators)), {name: pa.array(values) for name, values in columns.items()})

    def settings(self) -> RunSettings:
        """Settings of its runs."""
        return RunSettings(workers=self.workers, chunk=self.chunk, heuristic=self.heuristic, slice_us=self.slice_us)

    def __str__(self) -> str:
        kinds = " > ".join(
            f"{kind} ({self.partitions})" if kind is OperatorKind.PARTITIONED else kind.value for kind in self.kinds
        )
        chunk = self.chunk or "auto"
        cost = f", {self.cost_us:g} us" if self.cost_us else ""
        outputs = f", {self.selectivity:g} outputs" if self.selectivity != 1 else ""
        cost += f", payload of {size(self.tuple_bytes)}" if self.tuple_bytes else ""
        if self.state_bytes:
            keys = "" if _PARTITIONED not in self.kinds else f" for each of {counted(self.keys, 'key')}"
            cost += f", state of {size(self.state_bytes)}{keys}"
        slices = f", slice {self.slice_us:g} us" if self.slice_us != 100 else ""
        return f"{kinds}, chunk {chunk}{cost}{outputs}{slices}, {self.workers} worker{'s' if self.workers > 1 else ''}"


_STATELESS, _PARTITIONED, _STATEFUL = OperatorKind.STATELESS, OperatorKind.PARTITIONED, OperatorKind.STATEFUL
_SHARED = _STATELESS, _PARTITIONED


def worker_counts(most: int) -> tuple[int, ...]:
    """Numbers of workers: 1, 2, 4 and so on, and the most."""
    return tuple(dict.fromkeys([*(1 << power for power in range(most.bit_length())), most]))


def fitted(most_workers: int) -> tuple[Configuration, ...]:
    """The configurations whose runs the costs are fitted to."""
    counts = worker_counts(most_workers)
    return (
        *(Configuration((_STATELESS,), *one, share=_share(*one)) for one in product(counts, CHUNKS)),
        *(Configuration((_PARTITIONED,), *one, share=_share(*one)) for one in product(counts, CHUNKS)),
        *(Configuration((_PARTITIONED,), *one) for one in product(counts[1:], (16, 64), (2, 8))),
        *(Configuration((_STATEFUL,), 1, chunk) for chunk in CHUNKS),
        *(Configuration((_STATELESS, kind), 1, 64) for kind in OperatorKind),
        *(
            Configuration((_PARTITIONED,), workers, chunk, alone=True)
            for workers in counts[1:]
            for chunk in (16, 64, 512)
        ),
        *(Configuration((_STATELESS,), 1, 64, selectivity=outputs) for outputs in (0.1, 0.3, 0.7, 0.9, 2.0, 2.5)),
        *(Configuration((_STATELESS,), 1, 64, cost_us=us, share=10) for us in (0.2, 1.0)),
        *(_asking(operators, 1, heuristic) for heuristic, operators in product(Heuristic, QUERIED)),
        *(_asking(operators, workers) for operators, workers in product(QUERIED, counts[1:])),
        *(
            Configuration((_STATELESS, kind), workers, chunk)
            for kind, workers, chunk in product(OperatorKind, counts[1:], (4, 16, 64, 512))
        ),
        *(
            Configuration((_STATELESS, kind), workers, 64, selectivity=outputs)
            for kind, workers, outputs in product(_SHARED, counts[1:], (0.3, 0.7, 2.0))
        ),
    )


def _share(workers: int, chunk: int) -> int:
    """Part of the rows that is enough, as many workers take long for small chunks."""
    return max(workers // (2 * chunk), 1)


def _asking(operators: int, workers: int, heuristic: Heuristic = Heuristic.CT) -> Configuration:
    """Slices of one tuple, so that workers ask the scheduler before each."""
    kinds = (_STATELESS,) * operators
    return Configuration(kinds, workers, 1, heuristic=heuristic, slice_us=NO_TIME_US, share=2 * operators)


def held_out(most_workers: int) -> tuple[Configuration, ...]:
    """Configurations that the fit has not seen."""
    return tuple(
        Configuration(kinds, workers, chunk, partitions, selectivity, cost_us, slice_us=slice_us, share=share)
        for workers in worker_counts(most_workers)
        for kinds, chunk, partitions, selectivity, cost_us, slice_us, share in (
            ((_STATELESS,), 32, 64, 1.0, 0.0, 100.0, 1),
            ((_STATELESS,), 0, 64, 1.0, 1.0, 100.0, 1),
            ((_PARTITIONED,), 128, 32, 1.0, 0.0, 100.0, 1),
            ((_PARTITIONED,), 0, 64, 1.0, 1.0, 100.0, 1),
            ((_STATELESS, _PARTITIONED), 32, 64, 0.5, 0.0, 100.0, 1),
            ((_STATELESS, _PARTITIONED, _STATEFUL), 0, 16, 1.0, 0.5, 100.0, 1),
            ((_STATELESS, _PARTITIONED, _STATEFUL), 0, 16, 1.0, 0.1, 1.0, 4),
        )
    )
