"""Records of the workers' memory: fields by name, words that workers fight over on cache lines of their own."""

import numba
import numpy as np
import pytest

from adapt.core.atomics import fetch_add, load_atomic
from adapt.core.compiled import record_after, record_at
from adapt.core.ordered.engine.kernel.layout import HEADER, LINE, OPERATOR, PARTITION, TALLY, TIMED

ALONE = [
    (HEADER, {"stop"}),  # written seldom, and read together before each slice
    (HEADER, {"vain", "delays"}),
    (HEADER, {"fed"}),
    (HEADER, {"keep"}),
    (HEADER, {"window_start"}),
    (HEADER, {"egress_hash", "egress_tuples"}),
    (OPERATOR, {"head"}),
    (OPERATOR, {"tail", "seen_next", "copied"}),
    (OPERATOR, {"next", "sent"}),
    (OPERATOR, {"sending"}),
    (OPERATOR, {"working"}),
    (OPERATOR, {"inputs", "outputs", "time_ns"}),
    (OPERATOR, {"window_time_ns"}),
    (PARTITION, {"tail", "load"}),
]


@pytest.mark.parametrize(("kind", "fields"), ALONE)
def test_words_that_workers_fight_over_have_a_cache_line_to_themselves(
    kind: np.dtype[np.void], fields: set[str]
) -> None:
    lines = {kind.fields[name][1] // LINE for name in fields}
    assert {name for name in kind.names if kind.fields[name][1] // LINE in lines} == fields


@pytest.mark.parametrize("kind", [HEADER, OPERATOR, PARTITION, TALLY])
def test_records_of_an_array_share_no_cache_line(kind: np.dtype[np.void]) -> None:
    assert kind.itemsize % LINE == 0


def test_fields_are_read_and_written_by_name() -> None:
    @numba.njit
    def touch(address: int) -> int:
        time = record_after(record_at(address, TIMED, 0), 1)
        time.entered += 3
        return fetch_add(time, "left", 5) + load_atomic(time, "entered")

    times = np.zeros(2, TIMED)
    times["left"] = 10
    assert touch(times.ctypes.data) == 13
    expected = np.zeros(2, TIMED)
    expected["left"], expected["entered"] = (10, 15), (0, 3)
    assert times.tolist() == expected.tolist()


@pytest.mark.parametrize("field", ["ring", "in_use"])
def test_a_field_of_another_record_does_not_compile(field: str) -> None:
    @numba.njit
    def wrong(address: int) -> int:
        return load_atomic(record_at(address, TALLY, 0), field)

    with pytest.raises(numba.core.errors.TypingError, match="load_atomic"):
        wrong(0)
