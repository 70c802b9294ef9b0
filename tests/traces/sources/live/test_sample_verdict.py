"""Verdicts from 1 % of the records of a topic, against those of the whole topic."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.counting.frequencies import Frequencies
from adapt.core.engines.names import Engine
from adapt.core.partitioning.plans.registry import make_partitioner
from adapt.core.verdict.goal import Goal
from adapt.core.verdict.stream_verdict import judge
from adapt.traces.sources.live.reading import RecordSample, Spread
from tests.tiers import soak

RECORDS, PARTITIONS = 1_000_000, 12
SEEDS = 200
SHARE = Fraction(1, 100)


def counted(keys, names):
    numbers, counts = np.unique(keys, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    counts = counts[order].astype(np.int64)
    return Frequencies(names.take(pa.array(numbers[order])), counts, counts, float(len(keys)), len(keys))


def topic(exponent, domain, *, drifts):
    """Keys of records in the order of time; the popularity of keys may drift."""
    shares = 1 / np.arange(1.0, domain + 1) ** exponent
    chance = np.random.default_rng(5)
    keys = chance.choice(domain, RECORDS, p=shares / shares.sum())
    if drifts:  # in bursts of 2,000 records, five keys are 5 times as popular as before
        burst = np.arange(RECORDS) // 2000
        drawn = chance.integers(0, 50, (RECORDS // 2000, 5))[burst, chance.integers(0, 5, RECORDS)]
        keys = np.where(chance.random(RECORDS) < 0.2, drawn, keys)
    return keys


def misses(keys, domain, engine, channels):
    """Share of seeds whose intervals leave out the imbalance, and the hottest key's share, of the whole topic."""
    names = pa.array([f"user-{number}" for number in range(domain)])
    partitions = make_partitioner(Engine.KAFKA, PARTITIONS).channels_of(names)[keys].astype(np.int64)
    offsets = np.empty(RECORDS, np.int64)
    for at in range(PARTITIONS):
        offsets[partitions == at] = np.arange((partitions == at).sum())
    ends = dict(enumerate(np.bincount(partitions).tolist()))
    today = make_partitioner(engine, channels)
    whole = judge(counted(keys, names), today, engine)
    missed, effects = np.zeros(2), []
    for seed in range(SEEDS):
        sample = RecordSample(SHARE, dict.fromkeys(ends, 0), ends, seed)
        taken = np.flatnonzero(sample.takes(partitions, offsets))
        spread = Spread()
        for at in range(PARTITIONS):
            own = taken[partitions[taken] == at]
            spread.add(sample.runs(partitions[own], offsets[own]), names.take(pa.array(keys[own])))
            spread.end_partition()
        effects.append(max(1.0, spread.effect))
        found = judge(counted(keys[taken], names), today, engine, goal=Goal(sample_effect=effects[-1]))
        low, high = found.sampled.today
        missed[0] += not low <= whole.imbalance <= high
        missed[1] += not found.confidence.top_share_low <= whole.top_share <= found.confidence.top_share_high
    return missed / SEEDS, np.mean(effects)


SKEWS = [(1.2, 2000, Engine.KAFKA, 8), (1.0, 5000, Engine.FLINK, 12), (1.5, 2000, Engine.KAFKA, 12)]


@soak
@pytest.mark.parametrize("drifts", [False, True])
@pytest.mark.parametrize(("exponent", "domain", "engine", "channels"), SKEWS)
def test_a_sample_of_records_holds_the_verdict_of_the_topic(exponent, domain, engine, channels, drifts):
    missed, effect = misses(topic(exponent, domain, drifts=drifts), domain, engine, channels)
    told = f"{'drifting ' if drifts else ''}zipf {exponent:g}, {engine} on {channels}, effect {effect:.2f}"
    print(f"{told}: {SEEDS} seeds, missed {missed[0]:.1%} and {missed[1]:.1%}")
    assert missed.max() <= 0.05
