"""Comparing schemes over chains of channel counts."""

import json
from dataclasses import fields
from itertools import count

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.errors import UsageError
from adapt.core.frequencies.exact import KeyCounts, frequencies_of
from adapt.core.partitioners.build import build_plan
from adapt.core.partitioners.compare import COLUMNS, compare_schemes
from adapt.core.partitioners.names import Construction, Scheme
from adapt.core.resources.metrics import Metrics, published_name

COUNTS = 10**6 // np.arange(1, 2001)
STREAM = frequencies_of(KeyCounts(pa.array([f"key{at}" for at in range(2000)]), COUNTS, int(COUNTS.sum())))


def test_each_chain_is_plans_built_one_from_the_other():
    compared = compare_schemes(STREAM, [1, 4, 3], trace="abc")
    for scheme, last in zip(Scheme, compared.plans, strict=True):
        plan = None
        for channels, row in zip([1, 4, 3], (row for row in compared.rows if row.scheme is scheme), strict=True):
            plan = build_plan(STREAM, scheme, channels, previous=plan, trace="abc")
            assert (row.channels, row.metrics.as_data()) == (channels, plan.metrics)
        assert last == plan


def test_each_construction_is_a_chain_of_its_own():
    rows = compare_schemes(STREAM, [2, 3], schemes=[Scheme.UNIFORM, Scheme.HYBRID]).rows
    chains = [(Scheme.UNIFORM, None), *((Scheme.HYBRID, construction) for construction in Construction)]
    assert [(row.scheme, row.construction) for row in rows] == [chain for chain in chains for _ in range(2)]


def test_building_is_timed_by_the_clock_that_is_given():
    ticks = count()
    rows = compare_schemes(STREAM, [2, 3], clock=lambda: float(next(ticks))).rows
    assert [row.build_s for row in rows] == [1.0] * len(rows)
    assert all(row.build_s is None for row in compare_schemes(STREAM, [2]).rows)


def test_all_but_the_times_is_repeatable():
    ticks = (number**2 for number in count())
    timed = compare_schemes(STREAM, [2, 3], clock=lambda: float(next(ticks)))
    plain = compare_schemes(STREAM, [2, 3])
    assert timed.as_data() != plain.as_data()
    assert [row | {"build_s": None} for row in timed.as_data()["rows"]] == plain.as_data()["rows"]
    assert timed.plans == plain.plans


def test_data_has_a_row_a_step_with_every_metric_by_name():
    data = json.loads(json.dumps(compare_schemes(STREAM, [2, 3], schemes=[Scheme.CONSISTENT]).as_data()))
    assert data["schema"] == "adapt.comparison/1"
    first, second = data["rows"]
    assert (first["scheme"], first["construction"], first["channels"], first["m"]) == ("consistent", None, 2, None)
    assert second["m"] > 0
    metrics = {published_name(field.name) for field in fields(Metrics)}
    assert set(first) == {"scheme", "construction", "channels", "build_s"} | metrics


def test_the_table_shows_every_number_with_floors_beside_ratios():
    compared = compare_schemes(STREAM, [2, 3])
    table = compared.table()
    names = [column.name for column in COLUMNS]
    assert set(names) == set(compared.rows[0].as_data())
    assert names.index("imbalance_floor") == names.index("imbalance") + 1
    assert names.index("r_floor") == names.index("r_n") + 1
    assert table.values("channels") == [2, 3] * 3
    assert table.records() == compared.as_data()["rows"]
    assert "imbalance_floor" in compared._repr_html_()


def test_an_empty_chain_is_refused():
    with pytest.raises(UsageError, match="at least one"):
        compare_schemes(STREAM, [])
    with pytest.raises(UsageError, match="at least one"):
        compare_schemes(STREAM, [2], schemes=[])
    with pytest.raises(UsageError, match="0 channels"):
        compare_schemes(STREAM, [1, 0])
