"""Settings say once what they mean, how they are typed, and their range."""

import math

import pytest

from adapt.core.units.settings import SECONDS, Range, SettingError, knob, settings


@settings("pace", head="rate")
class Pace:
    """A rate with a pause."""

    rate: float = knob("How fast.", range=Range(above=0, at_most=9))
    pause_s: float = knob("How long not.", default=1.0, unit=SECONDS, range=Range(0))

    def __post_init__(self) -> None:
        if self.rate > 8 and self.pause_s:
            raise SettingError(Pace, "{rate} above 8 needs a {pause_s} of 0; {other} stays")


@settings()
class Slow(Pace):
    """The same, slower."""

    pause_s: float = 60.0


@settings()
class Walk:
    """Settings within settings."""

    pace: Pace = Pace(1)
    steps: int = knob("How many.", default=1, range=Range(1))

    def __post_init__(self) -> None:
        if self.steps > 3:
            raise SettingError(Walk, "{steps} of {pace} need a {rate} above 1; {pause_s} is {SettingError}")


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda: Pace(0), "rate must be above 0 and at most 9 (got 0)"),
        (lambda: Pace(math.nan), "rate must be above 0 and at most 9 (got nan)"),
        (lambda: Pace(1, -0.5), "pause_s must be at least 0 (got -500ms)"),
        (lambda: Pace(9), "rate above 8 needs a pause_s of 0; {other} stays"),
        (lambda: Slow(1, -1), "pause_s must be at least 0 (got -1s)"),
    ],
)
def test_a_setting_out_of_its_range_is_refused_by_its_name(made, says):
    with pytest.raises(SettingError) as refused:
        made()
    assert str(refused.value) == says


def test_a_new_default_keeps_the_setting():
    assert (Slow(1).pause_s, Pace(9, 0).rate, Range(0.5, below=1), str(Range(1, at_most=2**64 - 1))) == (
        60.0,
        9,
        Range(0.5, below=1),
        "from 1 to 2^64 - 1",
    )


def test_other_surfaces_spell_the_names_their_way():
    with pytest.raises(SettingError) as refused:
        Pace(9)
    assert refused.value.spelled(lambda kind, name: f"{kind.__name__}.{name}").startswith(
        "Pace.rate above 8 needs a Pace"
    )
    with pytest.raises(SettingError, match="steps of pace need a rate above 1; pause_s is") as refused:
        Walk(steps=4)
    assert refused.value.spelled(lambda kind, name: f"{kind.__name__}.{name}") == (
        "Walk.steps of Walk.pace need a Pace.rate above 1; Pace.pause_s is {SettingError}"
    )
