import pytest

from adapt.core.flux.policies.load_policy import LoadBalancing
from adapt.core.stage.movement.controller import Move, Round
from paper.flux.tuned import LEAST_S, MOST_S, TunedController
from tests.core.flux.observations import observed


class Script:
    """Asks for the moves it was given, round after round."""

    def __init__(self, *rounds):
        self._rounds = iter(rounds)

    def plan(self, _):
        return next(self._rounds)


OWNERS, TUPLES = [0, 0, 1], [30, 20, 10]
BUSY_DONOR = observed([0.0, 0.9], OWNERS, TUPLES)
BUSY_RECEIVER = observed([0.9, 0.0], [0, 1, 1], TUPLES)


def test_a_receiver_that_becomes_the_bottleneck_doubles_the_time():
    controller = TunedController(Script((Move(1, 0, 1),), ()), 1.0)
    controller.plan(BUSY_DONOR)
    before = controller.min_collection_s
    controller.plan(BUSY_RECEIVER)
    assert controller.min_collection_s == 2 * before


def test_a_receiver_as_busy_as_predicted_lowers_it():
    controller = TunedController(Script((Move(1, 0, 1),), ()), 1.0)
    controller.plan(BUSY_DONOR)
    before = controller.min_collection_s
    controller.plan(observed([0.5, 0.6], [0, 1, 1], TUPLES))
    assert controller.min_collection_s == pytest.approx(0.8 * before)


def test_a_partition_that_comes_back_doubles_it():
    controller = TunedController(Script((Move(1, 0, 1),), (), (Move(1, 1, 0),)), 1.0)
    quiet = observed([0.5, 0.5], OWNERS, TUPLES)
    controller.plan(quiet)
    controller.plan(quiet)
    before = controller.min_collection_s
    controller.plan(quiet)
    assert controller.min_collection_s == 2 * before


def test_it_stays_between_its_ends():
    there_and_back = [(Move(1, 0, 1),), (Move(1, 1, 0),)] * 20
    controller = TunedController(Script(*there_and_back, *[()] * 60), 0.15)
    for _ in range(40):
        controller.plan(BUSY_DONOR)
    assert controller.min_collection_s == MOST_S
    for _ in range(60):
        controller.plan(BUSY_DONOR)
    assert controller.min_collection_s == LEAST_S


def test_rounds_are_paced_as_in_the_paper():
    controller = TunedController(LoadBalancing(), 0.1)
    assert controller.collection_s(None) == 0.1
    assert controller.collection_s(Round(0.2, (Move(0, 0, 1),), 0.7)) == 0.7
    assert controller.collection_s(Round(0.8, (), 0.0)) == 0.4
