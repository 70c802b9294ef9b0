"""Exported expressions and programs give the replacements of the table, and lead back from them."""

import csv
import shutil
import subprocess
from collections import Counter
from io import StringIO

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from adapt.core.engines.names import Engine
from adapt.core.engines.rekey.build import rekey_table
from adapt.core.engines.rekey.export import rekey_bundle
from adapt.core.engines.rekey.sql import (
    DUCKDB,
    joined,
    merging_query,
    merging_top,
    original,
    partial_query,
    partial_top,
    rekeyed,
)
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import COLUMN_TYPES, KeyType
from tests.core.engines.rekey.references import keys_of, plan_of
from tests.core.engines.test_placements import sent
from tests.tiers import soak

AWKWARD = [
    "it's",
    'say "x"',
    "back\\slash",
    "new\nline",
    "\t",
    "${x}",
    "日本\N{GRINNING FACE}",
    "%s",
    "a;--",
    "\\u0041",
]
every_type = pytest.mark.parametrize("key_type", COLUMN_TYPES)
needs_a_compiler = pytest.mark.skipif(shutil.which("javac") is None, reason="no JDK on PATH")


def awkward_table(key_type, engine=Engine.KAFKA):
    """A table with keys that need quoting, and other keys."""
    made = plan_of(engine, key_type, 7, 30, 3)
    pins = dict(made.explicit) | ({key: at % 7 for at, key in enumerate(AWKWARD)} if key_type is KeyType.STRING else {})
    plan = Plan(Scheme.HYBRID, 7, key_type, base=engine, explicit=pins, splits=made.splits)
    return rekey_table(plan), [*pins, *made.splits, *keys_of(key_type, 60)[-9:]]


def streamed(keys, rows, key_type):
    """A stream with a value and a second key, and what each row should give."""
    chance = np.random.default_rng(3)
    column = pa.array([keys[at] for at in chance.integers(len(keys), size=rows)], plan_type(key_type))
    return pa.table({"key": column, "x": chance.integers(200, size=rows), "second": chance.integers(50, size=rows)})


def plan_type(key_type):
    return {KeyType.STRING: pa.string(), KeyType.INT64: pa.int64(), KeyType.BINARY: pa.binary()}[key_type]


@every_type
def test_duckdb_rekeys_and_leads_back(key_type):
    table, keys = awkward_table(key_type)
    stream = streamed(keys, 3000, key_type)
    wanted = table.as_mapping()
    for turn in (None, *DUCKDB.turns.values()):
        query = f"SELECT key, rekeyed, {original(table, DUCKDB)} AS back FROM ({{}}) AS rekeyed_stream"
        made = f"SELECT key, {rekeyed(table, DUCKDB, turn=turn)} AS rekeyed FROM stream"
        rows = duckdb.sql(query.format(made)).fetchall()
        assert len(rows) == 3000
        assert all(back == key and new in wanted.get(key, (key,)) for key, new, back in rows)
        assert {new for _, new, _ in rows} >= {*table.replacements.to_pylist()}
    assert stream.num_rows == 3000


def test_duckdb_rekeys_by_a_join_as_by_a_case():
    table, keys = awkward_table(KeyType.STRING)
    stream, rekey = streamed(keys, 2000, KeyType.STRING), rows_of(table)
    assert stream.num_rows, rekey.num_rows
    by_join = duckdb.sql(f"SELECT key, second, rekeyed FROM ({joined('second')})").fetchall()
    by_case = duckdb.sql(f"SELECT key, second, {rekeyed(table, DUCKDB, turn='second')} FROM stream").fetchall()
    assert Counter(by_join) == Counter(by_case)


def rows_of(table):
    """The rows of rekey.csv."""
    rows = list(csv.DictReader(StringIO(table.to_csv(), newline="")))
    typed = [row | {"turn": int(row["turn"]), "turns": int(row["turns"])} for row in rows]
    return pa.Table.from_pylist(typed)


@pytest.mark.parametrize("key_type", [KeyType.STRING, KeyType.INT64])
def test_both_steps_give_what_one_gives(key_type):
    table, keys = awkward_table(key_type)
    stream = streamed(keys, 4000, key_type)
    assert stream.num_rows
    session = duckdb.connect()
    session.register("stream", stream)
    session.sql(
        f"CREATE TABLE rekeyed_stream AS SELECT *, {rekeyed(table, DUCKDB, turn='hash(x)')} AS rekeyed FROM stream"
    )
    session.sql(f"CREATE TABLE partials AS {partial_query(DUCKDB)}")
    session.sql(f"CREATE TABLE top_partials AS {partial_top(3)}")
    merged = session.sql(f"{merging_query(table, DUCKDB)} ORDER BY key").fetchall()
    whole = session.sql(
        "SELECT key, COUNT(*), SUM(x), MIN(x), MAX(x), AVG(x), COUNT(DISTINCT x) FROM stream GROUP BY key ORDER BY key"
    ).fetchall()
    assert [row[:5] for row in merged] == [row[:5] for row in whole]
    assert [row[5] for row in merged] == pytest.approx([row[5] for row in whole])
    assert [row[6] for row in merged] == pytest.approx([row[6] for row in whole], rel=0.2)
    assert len(session.sql("SELECT * FROM partials").fetchall()) > len(whole)
    top = session.sql(f"{merging_top(table, DUCKDB, 3)} ORDER BY key, x").fetchall()
    expected = "SELECT key, x, ROW_NUMBER() OVER (PARTITION BY key ORDER BY x DESC) AS place FROM stream"
    assert top == session.sql(f"SELECT key, x FROM ({expected}) WHERE place <= 3 ORDER BY key, x").fetchall()


@every_type
def test_python_rekeys_and_leads_back(key_type):
    table, keys = awkward_table(key_type)
    program = {}
    exec(rekey_bundle(table).files["rekey.py"].content, program)
    for key in keys:
        wanted = table.as_mapping().get(key, (key,))
        assert [program["rekey"](key) for _ in range(2 * len(wanted))] == [*wanted] * 2
        assert program["rekey"](key, 5) == wanted[5 % len(wanted)]
        assert {program["original"](new) for new in wanted} == {key}


ASK = """
public class Ask {
  public static void main(String[] given) throws Exception {
    var lines = new java.io.BufferedReader(new java.io.InputStreamReader(System.in));
    for (String line; (line = lines.readLine()) != null; ) {
      byte[] bytes = java.util.HexFormat.of().parseHex(line);
      %s key = %s;
      System.out.print(hex(Rekey.key(key)) + " " + hex(Rekey.key(key, -7)) + " ");
      System.out.println(hex(Rekey.original(Rekey.key(key))));
    }
  }
  static String hex(%s key) {
    return "x" + java.util.HexFormat.of().formatHex(%s);
  }
}
"""
UTF_8 = "java.nio.charset.StandardCharsets.UTF_8"
IN_JAVA = {
    KeyType.STRING: ("String", f"new String(bytes, {UTF_8})", "String", f"key.getBytes({UTF_8})"),
    KeyType.INT64: (
        "long",
        "java.nio.ByteBuffer.wrap(bytes).getLong()",
        "long",
        "java.nio.ByteBuffer.allocate(8).putLong(key).array()",
    ),
    KeyType.BINARY: ("byte[]", "bytes", "byte[]", "key"),
}


def in_hex(key):
    """As it is asked of Java."""
    return sent(key).hex()


@needs_a_compiler
@pytest.mark.parametrize("key_type", [KeyType.STRING])
def test_java_rekeys_and_leads_back(key_type, tmp_path):
    java_rekeys_and_leads_back(key_type, tmp_path)


@needs_a_compiler
@soak
@pytest.mark.parametrize("key_type", [KeyType.INT64, KeyType.BINARY])
def test_java_rekeys_keys_of_other_types(key_type, tmp_path):
    java_rekeys_and_leads_back(key_type, tmp_path)


def java_rekeys_and_leads_back(key_type, folder):
    table, keys = awkward_table(key_type)
    (folder / "Rekey.java").write_bytes(rekey_bundle(table).files["Rekey.java"].content)
    (folder / "Ask.java").write_text(ASK % IN_JAVA[key_type])
    sources = [folder / "Rekey.java", folder / "Ask.java"]
    subprocess.run(["javac", "-d", folder, *sources], check=True, capture_output=True)
    asked = "".join(f"{in_hex(key)}\n" for key in keys)
    ran = subprocess.run(["java", "-cp", folder, "Ask"], input=asked, capture_output=True, text=True, check=True)
    turns = Counter()
    for key, line in zip(keys, ran.stdout.splitlines(), strict=True):
        new = table.as_mapping().get(key, (key,))
        expected = (new[turns[key] % len(new)], new[-7 % len(new)], key)
        turns[key] += 2
        assert line.split() == [f"x{in_hex(each)}" for each in expected]
