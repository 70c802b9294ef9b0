"""Doing nothing as the first rows of a comparison."""

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.engines.names import Engine
from adapt.core.engines.registry import definition_of
from adapt.core.partitioning.build import Recipe, build_plan
from adapt.core.partitioning.compare import compare_schemes
from adapt.core.partitioning.do_nothing import with_nothing_done
from adapt.core.partitioning.measures.metrics import evaluate
from adapt.core.partitioning.problem.constraints import Constraints
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.report.scheme_charts import imbalance_by_channels
from adapt.core.verdict.compared import at_channels

COUNTS = 10**6 // np.arange(1, 2001)
STREAM = frequencies_of(KeyCounts(pa.array([f"key{at}" for at in range(2000)]), COUNTS, int(COUNTS.sum())))


@pytest.mark.parametrize("engine", Engine)
def test_its_numbers_are_those_of_the_engine_s_own_plan(engine):
    channels = [4, 6, 6]
    rows = with_nothing_done(compare_schemes(STREAM, channels), STREAM, Recipe(), engine, channels).rows
    plan = build_plan(STREAM, Recipe(engine), 4)
    first = rows[0].metrics
    assert (rows[0].scheme, rows[0].construction, rows[0].channels) == (engine, None, 4)
    still = {"m": 0.0, "keys_moved": 0, "state_moved": 0.0, "b(1+m)": plan.metrics["b"]}
    assert first.as_data() == plan.metrics | still
    last = plan
    for row, count in zip(rows[1:3], channels[1:], strict=True):
        last = build_plan(STREAM, Recipe(engine), count, previous=last)
        assert row.metrics.as_data() == last.metrics
    assert rows[2].metrics.keys_moved == 0
    assert rows[3:] == compare_schemes(STREAM, channels).rows


def test_it_keeps_capacities_and_no_other_constraint():
    limits = Constraints((1.0, 1.0, 2.0), ExplicitMap.from_mapping({"key1": 1}))
    recipe = Recipe(constraints=limits)
    rows = with_nothing_done(compare_schemes(STREAM, [3], recipe), STREAM, recipe, Engine.SPARK, [3]).rows
    own = definition_of(Engine.SPARK).placement(3, None)
    alone = evaluate(own, STREAM, recipe.resources, own, limits.unequal)
    assert rows[0].metrics == alone


def test_it_is_there_once_and_is_named_so():
    asked = compare_schemes(STREAM, [4], schemes=[Scheme.UNIFORM, Engine.KAFKA])
    compared = with_nothing_done(asked, STREAM, Recipe(), Engine.KAFKA, [4])
    assert [row.scheme for row in compared.rows] == [Engine.KAFKA, Scheme.UNIFORM]
    assert [plan.scheme for plan in compared.plans] == [Scheme.UNIFORM]
    assert [row["scheme"] for row in compared.as_data()["rows"]] == ["kafka", "uniform"]
    table = compared.table()
    assert at_channels(table, 4).values("scheme") == ["today (kafka)", "uniform"]
    assert "today (kafka)" in str(imbalance_by_channels(table))
    assert at_channels(table, 4, 10.0).values("scheme") == ["today (kafka)", "uniform *"]


def test_over_one_channel_count_all_rows_migrate_from_today():
    compared = with_nothing_done(compare_schemes(STREAM, [5]), STREAM, Recipe(), Engine.SPARK, [5])
    today = definition_of(Engine.SPARK).placement(5, None)
    plans = {(plan.scheme, plan.construction): plan for plan in compared.plans}
    for row in compared.rows[1:]:
        plan = plans[row.scheme, row.construction]
        moved = evaluate(plan.partitioner(), STREAM, Recipe().resources, today)
        assert row.metrics == moved
        assert plan.metrics["m"] is None  # the plan itself starts from hashing
