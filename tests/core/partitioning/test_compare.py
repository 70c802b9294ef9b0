"""Comparing schemes over chains of channel counts."""

import json
from dataclasses import fields, replace
from functools import cache
from itertools import count

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.counting.frequencies import Frequencies
from adapt.core.errors import UsageError
from adapt.core.partitioning.build import Recipe, build_plan
from adapt.core.partitioning.compare import COLUMNS, compare_schemes
from adapt.core.partitioning.measures import population
from adapt.core.partitioning.measures.metrics import Metrics, published_name
from adapt.core.partitioning.measures.population import stand_in_keys
from adapt.core.partitioning.problem.constraints import Constraints
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.names import DEFAULT_CONSTRUCTIONS, DEFAULT_SCHEMES, Construction, Scheme
from adapt.core.partitioning.splitting.names import REMEDIES, PlannedSplitting, Splitting
from adapt.core.partitioning.splitting.split import MERGE_COLUMNS
from tests.tiers import SOAK

PAPERS = (Construction.SCAN, Construction.REDIST, Construction.READJ)

COUNTS = 10**6 // np.arange(1, 2001)
STREAM = frequencies_of(KeyCounts(pa.array([f"key{at}" for at in range(2000)]), COUNTS, int(COUNTS.sum())))


def test_each_chain_is_plans_built_one_from_the_other():
    construction = [Construction.SCAN]
    compared = compare_schemes(STREAM, [1, 4, 3], schemes=DEFAULT_SCHEMES, constructions=construction, trace="abc")
    for scheme, last in zip(DEFAULT_SCHEMES, compared.plans, strict=True):
        plan = None
        for channels, row in zip([1, 4, 3], (row for row in compared.rows if row.scheme is scheme), strict=True):
            plan = build_plan(STREAM, Recipe(scheme, Construction.SCAN), channels, previous=plan, trace="abc")
            assert (row.channels, row.metrics.as_data()) == (channels, plan.metrics)
        assert last == plan


def test_each_construction_is_a_chain_of_its_own():
    rows = compare_schemes(STREAM, [2, 3], schemes=[Scheme.UNIFORM, Scheme.HYBRID]).rows
    chains = [(Scheme.UNIFORM, None), *((Scheme.HYBRID, construction) for construction in DEFAULT_CONSTRUCTIONS)]
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
    assert data["schema"] == "adapt.comparison/2"
    first, second = data["rows"]
    assert (first["scheme"], first["construction"], first["channels"], first["m"]) == ("consistent", None, 2, None)
    assert second["m"] > 0
    metrics = {published_name(field.name) for field in fields(Metrics)}
    named = {"scheme", "construction", "channels", "channels_per_key", "merge_tuples", "build_s"}
    assert set(first) == named | metrics
    assert (first["channels_per_key"], first["merge_tuples"]) == (1.0, 0)


def test_the_table_shows_every_number_with_floors_beside_ratios():
    compared = compare_schemes(STREAM, [2, 3], schemes=(*DEFAULT_SCHEMES, Splitting.PKG))
    table = compared.table()
    names = [column.name for column in COLUMNS]
    assert set(names) == set(compared.rows[0].as_data())
    assert names.index("best_possible") == names.index("imbalance") + 1
    assert names.index("r_best") == names.index("r_n") + 1
    assert table.values("channels") == [2, 3] * (3 + len(DEFAULT_CONSTRUCTIONS))
    assert table.records() == compared.as_data()["rows"]
    assert "best_possible" in compared._repr_html_()


def test_splitting_is_added_where_no_assignment_of_whole_keys_keeps_the_limit():
    skewed = frequencies_of(KeyCounts(pa.array(["hot", *map(str, range(99))]), np.array([900] + [10] * 99), 1890))
    added = [row for row in compare_schemes(skewed, [2, 4]).rows if row.scheme in REMEDIES]
    assert [(row.scheme, row.channels) for row in added] == [(way, count) for way in REMEDIES for count in (2, 4)]
    assert all(row.build_s is None for row in added)
    assert all(row.metrics.m is None for row in added if row.scheme is not PlannedSplitting.SPLIT_HOT)
    assert added[-1].merge.merge_tuples > 0
    assert compare_schemes(skewed, [2, 4]).plans[-1].splits
    pinned = Recipe(constraints=Constraints(pinned=ExplicitMap.from_mapping({"1": 0})))
    with pytest.raises(UsageError, match="split-hot does not support"):
        compare_schemes(skewed, [2], pinned, schemes=[PlannedSplitting.SPLIT_HOT])
    assert added[-1].metrics.imbalance < added[-1].metrics.best_possible
    for rows in (compare_schemes(skewed, [2]).rows, compare_schemes(skewed, [4], schemes=[Scheme.UNIFORM]).rows):
        assert not any(isinstance(row.scheme, Splitting) for row in rows)
    tolerant = compare_schemes(skewed, [4], max_imbalance=2.0).rows
    assert not any(isinstance(row.scheme, Splitting) for row in tolerant)


def test_only_whole_keys_have_plans_and_columns_of_merging_show_where_keys_are_split():
    compared = compare_schemes(STREAM, [3], schemes=[Splitting.PKG, Scheme.UNIFORM])
    assert [plan.scheme for plan in compared.plans] == [Scheme.UNIFORM]
    names = {column.name for column in MERGE_COLUMNS}
    assert names <= {column.name for column in compared.table().columns}
    whole = compare_schemes(STREAM, [3], schemes=[Scheme.UNIFORM])
    assert not names & {column.name for column in whole.table().columns}


def test_an_empty_chain_is_refused():
    with pytest.raises(UsageError, match="at least one"):
        compare_schemes(STREAM, [])
    with pytest.raises(UsageError, match="at least one"):
        compare_schemes(STREAM, [2], schemes=[])
    with pytest.raises(UsageError, match="must be at least 1"):
        compare_schemes(STREAM, [1, 0])


def light_keys_unlisted(stream: Frequencies, above: float = 1.76e-4) -> Frequencies:
    """What is left of exact counts where only the keys that have at least a share are listed.

    The share is a tenth of delta, from which keys are tracked, at the defaults and ten channels.
    """
    listed = int((stream.count_low >= above * stream.total).sum())
    low = stream.count_low[:listed]
    return replace(
        stream, keys=stream.keys[:listed], count_low=low, count_high=low, epsilon=above,
        complete_above=above * stream.total,
    )  # fmt: skip


@cache
def zipf_stream(z: float, seed: int, keys: int = 200_000) -> Frequencies:
    """Keys at random, with counts around those of Zipf's law."""
    generator = np.random.default_rng(seed)
    shares = np.arange(1, keys + 1) ** -z
    counts = 1 + generator.poisson(2e7 * shares / shares.sum())
    values = pa.array(generator.integers(-(2**62), 2**62, keys))
    return frequencies_of(KeyCounts(values, counts, int(counts.sum())))


@pytest.mark.parametrize("z", [0.8, 1.0, 1.2] if SOAK else [1.0])
@pytest.mark.parametrize(
    ("above", "constructions"), [(1.76e-4, PAPERS if SOAK else PAPERS[:1]), (1e-5, (Construction.LEVEL,))]
)
def test_lossy_counts_foretell_what_exact_counts_do(z, above, constructions):
    """Stand-ins are other keys than the real ones: they share their noise, not their places.

    The load of a channel varies, over the places of its light keys, by the root of their summed squares over N. Each
    of the two has its own, so that the fullest and the emptiest channel each differ by no more than some 4 of both
    together. For the average over seeds, 2 % of r_n and 1 % of the others is 3 or more standard errors.
    """
    off = {}
    for seed in range(8):
        stream = zipf_stream(z, seed)
        lossy = light_keys_unlisted(stream, above)
        both = (
            compare_schemes(counts, [5, 10], schemes=DEFAULT_SCHEMES, constructions=constructions).rows
            for counts in (stream, lossy)
        )
        for exact, told in zip(*both, strict=True):
            light = stream.count_low[len(lossy.keys) :] / stream.total
            noise = 4 * np.sqrt((light @ light + light.sum() ** 2 / len(light)) * exact.channels)
            fullest = exact.metrics.imbalance
            emptiest = fullest / exact.metrics.r_n
            for name, bound in {
                "r_n": noise * (1 / fullest + 1 / emptiest),
                "b": noise * (1 / fullest + 1 / emptiest),
                "imbalance": noise / fullest,
                "m": 0.03,
            }.items():
                if (true := getattr(exact.metrics, name)) is None:
                    continue
                error = getattr(told.metrics, name) / true - 1
                assert abs(error) < bound, (seed, exact.scheme, exact.channels, name)
                off.setdefault((exact.scheme, exact.channels, name), []).append(error)
            assert told.metrics.empty_channels == exact.metrics.empty_channels
            assert told.metrics.pinned_keys == exact.metrics.pinned_keys
            assert told.metrics.best_possible == pytest.approx(exact.metrics.best_possible)
            assert told.metrics.r_best == pytest.approx(exact.metrics.r_best, rel=0.01)
    for (_, _, name), errors in off.items():
        assert abs(np.mean(errors)) < (0.03 if name in ("r_n", "b") else 0.012)
    assert len(off) == 3 * (2 * 3 + 1)


def test_all_plans_of_a_comparison_are_judged_by_one_population(monkeypatch):
    made = []
    monkeypatch.setattr(
        population, "stand_in_keys", lambda kind, number: made.append(number) or stand_in_keys(kind, number)
    )
    compare_schemes(light_keys_unlisted(zipf_stream(1.0, 0, 3000), 0.01), [2, 3, 4])
    assert len(made) == 1
