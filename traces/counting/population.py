"""Population of a trace: listed keys counted exactly, others summed by cell."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.arrays import Floats
from adapt.core.counting.frequencies import Counts, Frequencies, MeasuredColumn, key_order
from adapt.core.counting.timeline import Panes
from adapt.core.engines.names import AnyScheme, Engine
from adapt.core.engines.registry import definition_of
from adapt.core.keys.partitioner import AtRandom, Partitioner, random_keys
from adapt.core.out_of_sample.windows import rows_a_pane
from adapt.core.partitioning.measures.cells import WEIGHT, Cells, Hasher, Hashers, RestSums, base_of, finest
from adapt.core.partitioning.measures.population import Population, stand_in_keys
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.stream import Weight
from adapt.core.units.row_or_time_span import Length
from adapt.core.units.seals import hash_of
from adapt.core.verdict.remedies import BUNDLE, TwoPhase
from adapt.traces.block_cache import cache_of, keep, read_kept
from adapt.traces.counting.routed_sums import LISTED, routed_sums
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.spark.session import Spark
from adapt.traces.store.manifest import program_versions
from adapt.traces.store.tables import columns_hash
from adapt.traces.store.trace import Trace

_PROBES = 1 << 12
"""Keys whose channels distinguish hashers."""


def population_of(
    trace: Trace | None,
    counted: Frequencies,
    wanted: Sequence[Hashers],
    plans: Sequence[Plan | None] = (),
    *,
    spark_options: Spark = None,
    progress: Progress = silent,
) -> Population:
    """Counted keys with the true load of all others.

    Every row is read once more: the listed keys are counted exactly, the others summed by what hashers do with them.
    The sums are kept next to the trace. Without the rows, for counts of an artefact, a CSV or the last window, an
    estimate remains.

    Args:
        trace: The trace that was counted; None for counts without one.
        wanted: Hashers that will be asked for, each step's together, to be summed in one pass; others cost another.
        plans: Plans whose pinned keys are counted exactly, too.
    """
    if trace is None or counted.complete_above == 0 or counted.rows != trace.rows:
        return Population.from_counts(counted)
    rows = _Rows(trace, _with_pins(counted, plans), counted, spark_options, progress)
    groups = finest(wanted)
    tables = rows.tables(groups)
    known = [rows.cells(group, tables[group]) for group in groups]
    by_window = None if rows.grid is None else rows.window_loads
    return Population.with_sums(rows.frequencies(tables[None]), RestSums(rows.route, known, by_window))


def two_phase(trace: Trace, placed: Partitioner, engine: AnyScheme) -> TwoPhase:
    """Count rows before and after pre-aggregation, in one pass over a trace.

    With Spark, a window is a job of as many map tasks as workers, each with consecutive rows.
    """
    pane = (rows_a_pane(trace.rows) if "ts" in trace.columns else None) or trace.rows
    shape, first = (-(-trace.rows // pane), placed.channels), 0
    tasks, bundle = (1, -(-pane // placed.channels)) if engine is Engine.SPARK else (placed.channels, BUNDLE)
    found = TwoPhase(tasks, bundle, pane, np.zeros(shape), np.zeros(shape))
    at_random = definition_of(engine).at_random if isinstance(engine, Engine) else AtRandom.NONE
    for batch in trace.batches(["key"]):
        encoded = batch.column("key").dictionary_encode(null_encoding="encode")
        keys, codes = encoded.dictionary, encoded.indices.to_numpy().astype(np.int64)
        found.add(keys, codes, placed.channels_of(keys), random_keys(at_random, keys), first)
        first += len(batch)
    return found


def _with_pins(counted: Frequencies, plans: Sequence[Plan | None]) -> pa.Array:
    """The listed keys, then other pinned keys of plans."""
    keys, kind = counted.keys, counted.keys.type
    for plan in plans:
        if plan is not None and plan.key_type is counted.key_type and plan.explicit:
            pinned = plan.explicit.column.cast(kind)
            keys = pa.concat_arrays([keys, pinned.filter(pc.invert(pc.is_in(pinned, value_set=keys)))])
    return keys


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a trace, to be summed in each window."""

    trace: Trace
    keys: pa.Array  # those summed one by one
    counted: Frequencies  # the lossy counts
    spark_options: Spark
    progress: Progress
    held: dict[Hashers | None, pa.Table] = field(default_factory=dict)  # the sums so far

    @property
    def grid(self) -> Panes | None:
        """The windows of the trace; None if it is too short for any, or has no times."""
        rows = rows_a_pane(self.trace.rows) if "ts" in self.trace.columns else None
        return None if rows is None else Panes(Length(rows, in_rows=True))

    @property
    def amounts(self) -> dict[str, Weight]:
        """What is summed, by its name in `Cells`."""
        return {WEIGHT: self.counted.weight, **{each.source: Weight(each.source) for each in self.counted.measured}}

    def route(self, groups: Sequence[Hashers]) -> list[Cells]:
        """The cells of some hashers."""
        tables = self.tables(groups)
        return [self.cells(group, tables[group]) for group in groups]

    def tables(self, groups: Sequence[Hashers]) -> dict[Hashers | None, pa.Table]:
        """The sums of each group, and of the listed keys as None; kept ones, or new ones of one pass."""
        places = {group: path for group, path in self._places(groups).items() if group not in self.held}
        found = {group: table for group, path in places.items() if (table := read_kept(path)) is not None}
        missing = [group for group in places if group is not None and group not in found]
        if len(found) < len(places):
            sums = routed_sums(
                self.trace,
                missing,
                list(dict.fromkeys(self.amounts.values())),
                self.keys,
                self.grid,
                spark_options=self.spark_options,
                progress=self.progress,
            )
            listed = [] if None in self.held else [(LISTED, None)]
            for number, group in [*listed, *enumerate(missing)]:
                own = sums.filter(pc.equal(sums["group"], number)).drop_columns(["group"])
                found[group] = own.sort_by([("pane", "ascending"), ("cell", "ascending")])
                keep(places[group], found[group])
        self.held.update(found)
        return self.held

    def cells(self, group: Hashers, table: pa.Table) -> Cells:
        """The cells of a table of sums, all windows together."""
        at, places = np.unique(table["cell"].to_numpy(), return_inverse=True)
        loads = {
            name: np.bincount(places, table[each.value].to_numpy(), len(at)).astype(np.float64)
            for name, each in self.amounts.items()
        }
        return Cells(group, at, loads)

    def window_loads(self, placement: Hasher) -> Floats:
        """The load of each channel in each window; shape (channels, windows)."""
        (group,) = finest([(base_of(placement),)])
        tables, weight = self.tables([group]), self.counted.weight.value
        listed, others = tables[None], tables[group]
        in_cells = Cells(group, others["cell"].to_numpy(), {}).placed(base_of(placement))
        of_listed = placement.channels_of(self.keys)[listed["cell"].to_numpy()]
        panes = rows_a_pane(self.trace.rows) or self.trace.rows
        loads = np.zeros((placement.channels, -(-self.trace.rows // panes)))
        for channels, table in ((of_listed, listed), (in_cells, others)):
            np.add.at(loads, (channels, table["pane"].to_numpy()), table[weight].to_numpy())
        return loads

    def frequencies(self, table: pa.Table) -> Frequencies:
        """The listed keys with their exact sums."""
        at = table["cell"].to_numpy()
        sums: dict[str, Counts] = {}
        for name, each in self.amounts.items():
            found = table[each.value].to_numpy()
            sums[name] = np.zeros(len(self.keys), found.dtype)
            np.add.at(sums[name], at, found)
        order = key_order(self.keys, sums[WEIGHT])
        counts = sums[WEIGHT][order]
        measured = tuple(
            MeasuredColumn(each.source, sums[each.source][order].astype(np.float64), each.total)
            for each in self.counted.measured
        )
        keys = self.keys.take(pa.array(order))
        return replace(self.counted, keys=keys, count_low=counts, count_high=counts, measured=measured)

    def _places(self, groups: Sequence[Hashers]) -> dict[Hashers | None, Path]:
        """The file of each group, and of the listed keys as None."""
        decisive = [
            self.trace.manifest.content_hash,
            program_versions()["adapt-streams"],
            [each.value for each in self.amounts.values()],
            columns_hash(pa.table({"key": self.keys})),
        ]
        folder = cache_of(self.trace.path)
        probes = _probes(self.keys.type)
        named = {
            group: None if group is None else [_fingerprint(each, probes) for each in group]
            for group in (None, *groups)
        }
        return {group: folder / f"{hash_of([*decisive, names])[:32]}.cells" for group, names in named.items()}


def _probes(kind: pa.DataType) -> pa.Array:
    """Keys that tell hashers apart."""
    return pa.concat_arrays([stand_in_keys(kind, _PROBES), pa.nulls(1, kind)])


def _fingerprint(hasher: Hasher, probes: pa.Array) -> str:
    """Fingerprint of a hasher, from what it does."""
    return columns_hash(pa.table({str(hasher.channels): hasher.channels_of(probes)}))
