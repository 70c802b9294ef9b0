"""Settings under which an option has an effect."""

import re
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from adapt.core.engines.names import Engine
from adapt.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class Effect:
    """Settings under which an option has an effect.

    A setting is an option that is given (`--live`), an option with one of several values (`--scheme hybrid|bounded`;
    of several values typed, one that fits is enough), a key (`--network:drops window`), or one of several settings
    (`--out or --html`). `--planner solver-w if online` applies only to the value `online` of the option itself; `*` is
    any value. `--policy none without --faults` excludes only while `--faults` is not given. An option that a command
    lacks is ignored, and one without a value is judged once it is `settled`.
    """

    option: str  # as typed, with its key if it is one
    needs: tuple[str, ...] = ()  # each must hold
    unless: tuple[str, ...] = ()  # none may hold

    @classmethod
    def of(cls, about: Any, option: str = "") -> "Effect":
        """What is declared of an option."""
        return cls(option, getattr(about, "needs", ()), getattr(about, "unless", ()))

    def check(self, values: Mapping[str, tuple[str, ...]]) -> None:
        """Refuse the option if it cannot act."""
        for setting in self.needs:
            needed, _, only = setting.partition(" if ")
            own = values.get(self.option, ())
            if only and not (own if only == "*" else {*own} & {*only.split("|")}):
                continue
            known = [each for each in needed.split(" or ") if each.split()[0] in values]
            if known and not any(_fitting(each, values) for each in known):
                wanted, got = " or ".join(known).replace("|", " or "), values[known[0].split()[0]]
                lack = f"with {known[0].split()[0]} {','.join(got)}" if got and len(known) == 1 else f"without {wanted}"
                said = f"{self.option} has no effect {lack}; give {wanted}, or omit {self.option}"
                raise UsageError(re.sub(r"(--[a-z-]+):", r"\1 ", said))
        for setting in self.unless:
            other, _, saving = setting.partition(" without ")
            name, *excluded = other.split()
            got = () if any(values.get(each) for each in saving.split(" or ")) else values.get(name, ())
            if got and (not excluded or all(each in excluded[0].split("|") for each in got)):
                typed = f"{name} {','.join(got)}" if excluded else name
                raise UsageError(f"{self.option} has no effect with {typed}; omit one of them")


def _fitting(setting: str, values: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether a setting holds, or may hold: also code of one's own, or no value yet."""
    name, *allowed = setting.split()
    got = values[name]
    if not allowed:
        return bool(got)
    return not got or any(each in allowed[0].split("|") or _is_own(each) for each in got)


def _is_own(name: str) -> bool:
    """Whether a name is `MODULE:NAME`."""
    return ":" in name and name not in Engine._value2member_map_


@dataclass(frozen=True, slots=True)
class Typed:
    """Effects of the given options, and values of all options."""

    effects: list[Effect]
    values: dict[str, tuple[str, ...]]

    def check(self) -> None:
        """Refuse an option that cannot act."""
        _now.set(self)
        for each in self.effects:
            each.check(self.values)


_now: ContextVar[Typed | None] = ContextVar("typed", default=None)


def settled(option: str, *values: str) -> None:
    """Check effects against a default value, or that of a file."""
    typed = _now.get()
    if typed is not None and typed.values.get(option) == ():
        typed.values[option] = values
        typed.check()
