"""Which items share a Spark task."""

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from adapt.traces.spark.runner import LEAST_TASKS, TASK_BYTES, TASK_FILES, TASK_ITEMS, grouped, shared_out


@given(st.lists(st.integers(0, 2 * TASK_BYTES), max_size=600))
def test_neighbors_share_a_task_up_to_a_size_and_a_count(sizes):
    groups = grouped(range(len(sizes)), sizes)
    assert [item for group in groups for item in group] == list(range(len(sizes)))
    for group in groups:
        assert 1 <= len(group) <= TASK_FILES
        assert len(group) == 1 or sum(sizes[item] for item in group) <= TASK_BYTES


def test_many_tiny_files_are_several_tasks():
    assert list(map(len, grouped(range(600), [1] * 600))) == [TASK_FILES, TASK_FILES, 600 - 2 * TASK_FILES]


@given(items=st.integers(1, 5_000), cores=st.integers(1, 99))
def test_tasks_of_a_cluster_depend_on_the_items_alone(items, cores):
    def groups(master):
        conf = SimpleNamespace(get=lambda *_: master)
        return shared_out(SimpleNamespace(conf=conf, sparkContext=SimpleNamespace(defaultParallelism=cores)), items)

    assert groups("spark://h:7077") == groups(f"local[{LEAST_TASKS}]") or cores != LEAST_TASKS
    tasks = groups("yarn")
    assert [item for task in tasks for item in task] == list(range(items))
    assert len(tasks) >= min(items, LEAST_TASKS)
    assert max(map(len, tasks)) <= TASK_ITEMS
    assert len(groups("local[*]")) <= max(cores, -(-items // TASK_ITEMS) + cores)
