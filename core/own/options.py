"""Parameters of a user's class, typed by their annotations."""

import inspect
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, get_args, get_type_hints

from adapt.core.errors import UsageError, did_you_mean
from adapt.core.own.own_code import OptionValue

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
