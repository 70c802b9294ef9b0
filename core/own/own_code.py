"""A class or function that a user wrote, with its options."""

import inspect
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import NoneType
from typing import Any, Generic, TypeAlias, TypeVar, get_args, get_type_hints

from adapt.core.errors import BadInput, UsageError, did_you_mean

OptionValue: TypeAlias = bool | int | float | str | None
"""The value of an option of a user's class."""


@dataclass(frozen=True, slots=True)
class OwnCode:
    """A class or function that a user wrote."""

    kind: str  # what it is for, such as policy
    name: str  # `module:name`
    file: str
    source: str  # SHA-256 of its source, and of the modules of its folder that it imports
    call: Callable[..., Any]  # the class or function
    options: tuple[tuple[str, OptionValue], ...] = ()  # values of its parameters

    @property
    def value(self) -> str:
        """The name, as of a built-in one."""
        return self.name

    def __str__(self) -> str:
        """The name."""
        return self.name

    def as_data(self) -> dict[str, Any]:
        """What decides its results, as JSON data."""
        module, _, name = self.name.partition(":")
        return {"module": module, "name": name, "options": dict(self.options), "source": self.source}

    def made(self) -> Any:
        """A new instance with its options."""
        try:
            return self.call(**dict(self.options))
        except Exception as error:
            given = ", ".join(f"{name}={value}" for name, value in self.options)
            raise UsageError(
                f"{self.kind} {self.name} cannot be made{given and f' with {given}'}: {self.said(error)}"
            ) from error

    def failed(self, error: Exception, on: str) -> BadInput:
        """An exception of the user's code as a sentence.

        Args:
            on: When it was called, such as "round 3 at 0.5 s".
        """
        return BadInput(f"{self.kind} {self.name} failed in {on}: {self.said(error)}")

    def said(self, error: Exception) -> str:
        """An exception with its place in the user's file."""
        frames = traceback.extract_tb(error.__traceback__)
        lines = [each.lineno for each in frames if each.filename == self.file]
        place = f" ({self.file}, line {lines[-1]})" if lines else ""
        text = " ".join(str(error).split())
        return f"{type(error).__name__}{text and f': {text}'}{place}"


def own_parameters(members: Iterable[object]) -> dict[str, Any]:
    """Users' own policies of a run, as parameters; empty without any."""
    own = [each.as_data() for each in members if isinstance(each, OwnCode)]
    return {"own_policies": own} if own else {}


_EXPECTED = {int: "a whole number", float: "a number", bool: "true or false"}
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}

OPTIONS = "policy_options"
"""The field of a scenario with the parameters of a user's own policy."""


def typed_options(
    name: str, call: Callable[..., Any], given: Mapping[str, str], before: str
) -> tuple[tuple[str, OptionValue], ...]:
    """Values of a class's parameters in their order; a function has none.

    Args:
        before: What is typed before a parameter, for messages.
    """
    parameters = parameters_of(call) if inspect.isclass(call) else {}
    unknown = next((each for each in given if each not in parameters), None)
    if unknown is not None:
        raise UsageError(f"{before}{unknown}: {name} has no such parameter{did_you_mean(unknown, parameters)}")
    missing = [each.name for each in parameters.values() if each.default is each.empty and each.name not in given]
    if missing:
        raise UsageError(f"{name} needs {' and '.join(missing)}; give {before}{missing[0]}=VALUE")
    kinds = _kinds_of(call, parameters)
    return tuple((each, _value(f"{before}{each}", given[each], kinds[each])) for each in parameters if each in given)


def parameters_of(call: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The named parameters of a class."""
    try:
        found = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):  # without a signature, as some compiled classes
        return {}
    return {
        each.name: each
        for each in found
        if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD, each.POSITIONAL_ONLY)
    }


def _kinds_of(call: Callable[..., Any], parameters: Mapping[str, inspect.Parameter]) -> dict[str, type]:
    """The type of each parameter: annotated, else of its default, else text."""
    try:
        hints = get_type_hints(call.__init__)
    except Exception:  # an annotation that names what is not imported says nothing
        hints = {}
    kinds: dict[str, type] = {}
    for name, parameter in parameters.items():
        hint = hints.get(name, type(parameter.default) if parameter.default not in (parameter.empty, None) else str)
        kinds[name] = next((each for each in get_args(hint) if each is not NoneType), hint)
    return kinds


def _value(name: str, text: str, kind: type) -> OptionValue:
    try:
        if kind is bool:
            return _FLAGS[text.lower()]
        return kind(text) if kind in (int, float) else text
    except (ValueError, KeyError):
        raise UsageError(f"{name} must be {_EXPECTED[kind]} (got {text!r})") from None


Policy = TypeVar("Policy", bound=StrEnum)
Parameters = TypeVar("Parameters")


@dataclass(frozen=True)  # a generic class with slots cannot be frozen in Python 3.11
class ChosenPolicy(Generic[Policy, Parameters]):
    """A policy, built in or a user's own, with its parameters."""

    policy: Policy | OwnCode
    parameters: Parameters  # of a built-in policy
    given: str = ""  # parameters as typed, which tell it from others of the same name

    def __str__(self) -> str:
        return f"{self.policy.value}:{self.given}" if self.given else self.policy.value


Chosen = TypeVar("Chosen", bound=ChosenPolicy[Any, Any])


def by_case(policies: Iterable[Chosen]) -> dict[str, Chosen]:
    """Policies by case: with parameters where several have the same name."""
    distinct = list(dict.fromkeys(policies))
    names = Counter(each.policy.value for each in distinct)
    return {each.policy.value if names[each.policy.value] == 1 else str(each): each for each in distinct}
