"""Calibration of the ordered engine, on runs whose costs are given."""

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest

from adapt.core.errors import BadInput
from adapt.core.ordered.calibrate import sizes
from adapt.core.ordered.calibrate.calibration import calibrate_engine, predicted_ns
from adapt.core.ordered.calibrate.configuration import NO_TIME_US, SENT_CHUNKS, Configuration, fitted, held_out
from adapt.core.ordered.calibrate.fit import Measured, at_one_line, fit, profile_of
from adapt.core.ordered.calibrate.line import line_ns
from adapt.core.ordered.calibrate.machine import Machine
from adapt.core.ordered.calibrate.sizes import calibrate_sizes, sized
from adapt.core.ordered.calibrate.speed import loop_ns
from adapt.core.ordered.chain.names import Heuristic, OperatorKind
from adapt.core.ordered.engine.cache_costs import ASSUMED_CACHES, CacheCosts, StateCost
from adapt.core.ordered.engine.contention import Stalls, assumed_contention
from adapt.core.ordered.engine.costs import (
    CONTENDED,
    QUERIES,
    TERMS,
    Cost,
    EngineCosts,
    EngineProfile,
    Term,
)
from adapt.core.ordered.engine.costs_file import read_engine_profile, write_engine_profile
from adapt.core.ordered.engine.outcome import OperatorTally
from adapt.core.ordered.model.engine_times import Uneven, counts_of, queries_of

ROWS = 4096
FITTED = [term for term in TERMS if term.cost is not Cost.LINE]
TRUE = {term: 1.0 + 3.0 * place for place, term in enumerate(FITTED)}
"""A different cost for each term, in nanoseconds, where a cache line moves in `LINE_NS`."""
LINE_NS = 100.0


@dataclass
class Synthetic:
    """Runs whose CPU time is made from known costs, and a random error.

    With `varies`, workers overlap and cache lines move differently in each run.
    """

    error: float = 0.0
    seed: int = 0
    varies: bool = False

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    def measured(self, counts: dict[Term, float], work_ns: float = 0.0, overlap: float = 1.0) -> Measured:
        line_ns = LINE_NS
        if self.varies:
            overlap *= self.random.uniform(0.2, 1)
            line_ns = self.random.choice([50.0, LINE_NS, 200.0])
        ns = work_ns
        for term, count in counts.items():
            if term.cost is Cost.HIDDEN:
                count = -count
            elif term.cost in CONTENDED:
                count *= overlap * line_ns / LINE_NS
            ns += count * TRUE[term]
        return Measured(counts, ns * (1 + self.error * self.random.uniform(-1, 1)), work_ns, 1.0, overlap, 1.0, line_ns)

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
            crowded = 0 if bound.operator.kind is OperatorKind.STATEFUL else int(in_use[5]) * (one.workers - 1) // 3
            tallies.append(tally := OperatorTally("", *counted, slices=slices, crowded=crowded))
            for term, count in counts_of(bound, settings, tally, len(one.kinds)).items():
                counts[term] = counts.get(term, 0.0) + count
            rows = outputs
        work_ns = 1000 * one.cost_us * sum(tally.inputs for tally in tallies)
        return self.measured(counts | queries_of(settings, tallies), work_ns, 0.0 if one.alone else 1.0)

    def send(self, chunk: int) -> Measured:
        return self.measured({Term(Cost.SEND): ROWS / chunk, Term(Cost.OUTPUT): float(ROWS)})


def runs(of: Synthetic, workers: int) -> list[Measured]:
    return [*map(of.run, fitted(workers)), *map(of.send, SENT_CHUNKS)]


@pytest.mark.parametrize("varies", [False, True])
def test_the_fit_recovers_every_cost_whatever_the_cores_that_runs_got(varies: bool) -> None:
    found = fit(runs(Synthetic(varies=varies), 4), LINE_NS)
    assert found == {term: pytest.approx(ns, rel=1e-5) for term, ns in TRUE.items()}


def test_a_run_without_its_cores_counts_little() -> None:
    good = runs(Synthetic(), 2)
    bad = [replace(run, cpu_ns=3 * run.cpu_ns, share=0.0) for run in good]
    found = fit([*good, *bad], LINE_NS)
    claim = Term(Cost.CLAIM, OperatorKind.STATELESS)
    assert found[claim] == pytest.approx(TRUE[claim], rel=0.03)


@pytest.mark.parametrize("selectivity", [0.0, 0.3, 1.0, 1.4, 2.0, 2.5])
def test_shares_of_uneven_tuples_are_those_of_independent_draws(selectivity: float) -> None:
    random = np.random.default_rng(1)
    outputs = np.floor(selectivity) + (random.random(200_000) < selectivity % 1)
    uneven = Uneven.at(selectivity)
    assert uneven.apart == pytest.approx(np.mean(outputs != 1), abs=0.01)
    assert uneven.several == pytest.approx(np.mean(outputs > 1), abs=0.01)
    assert uneven.spread == pytest.approx(np.std(outputs), abs=0.01)


def test_a_cache_line_moves_in_some_time_or_none_is_measured() -> None:
    measured = line_ns()
    assert measured is None or measured > 0


def test_a_slower_cache_line_makes_only_contention_dearer_in_proportion() -> None:
    measured = profile_of([runs(Synthetic(), 2)], 2, "")
    slow = measured.at_line(3 * LINE_NS).costs_at()
    for term, one in measured.costs.items():
        scaled = term.cost in CONTENDED or term.cost is Cost.LINE
        assert slow.ns[term] == pytest.approx(3 * one.ns if scaled else one.ns)
    unknown = replace(measured, costs={term: one for term, one in measured.costs.items() if term.cost is not Cost.LINE})
    assert measured.at_line(None) == measured
    assert unknown.at_line(3 * LINE_NS) == unknown


def test_runs_at_another_time_of_a_cache_line_are_replaced_by_the_others() -> None:
    near, nearer, far, alone = (Measured({}, 1.0, line_ns=ns) for ns in (50.0, 60.0, 180.0, None))
    assert at_one_line([near, far, nearer, far], 55.0) == [near, nearer, nearer, nearer]
    assert at_one_line([far, far], 55.0) == [far, far]
    assert at_one_line([alone, alone], 55.0) == [alone, alone]


def test_the_fit_is_of_the_commoner_time_of_a_cache_line_even_if_contention_is_not_in_proportion() -> None:
    usual = runs(Synthetic(), 2)
    moved = [replace(run, line_ns=5 * LINE_NS, cpu_ns=9 * run.cpu_ns) for run in usual]
    assert profile_of([usual, moved, usual], 2, "") == profile_of([usual, usual, usual], 2, "")


def test_a_run_is_repeated_if_the_host_moved_its_cores_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = iter([40.0, 200.0, 200.0, 50.0, 50.0, 52.0, *[None] * 10])
    monkeypatch.setattr("adapt.core.ordered.calibrate.machine.line_ns", lambda: next(lines))
    ticks = itertools.count()
    # A clock that gives each run two cores: its CPU time is far more than the run takes.
    run = Machine(64, lambda: 1.0 * next(ticks), lambda _: 1e5).run(Configuration((OperatorKind.STATELESS,), 2))
    assert run.line_ns == pytest.approx(51.0)
    assert run.share == 1.0


def test_short_runs_are_repeated_until_one_was_at_full_speed_and_the_fastest_counts() -> None:
    loops_ns = iter([100.0, 140.0, 125.0, 100.0, 101.0, 100.0, 100.0, 103.0, 102.0, 102.0])  # before and after each
    times_s = iter(at for cpu_s in (0.02, 0.012, 0.015, 0.004) for at in (0.0, 0.001, 0.002 + cpu_s))
    machine = Machine(64, lambda: next(times_s), lambda _: next(loops_ns))
    run = machine.run(Configuration((OperatorKind.STATELESS,)))
    assert (run.cpu_ns, run.speed) == (pytest.approx(4e6), pytest.approx(100 / 103))
    assert [*times_s] == []  # it stops after 51 ms


def test_a_run_on_slowed_cores_is_repeated_for_half_a_second() -> None:
    loops_ns = iter([100.0, *[140.0] * 7])
    times_s = iter(at for cpu_s in (0.2, 0.2, 0.11) for at in (0.0, 0.001, 0.002 + cpu_s))
    run = Machine(64, lambda: next(times_s), lambda _: next(loops_ns)).run(Configuration((OperatorKind.STATELESS,)))
    assert (run.cpu_ns, run.speed) == (pytest.approx(110e6), pytest.approx(100 / 140))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_loop_takes_some_time_in_each_thread(threads: int) -> None:
    assert loop_ns(threads) > 0


def test_costs_of_contention_need_two_workers() -> None:
    found = fit(runs(Synthetic(), 1))
    of_many = {Cost.HANDOVER, *CONTENDED}
    assert {term.cost for term in FITTED if term not in found} == of_many
    profile = profile_of([runs(Synthetic(), 1)], 1, "")
    assert profile.costs_at().of(Cost.CONTENDED_TUPLE, OperatorKind.STATELESS) == 150.0


def test_intervals_span_the_fits_of_all_repeats() -> None:
    repeats = [runs(Synthetic(0.02, seed), 4) for seed in range(5)]
    profile = profile_of(repeats, 4, "")
    fastest = [min(alike, key=lambda run: run.cpu_ns) for alike in zip(*repeats, strict=True)]
    for term in FITTED:
        one = profile.costs[term]
        each = [fit(one_repeat)[term] for one_repeat in repeats]
        assert one.ns == fit(fastest)[term]
        assert (one.low_ns, one.high_ns) == (min(one.ns, *each), max(one.ns, *each))
    claim = profile.costs[Term(Cost.CLAIM, OperatorKind.STATELESS)]
    assert claim.low_ns < claim.high_ns


def test_a_run_takes_least_where_most_is_hidden() -> None:
    profile = profile_of([runs(Synthetic(0.02, seed), 2) for seed in range(3)], 2, "")
    hidden = profile.costs[Term(Cost.HIDDEN)]
    assert hidden.low_ns < hidden.high_ns
    assert profile.costs_at("low_ns").of(Cost.HIDDEN) == hidden.high_ns
    assert profile.costs_at("high_ns").of(Cost.HIDDEN) == hidden.low_ns


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
    profile = replace(
        profile, stalls=(Stalls(1, 0.0, (), ()), Stalls(2, 12.5, (5.0, 300.0), (0.0, 40.0), 15, (900.0, 4800.0)))
    )
    again = read_engine_profile(write_engine_profile(profile))
    assert (again.measured, again.workers, again.stalls) == (profile.measured, profile.workers, profile.stalls)
    assert [again.costs_at(workers=k).stalls for k in (0, 1, 3)] == [None, *profile.stalls]
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
        ("adapt.ordered-costs/3", "adapt.costs/2", "adapt calibrate ordered"),
        ("workers = 2", "workers = 0", "at least 1"),
        ('name = "feed"', 'name = "fed"', "feed"),
        ("us = [5.0]", "us = [7.0, 5.0]", "ascending"),
        ("us = [5.0]", 'us = "5"', "list of numbers"),
        ('name = "feed"', 'name = "send"', "twice"),
        ("ns = 1.0\n", "ns = -1.0\n", "low_ns"),
    ],
)
def test_a_faulty_file_is_refused(old: str, new: str, complaint: str) -> None:
    profile = replace(profile_of([runs(Synthetic(), 2)], 2, ""), stalls=(Stalls(1, 2.0, (5.0,), ()),))
    text = write_engine_profile(profile)
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
