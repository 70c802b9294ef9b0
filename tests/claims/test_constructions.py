"""Partitioning functions, section 5: what its constructions reach at the defaults (Table 1), from N = 1 to 10.

Zipf z = 1 over 10^6 keys, alpha = 1.2, sigma = 0.1, U_APM; a seed is another set of keys, so other places on the ring.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.counting.frequencies import Frequencies
from adapt.core.keys.partitioner import Channels, Partitioner
from adapt.core.partitioning.build import Recipe, build_partitioner
from adapt.core.partitioning.measures.imbalance import channel_loads
from adapt.core.partitioning.measures.metrics import measure
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.schemes.consistent import ConsistentHash
from adapt.core.partitioning.schemes.names import Construction, Scheme

DOMAIN = 10**6
SHARES = 1 / np.arange(1, DOMAIN + 1)
SHARES /= SHARES.sum()
SEEDS = range(20)
HEAVY = 100
PAPERS = (Construction.SCAN, Construction.REDIST, Construction.READJ, Construction.READJ_PRINTED)
LLL, LCL = Resources.parse("LLL", 1.2, 0.1), Resources.parse("LCL", 1.2, 0.1)


@cache
def reached(construction: Construction) -> dict[str, list[float]]:
    """b (LLL), b (LCL) and m of the step to N = 10, and its explicit keys, a number a seed."""
    return {name: [seed[construction][name] for seed in of_seeds()] for name in ("LLL", "LCL", "m", "explicit")}


@cache
def of_seeds() -> list[dict[Construction, dict[str, float]]]:
    return [of_seed(seed) for seed in SEEDS]


def of_seed(seed: int) -> dict[Construction, dict[str, float]]:
    """What every construction reaches on one set of keys, which lie on the same two rings for all of them.

    Constant resources are left out of the penalties (section 4.4), so that LCL and LLL have one mapping; and only the
    heaviest keys are tracked, so that the others are not needed to build.
    """
    keys = pa.array(np.arange(DOMAIN) + seed * DOMAIN)
    stream = Frequencies(keys, SHARES, SHARES, total=float(SHARES.sum()), rows=DOMAIN, distinct=DOMAIN)
    heavy = replace(stream, keys=keys[:HEAVY], count_low=SHARES[:HEAVY], count_high=SHARES[:HEAVY])
    hashed = {channels: ConsistentHash(channels).channels_of(keys) for channels in (9, 10)}

    def placed(partitioner: Partitioner) -> Channels:
        channels = hashed[partitioner.channels].copy()
        channels[:HEAVY] = partitioner.channels_of(heavy.keys)
        return channels

    found = {}
    for construction in PAPERS:
        before = after = None
        for channels in range(1, 11):
            before, after = after, build_partitioner(heavy, Recipe(Scheme.HYBRID, construction), channels, after)
        lies, lay = placed(after), placed(before)
        assert seed or (lies == after.channels_of(keys)).all()
        linear, constant = (
            measure(after, stream, each, lies, channel_loads(lies, stream, each, 10), lay) for each in (LLL, LCL)
        )
        found[construction] = {
            "LLL": linear.b,
            "LCL": constant.b,
            "m": linear.m,
            "explicit": linear.pinned_keys,
        }
    return found


def agrees(measured: list[float], expected: float) -> bool:
    """Whether a number is within the 95 % interval of the mean over seeds, and half of the last digit reported."""
    interval = 2.1 * np.std(measured, ddof=1) / len(measured) ** 0.5
    return abs(np.mean(measured) - expected) <= interval + 0.02


@pytest.mark.parametrize("construction", [Construction.SCAN, Construction.REDIST])
def test_scan_and_redist_reach_the_balance_and_migration_reported(construction):
    """Section 5.3, LLL: b 1.32 and m 1.23, the same for both."""
    assert agrees(reached(construction)["LLL"], 1.32)
    assert agrees(reached(construction)["m"], 1.23)
    assert set(reached(construction)["explicit"]) == {39}


def test_readj_is_as_balanced_as_scan_not_better_and_migrates_less_than_reported():
    """The paper reports b 1.2 and m 1.34. Over 20 seeds ours are 1.31 and 1.11.

    A b of 1.2 is out of reach: the ring cannot see the heavy keys, which with an even ring makes b at least 1.236.
    """
    assert agrees(reached(Construction.READJ)["LLL"], 1.311)
    assert agrees(reached(Construction.READJ)["m"], 1.11)
    assert 1.236 < np.mean(reached(Construction.READJ)["LLL"]) < 1.05 * np.mean(reached(Construction.SCAN)["LLL"])


def test_readj_as_printed_migrates_more_for_the_same_balance():
    """With `u` as Algorithm 4 prints it, b is the same, and m 1.24 to 1.32, nearer to the 1.34 reported."""
    printed, meant = reached(Construction.READJ_PRINTED), reached(Construction.READJ)
    assert np.mean(printed["LLL"]) == pytest.approx(np.mean(meant["LLL"]), rel=0.03)
    assert np.mean(printed["m"]) > np.mean(meant["m"])
    assert agrees(printed["m"], 1.28)


@pytest.mark.parametrize("construction", [Construction.SCAN, Construction.REDIST, Construction.READJ])
def test_with_constant_computation_all_are_near_1_15(construction):
    """Section 5.3, LCL: b about 1.15 for the three constructions."""
    assert agrees(reached(construction)["LCL"], 1.15)
