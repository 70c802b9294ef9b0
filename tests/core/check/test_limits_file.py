"""Limits in a file."""

import pytest

from adapt.core.check.limit import read_limits
from adapt.core.errors import BadInput, UsageError


def test_a_file_keeps_limits_and_how_much_worse_a_metric_may_be():
    read = read_limits('limits = ["imbalance <= 1.2", "times_best_possible"]\nworse_by = "10%"\n')
    assert [limit.metric.name for limit in read.limits] == ["imbalance", "times_best_possible"]
    assert read.worse_by == 0.1
    assert read_limits('limits = ["times_best_possible<=1"]').worse_by is None


@pytest.mark.parametrize(
    ("text", "kind", "told"),
    [
        ("limits = [}", BadInput, "line 1"),
        ("", BadInput, "limits must be a list"),
        ("limits = []", BadInput, "limits must be a list"),
        ("limits = [1]", BadInput, "limits must be a list"),
        ('limits = "times_best_possible<=1"', BadInput, "limits must be a list"),
        ('limit = ["times_best_possible<=1"]', BadInput, "did you mean 'limits'"),
        ('limits = ["times_best_possible<=1"]\nworse_by = 5', BadInput, "worse_by must be a percentage"),
        ('limits = ["times_best_possible<=1"]\nworse_by = "5"', UsageError, "worse_by"),
        ('limits = ["imbalance<=1", "imbalanse<=1"]', UsageError, "limit 'imbalanse<=1'.*did you mean 'imbalance'"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text, kind, told):
    with pytest.raises(kind, match=told):
        read_limits(text)
