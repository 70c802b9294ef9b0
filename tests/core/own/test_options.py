"""Options of a user's class are typed by its annotations."""

from dataclasses import dataclass

import pytest

from adapt.core.errors import UsageError
from adapt.core.own.own_code import typed_options


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
    typed = typed_options("m:Tuned", Tuned, given, "--policy m:Tuned:")
    assert typed == (("workers", 4), ("share", 1.0), ("eager", True), ("label", "7"))
    assert typed_options("m:Plain", Plain, {"size": "5", "name": "5"}, "") == (("size", 5), ("name", "5"))


WRONG = {
    "unknown": (
        {"shar": "1"},
        "--policy m:Tuned:shar: m:Tuned has no such parameter; did you mean 'share'? Available: eager, label, share,"
        " workers",
    ),
    "a whole number": ({"workers": "4.5"}, "--policy m:Tuned:workers must be a whole number (got '4.5')"),
    "a flag": ({"workers": "4", "eager": "maybe"}, "--policy m:Tuned:eager must be true or false (got 'maybe')"),
    "none": ({}, "m:Tuned needs workers; give --policy m:Tuned:workers=VALUE"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_values_are_refused(case):
    given, sentence = WRONG[case]
    with pytest.raises(UsageError) as raised:
        typed_options("m:Tuned", Tuned, given, "--policy m:Tuned:")
    assert str(raised.value) == sentence
