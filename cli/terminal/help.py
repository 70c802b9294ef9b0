"""Help pages, in short and in full."""

import inspect
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from adapt.cli.terminal.effect import Effect
from adapt.cli.terminal.output import written_out
from adapt.core.errors import UsageError

_INDENT = "  "
_WIDEST = 100
_WIDEST_NAME = 26


_EXAMPLE = "Example: "
_FIRST_SENTENCE = re.compile(r"(?<=\.) (?=[A-Z])")


@dataclass(frozen=True)
class Key:
    """A key of an option."""

    name: str  # as typed
    of: tuple[str, ...]  # the heads of the option that it is for; empty, all
    parameter: Any  # its type, help and default, as those of an option
    effect: Effect  # when it acts

    @property
    def spelled(self) -> str:
        """The key with a placeholder of its value."""
        value = "" if self.parameter.is_flag else f"={value_of(self.parameter)}"
        return f"{''.join(f'{head}:' for head in self.of[:1])}{self.name}{value}"

    @property
    def about(self) -> str:
        """Its help, choices, default, and heads."""
        of = ", ".join(self.of)
        return f"{_about(self.parameter)}{f' [{of}]' if len(self.of) > 1 else ''}"


def keyed(command: Any) -> dict[str, Callable[[], list[Key]]]:
    """The options of a command that have keys, with these."""
    return getattr(getattr(command, "callback", None), "keyed", {})


class HelpPage:
    """Anything with a help page in this layout."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the page."""
        formatter.write(help_page(self, ctx))

    def get_help_option(self: Any, ctx: Any) -> Any:
        """The option `--help`, whose page goes to stdout as any result does."""
        option = super().get_help_option(ctx)  # type: ignore[misc] # of the class that it is mixed into
        if option is not None:
            option.callback = lambda ctx, _, asked: show_page(ctx, asked)
        return option


class GivenOnce(TyperCommand):
    """Options or keys, each of one value given at most once."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments and refuse null bytes and second values."""
        if any("\0" in each for each in args):
            raise UsageError("an argument has a null byte, which no name or value has; remove it")
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for each in given:
            if not each.multiple and each.param_type_name == "option" and given.count(each) > 1:
                raise UsageError(f"{max(each.opts, key=len)} is given twice, and has one value; omit one")
        return super().parse_args(ctx, args)


class Command(HelpPage, GivenOnce):
    """A command with a short page (`--help`) and a full one (`--help-all`).

    It refuses an option that has no effect.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words of a command line."""
        rest = super().parse_args(ctx, args)
        getattr(self.callback, "check_effects", lambda _: None)(ctx)
        return rest


class Group(HelpPage, TyperGroup):
    """A group of commands, listed in the order added."""


def help_page(command: Any, ctx: Any, *, whole: bool = False) -> str:
    """The short or full help page of a command or group."""
    about, *rest = inspect.cleandoc(command.help or "").split("\n\n")
    parts = [_wrapped(about), f"{_heading('Usage')} {usage_of(command, ctx)}"]
    short = () if whole else _short_options(command)
    parts += [_paragraph(each) for each in rest if not short or each.startswith(_EXAMPLE)]
    parts += [_section(title, rows) for title, rows in sections_of(command, ctx, short).items()]
    if short:
        named = [each for each in command.params if each.param_type_name == "option"]
        parts.append(_wrapped(f"{len(named) + 1 - len(short)} more options: {ctx.command_path} --help-all"))
    return "\n\n".join([*parts, _wrapped(command.epilog)] if command.epilog else parts) + "\n"


def sections_of(command: Any, ctx: Any, short: Sequence[str] = ()) -> dict[str, list[tuple[str, str]]]:
    """Rows of names and explanations by heading: arguments and options, or commands.

    Args:
        short: The options to show, in one section, with their first sentences; all if empty.
    """
    sections: dict[str, list[tuple[str, str]]] = {}
    for name in getattr(command, "list_commands", lambda _: [])(ctx):
        each = command.get_command(ctx, name)
        heading = getattr(each, "rich_help_panel", None)
        about = inspect.cleandoc(each.help or "").split("\n\n")[0]
        sections.setdefault(heading if isinstance(heading, str) else "Commands", []).append((name, about))
    parameters = [each for each in command.get_params(ctx) if not getattr(each, "hidden", False)]
    if short:
        arguments = [each for each in parameters if each.param_type_name == "argument"]
        options = [each for name in short for each in parameters if each.name == name]
        sections["Arguments"] = [(_name(each), _about(each)) for each in arguments]
        sections["Options"] = [(_name(each), _about(each, short=True)) for each in options]
    else:
        for title, panel in _panels(parameters).items():
            sections[title] = [(_name(each), _about(each)) for each in panel]
        for option, keys in keyed(command).items():
            sections[f"Keys of {option}"] = [(key.spelled, key.about) for key in keys()]
    return {title: rows for title, rows in sections.items() if rows}


def _short_options(command: Any) -> Sequence[str]:
    """The options that `--help` shows; empty: all."""
    return tuple(getattr(getattr(command, "callback", None), "short_help", ()))


def show_page(ctx: typer.Context, asked: bool, *, whole: bool = False) -> None:
    """Print the short or full help page and exit, if requested."""
    if asked and not ctx.resilient_parsing:
        with written_out():
            sys.stdout.write(help_page(ctx.command, ctx, whole=whole))
        raise typer.Exit


def show_all(ctx: typer.Context, asked: bool) -> None:
    """Print the full help page and exit, if requested."""
    show_page(ctx, asked, whole=True)


def usage_of(command: Any, ctx: Any) -> str:
    """The usage line of a command, without redundant marks of repetition."""
    usage = " ".join([ctx.command_path, *command.collect_usage_pieces(ctx)])
    return usage.replace("...]...", "...]").replace("...}...", "...").replace("{", "").replace("}", "")


def _paragraph(text: str) -> str:
    """A wrapped paragraph; an example keeps its line, ready to copy."""
    if not text.startswith(_EXAMPLE):
        return _wrapped(text)
    return f"{_heading('Example')}\n{_INDENT}{text.removeprefix(_EXAMPLE)}"


def _panels(parameters: Iterable[Any]) -> dict[str, list[Any]]:
    """Parameters by heading."""
    panels: dict[str, list[Any]] = {"Arguments": [], "Options": []}
    for each in parameters:
        if not getattr(each, "hidden", False):
            usual = "Arguments" if each.param_type_name == "argument" else "Options"
            panels.setdefault(getattr(each, "rich_help_panel", None) or usual, []).append(each)
    return panels


def _name(parameter: Any) -> str:
    """A parameter as typed: `-o, --out PLAN`."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    shown = {name.startswith("--"): name for name in reversed(parameter.opts)}  # the first of each kind
    names = ", ".join(sorted(shown.values(), reverse=True)) + "".join(f" / {name}" for name in parameter.secondary_opts)
    return names if parameter.is_flag else f"{names} {value_of(parameter)}"


def value_of(parameter: Any) -> str:
    """The placeholder of an option's value."""
    return str(parameter.metavar or ("NAME" if choices_of(parameter) else parameter.name.upper().strip("_")))


def choices_of(parameter: Any) -> str:
    """The choices of an option, or empty."""
    if parameter.is_flag or parameter.metavar:
        return ""
    kind = getattr(parameter, "type_descriptor", None)
    names = getattr(kind, "choices", None) if kind is not None else getattr(parameter.type, "choices", None)
    return ", ".join(str(getattr(name, "value", name)) for name in names or ())


def _about(parameter: Any, *, short: bool = False) -> str:
    """The help of a parameter, with choices and default; if short, its first sentence and default."""
    is_option = parameter.param_type_name == "option"
    choices = choices_of(parameter) if is_option else ""
    default = parameter.default
    shown = parameter.show_default and default not in (None, "", [], ()) and not getattr(parameter, "is_flag", False)
    notes = [
        choices,
        f"default {getattr(default, 'value', default)}" if shown and not callable(default) else "",
        f"or ${parameter.envvar}" if isinstance(parameter.envvar, str) else "",
        "required" if parameter.required and is_option else "",
    ]
    noted = "; ".join(note for note in (notes[1:] if short else notes) if note)
    about = str(parameter.help or "")
    about = f"{_FIRST_SENTENCE.split(about)[0].rstrip('.')}." if short and about else about
    return f"{about}{f' [{noted}]' if noted else ''}"


def _section(title: str, rows: list[tuple[str, str]]) -> str:
    """A heading with its rows."""
    column = min(max(len(name) for name, _ in rows), _WIDEST_NAME)
    return "\n".join([_heading(title), *(line for name, about in rows for line in _row(name, about, column))])


def _row(name: str, about: str, column: int) -> Iterator[str]:
    """A name and its explanation, which begins on the next line after a long name."""
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
    """A heading, bold on a terminal with styles."""
    wants_style = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return f"\x1b[1m{text}:\x1b[0m" if wants_style else f"{text}:"


def _width() -> int:
    return min(shutil.get_terminal_size().columns, _WIDEST)
