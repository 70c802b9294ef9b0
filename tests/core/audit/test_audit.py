"""The audit finds the producers of seeded topics, their shares, and today's placement."""

import json

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.audit.audit import Audit
from adapt.core.audit.explaining import audit_of
from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.engines.names import Engine
from adapt.core.engines.registry import definition_of
from adapt.core.partitioning.build import Recipe
from adapt.core.stream import KeyType
from adapt.core.verdict.answer import Answer
from adapt.core.verdict.answering import answer_on
from tests.core.audit.topics import mixture, observed
from tests.tiers import SOAK

NOTHING = pa.array([], pa.string())


@pytest.mark.parametrize("seed", range(60))
def test_a_thousand_records_name_the_producers_with_shares_inside_the_interval(seed):
    seen, partitions, shares = mixture(seed, 1000)
    found = {each.name: each.share for each in audit_of(seen, partitions, NOTHING).producers}
    assert found.keys() == shares.keys()
    for name, share in shares.items():
        assert found[name].low <= share <= found[name].high


@pytest.mark.skipif(not SOAK, reason="many topics; ADAPT_SOAK=1 runs it")
def test_of_many_topics_few_are_mistaken():
    wrong = 0
    for seed in range(300):
        seen, partitions, shares = mixture(seed, 1000)
        found = {each.name: each.share for each in audit_of(seen, partitions, NOTHING).producers}
        right = found.keys() == shares.keys()
        wrong += not right or any(not found[name].low <= share <= found[name].high for name, share in shares.items())
    assert wrong <= 6  # a small producer beside random ones, with few keys


@pytest.mark.parametrize("seed", range(20 if SOAK else 3))
def test_shares_of_a_hundred_thousand_records_are_within_a_percent(seed):
    seen, partitions, shares = mixture(seed, 100_000)
    found = {each.name: each.share.share for each in audit_of(seen, partitions, NOTHING).producers}
    assert found == pytest.approx(shares, abs=0.01)


KEYS = pa.array([f"user-{at}" for at in range(300)])


def sent(engine, keys=KEYS, records=3, partitions=12):
    """So many records of each key, as one engine places them."""
    rows = np.repeat(np.arange(len(keys)), records)
    return observed(keys, rows, definition_of(engine).placement(partitions, None).channels_of(keys)[rows])


def test_clients_that_place_keyed_records_alike_are_one_class():
    (only,) = audit_of(sent(Engine.LIBRDKAFKA_MURMUR2_RANDOM), 12, NOTHING).producers
    assert only.name == "Java's murmur2"
    assert only.engines == (Engine.KAFKA, Engine.LIBRDKAFKA_MURMUR2, Engine.LIBRDKAFKA_MURMUR2_RANDOM)
    assert only.share.share == only.share.high == 1
    assert only.share.low > 0.98


@pytest.mark.parametrize(("places", "engine"), [([5] * 40, Engine.LIBRDKAFKA_MURMUR2), (range(40), Engine.KAFKA)])
def test_null_keys_tell_apart_what_keyed_records_do_not(places, engine):
    keys = pa.concat_arrays([KEYS, pa.nulls(1, pa.string())])
    home = definition_of(Engine.LIBRDKAFKA_MURMUR2).placement(12, None).of_null(KeyType.STRING)
    null = np.array([home if isinstance(places, list) else place % 12 for place in places])
    rows = np.append(np.arange(len(KEYS)), np.full(40, len(KEYS)))
    hashed = definition_of(Engine.KAFKA).placement(12, None).channels_of(KEYS)
    audit = audit_of(observed(keys, rows, np.append(hashed, null)), 12, NOTHING)
    assert audit.engine is engine
    assert audit.keyed == pytest.approx(300 / 340)
    assert "11.8 % of the records have no key" in audit.sentence


def test_partitions_without_records_count_where_they_explain_more():
    few = KEYS.slice(7, 12)
    homes = definition_of(Engine.LIBRDKAFKA).placement(40, None).channels_of(few)
    audit = audit_of(sent(Engine.LIBRDKAFKA, few, partitions=40), 40, NOTHING)
    assert homes.max() < 39
    assert (audit.partitions, audit.engine, audit.loads[-1]) == (40, Engine.LIBRDKAFKA, 0)
    assert audit_of(sent(Engine.LIBRDKAFKA), 24, NOTHING).partitions == 12


def split_topic(seed=3, records=20_000):
    """Records that 92 % Java and 8 % librdkafka sent, the counts of keys, and the partition of each record."""
    chance = np.random.default_rng(seed)
    rows = np.minimum(chance.zipf(1.6, records), len(KEYS)) - 1
    homes = [
        definition_of(engine).placement(12, None).channels_of(KEYS)[rows]
        for engine in (Engine.KAFKA, Engine.LIBRDKAFKA)
    ]
    partition = np.where(chance.random(records) < 0.92, *homes)
    counts = np.bincount(rows, minlength=len(KEYS))
    used = pa.array(counts > 0)
    return (
        observed(KEYS, rows, partition),
        frequencies_of(KeyCounts(KEYS.filter(used), counts[counts > 0], records)),
        partition,
    )


def test_the_true_loads_are_todays():
    seen, counted, partition = split_topic()
    audit = audit_of(seen, 12, counted.keys)
    true = np.bincount(partition, minlength=12)
    found = answer_on(counted, Engine.KAFKA, 12, Recipe(), current=audit)
    assert found.verdict.engine == "the topic"
    assert found.verdict.imbalance == pytest.approx(true.max() / true.mean())
    assert audit.imbalance == pytest.approx(true.max() / true.mean())
    assert audit.split_keys == sum(len(set(seen.partition[seen.key == key])) > 1 for key in range(len(seen.keys)))
    modelled = answer_on(counted, Engine.LIBRDKAFKA, 12, Recipe(), current=audit)
    assert modelled.verdict == answer_on(counted, Engine.LIBRDKAFKA, 12, Recipe()).verdict


def test_the_audit_is_kept_with_the_answer():
    seen, counted, _ = split_topic()
    audit = audit_of(seen, 12, counted.keys)
    assert "92" in audit.sentence
    assert "joins and order by key are broken" in audit.sentence
    assert Audit.from_data(json.loads(json.dumps(audit.as_data()))) == audit
    answer = answer_on(counted, Engine.KAFKA, 12, Recipe(), current=audit)
    kept = Answer.from_data(json.loads(json.dumps(Answer(answer.verdict, answer.hot_keys, audit=audit).as_data())))
    assert kept.audit == audit
    assert audit.sentence in kept.lead


def test_empty_keys_are_not_keys_that_are_missing():
    """Of 300 keyed records, 60 with an empty key and 40 with none: 75 %, 15 % and 10 %."""
    keys = pa.concat_arrays([KEYS, pa.array(["", None])])
    rows = np.append(np.arange(300), np.repeat([300, 301], [60, 40]))
    homes = definition_of(Engine.KAFKA).placement(12, None).channels_of(keys)
    partition = np.append(homes[rows[:360]], np.arange(40) % 12)
    audit = audit_of(observed(keys, rows, partition), 12, NOTHING)
    assert (audit.keyed, audit.empty) == (pytest.approx(0.75), pytest.approx(0.15))
    assert "10 % of the records have no key. 15 % have an empty key; if it means no key, send null." in audit.sentence
