"""The operator of a replayed stage: its state, or a join."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adapt.core.errors import UsageError, did_you_mean
from adapt.core.stage.conditions.growth import Join
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.input.keyed_rows import BYTES, KEY, STREAM, Reading, StateSource, StateUnit
from adapt.core.stage.input.mini_partitions import KeyGroups, Sides
from adapt.core.stage.input.split_join import SplitJoin
from adapt.core.stream import KeyType
from adapt.traces.store.trace import Trace


@dataclass(frozen=True, slots=True)
class Operator:
    """The operator of a stage.

    Attributes:
        state: State that grows with the rows of the trace; None, of the size in the stage's settings.
        join: A join of two sides, whose state is the rows in its window; None, no join.
        side: The column with the side of a row.
        splits: Whether hot keys of the join are split over workers.
    """

    state: StateSource | None = None
    join: Join | None = None
    side: str = STREAM
    splits: bool = False

    def check(self, trace: Trace, reading: Reading) -> None:
        """Check that a trace has the columns that are needed."""
        check_columns(trace, reading, sized=self.state is not None and self.state.unit is StateUnit.BYTES)
        if self.join is not None and self.side not in trace.columns:
            raise UsageError(
                f"--join: {trace.path} has no column {self.side!r}{did_you_mean(self.side, trace.columns)}. Ingest it"
                f" with --stream or --keep {self.side}"
            )

    def applied(
        self, trace: Trace, reading: Reading, settings: StageSettings, *, by_key: bool = False
    ) -> tuple[Reading, StageSettings]:
        """How rows are read for the operator, and the stage with it.

        The trace is read once for its keys if the state depends on them.

        Args:
            by_key: Whether each key has aggregates of its own.
        """
        if self.join is not None:
            columns = [KEY, self.side]
            sides = Sides.from_batches(self.side, KEY, trace.batches(columns, encoded(trace, columns)))
            reading, settings = replace(reading, groups=sides.groups, sides=sides), replace(settings, join=self.join)
        elif self.state is not None:
            growth = self.state.growth(settings.costs.tuple_bytes)
            reading = replace(reading, sized=growth.sized, timed=growth.window is not None)
            settings = replace(settings, state=growth)
            by_key = by_key or self.state.by_key
        if by_key and reading.groups is None:
            reading = replace(reading, groups=groups_of(trace))
        if reading.groups is not None:
            settings = replace(settings, partition_of=reading.groups.partitions_by(reading.partitions))
        if self.splits and reading.sides is not None:
            rows, columns = np.zeros((2, len(settings.partition_of)), np.int64), [KEY, self.side]
            for batch in trace.batches(columns, encoded(trace, columns)):
                rows += reading.sides.rows_by_group(*map(batch.column, columns))
            split = SplitJoin.of_hot(rows, settings.workers)
            reading = replace(reading, split_join=split)
            settings = replace(settings, partition_of=split.partition_of(settings.partition_of, settings.workers))
        return reading, settings

    def parameters(self) -> dict[str, Any]:
        """The state as JSON data."""
        return {"state_from": None, "state_window": None} if self.state is None else self.state.parameters()


def groups_of(trace: Trace) -> KeyGroups:
    """The distinct keys of a trace, which is read once."""
    return KeyGroups.from_columns(batch.column(KEY) for batch in trace.batches([KEY], encoded(trace, [KEY])))


def check_columns(trace: Trace, reading: Reading, *, sized: bool) -> None:
    """Check that a trace has the columns that a replay needs."""
    for wanted, column, option in (
        (sized, BYTES, "--bytes"),
        (reading.by_stream, STREAM, "--stream"),
    ):
        if wanted and column not in trace.columns:
            raise UsageError(f"{trace.path} has no column {column!r}; ingest it with {option} COLUMN")


def encoded(trace: Trace, columns: list[str]) -> list[str]:
    """Text columns, read dictionary-encoded so that each value is hashed once."""
    return [name for name in columns if name == STREAM or (name == KEY and trace.key_type.storage is not KeyType.INT64)]
