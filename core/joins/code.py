"""Code to paste for a join: PySpark and Spark SQL."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.engines.rekey.sql import SPARK
from adapt.core.joins.loads import Join
from adapt.core.keys.columns import key_bytes
from adapt.core.keys.typed_keys import columns_of, row_of
from adapt.core.stream import KeyType

_IMPORT = "from pyspark.sql import functions as F\n\n"
_SIDES = ("left", "right")


@dataclass(frozen=True, slots=True)
class Code:
    """PySpark on `left` and `right`, and SQL on `left_rows` and `right_rows`."""

    pyspark: str
    sql: str


def _quoted(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else "`" + name.replace("`", "``") + "`"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _literal(value: Any, kind: KeyType) -> str:
    if kind.storage is KeyType.INT64 or kind is KeyType.BOOLEAN:
        return str(value)
    if kind is KeyType.BINARY:
        return f"X'{value if isinstance(value, str) else value.hex()}'"
    if kind is KeyType.STRING:
        return SPARK.literal(value).replace("${", "\\u0024{")  # else Spark takes it for a variable
    if kind.precision is not None:
        return f"CAST('{value}' AS {kind})"
    return f"{kind.upper()}'{value}{'Z' if kind is KeyType.TIMESTAMP else ''}'"


class Writer:
    """Writes code for an inner join of inputs 0 and 1."""

    def __init__(self, join: Join, hot: NDArray[np.int64]) -> None:
        """Code for a join with these hot keys."""
        kind = join.left.key_type
        self._kinds = kind.columns or (kind,)
        self._names = join.left.key, join.right.key
        self._same = join.left.key == join.right.key
        columns, salt = {*join.left.columns, *join.right.columns}, "_salt"
        while columns & {salt, f"{salt}_right"}:
            salt += "_"
        self._salts = (salt, salt if self._same else f"{salt}_right")
        values = [join.keys[at].as_py() for at in hot.tolist()]
        self._rows = [row_of(each, kind) or () if kind.columns else (each,) for each in values]
        self._only = self._one_column(join) if kind.columns else 0

    def _one_column(self, join: Join) -> int | None:
        _, columns = columns_of(key_bytes(join.keys), join.left.key_type)
        for at, values in enumerate(columns):
            hot = {row[at] for row in self._rows}
            if hot and sum(each in hot for each in values) == len(self._rows):
                return at
        return None

    def _is_hot(self, side: int) -> str:
        names, at = [_quoted(each) for each in self._names[side]], self._only
        if at is not None:
            values = dict.fromkeys(_literal(row[at], self._kinds[at]) for row in self._rows)
            return f"{names[at]} IN ({', '.join(values)})"
        told = []
        for row in self._rows:
            values_of = zip(names, row, self._kinds, strict=True)
            told.append(" AND ".join(f"{name} = {_literal(value, kind)}" for name, value, kind in values_of))
        return " OR ".join(f"({each})" for each in told)

    def _on(self, tables: tuple[str, str] | None = None, *, salted: bool = False) -> str:
        names = [[*of, *([salt] if salted else [])] for of, salt in zip(self._names, self._salts, strict=True)]
        if self._same and tables is None:
            return _text(names[0] if len(names[0]) > 1 else names[0][0])
        if self._same:
            return f"USING ({', '.join(map(_quoted, names[0]))})"
        before = ("", "") if tables is None else (f"{tables[0]}.", f"{tables[1]}.")
        pairs = zip(*names, strict=True)
        equal = " AND ".join(f"{before[0]}{_quoted(mine)} = {before[1]}{_quoted(other)}" for mine, other in pairs)
        return f"F.expr({_text(equal)})" if tables is None else f"ON {equal}"

    def with_settings(self, settings: Mapping[str, str]) -> Code:
        """The join with other settings."""
        python = "".join(f"spark.conf.set({_text(name)}, {_text(value)})\n" for name, value in settings.items())
        sql = "".join(f"SET {name} = {value};\n" for name, value in settings.items())
        return Code(
            f"{'' if self._same else _IMPORT}{python}joined = left.join(right, {self._on()})\n",
            f"{sql}SELECT * FROM left_rows JOIN right_rows {self._on(('left_rows', 'right_rows'))};\n",
        )

    def broadcast(self, side: int) -> Code:
        """The join with one input sent to all executors."""
        frames = [f"F.broadcast({name})" if at == side else name for at, name in enumerate(_SIDES)]
        return Code(
            f"{_IMPORT}joined = {frames[0]}.join({frames[1]}, {self._on()})\n",
            f"SELECT /*+ BROADCAST({_SIDES[side]}_rows) */ * FROM left_rows JOIN right_rows"
            f" {self._on(('left_rows', 'right_rows'))};\n",
        )

    def spread(self, tasks: int, side: int) -> Code:
        """A broadcast join whose other input is dealt to tasks."""
        frames = [f"{name}.repartition({tasks})" if at == side else name for at, name in enumerate(_SIDES)]
        tables = [f"{name}_rows" for name in _SIDES]
        dealt = f"(SELECT /*+ REPARTITION({tasks}) */ * FROM {tables[side]}) AS {tables[side]}"
        told = [dealt if at == side else name for at, name in enumerate(tables)]
        return Code(
            f"{'' if self._same else _IMPORT}joined = {frames[0]}.join({frames[1]}, {self._on()})\n",
            f"SELECT * FROM {told[0]} JOIN {told[1]} {self._on((tables[0], tables[1]))};\n",
        )

    def split_hot(self, tasks: int, side: int) -> Code:
        """Hot keys joined apart, by a broadcast of one input's rows."""
        flags = ["is_hot", "is_hot" if self._same else "is_hot_right"]
        python = "".join(f"{flags[at]} = F.expr({_text(self._is_hot(at))})\n" for at in range(1 if self._same else 2))
        hot = [f"{name}.where({flag})" for name, flag in zip(_SIDES, flags, strict=True)]
        hot = [f"F.broadcast({each})" if at == side else f"{each}.repartition({tasks})" for at, each in enumerate(hot)]
        queries = []
        for is_hot in (False, True):
            told = []
            for at in range(2):
                hint = f"/*+ REPARTITION({tasks}) */ " if is_hot and at != side else ""
                condition = self._is_hot(at) if is_hot else f"NOT ({self._is_hot(at)})"
                told.append(f"(SELECT {hint}* FROM {_SIDES[at]}_rows WHERE {condition}) AS {'lr'[at]}")
            hint = f"/*+ BROADCAST({'lr'[side]}) */ " if is_hot else ""
            queries.append(f"SELECT {hint}* FROM\n  {told[0]} JOIN\n  {told[1]} {self._on(('l', 'r'))}")
        return Code(
            f"{_IMPORT}{python}hot = {hot[0]}.join({hot[1]}, {self._on()})\n"
            f"others = left.where(~{flags[0]}).join(right.where(~{flags[1]}), {self._on()})\n"
            "joined = others.union(hot)\n",
            "\nUNION ALL\n".join(queries) + ";\n",
        )

    def salted(self, salts: int, side: int) -> Code:
        """Hot rows of one input salted, those of the other copied."""
        told, (mine, other) = ["", ""], self._salts
        told[side] = f"CASE WHEN {self._is_hot(side)} THEN CAST(rand() * {salts} AS INT) ELSE 0 END"
        copies = f"CASE WHEN {self._is_hot(1 - side)} THEN sequence(0, {salts - 1}) ELSE array(0) END"
        told[1 - side] = f"explode({copies})"
        names = [mine] if self._same else [mine, other]
        frames = [
            f"salted_{name} = {name}.withColumn({_text(self._salts[at])}, F.expr({_text(told[at])}))\n"
            for at, name in enumerate(_SIDES)
        ]
        tables = [
            f"(SELECT *, {told[at]} AS {self._salts[at]} FROM {_SIDES[at]}_rows) AS {'lr'[at]}" for at in range(2)
        ]
        return Code(
            f"{_IMPORT}{''.join(frames)}joined = salted_left.join(salted_right, {self._on(salted=True)})"
            f".drop({', '.join(map(_text, names))})\n",
            f"-- EXCEPT needs Spark 4\nSELECT * EXCEPT ({', '.join(names)}) FROM\n  {tables[0]} JOIN\n  {tables[1]}"
            f" {self._on(('l', 'r'), salted=True)};\n",
        )

    def nulls_apart(self) -> Code:
        """A left join in which rows without a key are not shuffled."""
        missing = " OR ".join(f"{_quoted(name)} IS NULL" for name in self._names[0])
        queries = [
            f"SELECT * FROM (SELECT * FROM left_rows WHERE {condition}) AS l LEFT JOIN\n"
            f"  (SELECT * FROM right_rows{nothing}) AS r {self._on(('l', 'r'))}"
            for condition, nothing in ((f"NOT ({missing})", ""), (missing, " WHERE false"))
        ]
        return Code(
            f"{_IMPORT}has_no_key = F.expr({_text(missing)})\n"
            f'joined = left.where(~has_no_key).join(right, {self._on()}, "left").union(\n'
            f'    left.where(has_no_key).join(right.where("false"), {self._on()}, "left"))\n',
            "\nUNION ALL\n".join(queries) + ";\n",
        )
