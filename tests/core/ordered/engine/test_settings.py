"""The choices of a run, and how those out of their range are refused."""

import pytest

from adapt.core.errors import UsageError
from adapt.core.ordered.engine.settings import RunSettings


@pytest.mark.parametrize(
    ("choices", "told"),
    [
        ({"workers": 0}, "a run has from 1 to 256 workers, not 0"),
        ({"batch": 65}, "from 1 to 64 tuples share a serial number, not 65"),
        ({"batch": 64, "ring": 32}, "a ring of 32 tuples holds no batch of 64"),
        ({"batch": 64, "queue": 32}, "a queue of 32 tuples holds no batch of 64"),
        ({"ring": 1000}, "a ring has a power of two of places, at most 4194304, not 1000; 1024 would do"),
        ({"ring": 0}, "not 0; 1 would do"),
        ({"queue": 2**23}, "not 8388608; 4194304 would do"),
        ({"slice_us": 0}, "the slice is above 0"),
        ({"window_ms": float("nan")}, "the window is above 0"),
        ({"queue_size": -1}, "the queue size is above 0"),
        ({"mark_every": -1}, "tuples are timed one in 1 or more, or none for 0, not -1"),
    ],
)
def test_a_choice_out_of_its_range_is_refused(choices: dict[str, int], told: str) -> None:
    with pytest.raises(UsageError) as refused:
        RunSettings(**choices)
    assert told in str(refused.value)
