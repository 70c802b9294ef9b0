"""Load that a producer places at random: spread evenly, never pinned, said."""

import json
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.counting.exact import KeyCounts, count_keys, frequencies_of
from adapt.core.engines.names import Engine
from adapt.core.partitioning.build import Recipe, build_plan
from adapt.core.partitioning.compare import compare_schemes
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.plans.registry import make_partitioner
from adapt.core.partitioning.problem.at_random import share_at_random, spread_at_random
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import KeyType
from adapt.core.verdict.answer import Answer
from adapt.core.verdict.answering import answer_on

CHANNELS = 8


@cache
def stream(nulls=400_000, empty=0, rows=600_000):
    """Many records without a key, and a thousand keys of Zipf's law."""
    users = np.random.default_rng(5).zipf(1.4, rows) % 1000
    return frequencies_of(count_keys(pa.array([None] * nulls + [""] * empty + [f"user{user}" for user in users])))


COUNTED = stream()


def test_the_load_is_kept_and_even_on_the_channels():
    spread = spread_at_random(COUNTED, Engine.KAFKA, CHANNELS)
    assert spread.count_low.sum() == pytest.approx(spread.total, rel=1e-12)
    assert spread.keys[: spread.real].to_pylist() == [key for key in COUNTED.keys.to_pylist() if key is not None]
    rows = spread.rows_of(spread.stand_ins)
    placed = make_partitioner(Engine.KAFKA, CHANNELS).channels_of(spread.stand_ins)
    on = np.bincount(placed, spread.count_low[rows], CHANNELS)
    assert on == pytest.approx(np.full(CHANNELS, 400_000 / CHANNELS))


@pytest.mark.parametrize(
    ("engine", "share"),
    [
        (Engine.KAFKA, 0.4),
        (Engine.LIBRDKAFKA, 0.5),
        (Engine.LIBRDKAFKA_MURMUR2_RANDOM, 0.4),
        (Engine.LIBRDKAFKA_RANDOM, 1.0),
        (Engine.LIBRDKAFKA_CONSISTENT, 0.0),
        (Engine.SARAMA, 0.4),
        (Engine.PULSAR_MURMUR3, 0.4),
        (Engine.PULSAR, 0.0),
        (Engine.SPARK, 0.0),
        (Scheme.UNIFORM, 0.0),
    ],
)
def test_each_client_spreads_its_own_keys(engine, share):
    counted = stream(40_000, 10_000, 50_000)
    assert share_at_random(counted, engine) == pytest.approx(share)
    assert (spread_at_random(counted, engine, CHANNELS) is counted) == (share == 0)


def test_the_imbalance_is_that_of_records_dealt_out():
    users = COUNTED.keys.is_valid().to_numpy(zero_copy_only=False)
    placed = make_partitioner(Engine.LIBRDKAFKA, CHANNELS).channels_of(COUNTED.keys)
    dealt = np.bincount(placed[users], COUNTED.count_low[users], CHANNELS) + 400_000 / CHANNELS
    answer = answer_on(COUNTED, Engine.LIBRDKAFKA, CHANNELS, Recipe())
    assert answer.verdict.imbalance == pytest.approx(dealt.max() / dealt.mean(), rel=1e-12)
    row = compare_schemes(COUNTED, [CHANNELS], schemes=[Engine.LIBRDKAFKA]).rows[0]
    assert row.metrics.imbalance == pytest.approx(answer.verdict.imbalance)


def test_the_verdict_says_it_in_words_and_as_data():
    answer = answer_on(COUNTED, Engine.LIBRDKAFKA, CHANNELS, Recipe())
    assert "40 % of the load has no fixed worker with librdkafka:consistent_random" in answer.lead[-1]
    data = json.loads(json.dumps(answer.as_data()))
    assert data["placed_at_random"] == {"share": 0.4, "by": "librdkafka:consistent_random"}
    assert Answer.from_data(data).at_random == answer.at_random
    assert answer_on(COUNTED, Engine.SPARK, CHANNELS, Recipe()).as_data()["placed_at_random"] is None


def test_records_at_random_are_never_pinned_and_never_migrate():
    plan = build_plan(COUNTED, Recipe(base=Engine.KAFKA), CHANNELS)
    known = set(COUNTED.keys.to_pylist()) - {None}
    assert set(plan.explicit.column.to_pylist()) <= known
    again = build_plan(COUNTED, Recipe(base=Engine.KAFKA), CHANNELS + 1, previous=plan)
    assert 0 < again.metrics["keys_moved"] <= len(known)


def test_a_pinned_null_key_is_at_its_channel():
    pinned = Plan(Scheme.HYBRID, CHANNELS, KeyType.STRING, base=Engine.KAFKA, explicit={None: 3})
    answer = answer_on(COUNTED, Engine.KAFKA, CHANNELS, Recipe(), current=pinned)
    assert answer.at_random is None
    assert answer.verdict.imbalance > 3


def test_a_stream_without_keys_has_a_floor_of_1():
    only_null = frequencies_of(KeyCounts(pa.nulls(1, pa.string()), np.array([5_000]), 5_000))
    answer = answer_on(only_null, Engine.KAFKA, CHANNELS, Recipe())
    assert (answer.verdict.best_possible, answer.recommended.metrics["best_possible"]) == (1, 1)
