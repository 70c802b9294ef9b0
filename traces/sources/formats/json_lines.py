"""JSON objects, which Spark parses with one schema for all of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.json import ParseOptions, ReadOptions, read_json

from adapt.traces.sources.formats.json_layout import GOOD, NO_OBJECT, REASONS, JsonLayout
from adapt.traces.sources.reading.records import (
    ALWAYS,
    NEVER,
    WHOLE_LINE,
    Bytes,
    InDoubt,
    OfLines,
    Parsed,
    Records,
    compacted,
    text_of,
)
from adapt.traces.spark.lazy import DataFrame, F, SparkSession, T

NOT_JSON = REASONS[NO_OBJECT]
HALVED = "half of a surrogate pair in a field"
_CORRUPT = "_not_json"
_HALF = (
    r"(?<!\\)(\\\\)*(\\u[dD][89aAbB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    r"|(?<!\\u[dD][89aAbB][0-9a-fA-F]{2})\\u[dD][c-fC-F])"
)
"""An escape of half a character, which Spark reads as a question mark."""


class OfObjects(OfLines):
    """Objects of JSON, by the layout of their file."""

    __slots__ = ()
    layout: JsonLayout

    @property
    def line_hider(self) -> int:  # type: ignore[override]
        """As `RecordFormat.line_hider`."""
        return NEVER if self.layout.of_lines else ALWAYS

    def records(self, data: Bytes, *, at_end: bool) -> Records:
        """Objects."""
        return self.layout.records(data, at_end=at_end)

    def rows(self, data: Bytes, records: Records) -> tuple[Bytes, Records]:
        """The rows within objects, one a line."""
        return self.layout.rows(data, records)


@dataclass(frozen=True, slots=True)
class JsonLines(OfObjects):
    """Objects of JSON as text."""

    times: Mapping[str, str] = field(default_factory=dict)  # time formats of fields, where known
    # field of the partition that a record lies in, by the field of its key, where known
    partitions: Mapping[str, str] = field(default_factory=dict)
    layout: JsonLayout = JsonLayout()  # noqa: RUF009 - frozen
    columns: ClassVar[tuple[str, ...]] = (WHOLE_LINE,)

    def parse(self, data: Bytes, records: Records, wanted: Sequence[str]) -> Parsed:
        """The whole row, as column `WHOLE_LINE`."""
        texts = text_of(data, records).cast(pa.string())
        good = records.fields == GOOD
        if good.all():
            return Parsed(dict.fromkeys(wanted, texts))
        return Parsed(dict.fromkeys(wanted, pc.if_else(pa.array(good), texts, None)), _reasons(records))


def _reasons(records: Records) -> pa.Array:
    return pa.array([REASONS.get(kind) for kind in records.fields.tolist()], pa.string())


@dataclass(frozen=True, slots=True)
class JsonFields(OfObjects):
    """Fields of JSON objects as Arrow reads them.

    Where Spark may read another value, `InDoubt` is raised.
    """

    types: dict[str, pa.DataType] = field(default_factory=dict)  # type: ignore[misc] # types of the fields
    met: list[pa.Schema] = field(default_factory=list)  # types of the fields of each buffer, where no field is wanted
    layout: JsonLayout = JsonLayout()  # noqa: RUF009 - frozen
    times: ClassVar[dict[str, str]] = {}
    partitions: ClassVar[dict[str, str]] = {}

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the fields."""
        return tuple(self.types)

    def parse(self, data: Bytes, records: Records, wanted: Sequence[str]) -> Parsed:
        """Wanted fields; without any, the types of all."""
        good = records.fields == GOOD
        if not good.all():
            read = self.parse(*compacted(data, records.where(good)), wanted).columns
            # row among those read, null for rejected ones
            rows = pa.array(np.cumsum(good) - 1, mask=~good)
            return Parsed({name: column.take(rows) for name, column in read.items()}, _reasons(records))
        if not len(records):
            return Parsed({})
        text = data[records.starts[0] : records.ends[-1]]
        schema, others = pa.schema([(name, self.types[name]) for name in wanted]), "ignore" if wanted else "infer"
        try:
            rows = read_json(
                pa.py_buffer(text),
                ReadOptions(use_threads=False, block_size=len(text) + 1),
                ParseOptions(schema, newlines_in_values=False, unexpected_field_behavior=others),
            )
        except pa.ArrowException:
            raise InDoubt from None
        whole = (data[records.starts] == ord("{")).all() and (data[records.ends - 1] == ord("}")).all()
        if not whole or len(rows) != len(records):
            raise InDoubt
        self.met.extend([] if wanted else [rows.schema])
        columns = {name: rows[name].combine_chunks() for name in wanted}
        if any((np.abs(each.drop_null().to_numpy()) >= 2.0**63).any() for each in _doubles(columns.values())):
            raise InDoubt  # whole numbers beyond int64 are decimals in Spark
        return Parsed(columns)


def _doubles(columns: Iterable[pa.Array]) -> Iterator[pa.Array]:
    """Columns of doubles among these and the fields within them."""
    for each in columns:
        yield from [each] if each.type == pa.float64() else ()
        yield from _doubles(each.flatten()) if pa.types.is_struct(each.type) else ()


def fields_of(met: Sequence[pa.Schema]) -> dict[str, pa.DataType]:
    """Types that Spark gives fields of these types, by name."""
    if not met:
        raise InDoubt
    found = _united([pa.struct(list(schema)) for schema in met])
    if any(max(each.name, default="") > "\uffff" for each in found):  # which Java sorts otherwise
        raise InDoubt
    return {each.name: each.type for each in sorted(found, key=lambda each: each.name)}


def _united(kinds: Sequence[pa.DataType]) -> pa.DataType:
    """The type of fields that have these types."""
    kinds = [pa.string() if pa.types.is_timestamp(kind) else kind for kind in kinds if not pa.types.is_null(kind)]
    if kinds and all(map(pa.types.is_struct, kinds)):
        fields: dict[str, list[pa.DataType]] = {}
        for each in (each for kind in kinds for each in kind):
            fields.setdefault(each.name, []).append(each.type)
        if fields:
            return pa.struct([(name, _united(types)) for name, types in sorted(fields.items())])
    if kinds and all(map(pa.types.is_list, kinds)):
        return kinds[0]  # of no use here but its name
    if {*kinds} == {pa.int64(), pa.float64()}:
        return pa.float64()
    if len({*kinds} or {pa.string()}) > 1 or any(map(pa.types.is_nested, kinds)):
        raise InDoubt
    return kinds[0] if kinds else pa.string()


def json_schema(spark: SparkSession, lines: DataFrame) -> str:
    """Schema, as DDL, of all objects of a stream.

    A field of several types is text.

    Whole numbers stay whole numbers, and text that looks like a time stays text. Of duplicate fields in an object, the
    last counts.
    """
    texts = lines.select(WHOLE_LINE).where(f"{WHOLE_LINE} is not null")
    kind = _named_once(spark.read.json(texts, columnNameOfCorruptRecord=_CORRUPT).drop(_CORRUPT).schema)
    return cast(T.StructType, kind).toDDL()


def _named_once(kind: "T.DataType") -> "T.DataType":
    """The type without duplicate fields in its structs; duplicates of different types become text."""
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(_named_once(kind.elementType), kind.containsNull)
    if not isinstance(kind, T.StructType):
        return kind
    kinds: dict[str, T.DataType] = {}
    for each in kind.fields:
        own = _named_once(each.dataType)
        kinds[each.name] = own if kinds.get(each.name, own) == own else T.StringType()
    return T.StructType([T.StructField(name, own) for name, own in kinds.items()])


def with_json_fields(lines: DataFrame, ddl: str, wanted: Sequence[str]) -> DataFrame:
    """Wanted fields of JSON objects as columns.

    A line that is not an object is rejected.
    """
    fields = cast(T.StructType, T.StructType.fromDDL(ddl)).fields
    schema = T.StructType([field for field in fields if field.name in wanted]).add(_CORRUPT, T.StringType())
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    parsed = lines.withColumn("_object", F.from_json(WHOLE_LINE, schema, options))
    # from_json ignores what follows an object, which may be another object
    values = F.json_array_length(F.concat(F.lit("["), WHOLE_LINE, F.lit("]")))
    no_object = F.col(WHOLE_LINE).isNotNull() & (
        F.col("_object").isNull() | F.col(f"_object.{_CORRUPT}").isNotNull() | F.coalesce(values != 1, F.lit(True))
    )
    told = F.concat_ws("", *[F.col("_object")[name].cast("string") for name in wanted])
    halved = F.contains(told, F.lit("?")) & F.col(WHOLE_LINE).rlike(_HALF)
    reason = F.when(no_object, NOT_JSON).when(halved, HALVED).otherwise(F.col("_reason"))
    return parsed.withColumn("_reason", reason).select(
        *[name for name in lines.columns if name != WHOLE_LINE],
        *[F.col("_object")[name].alias(name) for name in wanted],
    )
