import pytest

from adapt.core.errors import UsageError
from adapt.core.flux.policies.load_policy import LoadBalancing, PacedController
from adapt.core.stage.movement.controller import Move, Round

MOVES = (Move(0, 0, 1),)


@pytest.mark.parametrize(
    ("previous", "collection_s"),
    [
        (None, 0.1),
        (Round(0.2, MOVES, 0.7), 0.7),
        (Round(0.2, MOVES, 0.01), 0.1),
        (Round(0.8, (), 0.0), 0.4),
        (Round(0.15, (), 0.0), 0.1),
    ],
)
def test_collection_lasts_as_long_as_the_moves_and_is_halved_without_any(previous, collection_s):
    assert PacedController(LoadBalancing(), 0.1).collection_s(previous) == collection_s


def test_a_collection_takes_time():
    with pytest.raises(UsageError, match="above 0"):
        PacedController(LoadBalancing(), 0.0)
