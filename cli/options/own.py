"""Policies by name: built in, or a user's own class."""

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar

from adapt.cli.options import completion
from adapt.cli.options.groups import option
from adapt.core.elastic.policies.names import ScalingPolicy
from adapt.core.errors import UsageError, did_you_mean
from adapt.core.flux.policies.names import FluxPolicy

if TYPE_CHECKING:
    from adapt.core.own.own_code import OwnCode

Named = TypeVar("Named", bound=StrEnum)

PolicyOptionsOption: TypeAlias = Annotated[
    list[str] | None, option("Parameter of your own policy class; repeatable.", "NAME=VALUE", "--policy-option")
]


def completed(known: Iterable[str]) -> Callable[[str], list[str]]:
    """Completion of the names of built-in policies."""
    return completion.of_schemes([str(each) for each in known])


def given_options(texts: Sequence[str] | None, name: str = "--policy-option") -> dict[str, str]:
    """Parameters of users' classes, as typed.

    Raises:
        UsageError: One is not of the form NAME=VALUE.
    """
    found = {}
    for text in texts or ():
        parameter, equals, value = text.partition("=")
        if not (parameter.isidentifier() and equals):
            raise UsageError(f"{name} takes NAME=VALUE, such as threshold=1.5 (got {text!r})")
        found[parameter] = value
    return found


def policies(known: type[Named], names: Sequence[str], options: Sequence[str] | None) -> "tuple[Named | OwnCode, ...]":
    """Policies by name, built in or users' own.

    Raises:
        UsageError: One does not exist or cannot be imported, or an option does not fit.
    """
    from adapt.traces.own.modules import offered, own_codes

    built_in = {each.value: each for each in known}
    others = [name for name in dict.fromkeys(names) if name not in built_in]
    installed = offered("policy") if any(":" not in name for name in others) else []
    for name in others:
        if ":" not in name and name not in installed:
            known_names = [*built_in, *installed]
            raise UsageError(f"--policy has no choice {name!r}{did_you_mean(name, known_names)}; or give MODULE:CLASS")
    own = own_codes("policy", others, given_options(options))
    return tuple(built_in[name] if name in built_in else own[name] for name in names)


def any_policy(name: str, options: Sequence[str] | None) -> "FluxPolicy | ScalingPolicy | OwnCode":
    """A policy by name, of moves or of the number of workers.

    Raises:
        UsageError: It does not exist or cannot be imported, or an option does not fit.
    """
    if name in list(ScalingPolicy):
        return ScalingPolicy(name)
    (found,) = policies(FluxPolicy, [name], options)
    return found
