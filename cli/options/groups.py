"""Option groups: dataclasses whose fields are options of a command."""

import inspect
from collections.abc import Callable
from copy import copy
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import wraps
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, TypeVar, cast, get_args, get_type_hints

import typer

from adapt.cli.terminal.help import show_all
from adapt.traces.locations.location import location

Command = TypeVar("Command", bound=Callable[..., Any])
Value = TypeVar("Value")

EXPERT = "For experts"
"""The heading over options that few users need."""


@dataclass(frozen=True)
class Several:
    """Marks an argument whose typed values become one.

    Attributes:
        of: Type of what is typed.
        joined: Makes the value.
    """

    of: type
    joined: Callable[[list[Any]], Any]


def grouped(command: Command) -> Command:
    """A command whose dataclass parameters become options, one per field.

    A field is a `setting`, or annotated as an option of typer (`Annotated[int, option("Workers.", "N")]`). A group may
    hold groups. Groups are frozen, so a command's groups are values that read and check themselves. A group's `PANEL`
    is the heading in the help of those of its options that name no other.
    """
    signature = inspect.signature(command)
    kinds = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    options: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        kind, default = kinds[name], parameter.default
        if is_dataclass(kind):
            options += _options_of(kind)
        elif isinstance(default, Field):
            options.append(_option_of(name, kind, default))
        else:
            options.append(parameter.replace(annotation=_typed(kind), kind=inspect.Parameter.KEYWORD_ONLY))
    options.append(_help_all(hidden=not hasattr(command, "short_help")))

    @wraps(command)
    def call(**values: Any) -> Any:
        return command(**{name: _made(kind, name, values) for name, kind in kinds.items()})

    call.__dict__["__signature__"] = inspect.Signature(options)
    call.__annotations__ = {option.name: option.annotation for option in options}
    call.__dict__["several"] = {name for name, kind in kinds.items() if _several(kind) is not None}
    return cast(Command, call)


def short_help(*options: str) -> Callable[[Command], Command]:
    """Select the options that `--help` shows, in order, by parameter name.

    `--help-all` shows every option.
    """

    def mark(command: Command) -> Command:
        command.__dict__["short_help"] = options
        return command

    return mark


def option(
    help: str,
    metavar: str | None = None,
    *names: str,
    panel: str | None = None,
    shown: bool = True,
    completion: Callable[..., list[str]] | None = None,
    min: float | None = None,
    max: float | None = None,
    **others: Any,
) -> Any:
    """An option of a command, for an annotation.

    Args:
        metavar: What stands for its value.
        names: How it is typed, if not as the field is named.
        panel: Its heading in the help, if not that of the group.
        shown: Whether the help shows its default.
        completion: What a shell offers for a value that was begun.
        others: For typer: `envvar`, a variable of the environment that stands for it; `parser`, what makes its value,
            where a ValueError says what is wrong with it after its name.
    """
    return typer.Option(
        *names,
        help=help,
        metavar=metavar,
        rich_help_panel=panel,
        show_default=shown,
        autocompletion=completion,
        min=min,
        max=max,
        **others,
    )


def setting(default: Value, help: str, metavar: str | None = None, *names: str, **others: Any) -> Value:
    """An option with a default, as a dataclass field or parameter."""
    return field(default=default, metadata={"option": option(help, metavar, *names, **others)})


def _several(kind: Any) -> Several | None:
    """How several typed values of a parameter become one; None if it takes one."""
    return next((each for each in get_args(kind) if isinstance(each, Several)), None)


def _typed(kind: Any) -> Any:
    """The annotation of what is typed for a parameter."""
    several = _several(kind)
    if several is None:
        return kind
    listed, (whole, *about) = list[several.of], get_args(kind)  # type: ignore[name-defined]
    return cast(Any, Annotated)[(listed | None if NoneType in get_args(whole) else listed, *about)]


def _help_all(*, hidden: bool) -> inspect.Parameter:
    """The option `--help-all`; hidden where `--help` shows every option."""
    about = typer.Option(
        "--help-all", help="Show every option and exit.", is_eager=True, callback=show_all, hidden=hidden
    )
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter("help_all", kind, default=False, annotation=Annotated[bool, about])


def _options_of(group: Any) -> list[inspect.Parameter]:
    """The options of a group, in the order of its fields."""
    hints = get_type_hints(group, include_extras=True)
    options: list[inspect.Parameter] = []
    for each in fields(group):
        kind = hints[each.name]
        options += _options_of(kind) if is_dataclass(kind) else [_option_of(each.name, kind, each, group)]
    return options


def _option_of(name: str, kind: Any, field: "Field[Any]", group: Any = None) -> inspect.Parameter:
    """The option of a field, under the heading of its group."""
    kind, about = (kind, field.metadata["option"]) if field.metadata else get_args(kind)
    about = copy(about)
    about.rich_help_panel = about.rich_help_panel or getattr(group, "PANEL", None)
    default = inspect.Parameter.empty if field.default is MISSING else field.default
    annotation = cast(Any, Annotated)[kind, about]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _made(kind: Any, name: str, values: dict[str, Any]) -> Any:
    """The value of one parameter: a group from its options, or the option itself, a path as a location."""
    if not is_dataclass(kind):
        value = values[name]
        if (several := _several(kind)) is not None:
            return several.joined([location(each) if several.of is Path else each for each in value]) if value else None
        if isinstance(value, list):
            return [location(each) if isinstance(each, Path) else each for each in value]
        return location(value) if isinstance(value, Path) else value
    hints = get_type_hints(kind, include_extras=True)
    return cast(Any, kind)(**{field.name: _made(hints[field.name], field.name, values) for field in fields(kind)})
