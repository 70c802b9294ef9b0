"""Speed of a replay: what options give, and the speed-up that follows."""

import pytest

from adapt.core.errors import UsageError
from adapt.core.stage.input.speed import Speed, Tempo, speeds_of


@pytest.mark.parametrize(
    ("offered", "speedup", "speeds"),
    [
        (None, None, (Speed(offered=1.2),)),
        ("0.5,0.8, 1", None, (Speed(offered=0.5), Speed(offered=0.8), Speed(offered=1.0))),
        (None, "2,10,1.5", (Speed(speedup=2.0), Speed(speedup=10.0), Speed(speedup=1.5))),
    ],
)
def test_options_give_speeds(offered, speedup, speeds):
    assert speeds_of(offered, speedup, 1.2) == speeds


@pytest.mark.parametrize(
    ("offered", "speedup", "said"),
    [
        ("0", None, r"offered must be above 0 \(got 0\)"),
        ("inf", None, "offered must be finite and above 0"),
        ("0.5;0.8", None, r"offered takes numbers such as 0.8,1.2 \(got '0.5;0.8'\)"),
        ("1,1.0", None, "offered takes each value once"),
        (None, "x", "speedup takes numbers such as 2,10"),
        (None, "nan", r"speedup must be above 0 \(got nan\)"),
        ("1", "2", "offered and speedup both set the speed of the replay; omit one"),
    ],
)
def test_what_is_no_speed_is_refused(offered, speedup, said):
    with pytest.raises(UsageError, match=said):
        speeds_of(offered, speedup, 1.2)


def test_an_offered_load_is_reached_where_the_rate_makes_it():
    """A worker that is busy a hundredth of the time has 0.8 times its capacity at 80 times the rate."""
    assert Speed(offered=0.8).speedup_at(0.01) == pytest.approx(80)
    assert Speed(speedup=3.0).speedup_at(0.01) == 3
    assert Speed(speedup=3.0).speedup_at(None) == 3
    with pytest.raises(UsageError, match="all rows have the same timestamp"):
        Speed(offered=0.8).speedup_at(None)


def test_times_of_controllers_follow_a_replay_only_at_an_offered_load():
    given, offered = Tempo(20.0), Tempo(20.0, lasts_s=12.3456)
    assert (given.or_periods(30.0, 10), offered.or_periods(30.0, 10)) == (30.0, pytest.approx(1.23))
    assert (given.at_most_a_period(0.15), offered.at_most_a_period(0.15)) == (0.15, pytest.approx(0.123))
    assert offered.at_most_a_period(0.1) == 0.1


def test_control_periods_of_a_replay_of_nanoseconds_are_no_shorter_than_moves_bear():
    """Three rows without cost last 0.34 us at an offered load; a move of state lasts milliseconds."""
    assert Tempo(1.0, 3.4e-7).or_periods(1.0, 1) == Tempo(1.0, 3.4e-7).at_most_a_period(1.0) == 1e-5
    assert Tempo(1.0, 50.0).or_periods(1.0, 1) == 0.5
