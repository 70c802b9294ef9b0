"""A web log halved by time: what the verdict says on the first half holds on the second."""

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.counting.exact import count_keys, frequencies_of
from adapt.core.engines.names import Engine
from adapt.core.out_of_sample.windows import ROWS_A_PANE, CountedPanes
from adapt.core.partitioning.build import Recipe
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.stream import KeyType
from adapt.core.verdict.answering import answer_on, today_of
from adapt.core.verdict.verdict_class import VerdictClass
from tests.claims.real_columns import panes_of, weblog


def imbalance(plan: Plan, keys: pa.Array) -> float:
    loads = np.bincount(plan.partitioner().channels_of(keys), minlength=plan.channels)
    return loads.max() / loads.mean()


@pytest.mark.parametrize("key", ["host", "path"])
@pytest.mark.parametrize("engine", [Engine.SPARK, Engine.KAFKA, Engine.FLINK])
@pytest.mark.parametrize("channels", [8, 10, 12])
def test_the_second_half_is_as_the_verdict_on_the_first_says(real_traces, key, engine, channels):
    rows, times = weblog(real_traces("weblog-2015/apache_logs"))
    keys = rows[key].take(pa.array(np.argsort(times, kind="stable"))).combine_chunks()
    middle = len(keys) // 2
    first, second = keys.slice(0, middle), keys.slice(middle)
    panes = CountedPanes(tuple(panes_of(first, middle // ROWS_A_PANE)))
    answer = answer_on(frequencies_of(count_keys(first)), engine, channels, Recipe(), panes=panes)
    verdict, plan = answer.verdict, answer.recommended
    today, _ = today_of(engine, channels, Recipe(), None, KeyType.STRING)
    low, high = verdict.out_of_sample.next_window

    later = [second.slice(at, ROWS_A_PANE) for at in range(0, len(second), ROWS_A_PANE)]
    with_plan, without = (np.array([imbalance(each, window) for window in later]) for each in (plan, today))
    assert low <= imbalance(plan, second) <= high
    assert np.mean((low <= with_plan) & (with_plan <= high)) >= 0.9
    assert np.median(with_plan / without) <= 1.02
    assert imbalance(plan, second) <= 1.02 * imbalance(today, second)
    if verdict.verdict_class is VerdictClass.UNKNOWN:
        assert imbalance(plan, second) == imbalance(today, second)
    if key == "path":  # whose heavy keys stay
        assert verdict.keys_to_pin
        assert imbalance(plan, second) < 0.9 * imbalance(today, second)
