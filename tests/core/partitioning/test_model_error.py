"""What counts alone foretell of measured loads, by hand and where there is nothing to be wrong about."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.counting.frequencies import Frequencies, MeasuredColumn
from adapt.core.errors import UsageError
from adapt.core.partitioning.build import Recipe, build_partitioner
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.model_error import model_error
from adapt.core.partitioning.schemes.names import Construction, Scheme


def stream(counts, **columns) -> Frequencies:
    """Keys k0, k1 ... of falling counts, with columns."""
    keys = pa.array([f"k{at}" for at in range(len(counts))], pa.string())
    told = frequencies_of(KeyCounts(keys, np.array(counts, np.int64), int(sum(counts))))
    measured = [MeasuredColumn(name, np.array(of, float), float(sum(of))) for name, of in columns.items()]
    return replace(told, measured=tuple(measured))


STREAM = stream([6, 5, 4, 3], bytes=[1, 50, 0, 9])


def recipe(measure, scheme=Scheme.HYBRID, letters="LLL", **options) -> Recipe:
    return Recipe(scheme, Construction.SCAN, Resources.parse(letters, measure=measure), **options)


def test_a_plan_is_predicted_by_counts_and_measured_by_columns():
    told = model_error(STREAM, [recipe(["network=bytes"])], 2)
    (row,) = told.plans.records()
    plan = build_partitioner(STREAM, recipe([]), 2)
    on = plan.channels_of(STREAM.keys)
    by_count, by_bytes = (np.bincount(on, of, 2) for of in (STREAM.count_low, STREAM.column("bytes").values))
    assert row == {
        "scheme": "hybrid",
        "construction": "scan",
        "channels": 2,
        "resource": "network",
        "measured_by": "bytes",
        "function": "L",
        "imbalance_predicted": by_count.max() / by_count.mean(),
        "imbalance_measured": by_bytes.max() / by_bytes.mean(),
        "r_predicted": by_count.max() / by_count.min(),
        "r_measured": by_bytes.max() / by_bytes.min(),
    }


def test_shares_of_keys_are_held_against_each_other():
    (row,) = model_error(STREAM, [recipe(["network=bytes"], max_pins=4)], 2).keys.records()
    factors = [(6 / 18) / (1 / 60), (50 / 60) / (5 / 18), (3 / 18) / (9 / 60)]
    assert row["median_factor"] == pytest.approx(sorted(factors)[1])
    assert row["worst_factor"] == pytest.approx(factors[0])
    assert (row["worst_key"], row["pinned_keys"], row["without_load"]) == ("k0", 4, 1)
    assert (row["worst_predicted"], row["worst_measured"]) == (pytest.approx(6 / 18), pytest.approx(1 / 60))
    assert row["correlation"] == pytest.approx(np.corrcoef([6, 5, 4, 3], [1, 50, 0, 9])[0, 1])


def test_a_column_that_is_the_count_is_predicted_without_error():
    told = model_error(stream([6, 5, 4, 3], tuples=[6, 5, 4, 3]), [recipe(["state=tuples"])], 3)
    (plan,), (key,) = told.plans.records(), told.keys.records()
    assert plan["imbalance_predicted"] == plan["imbalance_measured"]
    assert plan["r_predicted"] == plan["r_measured"]
    assert (key["correlation"], key["median_factor"], key["worst_factor"]) == pytest.approx((1, 1, 1))


def test_there_is_a_row_for_each_plan_and_resource():
    recipes = [recipe(["state=bytes,computation=count"], scheme) for scheme in (Scheme.HYBRID, Scheme.UNIFORM)]
    told = model_error(STREAM, recipes, 2)
    assert [(row["scheme"], row["construction"], row["resource"]) for row in told.plans.records()] == [
        ("hybrid", "scan", "state"),
        ("hybrid", "scan", "computation"),
        ("uniform", None, "state"),
        ("uniform", None, "computation"),
    ]
    assert [row["measured_by"] for row in told.keys.records()] == ["bytes", "count"]
    assert told.as_data()["model_error"] == {"plans": told.plans.records(), "keys": told.keys.records()}
    assert "Frequency-only model" in told._repr_html_()


def test_a_constant_function_has_no_correlation_with_anything():
    (row,) = model_error(STREAM, [recipe(["state=bytes"], letters="CLL")], 2).keys.records()
    assert row["correlation"] is None


def test_where_nothing_was_measured_there_is_nothing_to_tell():
    told = model_error(STREAM, [recipe([])], 2)
    assert (told.tables(), told.as_data()) == ([], {})
    assert model_error(STREAM, [], 2).as_data() == {}


def test_one_channel_and_no_keys_have_no_factors():
    (row,) = model_error(STREAM, [recipe(["state=bytes"])], 1).keys.records()
    assert (row["pinned_keys"], row["median_factor"], row["worst_key"]) == (0, None, None)
    (row,) = model_error(stream([], bytes=[]), [recipe(["state=bytes"])], 2).keys.records()
    assert (row["pinned_keys"], row["correlation"]) == (0, None)


def test_a_column_that_is_not_there_is_refused():
    with pytest.raises(UsageError, match="column 'cost' was not measured"):
        model_error(STREAM, [recipe(["state=cost"])], 2)
