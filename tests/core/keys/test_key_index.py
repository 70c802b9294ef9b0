import pickle
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.counting.exact import KeyTable
from adapt.core.keys.columns import ARROW_TYPES, key_type_of
from adapt.core.keys.hashes import HASHES, HashedKeys
from adapt.core.keys.key_index import KeyIndex
from adapt.core.keys.names import HashName
from adapt.core.stream import COLUMN_TYPES, KeyType

TEXTS = st.text("ab\0é", max_size=20)
KEYS = {
    KeyType.STRING: TEXTS,
    KeyType.BINARY: TEXTS.map(str.encode),
    KeyType.INT64: st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1),
}
WIDER = {KeyType.STRING: pa.large_string(), KeyType.BINARY: pa.large_binary(), KeyType.INT64: pa.int64()}


@st.composite
def asked(draw):
    """Distinct keys, and others to look up, of which many are among them."""
    key_type = draw(st.sampled_from(COLUMN_TYPES))
    known = draw(st.lists(st.none() | KEYS[key_type], unique=True, max_size=30))
    wanted = draw(st.lists(st.sampled_from([*known, None]) | KEYS[key_type], max_size=60))
    return key_type, known, wanted


@given(asked(), st.sampled_from(HashName), st.data())
def test_rows_are_those_of_a_dictionary_however_the_columns_are_laid_out(case, hash, data):
    key_type, known, wanted = case
    rows = {key: row for row, key in enumerate(known)}
    expected = np.array([rows.get(key, -1) for key in wanted], np.int32)
    index = KeyIndex(pa.array([*known, *known], ARROW_TYPES[key_type])[: len(known)])
    cut = data.draw(st.integers(0, len(wanted)))
    plain = pa.array(wanted, ARROW_TYPES[key_type])
    for column in (
        plain,
        plain.cast(WIDER[key_type]),
        plain.dictionary_encode(),
        pa.chunked_array([plain[:cut], plain[cut:]]),
    ):
        assert index.rows_of(HashedKeys.from_column(column, hash)).tolist() == expected.tolist()
    assert index.rows_of(HashedKeys.from_column(plain[cut:], hash)).tolist() == expected[cut:].tolist()
    again = pickle.loads(pickle.dumps(index))
    assert again.rows_of(HashedKeys.from_column(plain, hash)).tolist() == expected.tolist()


@given(asked())
def test_keys_of_one_hash_are_told_apart_by_their_bytes(case):
    key_type, known, wanted = case

    class Collision:
        def positions(self, keys):
            return np.zeros(len(keys), np.uint64), np.zeros(len(keys), np.uint64)

    rows = {key: row for row, key in enumerate(known)}
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(HASHES, HashName.MURMUR3, Collision())
        index = KeyIndex(pa.array(known, ARROW_TYPES[key_type]))
        found = index.rows_of(HashedKeys.from_column(pa.array(wanted, ARROW_TYPES[key_type]), HashName.MURMUR3))
    assert found.tolist() == [rows.get(key, -1) for key in wanted]


def test_the_column_is_hashed_once_for_each_hash(monkeypatch):
    known = pa.array([f"k{number}" for number in range(100)])
    index = KeyIndex(known)
    wanted = [HashedKeys.from_column(known[50:], hash) for hash in HashName]
    hashed, of = [], HashedKeys.from_column
    monkeypatch.setattr(HashedKeys, "from_column", lambda keys, hash: hashed.append(hash) or of(keys, hash))
    for keys in wanted * 3:
        assert index.rows_of(keys).tolist() == list(range(50, 100))
    assert hashed == list(HashName)


@given(
    st.sampled_from([(pa.string(), st.text()), (pa.binary(), st.binary()), (pa.int64(), st.integers(-3, 300))]),
    st.data(),
)
def test_a_table_counts_keys_as_arrow_does(kind, data):
    table = KeyTable(key_type_of(kind[0]))
    for values in (parts := data.draw(st.lists(st.lists(st.none() | kind[1], max_size=400), max_size=4))):
        table.add(pa.array(values, kind[0]))
    counted = table.counted()
    assert Counter(dict(zip(counted.keys.to_pylist(), counted.counts.tolist(), strict=True))) == Counter(
        value for values in parts for value in values
    )


@pytest.mark.parametrize("keys", [range(200_000), range(0, 2**62, 2**44)], ids=len)
def test_a_table_grows_with_its_keys(keys):
    for kind in (pa.int64(), pa.string()):
        table = KeyTable(key_type_of(kind))
        for _ in range(2):
            table.add(pa.array(keys, pa.int64()).cast(kind))
        counted = table.counted()
        assert (len(counted.keys.unique()), set(counted.counts.tolist())) == (len(keys), {2})
