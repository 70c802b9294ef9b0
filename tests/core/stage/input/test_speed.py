"""Speed of a replay: what options give, and the speed-up that follows."""

import pytest

from adapt.core.errors import UsageError
from adapt.core.stage.input.speed import Speed, Tempo, only, speeds_of


@pytest.mark.parametrize(
    ("offered", "growth", "speedup", "speeds"),
    [
        (None, None, None, (Speed(offered=1.2),)),
        ("0.5,0.8, 1", None, None, (Speed(offered=0.5), Speed(offered=0.8), Speed(offered=1.0))),
        (None, "2x,10X,1.5", None, (Speed(growth=2.0), Speed(growth=10.0), Speed(growth=1.5))),
        (None, None, 20.0, (Speed(growth=20.0),)),
    ],
)
def test_options_give_speeds(offered, growth, speedup, speeds):
    assert speeds_of(offered, growth, speedup, 1.2) == speeds


@pytest.mark.parametrize(
    ("offered", "growth", "speedup", "said"),
    [
        ("0", None, None, r"--offered must be above 0 \(got 0\)"),
        ("inf", None, None, "--offered must be above 0"),
        ("0.5;0.8", None, None, r"--offered takes numbers such as 0.8,1.2 \(got '0.5;0.8'\)"),
        ("2x", None, None, "--offered takes numbers"),
        ("1,1.0", None, None, "--offered takes each value once"),
        (None, "x", None, "--growth takes numbers such as 2x,10x"),
        (None, "-2x", None, "--growth must be above 0"),
        (None, None, float("nan"), r"--speedup must be above 0 \(got nan\)"),
        ("1", None, 2.0, "--offered and --speedup both set the speed of the replay; omit one"),
        ("1", "2x", None, "--offered and --growth both"),
    ],
)
def test_what_is_no_speed_is_refused(offered, growth, speedup, said):
    with pytest.raises(UsageError, match=said):
        speeds_of(offered, growth, speedup, 1.2)


def test_one_speed_is_one():
    assert only((Speed(growth=2.0),), "adapt replay flux") == Speed(growth=2.0)
    with pytest.raises(UsageError, match=r"adapt replay flux takes one value of --growth \(got 2x,10x\)"):
        only((Speed(growth=2.0), Speed(growth=10.0)), "adapt replay flux")


def test_an_offered_load_is_reached_where_the_rate_makes_it():
    """A worker that is busy a hundredth of the time has 0.8 times its capacity at 80 times the rate."""
    assert Speed(offered=0.8).speedup(0.01) == pytest.approx(80)
    assert Speed(growth=3.0).speedup(0.01) == 3
    assert Speed(growth=3.0).speedup(None) == 3
    with pytest.raises(UsageError, match="all rows have the same timestamp"):
        Speed(offered=0.8).speedup(None)


def test_times_of_controllers_follow_a_replay_only_at_an_offered_load():
    given, offered = Tempo(20.0), Tempo(20.0, lasts_s=12.3456)
    assert (given.or_periods(30.0, 10), offered.or_periods(30.0, 10)) == (30.0, pytest.approx(1.23))
    assert (given.at_most_a_period(0.15), offered.at_most_a_period(0.15)) == (0.15, pytest.approx(0.123))
    assert offered.at_most_a_period(0.1) == 0.1
