import numpy as np
import pytest
from hypothesis import given

from adapt.core.errors import UsageError
from adapt.core.flux.policies.recurring import PHASES, RecurringController, Seasons
from adapt.core.flux.policies.season import Season
from adapt.core.flux.policies.settling import SettlingController
from adapt.core.stage.movement.controller import Move, Round
from tests.core.flux.observations import observations, observed

DAY_S = 100.0


def noon(at_s, loads=((10, 10), (80, 10))):
    """A second of two workers with five partitions each: those of worker 0 are hot in the second half of a day."""
    hot, cold = loads[int(at_s % DAY_S >= DAY_S / 2)]
    return observed([1 - hot / 100, 1 - cold / 100], [0] * 5 + [1] * 5, [2 * hot] * 5 + [2 * cold] * 5, at_s=at_s + 1.0)


def days(controller, end_s):
    """What it decides second by second, as if nothing had moved."""
    return {at_s: tuple(controller.plan(noon(at_s))) for at_s in np.arange(0.0, end_s)}


def test_a_load_that_recurs_is_moved_before_it_comes():
    """ "the popularity of pages may vary depending on the time of day" (section 2.2)."""
    moved = days(RecurringController(SettlingController(), Season(DAY_S)), 2 * DAY_S)
    first, second = (min(at for at, moves in moved.items() if moves and at // DAY_S == day) for day in (0, 1))
    assert first >= DAY_S / 2, "nothing is known on the first day"
    assert DAY_S + 45 <= second < DAY_S + 50
    assert all(move.donor == 0 for moves in moved.values() for move in moves)


def test_a_season_found_later_is_used_from_then_on():
    reacts = days(RecurringController(SettlingController(), Season(DAY_S, np.inf)), 2 * DAY_S)
    knows = days(RecurringController(SettlingController(), Season(DAY_S, DAY_S)), 2 * DAY_S)
    later = days(RecurringController(SettlingController(), Season(DAY_S, 1.6 * DAY_S)), 2 * DAY_S)
    assert knows != reacts
    assert {at: later[at] for at in later if at < 150} == {at: reacts[at] for at in reacts if at < 150}


def test_moves_that_cost_more_than_they_save_are_dropped():
    controller = RecurringController(SettlingController(), Season(DAY_S))
    controller.collection_s(Round(0.15, (Move(0, 0, 1),), 1000.0))
    assert not any(days(controller, DAY_S).values())


@given(observations())
def test_the_first_season_is_balanced_as_by_the_reactive_policy(seen):
    """Or not at all, where moves do not pay."""
    reacts, recurs = (
        SettlingController().plan(seen),
        RecurringController(SettlingController(), Season(DAY_S)).plan(seen),
    )
    assert recurs in ((), reacts)


def test_load_is_learned_by_phase_and_old_seasons_are_forgotten():
    seasons = Seasons(DAY_S)
    assert seasons.rates(0, 10) is None
    for at_s in range(300):
        seasons.learn(at_s, at_s + 1, np.array([7, 100 if at_s % 100 >= 50 else 0]))
    np.testing.assert_allclose(seasons.rates(310, 320), [7, 0])
    np.testing.assert_allclose(seasons.rates(345, 355), [7, 50], rtol=0.05)
    for at_s in range(300, 900):
        seasons.learn(at_s, at_s + 1, np.array([7, 10]))
    np.testing.assert_allclose(seasons.rates(960, 970), [7, 10 + 90 / 2**6], rtol=0.1)
    assert seasons.phase_s == DAY_S / PHASES


def test_a_season_takes_time():
    with pytest.raises(UsageError, match="above 0"):
        Season(0.0)
