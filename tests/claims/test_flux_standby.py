"""What process pairs cost and give on the stage of the Flux paper, which names them as what is to come (section 8).

32 workers with 64 partitions of 800 KB each; every tuple is processed at two workers. A worker dies for good.
"""

import numpy as np
import pytest

from adapt.core.stage.assembly import Actors
from adapt.core.stage.conditions.arrivals import Drawn
from adapt.core.stage.conditions.faults import Crash, FaultSchedule
from adapt.core.stage.conditions.settings import StageSettings, even_groups, even_owners
from adapt.core.stage.simulate import simulate

WORKERS = 32
STAGE = StageSettings(WORKERS, even_owners(WORKERS, 64), even_groups(16384, WORKERS * 64))
FULL = WORKERS / 45.5e-6
DIES = FaultSchedule((Crash(3, 1.0),), 0.5)


@pytest.fixture(scope="module")
def alone():
    return simulate(STAGE, Drawn(), 3.0, Actors(faults=DIES), interval_s=0.25)


@pytest.fixture(scope="module")
def paired():
    return simulate(STAGE, Drawn(), 4.0, Actors(faults=DIES, standby=True), interval_s=0.25)


def rate(run, from_s, to_s):
    return float(np.mean([one.throughput for one in run.intervals if from_s <= one.start_s < to_s])) / FULL


def test_standby_takes_half_of_the_capacity(alone, paired):
    assert rate(alone, 0.25, 1.0) == pytest.approx(1.0, abs=0.02)
    assert rate(paired, 0.25, 1.0) / rate(alone, 0.25, 1.0) == pytest.approx(0.5, abs=0.02)
    assert paired.mirrored >= 0.9 * paired.census.processed


def test_without_standby_the_partitions_of_the_worker_are_lost_and_this_is_said(alone):
    (crash,) = alone.crashes
    assert crash.lost_state_bytes == 64 * 800_000
    assert crash.lost_groups == 64 * 8
    assert 0 < crash.lost_tuples <= WORKERS * 24 + 1
    assert alone.census.whole
    assert rate(alone, 1.75, 3.0) >= 0.9 * 31 / 32


def test_with_standby_nothing_is_lost_and_the_full_rate_is_back_soon(paired):
    """As soon as the twins have taken over; all 128 copies that died are made again in little more than is needed."""
    (crash,) = paired.crashes
    assert crash.promoted == crash.partitions == 64
    assert crash.lost_state_bytes == paired.census.lost == 0
    assert crash.takeover_s == pytest.approx(0.5)
    assert crash.full_rate_s <= 1.0
    assert 128 * 800_000 * 8 / 500e6 <= crash.protected_s - crash.taken_over_s <= 2.5
    assert rate(paired, 3.5, 4.0) == pytest.approx(31 / 64, abs=0.01)
