"""ContTune, against the example of its authors, textbook formulas and its phases by hand."""

import itertools

import numpy as np
import pytest

from adapt.core.elastic.policies.conttune import ALPHA, ContTune
from adapt.core.elastic.policies.ds2 import TrueRates
from adapt.core.elastic.policies.gaussian_process import JITTER, LENGTHS, WorkersProcess
from tests.core.elastic.observations import seen

PUBLISHED = {
    1: 529573.16752,
    2: 966817.36242,
    4: 1829695.58,
    6: 2535502.7616,
    7: 2936888.579,
    8: 3118477.8826,
    10: 3721099.1836,
    13: 4624714.165666,
    15: 4967828.2586,
    20: 6350677.0454,
    21: 6465249.805,
    25: 7089387.3074,
    26: 7476391.84,
}
"""Records per second of a mapper of Nexmark Q1 by parallelism: README.md of ljqcodelove/ContTune, commit 19ee63b."""


def test_the_example_of_the_authors_needs_eleven_workers():
    workers = np.arange(1, 27)
    enough = workers[WorkersProcess.fitted(PUBLISHED).mean(workers.astype(float)) >= 4e6]
    assert enough[0] == 11  # ceil(10.64)


def test_the_mean_is_that_of_the_textbook_at_the_most_likely_length():
    at, rates = np.array([1.0, 3.0, 4.0, 8.0]), np.array([100.0, 280.0, 390.0, 700.0])

    def likelihood(length):
        """Equation 2.30, with the variance that maximizes it."""
        shape = np.exp(-((at[:, None] - at) ** 2) / 2 / length**2) + JITTER * np.eye(4)
        variance = rates @ np.linalg.inv(shape) @ rates / 4
        return -0.5 * (rates @ np.linalg.inv(variance * shape) @ rates + np.linalg.slogdet(variance * shape)[1])

    found = WorkersProcess.fitted(dict(zip(at.astype(int).tolist(), rates.tolist(), strict=True)))
    assert likelihood(found.length) == pytest.approx(max(map(likelihood, LENGTHS)), abs=1e-3)
    shape = np.exp(-((at[:, None] - at) ** 2) / 2 / found.length**2) + JITTER * np.eye(4)
    asked = np.array([2.0, 5.0, 9.0])
    cross = np.exp(-((asked[:, None] - at) ** 2) / 2 / found.length**2)
    assert found.mean(asked) == pytest.approx(cross @ np.linalg.inv(shape) @ rates, rel=1e-4)


class Job:
    """A job whose workers do 100 rows a second each; it tells a policy each second, and restarts at once."""

    def __init__(self, workers):
        self.policy = ContTune(TrueRates(1.0))
        self.workers, self.at_s, self.waiting = workers, 0.0, 0
        self.rescales = []

    def run(self, seconds, rate):
        for _ in range(seconds):
            self.at_s += 1
            can = 100 * self.workers
            done = min(self.waiting + rate, can)
            self.waiting += rate - done
            each = np.full(self.workers, done / self.workers)
            observed = seen(
                self.at_s, self.workers, busy_s=each / 100, processed=each, arrived=rate, waiting=self.waiting
            )
            wanted = self.policy.wanted(observed)
            if wanted != self.workers:
                self.rescales.append((int(self.at_s), wanted))
                self.workers = wanted
        return self.rescales


def test_workers_double_while_a_backlog_grows():
    assert Job(1).run(100, 790) == [(30, 2), (60, 4), (90, 8)]


def test_a_backlog_that_falls_is_left_to_fall():
    job = Job(1)
    job.run(100, 790)
    assert job.waiting > 790
    assert job.run(100, 750)[3:] == []


def test_fewer_workers_are_tried_no_further_than_alpha_from_what_is_known():
    job = Job(16)
    job.run(300, 700)
    tried = [workers for _, workers in job.rescales]
    assert tried[-1] in (7, 8)  # one too many stays
    known = [16]
    for workers in tried:
        near = min(abs(workers - each) for each in known) <= ALPHA
        assert near or workers == 7  # DS2's number
        known.append(workers)
    assert all(after < before for before, after in itertools.pairwise([16, *tried]))


def test_the_big_phase_returns_to_the_most_workers_that_kept_up():
    job = Job(16)
    job.run(300, 700)
    before = len(job.rescales)
    job.run(60, 1400)
    assert job.rescales[before][1] == 16


def test_far_from_all_observations_the_number_is_that_of_ds2():
    policy = ContTune(TrueRates(1.0), alpha=0)
    for at_s in range(1, 31):
        wanted = policy.wanted(seen(float(at_s), 8, busy_s=np.full(8, 0.25), processed=np.full(8, 25), arrived=200))
    assert wanted == 2


def test_nothing_is_decided_without_processed_rows():
    policy = ContTune()
    nothing = {"busy_s": np.zeros(4), "processed": np.zeros(4, int), "arrived": 0}
    assert {policy.wanted(seen(float(at_s), 4, **nothing)) for at_s in range(1, 60)} == {4}
