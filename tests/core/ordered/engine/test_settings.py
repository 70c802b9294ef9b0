"""Settings of a run: those out of range are refused."""

import pytest

from adapt.core.errors import UsageError
from adapt.core.ordered.engine.settings import RunSettings


@pytest.mark.parametrize(
    ("choices", "told"),
    [
        ({"workers": 0}, "workers must be from 1 to 256 (got 0)"),
        ({"chunk": 1025}, "chunk must be from 1 to 1,024 (got 1,025)"),
        ({"ring_buffer": 1000}, "ring_buffer must be a power of two, at most 4194304 (got 1000); try 1024"),
        ({"ring_buffer": 0}, "(got 0); try 1"),
        ({"queue_capacity": 2**23}, "(got 8388608); try 4194304"),
        ({"slice_us": -1}, "slice_us must be above 0"),
        ({"lp_minimum": 0}, "lp_minimum must be from 1 to the work queue's 4096 tuples (got 0)"),
        ({"lp_minimum": 65, "queue_capacity": 64}, "from 1 to the work queue's 64 tuples (got 65)"),
        ({"ct_window_ms": float("nan")}, "ct_window_ms must be above 0"),
        ({"qst_limit": -1}, "qst_limit must be above 0"),
        ({"mark_every": -1}, "mark_every must be at least 0 (got -1)"),
    ],
)
def test_a_setting_out_of_range_is_refused(choices: dict[str, int], told: str) -> None:
    with pytest.raises(UsageError) as refused:
        RunSettings(**choices)
    assert told in str(refused.value)
