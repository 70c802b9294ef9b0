"""The hash of Flink SQL against MurmurHash3 of a row that is written out, and against Flink's own row."""

import subprocess
from pathlib import Path

import mmh3
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.engines.flink_sql.hash import row_codes
from adapt.core.keys.columns import ARROW_TYPES
from adapt.core.stream import COLUMN_TYPES, KeyType
from tests.core.engines.test_placements import KEYS

KINDS = {KeyType.STRING: "STRING", KeyType.INT64: "BIGINT", KeyType.BINARY: "BYTES"}


def row_of(key):
    """The binary row of a key alone: kind and null bits, the field, and what does not fit in it."""
    if key is None:
        return bytes([0, 1]) + bytes(14)
    if isinstance(key, int):
        return bytes(8) + key.to_bytes(8, "little", signed=True)
    data = key.encode() if isinstance(key, str) else key
    if len(data) < 8:
        return bytes(8) + data.ljust(7, b"\0") + bytes([128 + len(data)])
    return bytes(8) + len(data).to_bytes(4, "little") + (16).to_bytes(4, "little") + data + bytes(-len(data) % 8)


def code_of(key):
    """Its hash code; a row has whole words, so it is MurmurHash3 as everywhere."""
    return mmh3.hash(row_of(key), 42)


@given(st.data())
def test_a_key_has_the_code_of_its_row(data):
    key_type = data.draw(st.sampled_from(COLUMN_TYPES))
    keys = data.draw(st.lists(st.none() | KEYS[key_type], max_size=10))
    assert row_codes(pa.array(keys, ARROW_TYPES[key_type])).tolist() == [code_of(key) for key in keys]


def awkward(key_type):
    """Keys of every length up to 40, of all bytes, and of the ends of numbers."""
    chance = np.random.default_rng(1)
    match key_type:
        case KeyType.INT64:
            drawn = chance.integers(-(2**63), 2**63 - 1, 500).tolist()
            return [*range(-200, 200), *drawn, -(2**63), 2**63 - 1]
        case KeyType.BINARY:
            return [chance.bytes(at % 41) for at in range(1000)]
        case KeyType.STRING:
            letters = [*"abcXYZ019 _-/~éüßключ日本語", "\N{GRINNING FACE}"]
            return ["".join(chance.choice(letters, at % 41)) for at in range(1000)]


@pytest.fixture(scope="module")
def flinks_rows(table_path, tmp_path_factory):
    """Asks Flink's `BinaryRowData` for the code and the key group of each key."""
    folder = tmp_path_factory.mktemp("rows")
    source = Path(__file__).parent / "RowCodes.java"
    subprocess.run(["javac", "-nowarn", "-cp", table_path, "-d", folder, source], check=True, capture_output=True)

    def ask(key_type, keys):
        asked = "".join("null\n" if key is None else f"{key}\n" for key in keys)
        line = ["java", "-cp", f"{folder}:{table_path}", "RowCodes", KINDS[key_type]]
        ran = subprocess.run(line, input=asked, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr[-2000:]
        return [int(code) for code in ran.stdout.split()]

    return ask


@pytest.mark.parametrize("key_type", COLUMN_TYPES)
def test_flink_s_rows_have_these_codes(flinks_rows, key_type):
    keys = [*awkward(key_type), None]
    sent = [
        key if key is None or isinstance(key, int) else (key.encode() if isinstance(key, str) else key).hex()
        for key in keys
    ]
    assert row_codes(pa.array(keys, ARROW_TYPES[key_type])).tolist() == flinks_rows(key_type, sent)
