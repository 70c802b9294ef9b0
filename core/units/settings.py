"""Settings, which say once what they mean and which values they take.

The options of the command line, their help and their refusals derive from these fields.
"""

import math
import re
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar, dataclass_transform, get_args

from adapt.core.errors import UsageError
from adapt.core.units.amounts import bytes_of, percent_of, seconds_of
from adapt.core.units.durations import duration_text, duration_us

Settings = TypeVar("Settings")


class SettingError(UsageError):
    """A refused setting.

    `{name}` in its text stands for the setting of this name, also of settings within these, as fields are called in
    Python; other surfaces spell them as their users do.
    """

    def __init__(self, settings: type, text: str) -> None:
        self.settings, self.text = settings, text
        super().__init__(self.spelled(lambda _, name: name))

    def spelled(self, name_of: Callable[[type, str], str]) -> str:
        """The text, with the names of its settings by this function."""
        owners = _owners(self.settings)

        def name(found: re.Match[str]) -> str:
            return name_of(owners[found[1]], found[1]) if found[1] in owners else found[0]

        return re.sub(r"\{(\w+)\}", name, self.text)


@dataclass(frozen=True, slots=True)
class Unit:
    """How an amount is typed and written."""

    read: Callable[[str], Any]  # raises UsageError, in words that follow the option
    write: Callable[[Any], str] = str
    suffix: str = ""  # of the names of fields in this unit, which is not typed
    none: str | None = None  # how no value is typed, if it can be


SECONDS = Unit(seconds_of, lambda value: duration_text(round(value * 1e6)) if value else "0", "_s")
MICROSECONDS = Unit(duration_us, lambda value: duration_text(value) if value else "0", "_us")
BYTES = Unit(lambda text: round(bytes_of(text)))
PERCENT = Unit(percent_of, lambda value: f"{100 * value:g}%")


@dataclass(frozen=True, slots=True)
class Range:
    """The values that a setting may have, all of them finite."""

    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None

    def __contains__(self, value: float) -> bool:
        return (
            math.isfinite(value)
            and (self.at_least is None or value >= self.at_least)
            and (self.above is None or value > self.above)
            and (self.at_most is None or value <= self.at_most)
            and (self.below is None or value < self.below)
        )

    def __str__(self) -> str:
        if self.at_least is not None and (self.at_most, self.below) != (None, None):
            end = f"below {self.below:g}" if self.at_most is None else _text(self.at_most)
            return f"from {_text(self.at_least)} to {end}"
        ends = ("at least", self.at_least), ("above", self.above), ("at most", self.at_most), ("below", self.below)
        return " and ".join(f"{end} {_text(value)}" for end, value in ends if value is not None)


ABOVE_0 = Range(above=0)


@dataclass(frozen=True, slots=True)
class Knob:
    """What a field says of its setting."""

    help: str  # what it means, in a sentence
    placeholder: str | None  # what stands for its value; None: its choices
    unit: Unit | None  # how it is typed, if not as its type
    typed: str  # its name where it is typed, if not that of the field
    range: Range | None  # None: every value
    panel: str | None = None  # its heading in the help, if not that of its class
    needs: str | tuple[str, ...] = ()  # settings without which it has no effect, such as `planner c-fit|d-fit`
    unless: str | tuple[str, ...] = ()  # settings with which it has none
    of: tuple[str, ...] = ()  # the heads that it is a key for; empty, all

    def name(self, field: str) -> str:
        """What is typed for a field."""
        return self.typed or field.removesuffix(self.unit.suffix if self.unit else "").strip("_").replace("_", "-")

    def check(self, settings: type, name: str, value: float) -> None:
        """Refuse a value out of the range."""
        if self.range is not None and value not in self.range:
            write = self.unit.write if self.unit and math.isfinite(value) else str
            got = _text(value) if write is str else write(value)
            finite = "finite and " if math.isinf(value) else ""
            raise SettingError(settings, f"{{{name}}} must be {finite}{self.range} (got {got})")


def knob(
    help: str,
    placeholder: str | None = None,
    *,
    default: Any = MISSING,
    unit: Unit | None = None,
    typed: str = "",
    range: Range | None = None,
    **others: Any,
) -> Any:
    """A field of settings; see `Knob`, whose last fields are the others."""
    said = Knob(help, placeholder, unit, typed, range, **others)
    return field(default=default, metadata={"knob": said, "of": said.of})


@dataclass_transform(frozen_default=True, field_specifiers=(knob, field))
def settings(
    option: str = "",
    *,
    head: str = "",
    panel: str | None = None,
    help: str = "",
    needs: str = "",
    unless: str | tuple[str, ...] = (),
    kw_only: bool = False,
) -> Callable[[type[Settings]], type[Settings]]:
    """Make a class a frozen dataclass that checks its knobs.

    Args:
        option: The one option that the fields are keys of; empty: each is an option.
        head: The field that is typed before the keys.
        panel: The heading of the options in the help.
        help: What the option says where it has no head.
        needs: Settings without which none of these has an effect.
        unless: Settings with which none has.
        kw_only: Whether Python takes them by name alone.
    """

    def made(kind: type[Settings]) -> type[Settings]:
        further = getattr(kind, "__post_init__", None)

        def check(self: Any) -> None:
            for each in _fields(type(self)):
                if "knob" in each.metadata and (value := getattr(self, each.name)) is not None:
                    each.metadata["knob"].check(type(self), each.name, value)
            if further is not None:
                further(self)

        inherited = {each.name: each for base in kind.__bases__ if is_dataclass(base) for each in fields(base)}
        for name in kind.__annotations__.keys() & inherited:  # a new default of the same setting
            if name in vars(kind) and not isinstance(vars(kind)[name], Field):
                setattr(kind, name, field(default=getattr(kind, name), metadata=inherited[name].metadata))
        given = {"__post_init__": check, "OPTION": option and f"--{option}", "HEAD": head, "PANEL": panel}
        given |= {"HELP": help, "NEEDS": needs, "UNLESS": unless}
        for name, value in given.items():
            if value:
                setattr(kind, name, value)
        return dataclass(frozen=True, slots=True, kw_only=kw_only)(kind)

    return made


def same(kind: type, name: str, *, default: Any = ..., **changed: Any) -> Any:
    """A field that is this setting of another class."""
    of = next(each for each in _fields(kind) if each.name == name)
    said = replace(of.metadata["knob"], **changed)
    return field(default=of.default if default is ... else default, metadata={"knob": said, "of": said.of})


def values_of(given: Any) -> dict[str, Any]:
    """Settings by name."""
    return {each.name: getattr(given, each.name) for each in _fields(type(given))}


def settings_from(given: Any, kind: type[Settings]) -> Settings:
    """Settings of another class with the fields of this one."""
    return kind(**{each.name: getattr(given, each.name) for each in _fields(kind)})


def _fields(kind: Any) -> tuple[Field[Any], ...]:
    return fields(kind)


def _owners(kind: Any) -> dict[str, type]:
    """Whose setting a name is: of this class, or of settings within it."""
    owners: dict[str, type] = {}
    for each in _fields(kind):
        for within in (each.type, *get_args(each.type)):
            owners = (_owners(within) if is_dataclass(within) else {}) | owners
    return owners | {each.name: kind for each in _fields(kind)}


def _text(value: float) -> str:
    if not isinstance(value, int):
        return f"{value:g}"
    power = value.bit_length()
    return f"2^{power} - 1" if power > 32 and value + 1 == 1 << power else f"{value:,}"
