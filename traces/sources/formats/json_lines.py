"""JSON lines, which Spark parses with one schema for all of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, cast

import pyarrow as pa

from adapt.traces.sources.reading.records import WHOLE_LINE, Bytes, OfLines, Parsed, Records, text_of
from adapt.traces.spark.lazy import DataFrame, F, SparkSession, T

NOT_JSON = "not a JSON object"
HALVED = "half of a surrogate pair in a field"
_CORRUPT = "_not_json"
_HALF = (
    r"(?<!\\)(\\\\)*(\\u[dD][89aAbB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    r"|(?<!\\u[dD][89aAbB][0-9a-fA-F]{2})\\u[dD][c-fC-F])"
)
"""An escape of half a character, which Spark reads as a question mark."""


@dataclass(frozen=True, slots=True)
class JsonLines(OfLines):
    """JSON lines: one object per line."""

    times: dict[str, str] = field(default_factory=dict)  # time formats of fields, where known
    # field of the partition that a record lies in, by the field of its key, where known
    partitions: dict[str, str] = field(default_factory=dict)
    columns: ClassVar[tuple[str, ...]] = (WHOLE_LINE,)

    def parse(self, data: Bytes, records: Records, wanted: Sequence[str]) -> Parsed:
        """The whole line, as column `WHOLE_LINE`."""
        return Parsed({name: text_of(data, records).cast(pa.string()) for name in wanted})


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
    """Wanted fields of JSON lines as columns.

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
