"""What all synthetic streams have."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.stream import KeyType
from adapt.traces.generators.steady import keys_of


@given(st.lists(st.one_of(st.integers(0, 2**63 - 1), st.integers(0, 1000)), max_size=20))
def test_text_keys_are_a_letter_and_the_number(numbers):
    made = keys_of(np.array(numbers, np.int64), "k", KeyType.STRING)
    made.validate(full=True)
    assert made.type == pa.string()
    assert made.to_pylist() == [f"k{number}" for number in numbers]
