"""Sieve of plain rows: those whose values can be read without Spark."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.traces.ingest.mapping import RESERVED, Mapping
from adapt.traces.ingest.runs.values import (
    ODD,
    UTC,
    VALUE,
    layout_of,
    plain_decimals,
    plain_epochs,
    plain_times,
    plain_wholes,
)
from adapt.traces.ingest.times import EARLIEST_US, EPOCH_UNITS, LATEST_US, TimeFormat
from adapt.traces.sources.reading.blocks import PATH

PLACES = {"_file": pa.int32(), "_line": pa.int64()}
"""The place of a row in the source, which breaks ties of time."""

TIME = pa.timestamp("us", UTC)

LEAST_PLAIN = 0.9
"""Share of the first rows that must be plain, since the others cost more."""

_KINDS = {
    "ts": TIME,
    "key": pa.string(),
    "stream": pa.string(),
    "cost_us": pa.float64(),
    "bytes": pa.int64(),
    "partition": pa.int32(),
}


@dataclass(frozen=True, slots=True)
class Sieve:
    """How plain rows become rows of the trace; sent to Spark tasks."""

    mapping: Mapping  # source columns of the trace's columns
    layout: NDArray[np.int64]  # steps of the times; see `layout_of`
    form: TimeFormat
    zoned: bool  # only times that name their zone are plain

    @property
    def columns(self) -> dict[str, str]:
        """Source columns by column of the trace, in its order."""
        mapping = self.mapping
        texts = (mapping.time, mapping.key, mapping.stream, mapping.cost, mapping.bytes, mapping.partition)
        own = dict(zip(RESERVED, texts, strict=True))
        return {**{name: source for name, source in own.items() if source}, **{name: name for name in mapping.keep}}

    @property
    def schema(self) -> pa.Schema:
        """Schema of the trace."""
        return pa.schema([(name, _KINDS.get(name, pa.string())) for name in self.columns])

    @property
    def read(self) -> list[str]:
        """Source columns that it reads."""
        return list(dict.fromkeys(self.columns.values()))

    def fits(self, sample: pa.Table) -> bool:
        """Whether most rows of a sample are plain."""
        plain = sum(len(self.sifted(batch)[0]) for batch in sample.to_batches())
        return plain >= LEAST_PLAIN * len(sample)

    def sifted(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """The plain rows as in the trace, and the others as read."""
        columns = self.columns
        times, plain = self._times(batch.column(columns["ts"]))
        plain &= (times >= EARLIEST_US) & (times <= LATEST_US) & batch.column("_reason").is_null().to_numpy(False)
        made: dict[str, pa.Array] = {"ts": pa.array(times).view(TIME)}
        if "cost_us" in columns:
            factor = self.mapping.us_per_cost
            costs, kinds = plain_decimals(batch.column(columns["cost_us"]))
            with np.errstate(over="ignore"):
                costs = costs if factor == 1 else costs * float(factor.numerator) / float(factor.denominator)
            plain &= (kinds != ODD) & np.isfinite(costs)
            made["cost_us"] = pa.array(costs, mask=kinds != VALUE)
        for name in {"bytes", "partition"} & columns.keys():
            numbers, kinds = plain_wholes(batch.column(columns[name]))
            most = np.iinfo(_KINDS[name].to_pandas_dtype()).max
            plain &= (kinds != ODD) & (numbers <= most)
            made[name] = pa.array(np.minimum(numbers, most), _KINDS[name], mask=kinds != VALUE)
        arrays = [
            *(batch.column(name) for name in PLACES),
            *(made[name] if name in made else batch.column(source) for name, source in columns.items()),
        ]
        rows = pa.RecordBatch.from_arrays(arrays, schema=with_places(self.schema))
        if plain.all():
            return rows, batch.slice(0, 0)
        mask = pa.array(plain)
        return rows.filter(mask), batch.filter(pc.invert(mask))

    def _times(self, texts: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        if self.form.name in EPOCH_UNITS:
            return plain_epochs(texts, EPOCH_UNITS[self.form.name])
        return plain_times(texts, self.layout, zoned=self.zoned)


def with_places(schema: pa.Schema) -> pa.Schema:
    """Schema of rows of the trace with their places."""
    return pa.schema([*PLACES.items(), *schema])


def sieve_of(mapping: Mapping, form: TimeFormat, time_zone: str, texts: Sequence[str]) -> Sieve | None:
    """The sieve of a mapping; None if no row is plain.

    Args:
        form: Format of the times.
        time_zone: Zone of times without one.
        texts: Source columns of text.
    """
    layout = layout_of(form, time_zone)
    named = (*mapping.expressions().values(), *mapping.keep)
    if layout is None or mapping.dedup or not {*named} <= {*texts, PATH}:
        return None
    return Sieve(mapping, layout, form, zoned=time_zone != UTC)
