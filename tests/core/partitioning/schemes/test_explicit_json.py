import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.keys.key_text import key_to_text
from adapt.core.partitioning.schemes.explicit import ExplicitMap, explicit_data, explicit_json

KEYS = (
    st.text() | st.text('"\\\n\x00\x7fé\U0001f600a', max_size=4),
    st.binary(max_size=5),
    st.integers(-(2**63), 2**63 - 1),
)
MAPS = st.one_of(st.dictionaries(st.none() | keys, st.integers(0, 10**6)) for keys in KEYS)


@given(MAPS)
def test_it_is_what_json_makes_of_the_texts_of_the_keys(mapping):
    texts = {key_to_text(key): channel for key, channel in mapping.items() if key is not None}
    wanted = json.dumps(texts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    made = ExplicitMap.from_mapping(mapping)
    assert explicit_json(made).decode() == wanted
    assert explicit_data(made) == texts
    assert list(explicit_data(made)) == [key_to_text(key) for key in made if key is not None]


@pytest.mark.parametrize("kind", [pa.string(), pa.int64(), pa.binary()])
def test_a_map_of_null_alone_has_no_text(kind):
    assert explicit_json(ExplicitMap(pa.nulls(1, kind), [3])) == b"{}"
    assert explicit_json(ExplicitMap(pa.nulls(0, kind), [])) == b"{}"
