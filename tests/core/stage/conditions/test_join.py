"""A windowed equi-join in a stage: every answer of a serial run, whatever moves meanwhile, and what shedding costs."""

import os
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.elastic.policies.names import ScalingPolicy, Signal
from adapt.core.elastic.policies.registry import Chosen, policy_of
from adapt.core.elastic.policies.scaler import ElasticController, Patience, Rebuild
from adapt.core.errors import BadInput, UsageError
from adapt.core.stage.conditions.arrivals import Chunk, Drawn, Rows
from adapt.core.stage.conditions.growth import NEITHER, Join, SerialJoin
from adapt.core.stage.conditions.names import Migrating, Router
from adapt.core.stage.conditions.settings import Costs, Restart, StageSettings, even_groups, even_owners
from adapt.core.stage.conditions.shed_factor import Overload, ShedFactor
from adapt.core.stage.control.workers import Migration, Scaling
from adapt.core.stage.dag.settings import DagSettings
from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.simulate import Actors, assemble, simulate
from tests.core.stage.control.test_elasticity import AnyPlacement, AnyScaler
from tests.core.stage.engine.test_running_stage import BY_CONTENT
from tests.core.stage.movement.test_protocol import AnyMoves
from tests.core.stage.stages import stages

CASES = 1500 if os.environ.get("ADAPT_SOAK") else 25
TICKS_A_SECOND = 1_000_000
WORD = 2**64


@dataclass(frozen=True)
class Stream:
    """Rows of two sides, and of neither, some at the same time."""

    groups: np.ndarray
    producers: np.ndarray
    sides: np.ndarray
    times: np.ndarray
    cost_s: np.ndarray
    chunk: int = 97

    @classmethod
    def of(cls, rows, groups, workers, span_s, seed, neither=0.1, chunk=97):
        chance = np.random.default_rng(seed)
        bursts = chance.choice([0.0, 0.7], rows) * span_s + chance.exponential(span_s / 5, rows)
        return cls(
            (chance.random(rows) ** 3 * groups).astype(np.int64),
            chance.integers(0, workers, rows),
            np.where(chance.random(rows) < neither, NEITHER, chance.integers(0, 2, rows)).astype(np.int8),
            np.sort((bursts * TICKS_A_SECOND).astype(np.int64) // 50 * 50),
            chance.uniform(1e-6, 1e-4, rows),
            chunk,
        )

    def rows(self):
        def chunks():
            for first in range(0, len(self.groups), self.chunk):
                part = slice(first, first + self.chunk)
                yield Chunk(
                    self.groups[part],
                    self.producers[part],
                    self.times[part] / TICKS_A_SECOND,
                    self.cost_s[part],
                    sides=self.sides[part],
                    times=self.times[part],
                )

        return Rows(chunks)

    def pairs(self, window, kept=None):
        """All answers, the older row first: every row beside every other."""
        row = np.arange(len(self.groups))
        old, new = np.meshgrid(row, row, indexing="ij")
        found = (old < new) & (self.groups[old] == self.groups[new]) & (self.times[new] - self.times[old] <= window)
        found &= (self.sides[old] >= 0) & (self.sides[old] == 1 - self.sides[new])
        if kept is not None:
            found &= np.isin(old, kept) & np.isin(new, kept)
        return list(zip(old[found].tolist(), new[found].tolist(), strict=True))


def mixed(bits):
    """splitmix64."""
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB % WORD
    return bits ^ (bits >> 31)


def digest(pairs):
    return sum(mixed((mixed((old * 0x9E3779B97F4A7C15 + 1) % WORD) + new) % WORD) for old, new in pairs) % WORD


@st.composite
def joins(draw):
    """A stage that joins, a stream for it, and whether workers hold and shed."""
    of = draw(stages(BY_CONTENT))
    join = Join(draw(st.sampled_from([0, 500, 3_000, 10_000, 10**9])), draw(st.sampled_from([0.0, 2e-6])))
    of = replace(of, window=0, join=join)
    if draw(st.booleans()):
        of = replace(of, overload=Overload(ShedFactor(0.5), draw(st.integers(5, 60)), draw(st.floats(1e-3, 1e-2))))
    stream = Stream.of(
        draw(st.integers(0, 300)), len(of.partition_of), of.workers, 0.03, draw(st.integers(0, 2**20)), chunk=53
    )
    return of, stream


@given(joins(), st.sampled_from(["none", "moves", "scaled"]), st.data())
@settings(max_examples=CASES)
def test_answers_are_those_of_the_rows_that_were_not_shed_whatever_moves(case, adapted, data):
    of, stream = case
    seed = data.draw(st.integers(0, 2**20))
    acting = {}
    if adapted == "moves":
        acting["controller"] = AnyMoves(seed)
    elif adapted == "scaled":
        chance = np.random.default_rng(seed)
        scaler = AnyScaler(data.draw(st.integers(1, of.workers)), of.workers, chance)
        short = Restart(stop_s=1e-3, start_s=2e-3)
        how = Migration(data.draw(st.sampled_from(Migrating)), data.draw(st.integers(1, 5)), short)
        acting["scaling"] = Scaling(scaler, AnyPlacement(of.partitions, chance), 3e-3, how)
    run = simulate(of, stream.rows(), 3.0, Actors(**acting), interval_s=0.02, journal=10**4)
    kept = run.journal["number"]
    assert len(kept) + run.census.shed == len(stream.groups)
    expected = stream.pairs(of.join.window, kept)
    assert run.answers == len(expected) == run.journal["answer"].sum() == sum(one.answers for one in run.intervals)
    assert run.pairs == digest(expected)
    found = {number: set() for number in kept.tolist()}
    for old, new in expected:
        found[old].add(new)
        found[new].add(old)
    done = set()
    for number, answer in zip(kept.tolist(), run.journal["answer"].tolist(), strict=True):
        assert answer == len(found[number] & done)
        done.add(number)


@given(st.integers(0, 200), st.integers(1, 8), st.sampled_from([0, 50, 4_000, 10**8]), st.integers(1, 70))
def test_a_serial_run_counts_every_pair_once(rows, groups, window, chunk):
    stream = Stream.of(rows, groups, 2, 0.02, rows + groups, chunk=chunk)
    serial = SerialJoin(Join(window), groups)
    counted = np.concatenate([[], *(serial.matches(chunk) for chunk in stream.rows().chunks())])
    newer = [new for _, new in stream.pairs(window)]
    assert counted.tolist() == np.bincount(newer, minlength=rows).tolist()


def two_sided(rows, span_s, seed=0, groups=8, workers=4):
    stream = Stream.of(rows, groups, workers, span_s, seed, neither=0.0, chunk=10**6)
    return replace(stream, times=np.sort(np.random.default_rng(seed).integers(0, int(span_s * TICKS_A_SECOND), rows)))


PLAIN = StageSettings(4, even_owners(4, 2), even_groups(8, 8), costs=Costs(service_s=1e-5, service_sd_s=0.0))


def test_a_match_costs_what_is_said():
    stream = replace(two_sided(400, 1.0), cost_s=np.full(400, 1e-5))
    runs = [simulate(replace(PLAIN, join=Join(50_000, match_s)), stream.rows()) for match_s in (0.0, 1e-4)]
    matches = len(stream.pairs(50_000))
    busy = [sum(((1 - one.idle) * (one.end_s - one.start_s)).sum() for one in run.intervals) for run in runs]
    assert runs[0].answers == runs[1].answers == matches > 100
    # Making a row is paid where its worker is busy, which is half a microsecond for some.
    assert busy[1] - busy[0] == pytest.approx(matches * 1e-4, abs=400 * 5e-7)


def test_what_moves_is_what_the_window_holds():
    """Rows come in order and are processed at once, so that what is held is what came in the last window."""
    stream = two_sided(3000, 3.0)
    join = Join(100_000)
    of = replace(PLAIN, join=join, state_tuples=10**6)
    one = assemble(of, stream.rows())
    one.stage.run(2.0)
    for partition in range(8):
        expected = np.count_nonzero(
            (stream.groups == partition) & (stream.times <= 2e6) & (stream.times > 1.9e6 - 1500)
        )
        held = one.stage.state_bytes()[partition] / of.costs.tuple_bytes
        assert abs(held - expected) <= 3
    scaler = AnyScaler(1, 4, np.random.default_rng(1))
    run = simulate(
        of, stream.rows(), actors=Actors(scaling=Scaling(scaler, AnyPlacement(8, np.random.default_rng(2)), 0.2))
    )
    assert len(run.moves) > 10
    moved = [one.state_bytes // of.costs.tuple_bytes for one in run.moves]
    assert max(moved) < 150
    assert len(set(moved)) > 5


def test_rows_that_nothing_matches_any_more_are_forgotten():
    stream = replace(two_sided(60_000, 6.0), chunk=500)
    stage = Stage(replace(PLAIN, join=Join(10_000)), stream.rows())
    stage.run(10.0)
    assert stage.drained
    assert stage.answers == simulate(replace(PLAIN, join=Join(10_000)), replace(stream, chunk=10**6).rows()).answers
    assert len(stage.arrays["joined"]) < 3000


def shed_at_random(part, stream, window=50_000):
    """Rows are shed with the same probability whatever a worker holds, each by its own draw."""
    factor = ShedFactor(1e-9, part, lambda beyond: np.zeros_like(beyond))
    of = replace(PLAIN, join=Join(window), overload=Overload(factor, 10**6, 100.0), seed=5)
    return simulate(of, stream.rows(), journal=10**5)


def test_recall_falls_with_the_square_of_what_is_kept():
    """Each side sheds for itself, so that a pair is there with the chance that both of its rows are."""
    stream = two_sided(20_000, 4.0, groups=8)
    whole = shed_at_random(0.0, stream)
    assert whole.census.shed == 0
    runs = [shed_at_random(part, stream) for part in (0.0, 0.1, 0.3, 0.5, 0.8, 0.95)]
    kept = [set(run.journal["number"].tolist()) for run in runs]
    assert all(after < before for before, after in pairwise(kept))
    recalls = [run.answers / whole.answers for run in runs]
    assert recalls == sorted(recalls, reverse=True)
    assert len(set(recalls)) == len(recalls)
    for run, recall in zip(runs, recalls, strict=True):
        share = run.census.shed / 20_000
        # Some 60,000 pairs, of which those of one row go together.
        assert recall == pytest.approx((1 - share) ** 2, abs=0.02)


def test_a_join_with_policies_that_scale_loses_no_answer():
    """The rate rises all the time."""
    stream = two_sided(1_500, 0.5, seed=3)
    times = ((stream.times / 5e5) ** 0.3 * 5e5).astype(np.int64)
    stream = replace(stream, times=times, cost_s=np.full(1_500, 2e-4))
    of = replace(PLAIN, join=Join(5_000, 2e-5))
    expected = digest(stream.pairs(5_000))
    for policy in (ScalingPolicy.THRESHOLDS, ScalingPolicy.DS2, ScalingPolicy.LAG):
        chosen = Chosen(signal=Signal.OFFERED, lag_rows=20)
        scaler = ElasticController(policy_of(policy, chosen), 1, 4, Patience(0.05, 0.1), Rebuild(limit=1.2))
        placement = AnyPlacement(8, np.random.default_rng(4))
        run = simulate(of, stream.rows(), actors=Actors(scaling=Scaling(scaler, placement, 0.02, start_s=0.01)))
        assert run.steps
        assert run.pairs == expected


def test_what_cannot_be_joined_is_refused():
    of, stream = replace(PLAIN, join=Join(10)), two_sided(10, 1.0)
    for wrong, said in (
        (lambda: Join(-1), "at least 0"),
        (lambda: Join(1, -1.0), "-1 s"),
        (lambda: replace(of, window=3), "own window"),
        (lambda: replace(of, router=Router.RIVER), "own window"),
        (lambda: simulate(of, Drawn(), 1.0), "a random source has none"),
        (lambda: DagSettings((of, PLAIN)), "does not support joins"),
    ):
        with pytest.raises(UsageError, match=said):
            wrong()
    for changes, said in (
        ({"sides": None}, "a side and a time for every row"),
        ({"sides": np.full(10, 2)}, "got 2"),
        ({"times": stream.times[::-1]}, "sort by time"),
        ({"numbers": np.arange(10)}, "rank"),
    ):
        chunk = replace(next(iter(stream.rows().chunks())), **changes)
        with pytest.raises(BadInput, match=said):
            simulate(of, Rows(lambda chunk=chunk: iter([chunk])))
