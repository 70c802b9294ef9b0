"""Flux replay of a trace through a DAG of stages, without Spark."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.errors import BadInput, did_you_mean
from adapt.core.flux.replay.dag import DagInput, DagRun, replay_dag
from adapt.core.flux.replay.replay import Flux
from adapt.core.stage.conditions.arrivals import Made, Rows, Source
from adapt.core.stage.conditions.faults import FaultSchedule
from adapt.core.stage.conditions.settings import even_groups
from adapt.core.stage.dag.settings import DagSettings, StageEntry, StagesFile, read_stages
from adapt.core.stage.input.keyed_rows import KEY, StateSource
from adapt.core.stage.input.mini_partitions import KeyGroups
from adapt.core.stage.input.offered_load import Demand
from adapt.core.stage.outcome import Pace
from adapt.traces.read_errors import parsed
from adapt.traces.replay.length import Length
from adapt.traces.replay.operators import check_columns, encoded
from adapt.traces.replay.replay import Asked, Replayed
from adapt.traces.replay.stage import StageReplay, shorter
from adapt.traces.store.trace import Trace


def open_stages(path: Path) -> StagesFile:
    """Read a file of stages."""
    no_text = "is not UTF-8 text; give stages in TOML"
    return parsed(path, lambda text: replace(read_stages(text), name=path.name), no_text)


@dataclass(frozen=True, slots=True)
class DagReplay:
    """Replay through a DAG of stages, static and with each policy.

    Stages that read the trace process its rows. A tuple that a later stage receives has a key drawn with the frequency
    that the keys of that stage have in the trace. The trace is read once per stage for its keys, and once per case and
    stage that reads it.
    """

    file: StagesFile
    stage: StageReplay  # what holds for stages whose entry does not say otherwise
    flux: Flux

    @contextmanager
    def replayed(self, trace: Trace, asked: Asked) -> Iterator[Replayed[DagRun]]:
        """Replay a trace."""
        file, stage, flux = self.file, self.stage, self.flux
        _check_keys(file, trace)
        flux.check(stage.settings)
        asked.progress("reading", 0, trace.rows)
        of = _dag(file, [_Stage(trace, entry, stage) for entry in file.stages])
        pace = Pace(stage.reading.speedup, stage.duration_s)
        ends_s = min(of.least_s(flux.faults or FaultSchedule()), pace.duration_s or np.inf)
        length = Length(of.rows, ends_s / flux.period_s, len(flux.cases()))
        length.check("set --duration, or let queries arrive earlier", shorter(stage.reading, flux))
        run = replay_dag(
            *(of, flux, pace),
            parameters={
                **stage.parameters(stage.settings, stage.reading),
                "stages": {"name": file.name, "text": file.text},
            },
            told=lambda case, at_s, done: asked.progress(f"{case}, {at_s:,.1f} s simulated", done, of.rows),
        )
        yield Replayed(run, [trace.as_input])


def _check_keys(file: StagesFile, trace: Trace) -> None:
    """Check that a trace has the key columns."""
    for one in file.stages:
        if one.key not in trace.columns:
            fault = file.located(
                f"stage {one.name!r}: key column {one.key!r} does not exist{did_you_mean(one.key, trace.columns)};"
                " keep more columns of a source with `adapt ingest --keep`"
            )
            raise BadInput(f"{file.name}, {fault}")


class _Stage:
    """A stage of the file, bound to a trace."""

    def __init__(self, trace: Trace, entry: StageEntry, given: StageReplay) -> None:
        base = given.settings
        own = base if entry.service_s is None else replace(base, costs=replace(base.costs, service_s=entry.service_s))
        partitions = given.reading.partitions
        partitions = replace(partitions, per_worker=entry.partitions or partitions.per_worker)
        state = given.operator.state if entry.state is None else entry.state
        fixed = state if isinstance(state, int) else None
        growth = state.growth(base.costs.tuple_bytes) if isinstance(state, StateSource) else None
        self._trace, self._key = trace, entry.key
        self.reading = replace(
            given.reading,
            partitions=partitions,
            costs=given.reading.costs if entry.service_s is None else None,
            sized=growth is not None and growth.sized,
            timed=growth is not None and growth.window is not None,
        )
        check_columns(trace, self.reading, sized=self.reading.sized)
        if isinstance(state, StateSource) and state.by_key:
            groups = KeyGroups.from_columns(batch.column(KEY) for batch in self._batches([KEY]))
            self.reading = replace(self.reading, groups=groups)
        count = partitions.count
        known = self.reading.groups
        self.settings = replace(
            own,
            owners=partitions.owners,
            partition_of=even_groups(count, count) if known is None else known.partitions_by(partitions),
            buffer_tuples=entry.buffer or base.buffer_tuples,
            state=growth,
            state_tuples=base.state_tuples if fixed is None else fixed,
        )

    def rows(self) -> Rows:
        """The rows of the trace, keyed by the stage's column."""
        return self.reading.rows(lambda: self._batches(self.reading.columns))

    def shares(self) -> NDArray[np.float64]:
        """Rows of the trace in each group, shape (groups,)."""
        counts = np.zeros(len(self.settings.partition_of))
        groups_of: Callable[[pa.Array], NDArray[np.int32]] = self.reading.partitions.partitions_of
        if self.reading.groups is not None:
            groups_of = self.reading.groups.groups_of
        for batch in self._batches([KEY]):
            counts += np.bincount(groups_of(batch.column(KEY)), minlength=len(counts))
        return counts

    def _batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Batches with the stage's column as the key: integers, or text for all other types."""
        named = [self._key if name == KEY else name for name in columns]
        at = columns.index(KEY)
        for batch in self._trace.batches(named, encoded(self._trace, named)):
            column = batch.column(at)
            if self._key != KEY and not pa.types.is_dictionary(column.type):
                column = column.cast(pa.int64() if pa.types.is_integer(column.type) else pa.string())
            yield pa.RecordBatch.from_arrays(
                [column if place == at else batch.column(place) for place in range(len(columns))], names=columns
            )


def _dag(file: StagesFile, stages: list[_Stage]) -> DagInput:
    """The stages and their input."""
    settings = DagSettings(
        tuple(replace(one.settings, seed=one.settings.seed + 1000 * at) for at, one in enumerate(stages)),
        file.edges,
        file.lives,
    )
    inputs: list[Source | Made] = []
    service_s, rows, last_s = [], 0, 0.0
    for number, (one, of) in enumerate(zip(stages, settings.stages, strict=True)):
        service_s.append(of.costs.service_s)
        if number in settings.entries:
            source = one.rows()
            demand = Demand.from_chunks(source.chunks(), of)
            rows, last_s = demand.all_rows, demand.last_s
            if demand.cost_s is not None:
                service_s[-1] = float(demand.cost_s.sum()) / rows
            inputs.append(source)
        else:
            inputs.append(Made(one.shares()))
    return DagInput(file, settings, tuple(inputs), rows, last_s, tuple(service_s))
