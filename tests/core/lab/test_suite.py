"""Every built-in policy passes the checks, and each rule has a policy that is caught breaking it."""

from contextlib import contextmanager, nullcontext

import pytest

from adapt.core.elastic.policies.names import ScalingPolicy
from adapt.core.elastic.policies.registry import policy_of
from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.flux.policies.registry import controller_of
from adapt.core.lab.adapters import OwnMoves, OwnScaling
from adapt.core.lab.move_histories import moves_subject
from adapt.core.lab.scale_histories import scaling_subject
from adapt.core.lab.suite import TooSlow, checked
from tests.core.lab import policies as written
from tests.core.lab.policies import own

CLAIRVOYANT = {FluxPolicy.NONE, FluxPolicy.OPTIMUM}


class Watch:
    """A stopwatch without a clock: decisions take what it is told."""

    def __init__(self, seconds=0.0):
        self.seconds = seconds

    def timed(self, decide):
        return decide(), self.seconds

    def elsewhere(self):
        return nullcontext()


def outcome(kind, watch=None):
    """The checks of a class of `policies`, by name."""
    subject = moves_subject if hasattr(kind, "moves") else scaling_subject
    made = (lambda: OwnMoves(own(kind)).plan) if hasattr(kind, "moves") else (lambda: OwnScaling(own(kind)).wanted)
    return {each.name: each for each in checked(subject(kind.__name__, made), watch or Watch()).checks}


@pytest.mark.parametrize("name", [each for each in FluxPolicy if each not in CLAIRVOYANT])
def test_built_in_policies_of_moves_pass(name):
    found = checked(moves_subject(name, lambda: controller_of(name).plan), Watch())
    assert [each.said for each in found.checks if each.passed is False] == []


@pytest.mark.parametrize("name", ScalingPolicy)
def test_built_in_policies_of_workers_pass(name):
    found = checked(scaling_subject(name, lambda: policy_of(name).wanted), Watch())
    assert [each.said for each in found.checks if each.passed is False] == []
    assert found.exit_code == 0


@pytest.mark.parametrize("name", [FluxPolicy.MEMORY, FluxPolicy.HYBRID, FluxPolicy.MEMORY_SEVERAL])
def test_policies_for_memory_are_held_to_it(name):
    found = checked(moves_subject(name, lambda: controller_of(name).plan), Watch())
    assert {each.name: each.passed for each in found.checks}["moves fit in memory"]


@pytest.mark.parametrize("kind", [written.Calm, written.Half])
def test_a_good_policy_passes_every_check(kind):
    assert all(each.passed for each in outcome(kind).values())


BROKEN = {
    written.UnknownPartition: ("moves are possible", "moves partition 1, but partitions are 0 to 0"),
    written.UnknownWorker: ("moves are possible", "moves partition 0 to worker 2, but workers are 0 to 1"),
    written.Negative: ("moves are possible", "moves partition -1, but partitions are"),
    written.Listed: ("moves are possible", "must return a mapping of partition to worker, such as {3: 0}"),
    written.Forgotten: ("moves are possible", "(got None)"),
    written.Named: ("moves are possible", "(got {'0': 1}, a dict)"),
    written.Raises: ("moves are possible", "IndexError: index 1 is out of bounds"),
    written.Writes: ("moves are possible", "ValueError: assignment destination is read-only"),
    written.Restless: ("rests at still load", "it acts in 30 of the last 30 rounds; round 91 moves partition 0 from"),
    written.ToTheDead: ("survives crashes", "which is down; workers that are up: "),
    written.OfFirstRound: ("survives crashes", "AssertionError (" + written.__file__),
    written.ToTheFull: ("moves fit in memory", "bytes left"),
    written.Dice: ("is deterministic", "the second run, on the same input"),
    written.NoWorkers: ("answers are possible", "workers must return a whole number from 1 (got 0)"),
    written.HalfAWorker: ("answers are possible", "(got 1.5, a float)"),
    written.Swings: ("rests at still load", "wants 2 instead of 3 workers"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_policy_is_caught_by_its_check(kind):
    check, sentence = BROKEN[kind]
    found = outcome(kind)
    assert found[check].passed is False
    assert sentence in found[check].said
    assert [each.name for each in found.values() if each.passed is False] == [check]


def test_a_slow_policy_is_caught_and_says_how_long_it_takes():
    found = outcome(written.Calm, Watch(2.5))
    assert [each.name for each in found.values() if each.passed is False] == ["decides in time"]
    assert found["decides in time"].said == "a decision takes 2.5 s; at most 1 s are allowed"


def test_a_decision_that_was_stopped_is_said():
    class Stops(Watch):
        def timed(self, decide):
            raise TooSlow

    found = outcome(written.Endless, Stops())
    assert found["decides in time"].said == "round 1: the decision did not end"


def test_the_second_run_is_elsewhere():
    place = ["here"]

    class Travels(Watch):
        @contextmanager
        def elsewhere(self):
            place.append("there")
            yield
            place.pop()

    class OfPlace:
        def moves(self, view):
            return {0: len(place) - 1} if view.time_s < 9 and view.up.all() else {}

    assert outcome(OfPlace, Travels())["is deterministic"].passed is False
