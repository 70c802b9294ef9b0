"""Workers that an autoscaler parks and wakes: how many, what they cost, and that the output stays the same."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from adapt.core.elastic.policies.ds2 import TrueRates
from adapt.core.elastic.policies.fixed import FixedWorkers
from adapt.core.elastic.policies.keda import LagThreshold
from adapt.core.elastic.policies.scale_on import ScaleOn
from adapt.core.elastic.policies.scaler import ElasticController, Patience
from adapt.core.elastic.policies.thresholds import ThresholdScaling
from adapt.core.ordered.chain.names import FunctionName, Parallelism
from adapt.core.ordered.engine.contention import Contention
from adapt.core.ordered.engine.scaling import AutoScaling, Scaled, WorkerControl
from adapt.core.ordered.engine.serial import run_serially
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.engine.threads import run_by_workers
from adapt.core.ordered.model.model import run_model
from adapt.core.stage.conditions.shed_factor import Thresholds
from adapt.core.stage.control.workers import Decision
from tests.core.ordered.chains import bound, partitioned, stateless
from tests.core.ordered.engine.test_random_chains import random_operators, random_settings
from tests.tiers import SOAK

ROWS = 6000


@dataclass
class Drawn:
    """Any number of workers, in each period."""

    random: np.random.Generator
    pool: int
    least: int = 1

    def decide(self, seen, waiting):
        return Decision(int(self.random.integers(1, self.pool + 1))), waiting


class Watching(WorkerControl):
    """A control that remembers the slices of all workers."""

    def decide(self, memory, at_s):
        self.slices = [*getattr(self, "slices", []), memory.progress().slices]
        return super().decide(memory, at_s)


def dynamic(random):
    """Settings of workers that may run any operator."""
    return {"workers": int(random.integers(2, 9)), "parallelism": Parallelism.DYNAMIC, "degrees": (), "batch": 0}


def even(rate, rows=ROWS):
    return (np.arange(rows) * 1e9 / rate).astype(np.int64)


def controlled(policy, most, chain, times, period_s=0.01):
    def make(period_s):
        return ElasticController(policy, 1, most, Patience(2 * period_s, 5 * period_s))

    return AutoScaling("any", make, period_s).control(chain, times)


def modeled(chain, times, control, workers, **settings):
    random = np.random.default_rng(1)
    return run_model(chain, RunSettings(workers, **settings), Contention(), random, arrivals_ns=control).run


@pytest.mark.parametrize("rate", [30e3, 130e3, 210e3, 330e3, 470e3])
@pytest.mark.parametrize("utilization", [0.7, 1.0])
def test_ds2_settles_at_the_work_that_arrives_over_the_target_utilization(rate, utilization):
    """Two operators of 4 and 6 us, of which the second gets half of the rows: 7 us a row."""
    chain = bound([stateless("a", selectivity=0.5, cost=4.0), stateless("b", cost=6.0)], ROWS)
    control = controlled(TrueRates(utilization), 8, chain, even(rate), 0.002)
    modeled(chain, even(rate), control, 8)
    wanted = {math.ceil(rate * share * 1e-6 / utilization) for share in (6.8, 7.2)}  # half of the rows, as drawn
    assert control.workers in wanted
    assert 1 <= control.scaled.rescales <= 3 or wanted & {1}


def test_thresholds_scale_out_in_a_burst_and_in_after_it():
    """Three workers' work for 50 ms, between 0.3 of one worker's."""
    gaps = np.repeat([100e3, 10e3, 100e3], [300, 5000, 1500])
    times = np.cumsum(gaps).astype(np.int64)
    chain = bound([stateless("a", cost=30.0)], len(times))
    control = controlled(
        ThresholdScaling(Thresholds(0.2, 0.5, 0.8, 0.9), scale_on=ScaleOn(None)), 8, chain, times, 0.002
    )
    modeled(chain, times, control, 8)
    assert [size for _, size in control.scaled.sizes] == [1, 2, 4, 8, 1]  # twice as many while all are busy


def test_lag_counts_the_rows_that_wait():
    chain = bound([stateless("a", cost=10.0)], ROWS)
    control = controlled(LagThreshold(100), 8, chain, even(150e3), 0.002)
    run = modeled(chain, even(150e3), control, 8, mark_every=1)
    for period in control.scaled.periods[:20]:
        arrived = (run.marks.fed <= period.end_s * 1e9).sum()
        assert period.waiting == arrived - (run.marks.served < period.end_s * 1e9).sum()


@pytest.mark.parametrize("seed", range(300 if SOAK else 15))
def test_any_workers_at_any_time_give_the_serial_output_on_threads(seed):
    random = np.random.default_rng(seed)
    rows = 2000
    chain = bound(random_operators(random), rows, keys=int(random.choice([1, 20, 500])))
    settings = replace(random_settings(random), **dynamic(random), checked=True)
    times = np.cumsum(random.exponential(40e3, rows) * (random.random(rows) > 0.3)).astype(np.int64)
    control = WorkerControl(Drawn(random, settings.workers), 0.0007, chain.punctuations, times)
    run = run_by_workers(chain, settings, pace=1, arrivals_ns=times, control=control)
    assert run.egress == run_serially(chain).egress
    assert all(tally.overlaps == tally.disorders == 0 for tally in run.operators)


@pytest.mark.parametrize("seed", range(300 if SOAK else 30))
def test_any_workers_at_any_time_give_the_same_output_in_the_model(seed):
    random = np.random.default_rng(seed)
    rows = 1000
    drawn = [each for each in random_operators(random) if each.function is FunctionName.WORK] or [stateless("a")]
    chain = bound([replace(each, cost=2.0) for each in drawn], rows)
    settings = replace(random_settings(random), **dynamic(random))
    times = np.cumsum(random.exponential(1e3, rows)).astype(np.int64)
    alone = RunSettings(mark_every=settings.mark_every)
    expected = run_model(chain, alone, Contention(), np.random.default_rng(1)).run.egress
    runs = []
    for _ in range(2):
        any_number = Drawn(np.random.default_rng(seed), settings.workers)
        control = WorkerControl(any_number, 2e-5, chain.punctuations, times)
        run = run_model(chain, settings, Contention(), np.random.default_rng(1), arrivals_ns=control).run
        assert run.egress == expected
        runs.append((run.elapsed_s, control.scaled.sizes, [period.waiting for period in control.scaled.periods]))
    assert runs[0] == runs[1]
    assert len(runs[0][1]) > 3


def test_parked_workers_begin_no_slice():
    chain, times = bound([partitioned("a", 16)], ROWS), even(100e3)
    control = Watching(ElasticController(FixedWorkers(), 1, 4), 0.01, chain.punctuations, times)
    run = run_by_workers(chain, RunSettings(4), pace=1, arrivals_ns=times, control=control)
    assert run.egress == run_serially(chain).egress
    assert all(slices[0] > 0 for slices in control.slices)
    assert sum(slices[1:].sum() for slices in control.slices) == 0


def test_workers_that_are_parked_again_end_their_slice_and_begin_no_other():
    chain, times = bound([stateless("a", cost=10.0)], ROWS), even(1e6)

    class InTurn:
        least, pool = 1, 4

        def decide(self, seen, waiting):
            return Decision(4 if round(seen.at_s / 0.002) % 6 < 3 else 1), waiting

    control = Watching(InTurn(), 0.002, chain.punctuations, times)
    modeled(chain, times, control, 4)
    grew = np.diff([slices[1:] for slices in control.slices], axis=0, prepend=0)
    workers = [period.workers for period in control.scaled.periods]
    one_throughout = [at for at in range(1, len(workers)) if workers[at] == workers[at - 1] == 1]
    assert grew[one_throughout].max() == 0
    assert min(grew[at].min() for at in range(1, len(workers) - 1) if workers[at] == workers[at - 1] == 4) > 0


def test_a_policy_that_fails_ends_the_run():
    class Failing:
        least, pool = 1, 3

        def decide(self, seen, waiting):
            raise ValueError("no idea")

    chain, times = bound([stateless("a")], ROWS), even(100e3)
    for run in (run_by_workers, lambda *given, **more: modeled(given[0], times, more["control"], 3)):
        control = WorkerControl(Failing(), 0.005, chain.punctuations, times)
        with pytest.raises(ValueError, match="no idea"):
            run(chain, RunSettings(3), arrivals_ns=times, control=control)


def test_worker_time_is_the_sum_over_spans():
    scaled = Scaled([(0.0, 2), (1.5, 5), (4.0, 1)])
    assert scaled.worker_s(6.0) == 2 * 1.5 + 5 * 2.5 + 1 * 2.0
    assert scaled.worker_s(3.0) == 2 * 1.5 + 5 * 1.5
    assert scaled.rescales == 2
