"""SQL dialects of rekey expressions."""

from collections.abc import Callable
from dataclasses import dataclass

from adapt.core.engines.names import Engine
from adapt.core.stream import Key


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one SQL writes keys and choices."""

    title: str
    file: str  # its file in an export
    text: Callable[[str], str]  # a text literal
    binary: Callable[[str], str]  # a literal of bytes, given in hex
    choice: Callable[[str, str, int], str]  # one of several values by a whole number from 0: values, number, how many
    strip: Callable[[str, str], str]  # the text before a separator: column, separator
    turns: dict[str, str]  # whole numbers from 0 that choose among replacements, by how they choose
    # distinct values `x` as a partial result `d`, and those merged. A sum of counts is right only if the replacement
    # is chosen by `x`
    distinct: tuple[str, str]
    stream: str = "stream"  # the table that is rekeyed, quoted where its name is a word of the dialect

    def literal(self, key: Key) -> str:
        """A key as a literal."""
        match key:
            case str():
                return self.text(key)
            case bytes():
                return self.binary(key.hex())
            case _:
                return str(key)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _escaped(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SPARK = Dialect(
    title="Spark SQL",
    file="spark.sql",
    text=_escaped,
    binary=lambda digits: f"X'{digits}'",
    choice=lambda values, turn, count: f"element_at(array({values}), CAST(pmod({turn}, {count}) AS INT) + 1)",
    strip=lambda column, separator: f"substring_index({column}, '{separator}', 1)",
    turns={
        "at random": "CAST(rand() * 2147483647 AS INT)",
        "round robin": "monotonically_increasing_id()",
        "by a second key": "hash(second)",
    },
    distinct=("hll_sketch_agg(x)", "hll_sketch_estimate(hll_union_agg(d))"),
)

DUCKDB = Dialect(
    title="DuckDB",
    file="duckdb.sql",
    text=_quoted,
    binary=lambda digits: f"from_hex('{digits}')",
    choice=lambda values, turn, count: f"([{values}])[CAST(({turn}) % {count} AS INTEGER) + 1]",
    strip=lambda column, separator: f"split_part({column}, '{separator}', 1)",
    turns={
        "at random": "CAST(random() * 2147483647 AS BIGINT)",
        "round robin": "row_number() OVER ()",
        "by a second key": "hash(second)",
    },
    distinct=("APPROX_COUNT_DISTINCT(x)", "SUM(d)"),
)

KSQLDB = Dialect(
    title="ksqlDB",
    file="ksqldb.sql",
    text=_quoted,
    binary=lambda digits: f"TO_BYTES('{digits}', 'hex')",
    choice=lambda values, turn, count: f"ARRAY[{values}][CAST(({turn}) % {count} AS INT) + 1]",
    strip=lambda column, separator: f"SPLIT({column}, '{separator}')[1]",
    turns={"at random": "CAST(RANDOM() * 2147483647 AS BIGINT)", "round robin": "ROWOFFSET"},
    distinct=("", ""),
)


FLINK = Dialect(
    title="Flink SQL",
    file="flink.sql",
    text=_quoted,
    binary=lambda digits: f"X'{digits}'",
    choice=lambda values, turn, count: (
        f"ARRAY[{values}][CAST(MOD(MOD({turn}, {count}) + {count}, {count}) AS INT) + 1]"
    ),
    strip=lambda column, separator: (
        f"CASE WHEN POSITION('{separator}' IN {column}) > 0"
        f" THEN SUBSTRING({column} FROM 1 FOR POSITION('{separator}' IN {column}) - 1) ELSE {column} END"
    ),
    turns={"at random": "RAND_INTEGER(2147483647)", "by a second key": "HASH_CODE(second)"},
    distinct=("COUNT(DISTINCT x)", "SUM(d)"),
    stream="`stream`",
)


def dialects_of(engine: Engine) -> tuple[Dialect, ...]:
    """The dialects in an export: the engine's, and DuckDB's."""
    return (*_OF_ENGINE.get(engine.family, ()), DUCKDB)


_OF_ENGINE: dict[str, tuple[Dialect, ...]] = {"spark": (SPARK,), "kafka": (KSQLDB,), "flink-sql": (FLINK,)}
"""By family. Flink's DataStream jobs have none: Flink SQL hashes rows, not the key's Java hash code."""
