"""Rekeying and merging in SQL, by dialect."""

from collections.abc import Callable
from dataclasses import dataclass

from adapt.core.engines.names import Engine
from adapt.core.engines.rekey.marks import HighBits
from adapt.core.engines.rekey.table import RekeyTable
from adapt.core.stream import Key, KeyType
from adapt.core.values import visible


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one SQL writes keys and choices."""

    title: str
    file: str  # its file in an export
    text: Callable[[str], str]  # a text literal
    binary: Callable[[str], str]  # a literal of bytes, given in hex
    decode: str  # the text of UTF-8 bytes
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
                # control characters would act on a terminal, or end the script of some clients
                return self.text(key) if visible(key) == key else self.decode.format(self.binary(key.encode().hex()))
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
    decode="decode({}, 'UTF-8')",
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
    decode="decode({})",
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
    decode="FROM_BYTES({}, 'utf8')",
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
    decode="decode({}, 'UTF-8')",
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


MOST_IN_CASE = 500
"""Most keys of a CASE; for more, the join is the quicker."""


def rekeyed(table: RekeyTable, dialect: Dialect, column: str = "key", turn: str | None = None) -> str:
    """The expression of the replacement of a column's key.

    Args:
        turn: A whole number from 0 that chooses among the replacements of a split key (default: at random).
    """
    turn = next(iter(dialect.turns.values())) if turn is None else turn
    lines = []
    for key, new in table.as_mapping().items():
        values = [dialect.literal(each) for each in new]
        chosen = values[0] if len(new) == 1 else dialect.choice(", ".join(values), turn, len(new))
        lines.append(f"  WHEN {column} = {dialect.literal(key)} THEN {chosen}\n")
    return f"CASE\n{''.join(lines)}  ELSE {column}\nEND" if lines else column


def original(table: RekeyTable, dialect: Dialect, column: str = "rekeyed") -> str:
    """The expression of the key that a replacement stands for."""
    if isinstance(table.mark, HighBits):
        return f"MOD({column}, {table.mark.modulus})"
    if table.key_type is KeyType.STRING:
        return dialect.strip(column, table.mark.text)
    back = [
        f"  WHEN {column} = {dialect.literal(each)} THEN {dialect.literal(key)}\n"
        for key, new in table.as_mapping().items()
        for each in new
        if each != key
    ]
    return f"CASE\n{''.join(back)}  ELSE {column}\nEND" if back else column


def partial_query(dialect: Dialect) -> str:
    """Partial results of `rekeyed_stream`, by the replaced key."""
    if dialect is KSQLDB:
        return "SELECT rekeyed, COUNT(*) AS n, COUNT(x) AS c, SUM(x) AS s FROM rekeyed_stream GROUP BY rekeyed"
    return (
        "SELECT rekeyed, COUNT(*) AS n, COUNT(x) AS c, SUM(x) AS s, MIN(x) AS low, MAX(x) AS high,\n"
        f"  {dialect.distinct[0]} AS d\n"
        "FROM rekeyed_stream GROUP BY rekeyed"
    )


def merging_query(table: RekeyTable, dialect: Dialect) -> str:
    """Results of `partials`, by the original key."""
    if dialect is KSQLDB:  # which has no subqueries, and merges from a table only what it can take back
        back = original(table, dialect)
        return (
            f"SELECT {back} AS key, SUM(n) AS rows_of_key, SUM(s) AS sum_x,\n"
            f"  SUM(s) * 1.0 / SUM(c) AS avg_x\nFROM partials GROUP BY {back}"
        )
    return (
        "SELECT key, SUM(n) AS rows_of_key, SUM(s) AS sum_x, MIN(low) AS min_x, MAX(high) AS max_x,\n"
        f"  SUM(s) * 1.0 / SUM(c) AS avg_x, {dialect.distinct[1]} AS distinct_x\n"
        f"FROM (SELECT {original(table, dialect)} AS key, n, c, s, low, high, d FROM partials) AS parts GROUP BY key"
    )


def partial_top(k: int) -> str:
    """The k largest values of each replaced key."""
    return (
        "SELECT rekeyed, x FROM (\n"
        "  SELECT rekeyed, x, ROW_NUMBER() OVER (PARTITION BY rekeyed ORDER BY x DESC) AS place FROM rekeyed_stream\n"
        f") AS ranked WHERE place <= {k}"
    )


def merging_top(table: RekeyTable, dialect: Dialect, k: int) -> str:
    """The k largest values of each original key, from `top_partials`."""
    return (
        "SELECT key, x FROM (\n"
        "  SELECT key, x, ROW_NUMBER() OVER (PARTITION BY key ORDER BY x DESC) AS place\n"
        f"  FROM (SELECT {original(table, dialect)} AS key, x FROM top_partials) AS parts\n"
        f") AS ranked WHERE place <= {k}"
    )


def joined(turn: str, dialect: Dialect = DUCKDB) -> str:
    """The stream with its replacements, by a join with `rekey`, rekey.csv."""
    return (
        "SELECT t.*, COALESCE(r.replacement, t.key) AS rekeyed FROM (\n"
        f"  SELECT *, {turn} AS number FROM {dialect.stream}\n"
        ") AS t LEFT JOIN rekey AS r ON r.key = t.key AND r.turn = t.number % r.turns"
    )


def sql_file(table: RekeyTable, dialect: Dialect) -> bytes:
    """The file of a dialect, with both steps of aggregates."""
    parts = [f"-- {dialect.title}: rekey `key`, the column that `stream` is keyed by. Rename both as needed."]
    turn = next(iter(dialect.turns.values())) if table.split else "0"
    if len(table.keys) <= MOST_IN_CASE:
        parts.append(f"-- The replacement of `key`:\n{rekeyed(table, dialect)}")
    if dialect is not KSQLDB:
        parts.append(
            "-- The same by a join with rekey.csv as table `rekey`, best for many keys"
            f" ({len(table.keys):,} here):\n{joined(turn, dialect)};"
        )
    parts.append(f"-- Undo: the key that `rekeyed` stands for:\n{original(table, dialect)}")
    if table.split:
        others = "".join(f"\n--   {how}: {turn}" for how, turn in dialect.turns.items())
        parts += [
            f"-- Records of a split key choose a replacement by a whole number from 0, each in its own way:{others}",
            "-- Step 1, as `partials` (group by the window too, if there is one):\n" + partial_query(dialect) + ";",
            "-- Step 2, the results by the original key:\n" + merging_query(table, dialect) + ";",
        ]
        if dialect is KSQLDB:
            parts.append("-- From a table, ksqlDB cannot merge MIN, MAX, distinct values and TOPK.")
        elif "SUM" in dialect.distinct[1]:
            parts.append("-- distinct_x is right only if records choose their replacement by x, so that parts differ.")
        if dialect is not KSQLDB:
            parts += [
                "-- The three largest x, step 1, as `top_partials`:\n" + partial_top(3) + ";",
                "-- The three largest x, step 2:\n" + merging_top(table, dialect, 3) + ";",
            ]
    return ("\n\n".join(parts) + "\n").encode()
