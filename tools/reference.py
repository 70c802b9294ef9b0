"""The reference, as the program itself says it: commands, options, exit codes, metrics, keys of files.

python -m tools.reference        # writes docs/reference.md
"""

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer

from adapt.cli.failures import EXIT_CODES
from adapt.cli.main import app
from adapt.cli.terminal.help import sections_of, usage_of
from adapt.core.check.metrics import metrics_tables
from adapt.core.fit.network import network_file
from adapt.core.fit.network.network import Input, Link, Node, Operator, Output
from adapt.core.fit.network.settings import SheddingSettings
from adapt.core.mechanisms import scenario_file
from adapt.core.mechanisms.scenarios import SCENARIOS, Scenario
from adapt.core.ordered.chain import chain_file
from adapt.core.ordered.chain.chain import Operator as ChainOperator
from adapt.core.ordered.chain.chain import Punctuations
from adapt.core.ordered.chain.names import FunctionName
from adapt.core.stage.conditions import faults
from adapt.core.stage.conditions.faults import DETECTION_S
from adapt.core.units.durations import duration_text

PAGE = Path(__file__).parent.parent / "docs" / "reference.md"

_HEAD = """# Reference

Made from the program by `python -m tools.reference`; a test holds that this page is what the program says now.

"""


_SHAPES = {
    (
        Input,
        "stream",
    ): "`{ column = NAME, equals = VALUE }`, `{ keys = [FIRST, END] }` or `{ bucket = NUMBER, of = BUCKETS }`",
    (
        Operator,
        "window",
    ): "`{ size = ..., slide = ..., group_by = COLUMN }`, times or tuples; of a join `[TUPLES, TUPLES]`",
    (Operator, "inputs"): "`[NAME, ...]`",
    (Scenario, "tau"): "`[TAU0, TAU1, TAU2, TAU3]`",
    (Scenario, "rebuild"): "`true`, or how often",
}
"""How values are written that are not a text, a number, a truth or a length of time."""


def reference() -> str:
    """The whole page."""
    return _HEAD + "\n".join([*_commands(), *_exit_codes(), *_metrics(), *_files()]).rstrip("\n") + "\n"


def _commands() -> Iterator[str]:
    yield "## Commands\n"
    root = typer.main.get_command(app)
    yield from _command(root, typer.Context(root, info_name="adapt", help_option_names=["-h", "--help"]))


def _command(command: Any, context: Any) -> Iterator[str]:
    """A command, and those of a group below it."""
    about, *rest = inspect.cleandoc(command.help or "").split("\n\n")
    yield f"### {context.command_path}\n\n{_one_line(about)}\n\nUsage: `{usage_of(command, context)}`\n"
    for paragraph in rest:
        example = paragraph.partition("Example: ")[2]
        yield f"```sh\n{example}\n```\n" if example else f"{_one_line(paragraph)}\n"
    for title, rows in sections_of(command, context).items():
        yield f"**{title}**\n"
        yield _rows(("name", "meaning"), [(f"`{name}`", _text(meaning)) for name, meaning in rows])
    for name in getattr(command, "commands", {}):
        yield from _command(command.commands[name], typer.Context(command.commands[name], context, info_name=name))


def _exit_codes() -> Iterator[str]:
    yield "## Exit codes\n"
    yield _rows(("code", "meaning"), [(str(code), meaning) for code, meaning in sorted(EXIT_CODES.items())])


def _metrics() -> Iterator[str]:
    yield "## Metrics of `adapt check`\n"
    for table in metrics_tables():
        yield f"**{table.title}**\n"
        heads = [column.name for column in table.columns]
        yield _rows(heads, [(f"`{row[0]}`", *(_text(str(cell or "")) for cell in row[1:])) for row in table.rows])


def _files() -> Iterator[str]:
    yield "## Files that users write\n"
    yield "### A query network\n\nTOML, for `adapt replay fit --network`.\n"
    of = {"node": Node, "input": Input, "operator": Operator, "output": Output, "link": Link}
    settings = [field.name.removesuffix("_us") for field in fields(SheddingSettings)]
    yield "**`[settings]`**\n"
    yield _keys(settings, SheddingSettings, {"tick": "tick_us"})
    for element, keys in network_file.FIELDS.items():
        yield f"**`[[{element}]]`**\n"
        yield _keys(keys, of[element], {"from": "source", "to": "target"})
    yield "### A chain\n\nTOML, for `adapt replay ordered --chain`.\n\n**`[[operator]]`**\n"
    yield _keys(chain_file.FIELDS["operator"], ChainOperator, {})
    yield "**`[punctuations]`**\n"
    yield _keys(chain_file.FIELDS["punctuations"], Punctuations, {"every": "every_us"})
    yield "**`function`** may be `MODULE:CALLABLE`, Python, or one of:\n"
    yield _rows(("name", "what it computes"), [(f"`{name}`", about) for name, about in _members(FunctionName)])
    yield "### Scenarios\n\nTOML, for `adapt replay compare --scenarios`; compared if nothing is said:"
    yield f"{_names(scenario.name for scenario in SCENARIOS)}.\n\n**`[[scenario]]`**\n"
    renamed = {
        "rebuild": "rebuilds",
        "scale_out_delay": "scale_out_delay_s",
        "cooldown": "cooldown_s",
        "lag": "lag_rows",
        "migrate": "migrating",
        "shed": "sheds",
        "tau": "thresholds",
    }
    yield _keys(scenario_file.FIELDS, Scenario, renamed)
    yield "### Faults\n\nJSON, for `adapt replay flux --faults`: `schema` (`adapt.faults/1`), `faults`, and perhaps"
    yield f"`detection_s` (default {DETECTION_S:g}). Each fault has `kind`, `site` and:\n"
    yield _rows(
        ("kind", "needs", "may have"), [(f"`{kind}`", *map(_names, keys)) for kind, keys in faults.KINDS.items()]
    )
    yield "### Limits\n\nTOML, for `adapt check --limits`: `limits`, a list of limits as `--limit` takes them, and"
    yield "perhaps `worse_by`, as `--worse-by`.\n"


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _keys(keys: Iterable[str], kind: type, renamed: Mapping[str, str]) -> str:
    """The keys of an element, with what the class says of each, which names it may be, and its default."""
    about, hints = _attributes(kind), get_type_hints(kind)
    defaults = {field.name: field.default for field in fields(kind)}
    rows = []
    for key in keys:
        name = renamed.get(key, key)
        names = [str(each) for option in _options(hints[name]) for each in option]
        notes = [_SHAPES.get((kind, key), ""), _names(names), _default(key, name, defaults[name])]
        rows.append((f"`{key}`", _text(about[name]) + "".join(f" [{note}]" for note in notes if note)))
    return _rows(("key", "meaning"), rows)


def _options(hint: Any) -> list[type[StrEnum]]:
    """The enumerations of a type."""
    kinds = [hint, *get_args(hint)]
    return [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, StrEnum)]


def _default(key: str, name: str, default: Any) -> str:
    if default is MISSING:
        return "required"
    if default is None or default == "":
        return ""
    if isinstance(default, bool):
        return f"default {str(default).lower()}"
    return f"default {duration_text(default) if name == f'{key}_us' else default}"


def _attributes(kind: type) -> dict[str, str]:
    """What a class's docstring says of its attributes."""
    section = re.search(r"^Attributes:\n((?:    .*\n?|\n)+)", inspect.cleandoc(kind.__doc__ or ""), re.MULTILINE)
    assert section is not None, f"{kind.__name__} does not say what its attributes are"
    entries = re.split(r"^    (?=\w+: )", section[1], flags=re.MULTILINE)
    return {name: _one_line(text) for name, _, text in (entry.partition(": ") for entry in entries if entry.strip())}


def _members(kind: type[StrEnum]) -> list[tuple[str, str]]:
    """The members of an enumeration, with the sentence that stands below each in its source."""
    found = re.findall(r'^    [A-Z0-9_]+ = "([^"]+)"\n(?:    """((?s:.*?))""")?', inspect.getsource(kind), re.MULTILINE)
    return [(name, _text(_one_line(about))) for name, about in found]


def _rows(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table and a blank line."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def _text(text: str) -> str:
    """Words as Markdown shows them; what would be a tag or emphasis is not."""
    said = re.sub(r"; None, ", "; if left out, ", re.sub(r"; None (?=where|if)", "; left out ", _one_line(text)))
    return said.replace("<", "&lt;").replace("*", r"\*")


def _one_line(text: str) -> str:
    return " ".join(text.split())


if __name__ == "__main__":
    PAGE.write_text(reference())
    print(f"wrote {PAGE}")
