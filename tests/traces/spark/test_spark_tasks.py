"""Which items share a Spark task."""

from hypothesis import given
from hypothesis import strategies as st

from adapt.traces.spark.spark_tasks import TASK_BYTES, TASK_FILES, grouped


@given(st.lists(st.integers(0, 2 * TASK_BYTES), max_size=600))
def test_neighbors_share_a_task_up_to_a_size_and_a_count(sizes):
    groups = grouped(range(len(sizes)), sizes)
    assert [item for group in groups for item in group] == list(range(len(sizes)))
    for group in groups:
        assert 1 <= len(group) <= TASK_FILES
        assert len(group) == 1 or sum(sizes[item] for item in group) <= TASK_BYTES


def test_many_tiny_files_are_several_tasks():
    assert list(map(len, grouped(range(600), [1] * 600))) == [TASK_FILES, TASK_FILES, 600 - 2 * TASK_FILES]
