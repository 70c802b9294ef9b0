"""The functions of the commands; `functions.pyi` has their signatures."""

from typing import Any

from adapt.calling import COMMANDS, function, group


def __getattr__(name: str) -> Any:
    """Make a function, or a group of functions, on first use."""
    if name in COMMANDS:
        return function(name)
    if any(each.startswith(f"{name}.") for each in COMMANDS):
        return group(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
