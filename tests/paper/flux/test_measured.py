"""What is kept of a run is what it did, and what is read from it is what it says."""

import json

import pytest

from adapt.core.flux.policies.names import FluxPolicy
from paper.flux.figures.recovery import left, settled_after_s
from paper.flux.figures.spilling import in_memory_after_s, resumes_after_s
from paper.flux.measured import Ran, Seen, StageRun
from paper.flux.scenarios import mean_rate, several_loaded


def seen(rates, lasting=1.0, **changes):
    """Intervals of the same length."""
    fields = {"operator_s": [0.0] * len(rates), "on_disk": [0] * len(rates), "held": [64] * len(rates), **changes}
    return [
        Seen(at * lasting, (at + 1) * lasting, round(rate * lasting), *kept)
        for at, (rate, *kept) in enumerate(zip(rates, *fields.values(), strict=True))
    ]


def test_a_run_is_kept_as_it_was():
    run = StageRun("several_loaded", (("count", 1), ("seconds", 0.5), ("workers", 2)), FluxPolicy.LOAD, 0.05, 3, 0.125)
    kept = Ran.from_data(json.loads(json.dumps(run.measure([]))))
    scenario = several_loaded(1, 0.5, 3, 2)
    told = scenario.run(run.controller(scenario), 0.125)
    assert [one.processed for one in kept.intervals] == [one.processed for one in told.intervals]
    assert kept.moves == len(told.moves) > 0
    assert kept.transfer_s > 0
    assert mean_rate(kept) == pytest.approx(told.throughput)
    loaded = scenario.settings.disturbances[0].worker
    assert [one.held for one in kept.intervals] == [one.partitions[loaded] for one in told.intervals]
    assert kept.latency_us(0.0) == pytest.approx(
        1e6 * sum(one.operator.sum_s for one in told.intervals) / told.census.processed
    )


def test_what_a_crash_took_is_kept_with_the_run():
    given = (("dies", True), ("seconds", 5.5), ("workers", 4), ("standby", False))
    kept = Ran.from_data(json.loads(json.dumps(StageRun("crashed", given, FluxPolicy.NONE, 0.0, 0, 0.5).measure([]))))
    assert kept.crash is not None
    assert kept.crash.lost_state_bytes == 64 * 800_000
    assert kept.crash.lost_tuples > 0
    assert kept.crash.protected_s is None


def test_a_stage_has_settled_from_when_it_stays_within_5_percent():
    held = [64, 64, 60, 50, 40, 33, 32, 32, 32, 32, 32]
    run = Ran(seen([100, 40, 40, 100, 90, 100, 96, 100, 100, 100, 100], held=held), [1.5, 2.5], 0.0, 0)
    assert settled_after_s(run) == pytest.approx(5.0 - 1.5)
    assert left(run) == 32


def test_a_stage_that_stood_still_resumes():
    rates = [100, 100, 100, 100, 100, 50, 0, 0, 30, 5, 30, 100]
    on_disk = [0, 0, 0, 0, 0, 3, 9, 9, 4, 1, 0, 0]
    run = Ran(seen(rates, on_disk=on_disk), [], 0.0, 0)
    assert resumes_after_s(run, 100) == 3.0
    assert in_memory_after_s(run) == 5.0
    assert resumes_after_s(Ran(seen([100.0] * 9), [], 0.0, 0), 100) is None
    assert in_memory_after_s(Ran(seen([1.0] * 9, on_disk=[1] * 9), [], 0.0, 0)) is None
