"""Lengths of replays: what is too long is refused with its numbers."""

import pytest

from adapt.core.errors import UsageError
from adapt.traces.replay.ahead.length import Length


def test_a_replay_of_too_many_rows_or_control_periods_is_refused_with_the_number():
    Length(3_000_000, 3_000_000, 3_000_000, 12).check("choose fewer")
    with pytest.raises(UsageError, match=r"3 cases of 4,000,000,000 rows, and at most 10,000,000,000 rows .*; fewer"):
        Length(4_000_000_000, cases=3).check("fewer")
    with pytest.raises(UsageError, match=r"2 cases of 300,000 control periods, and at most 500,000 .*; longer"):
        Length(10, 3e5, cases=2).check("longer")
    with pytest.raises(UsageError, match=r"2 cases of 30,000 samples, and at most 50,000 samples in all .*; longer"):
        Length(10, samples=3e4, cases=2).check("longer")
