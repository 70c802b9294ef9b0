"""Option groups: dataclasses whose fields are options of a command."""

import inspect
from collections.abc import Callable
from copy import copy
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, TypeVar, cast, get_args, get_type_hints

import typer

Command = TypeVar("Command", bound=Callable[..., Any])

EXPERT = "For experts"
"""The heading over options that few users need."""


def grouped(command: Command) -> Command:
    """Let a command take option groups: each parameter that is a dataclass becomes the options of its fields.

    A field is annotated as an option of typer (`Annotated[int, option("Workers.", "N")]`) and has its default. A group
    may hold groups. Groups are frozen, so a command's groups are values that read and check themselves. A group's
    `PANEL` is the heading in the help of those of its options that name no other.

    Args:
        command: A function for `app.command`, without positional-only or variable parameters.
    """
    signature, hints = inspect.signature(command), get_type_hints(command, include_extras=True)
    kinds = {name: hints[name] for name in signature.parameters}
    options: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        options += (
            _options_of(kinds[name]) if is_dataclass(kinds[name]) else [parameter.replace(annotation=kinds[name])]
        )
    options = [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in options]

    @wraps(command)
    def call(**values: Any) -> Any:
        return command(**{name: _made(kind, name, values) for name, kind in kinds.items()})

    call.__dict__["__signature__"] = inspect.Signature(options)
    call.__annotations__ = {option.name: option.annotation for option in options}
    return cast(Command, call)


def option(
    help: str,
    metavar: str | None = None,
    *names: str,
    panel: str | None = None,
    shown: bool = True,
    completion: Callable[[str], list[str]] | None = None,
) -> Any:
    """An option for the field of a group.

    Args:
        help: What it means.
        metavar: What stands for its value.
        names: How it is typed, if not as the field is named.
        panel: Its heading in the help, if not that of the group.
        shown: Whether the help shows its default.
        completion: What a shell offers for a value that was begun.
    """
    return typer.Option(
        *names, help=help, metavar=metavar, rich_help_panel=panel, show_default=shown, autocompletion=completion
    )


def _options_of(group: Any) -> list[inspect.Parameter]:
    """The options of a group, in the order of its fields."""
    hints = get_type_hints(group, include_extras=True)
    options: list[inspect.Parameter] = []
    for field in fields(group):
        if is_dataclass(hints[field.name]):
            options += _options_of(hints[field.name])
            continue
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        kind, about = get_args(hints[field.name])
        about = copy(about)
        about.rich_help_panel = about.rich_help_panel or getattr(group, "PANEL", None)
        annotation = cast(Any, Annotated)[kind, about]
        options.append(
            inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        )
    return options


def _made(kind: Any, name: str, values: dict[str, Any]) -> Any:
    """The value of one parameter: a group from its options, or the option itself."""
    if not is_dataclass(kind):
        return values[name]
    hints = get_type_hints(kind, include_extras=True)
    return cast(Any, kind)(**{field.name: _made(hints[field.name], field.name, values) for field in fields(kind)})
