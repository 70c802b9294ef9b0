"""Calibration of the ordered engine, on runs whose costs are given."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from adapt.core.errors import BadInput
from adapt.core.ordered.calibrate import sizes
from adapt.core.ordered.calibrate.calibration import calibrate_engine, predicted_ns
from adapt.core.ordered.calibrate.configuration import NO_TIME_US, SENT_CHUNKS, Configuration, fitted, held_out
from adapt.core.ordered.calibrate.fit import Measured, fit, profile_of
from adapt.core.ordered.calibrate.sizes import calibrate_sizes, sized
from adapt.core.ordered.chain.names import Heuristic, OperatorKind
from adapt.core.ordered.engine.cache_costs import ASSUMED_CACHES, CacheCosts, StateCost
from adapt.core.ordered.engine.contention import assumed_contention
from adapt.core.ordered.engine.costs import QUERIES, TERMS, Cost, EngineCosts, EngineProfile, Term
from adapt.core.ordered.engine.costs_file import read_engine_profile, write_engine_profile
from adapt.core.ordered.engine.outcome import OperatorTally
from adapt.core.ordered.model.engine_times import counts_of, queries_of

ROWS = 4096
TRUE = {term: 1.0 + 3.0 * place for place, term in enumerate(TERMS)}
"""A different cost for each term, in nanoseconds."""


@dataclass
class Synthetic:
    """Runs whose CPU time is made from known costs, and a random error."""

    error: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    def measured(self, counts: dict[Term, float]) -> Measured:
        ns = sum(count * TRUE[term] for term, count in counts.items())
        return Measured(counts, ns * (1 + self.error * self.random.uniform(-1, 1)))

    def run(self, one: Configuration) -> Measured:
        chain, settings = one.chain(64), one.settings()
        counts: dict[Term, float] = {}
        tallies: list[OperatorTally] = []
        rows, chunk = float(one.rows_of(ROWS)), one.chunk or 1024
        for bound in chain.operators:
            given, outputs = rows, rows * (one.selectivity if bound.number == 0 else 1)
            in_use = np.zeros(32, np.int64)
            in_use[5] = -(-int(given) // chunk)
            slices = int(in_use[5]) if one.slice_us == NO_TIME_US else 0
            counted = int(given), int(outputs), 0, 0, 0, 0, 0, 0, 0, in_use, np.zeros(1, np.int64)
            tallies.append(tally := OperatorTally("", *counted, slices=slices))
            for term, count in counts_of(bound, settings, tally).items():
                counts[term] = counts.get(term, 0.0) + count
            rows = outputs
        made = self.measured(counts | queries_of(settings, tallies))
        return replace(made, cpu_ns=made.cpu_ns + one.rows_of(ROWS) * len(one.kinds) * 1000 * one.cost_us)

    def send(self, chunk: int) -> Measured:
        return self.measured({Term(Cost.SEND): ROWS / chunk, Term(Cost.OUTPUT): float(ROWS)})


def runs(of: Synthetic, workers: int) -> list[Measured]:
    return [*map(of.run, fitted(workers)), *map(of.send, SENT_CHUNKS)]


def test_the_fit_recovers_every_cost() -> None:
    assert fit(runs(Synthetic(), 4)) == {term: pytest.approx(ns, rel=1e-6) for term, ns in TRUE.items()}


def test_costs_of_contention_need_two_workers() -> None:
    found = fit(runs(Synthetic(), 1))
    of_many = {Cost.HANDOVER, Cost.CONTENDED_TUPLE, Cost.CONTENDED_CLAIM, Cost.CONTENDED_QUERY}
    assert {term.cost for term in TERMS if term not in found} == of_many
    profile = profile_of([runs(Synthetic(), 1)], 1, "")
    assert profile.costs_at().of(Cost.CONTENDED_TUPLE, OperatorKind.STATELESS) == 150.0


def test_intervals_span_the_fits_of_all_repeats() -> None:
    repeats = [runs(Synthetic(0.02, seed), 4) for seed in range(5)]
    profile = profile_of(repeats, 4, "")
    for term, one in profile.costs.items():
        each = [fit(one_repeat)[term] for one_repeat in repeats]
        assert (one.low_ns, one.ns, one.high_ns) == (min(each), sorted(each)[2], max(each))
    claim = profile.costs[Term(Cost.CLAIM, OperatorKind.STATELESS)]
    assert claim.low_ns < claim.ns < claim.high_ns


def test_no_cost_is_below_0() -> None:
    assert min(fit(runs(Synthetic(0.5), 2)).values()) >= 0


def test_the_model_predicts_configurations_that_the_fit_has_not_seen() -> None:
    assert not set(held_out(2)) & set(fitted(2))
    made = calibrate_engine(Synthetic(), ROWS, 2, 1)
    assert len(made.held().rows) == len(made.checks) == len(held_out(2))
    alone = [one for one in made.checks if one.configuration.workers == 1 and one.configuration.slice_us == 100]
    assert max(abs(one.error) for one in alone) < 0.05
    assert f"{made.profile.workers} workers" in made.notes[1]


def test_the_model_adds_what_the_counts_of_a_run_add() -> None:
    costs, one = EngineCosts(TRUE), Configuration((OperatorKind.STATELESS,), 1, 64)
    expected = Synthetic().run(one).cpu_ns / ROWS
    assert predicted_ns(one, costs, ROWS) == pytest.approx(expected, rel=0.01)


def test_a_profile_survives_its_file() -> None:
    profile = profile_of([runs(Synthetic(0.01, seed), 2) for seed in (0, 1)], 2, 'of "one" machine')
    again = read_engine_profile(write_engine_profile(profile))
    assert (again.measured, again.workers) == (profile.measured, profile.workers)
    for term, one in profile.costs.items():
        assert again.costs[term].ns == pytest.approx(one.ns, rel=1e-5)
    assert write_engine_profile(again) == write_engine_profile(profile)


def test_a_cache_model_survives_its_file_which_may_lack_it() -> None:
    profile = profile_of([runs(Synthetic(), 2)], 2, "")
    assert read_engine_profile(write_engine_profile(profile)).costs_at().caches == ASSUMED_CACHES
    states, tuples = ASSUMED_CACHES.states[:9], ASSUMED_CACHES.tuples[:2]
    known = replace(profile, caches=CacheCosts(states, tuples))
    text = write_engine_profile(known)
    assert read_engine_profile(text).costs_at().caches == known.caches
    for old, new, complaint in (
        ("state_bytes = 64\n", "state_bytes = 64.5\n", "state_bytes must be an integer"),
        ("here_ns = 5.97\n", "here_ns = 7.0\n", "moved_ns must be at least here_ns"),
        ("leave_ns = 10.9\n", "", "has no leave_ns"),
        ("[[tuple]]", "[[tuples]]", "unknown field 'tuples'; did you mean 'tuple'"),
    ):
        assert old in text
        with pytest.raises(BadInput, match=complaint):
            read_engine_profile(text.replace(old, new, 1))


def test_the_cache_model_is_measured_and_predicts_runs_of_other_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    def timed(_: object = None) -> list[StateCost]:
        return [*ASSUMED_CACHES.states]

    monkeypatch.setattr(sizes, "timed_states", timed)
    monkeypatch.setattr(sizes, "timed_tuples", lambda: [*ASSUMED_CACHES.tuples])
    made = calibrate_engine(Synthetic(), ROWS, 1, 1)
    with_sizes = calibrate_sizes(made, Synthetic(), ROWS, 3, None)
    assert with_sizes.profile.caches == ASSUMED_CACHES
    assert [one.configuration for one in with_sizes.sized] == list(sized(1))
    assert "with payloads and states the error is" in with_sizes.notes[2]
    titles = [table.title for table in with_sizes.displayed()]
    assert titles[2:] == ["States by size", "Payloads by size", "Payloads and states of other sizes"]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("adapt.ordered-costs/1", "adapt.costs/1", "adapt calibrate ordered"),
        ("workers = 2", "workers = 0", "at least 1"),
        ('name = "feed"', 'name = "fed"', "feed"),
        ('name = "feed"', 'name = "send"', "twice"),
        ("ns = 1.0\n", "ns = -1.0\n", "low_ns"),
    ],
)
def test_a_faulty_file_is_refused(old: str, new: str, complaint: str) -> None:
    text = write_engine_profile(profile_of([runs(Synthetic(), 2)], 2, ""))
    assert old in text
    with pytest.raises(BadInput, match=complaint):
        read_engine_profile(text.replace(old, new, 1))


def test_queries_that_an_earlier_version_did_not_measure_are_assumed() -> None:
    profile = profile_of([runs(Synthetic(), 2)], 2, "")
    earlier = {term: one for term, one in profile.costs.items() if term.cost not in QUERIES}
    costs, assumed = EngineProfile("", 2, earlier).costs_at(), assumed_contention(Heuristic.QST)
    assert costs.of(Cost.QUERY, heuristic=Heuristic.QST) == 1000 * assumed.query_us
    assert costs.of(Cost.QUERY_OPERATOR, heuristic=Heuristic.QST) == 1000 * assumed.query_operator_us
    assert costs.of(Cost.CONTENDED_QUERY) == 1000 * assumed.query_contention_us


def test_a_missing_cost_is_refused() -> None:
    profile = profile_of([runs(Synthetic(), 2)], 2, "")
    known = {term: one for term, one in profile.costs.items() if term.cost is not Cost.SEND}
    with pytest.raises(BadInput, match="send"):
        EngineProfile("", 2, known)
