"""Help pages: what a command is for, its example ready to copy, what it takes; as wide as the terminal."""

import inspect
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from typer.core import TyperCommand, TyperGroup

_INDENT = "  "
_WIDEST = 100
_WIDEST_NAME = 26


class HelpPage:
    """What has a help page of this house."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the page."""
        formatter.write(help_page(self, ctx))


class Command(HelpPage, TyperCommand):
    """A command whose help page is this house's."""


class Group(HelpPage, TyperGroup):
    """A group of commands whose help page is this house's; it lists them in the order in which they were added."""


def help_page(command: Any, ctx: Any) -> str:
    """The help of a command or a group."""
    about, *rest = inspect.cleandoc(command.help or "").split("\n\n")
    parts = [_wrapped(about), f"{_heading('Usage')} {usage_of(command, ctx)}", *map(_paragraph, rest)]
    parts += [_section(title, rows) for title, rows in sections_of(command, ctx).items()]
    return "\n\n".join([*parts, _wrapped(command.epilog)] if command.epilog else parts) + "\n"


def sections_of(command: Any, ctx: Any) -> dict[str, list[tuple[str, str]]]:
    """What a command takes, or a group has: names and explanations, by the heading that they stand under."""
    commands = [(name, command.get_command(ctx, name)) for name in getattr(command, "list_commands", lambda _: [])(ctx)]
    sections = {"Commands": [(name, inspect.cleandoc(each.help or "").split("\n\n")[0]) for name, each in commands]}
    for title, parameters in _panels(command.get_params(ctx)).items():
        sections[title] = [(_name(each), _about(each)) for each in parameters]
    return {title: rows for title, rows in sections.items() if rows}


def usage_of(command: Any, ctx: Any) -> str:
    """How a command is typed, without marks that an argument is repeated beyond its own."""
    usage = " ".join([ctx.command_path, *command.collect_usage_pieces(ctx)])
    return usage.replace("...]...", "...]").replace("...}...", "...").replace("{", "").replace("}", "")


def _paragraph(text: str) -> str:
    """A paragraph; an example stands on a line of its own that is never broken, ready to copy."""
    if not text.startswith("Example: "):
        return _wrapped(text)
    return f"{_heading('Example')}\n{_INDENT}{text.removeprefix('Example: ')}"


def _panels(parameters: Iterable[Any]) -> dict[str, list[Any]]:
    """Parameters by the heading they stand under."""
    panels: dict[str, list[Any]] = {"Arguments": [], "Options": []}
    for each in parameters:
        if not getattr(each, "hidden", False):
            usual = "Arguments" if each.param_type_name == "argument" else "Options"
            panels.setdefault(getattr(each, "rich_help_panel", None) or usual, []).append(each)
    return panels


def _name(parameter: Any) -> str:
    """How a parameter is typed: `-o, --out PLAN`."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    short_first = sorted(parameter.opts, key=lambda name: name.startswith("--"))
    names = ", ".join(short_first) + "".join(f" / {name}" for name in parameter.secondary_opts)
    return names if parameter.is_flag else f"{names} {_value(parameter)}"


def _value(parameter: Any) -> str:
    """What stands for an option's value; where it is one of some names, the help says which."""
    return str(parameter.metavar or ("NAME" if _choices(parameter) else parameter.name.upper().strip("_")))


def _choices(parameter: Any) -> str:
    """The names that an option may take, or nothing."""
    if parameter.is_flag or parameter.metavar:
        return ""
    kind = getattr(parameter, "type_descriptor", None)
    names = getattr(kind, "choices", None) if kind is not None else getattr(parameter.type, "choices", None)
    return ", ".join(str(getattr(name, "value", name)) for name in names or ())


def _about(parameter: Any) -> str:
    """What a parameter means, with what it may be and what it is if left out."""
    is_option = parameter.param_type_name == "option"
    choices = _choices(parameter) if is_option else ""
    default = parameter.default
    shown = parameter.show_default and default not in (None, "", [], ()) and not getattr(parameter, "is_flag", False)
    notes = [
        choices,
        f"default {getattr(default, 'value', default)}" if shown and not callable(default) else "",
        f"or ${parameter.envvar}" if isinstance(parameter.envvar, str) else "",
        "required" if parameter.required and is_option else "",
    ]
    noted = "; ".join(note for note in notes if note)
    return f"{parameter.help or ''}{f' [{noted}]' if noted else ''}"


def _section(title: str, rows: list[tuple[str, str]]) -> str:
    """A heading over names and explanations."""
    column = min(max(len(name) for name, _ in rows), _WIDEST_NAME)
    return "\n".join([_heading(title), *(line for name, about in rows for line in _row(name, about, column))])


def _row(name: str, about: str, column: int) -> Iterator[str]:
    """A name, and its explanation beside it, or under it where the name is long."""
    hanging = " " * (len(_INDENT) + column + 2)
    explained = textwrap.wrap(about, _width() - len(hanging), break_on_hyphens=False) or [""]
    if len(name) > column:
        yield f"{_INDENT}{name}"
    else:
        yield f"{_INDENT}{name:<{column}}  {explained.pop(0)}".rstrip()
    yield from (hanging + line for line in explained)


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(" ".join(text.split()), _width(), break_on_hyphens=False))


def _heading(text: str) -> str:
    """A heading, bold on a terminal that wants style."""
    wants_style = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return f"\x1b[1m{text}:\x1b[0m" if wants_style else f"{text}:"


def _width() -> int:
    return min(shutil.get_terminal_size().columns, _WIDEST)
