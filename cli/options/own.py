"""Policies of a replay: built in, or a user's own class."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from adapt.cli.options.groups import setting, typed_name
from adapt.core.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from adapt.core.own.own_code import OwnCode

Named = TypeVar("Named", bound=StrEnum)

CLASS = "MODULE:CLASS is your own class, with its parameters as keys."


class PolicyTyped(Protocol):
    """A policy as typed: its name, and parameters of a user's class."""

    @property
    def name(self) -> str:
        """As typed."""

    @property
    def own(self) -> Mapping[str, str]:
        """As typed, by name."""


@dataclass(frozen=True, slots=True)
class OwnPolicy:
    """A policy class of the user's own with its parameters."""

    OPTION: ClassVar[str] = "--policy"
    HEAD: ClassVar[str] = "name"
    OWN: ClassVar[str] = "own"
    BUILT_IN: ClassVar[tuple[str, ...]] = ()
    name: str = setting(
        "", "Also compare your own policy class, with its parameters as keys; repeatable.", "MODULE:CLASS"
    )
    own: Mapping[str, str] = field(default_factory=dict)


def policies(known: type[Named], typed: Sequence[PolicyTyped]) -> "tuple[Named | OwnCode, ...]":
    """Policies by name, built in or users' own."""
    from adapt.traces.own.modules import offered, own_codes

    built_in = {each.value: each for each in known}
    others = [each for each in typed if each.name not in built_in]
    installed = offered("policy") if any(":" not in each.name for each in others) else []
    for each in others:
        if ":" not in each.name and each.name not in installed:
            hint = did_you_mean(each.name, [*built_in, *installed])
            raise UsageError(f"--policy has no choice {each.name!r}{hint}; or give MODULE:CLASS")
    own = iter(own_codes("policy", [(each.name, each.own) for each in others]))
    return tuple(built_in[each.name] if each.name in built_in else next(own) for each in typed)


def given(typed: Any) -> str:
    """Parameters of a policy as typed, in the order of the keys."""
    values = {each.name: (getattr(typed, each.name), each.default) for each in fields(typed)}
    del values["name"], values["own"]
    changed = {
        typed_name(type(typed), name).rpartition(" ")[2]: value
        for name, (value, default) in values.items()
        if value != default
    }
    shown = {name: f"{value:g}" if isinstance(value, float) else value for name, value in changed.items()}
    return ",".join(f"{name}={value}" for name, value in (shown | dict(typed.own)).items())
