"""Options of a user's class are typed by its annotations."""

from dataclasses import dataclass

import pytest

from adapt.core.errors import UsageError
from adapt.core.own.options import check_known, typed_options


@dataclass
class Tuned:
    workers: int
    share: float = 0.5
    eager: bool = False
    label: str | None = None


class Plain:
    def __init__(self, size=3, name="a", *more, **others):
        """Has no annotations."""


def test_values_have_the_type_of_the_annotation_or_of_the_default():
    given = {"label": "7", "eager": "yes", "workers": "4", "share": "1"}
    assert typed_options("m:Tuned", Tuned, given) == (("workers", 4), ("share", 1.0), ("eager", True), ("label", "7"))
    assert typed_options("m:Plain", Plain, {"size": "5", "name": "5", "other": "1"}) == (("size", 5), ("name", "5"))


WRONG = {
    "a whole number": ({"workers": "4.5"}, "--policy-option workers must be a whole number (got '4.5')"),
    "a flag": ({"workers": "4", "eager": "maybe"}, "--policy-option eager must be true or false (got 'maybe')"),
    "none": ({}, "m:Tuned needs workers; give --policy-option workers=VALUE"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_values_are_refused(case):
    given, sentence = WRONG[case]
    with pytest.raises(UsageError) as raised:
        typed_options("m:Tuned", Tuned, given)
    assert str(raised.value) == sentence


def test_an_option_of_no_class_is_refused():
    check_known({"share": "1"}, {"m:Plain": Plain, "m:Tuned": Tuned})
    with pytest.raises(UsageError, match="--policy-option shar: m:Tuned has no such parameter; did you mean 'share'"):
        check_known({"shar": "1"}, {"m:Tuned": Tuned})
    with pytest.raises(UsageError, match="a built-in policy has no such parameter"):
        check_known({"shar": "1"}, {})
