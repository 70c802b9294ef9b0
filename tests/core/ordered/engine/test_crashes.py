"""Crashes: other workers go on from the last checkpoint, and end with the state and the output of a run without any."""

from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.ordered.chain.bound import BoundChain, bind
from adapt.core.ordered.chain.chain import Chain, Punctuations
from adapt.core.ordered.engine.checkpoint import START
from adapt.core.ordered.engine.crashes import RestoredRun, run_with_crashes, segments_of
from adapt.core.ordered.engine.serial import run_serially
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.engine.threads import run_segment
from adapt.core.ordered.presets.presets import PRESETS
from tests.core.ordered.chains import bound, counting, stream
from tests.core.ordered.engine.test_random_chains import random_operators, random_settings
from tests.core.ordered.presets.test_presets import columns
from tests.tiers import SOAK

SEEDS = 300 if SOAK else 30
HOUR_US = 3_600_000_000


@cache
def preset(name: str) -> BoundChain:
    return bind(PRESETS[name].chain, columns(2000))


def random_chain(random: np.random.Generator, seed: int) -> BoundChain:
    """A chain by name, or random operators over a stream with a few punctuations."""
    if random.random() < 0.5:
        return preset(str(random.choice([*PRESETS])))
    rows = int(random.choice([1, 30, 400, 2000]))
    times = pa.array(np.sort(random.integers(0, 6 * HOUR_US, rows))).cast(pa.timestamp("us", tz="UTC"))
    operators = tuple(random_operators(random))
    return bind(Chain(operators, Punctuations(every_us=HOUR_US)), {**stream(rows, 50, seed=seed), "ts": times})


def restored(chain: BoundChain, crashes: int, seed: int) -> RestoredRun:
    return run_with_crashes(chain, random_settings, crashes, np.random.default_rng(seed), pace=1)


@pytest.mark.parametrize("first", range(0, SEEDS, 30))
def test_replicas_that_crash_end_with_one_state_and_one_output(first: int) -> None:
    for seed in range(first, first + 30):
        random = np.random.default_rng(seed)
        chain = random_chain(random, seed)
        replicas = [restored(chain, crashes, seed) for crashes in (0, int(random.integers(1, 6)))]
        assert replicas[1].crashes > 0
        assert len({(each.egress, each.output_hash, each.state_hash) for each in replicas}) == 1, seed
        assert replicas[0].egress == run_serially(chain).egress, seed


@pytest.mark.parametrize("name", PRESETS)
def test_a_checkpoint_is_of_one_place_in_the_stream(name: str) -> None:
    """Another state shows in the hash; that of the same place does not depend on where checkpoints lie before it."""
    chain = preset(name)
    segments = list(segments_of(chain))
    assert sum(len(each.tuples) for each in segments) == len(chain.tuples)
    at, hashes = START, set[str]()
    for segment in segments[:4]:
        at = run_segment(segment, RunSettings(2), at, lambda _: None, pace=1)
        hashes.add(at.digest)
    assert len(hashes) == len(segments[:4])
    assert run_with_crashes(chain, random_settings, 0, np.random.default_rng(1), pace=1).state_hash == (
        run_segment(chain, RunSettings(1), START, lambda _: None, pace=1).digest
    )


def test_a_lost_state_would_be_noticed() -> None:
    chain = bound([counting("count")], 500)
    first, second = chain, chain
    whole = run_segment(first, RunSettings(2), START, lambda _: None, pace=1)
    assert run_segment(second, RunSettings(2), whole, lambda _: None, pace=1).digest != whole.digest


def test_a_checkpoint_of_another_chain_is_refused() -> None:
    of_other = run_segment(bound([counting("count", 16)], 500), RunSettings(1), START, lambda _: None, pace=1)
    with pytest.raises(ValueError, match="of another chain"):
        run_segment(bound([counting("count")], 500, keys=7), RunSettings(1), of_other, lambda _: None, pace=1)
