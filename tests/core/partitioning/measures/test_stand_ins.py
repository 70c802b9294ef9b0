"""Made-up keys: distinct, always the same, of any key type, unlike real ones."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from adapt.core.partitioning.measures.population import stand_in_keys

KINDS = [pa.string(), pa.large_string(), pa.int64(), pa.binary(), pa.large_binary()]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("number", [0, 1, 50_000])
def test_there_are_as_many_distinct_keys_of_the_type_as_asked_for(kind, number):
    keys = stand_in_keys(kind, number)
    keys.validate(full=True)
    assert (keys.type, len(keys), keys.null_count) == (kind, number, 0)
    assert pc.count_distinct(keys).as_py() == number


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_they_are_the_same_however_many_there_are(kind):
    assert stand_in_keys(kind, 100) == stand_in_keys(kind, 1000)[:100]


def test_text_is_the_number_of_the_integer_key_in_hex():
    numbers = stand_in_keys(pa.int64(), 20).to_pylist()
    texts = [f"\x1astand-in\x1a{number % 2**64:016x}" for number in numbers]
    assert stand_in_keys(pa.string(), 20).to_pylist() == texts
    assert stand_in_keys(pa.binary(), 20).to_pylist() == [text.encode() for text in texts]


def test_no_integer_is_small():
    # Of 100,000 numbers drawn from 2^64, one below 2^40 would turn up once in a hundred and fifty trials.
    assert min(abs(key) for key in stand_in_keys(pa.int64(), 100_000).to_pylist()) > 2**40


def test_other_types_are_refused():
    with pytest.raises(ValueError, match="got double"):
        stand_in_keys(pa.float64(), 3)
