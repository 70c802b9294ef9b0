"""Tables as JSON, CSV and Markdown."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from adapt.core.labels import headed
from adapt.core.report.transposed import upright
from adapt.core.table import Cell, Table
from adapt.core.values import MISSING, is_numeric, plain, shown, visible

_LONGEST_CELL = 400
_UNQUOTABLE = re.compile(r"[\ud800-\udfff]")
_NEEDS_QUOTES = re.compile(r'[,"\r\n]|^[#\s]|\s$')
_FORMULA = re.compile(r"[=+\-@\t\r\uff0b\uff0d\uff1d\uff20]")
"""First characters of texts that spreadsheets run as formulas, including full-width ones."""
_NUMBER = re.compile(r"[-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_MARKDOWN_ACTIVE = re.compile(r"[\\`*\[\]|~]|(?<!\w)_|_(?!\w)")


def json_text(tables: Sequence[Table], document: Mapping[str, Any] | None = None, ascii_only: bool = False) -> str:
    """One JSON document, without NaN or Infinity.

    Control characters are written as JSON escapes, so keys are preserved and cannot act on a terminal.
    """
    text = json.dumps(_finite(document or tables_document(tables)), ensure_ascii=ascii_only, allow_nan=False, indent=2)
    return "\n".join(map(_json_line, text.split("\n"))) + "\n"


def tables_document(tables: Sequence[Table]) -> dict[str, Any]:
    """The document of a command without one of its own."""
    return {"schema": "adapt.tables/1", "tables": [_record(table) for table in tables]}


def csv_text(tables: Sequence[Table]) -> str:
    """Tables as CSV; several as blocks under `# title` lines.

    A null is an empty cell, an empty text is `""`. A lone surrogate becomes its escape. A text that a spreadsheet would
    run as a formula (it begins with one of ``= + - @``, a tab or a carriage return, and is not a number) gets a leading
    apostrophe, as OWASP recommends; JSON has the unchanged text.
    """
    blocks = [_csv_block(table) for table in tables]
    if len(blocks) == 1:
        return blocks[0]
    return "\n".join(f"# {visible(table.title)}\n{block}" for table, block in zip(tables, blocks, strict=True))


def markdown_text(tables: Sequence[Table], lead: Sequence[Sequence[str]] = ()) -> str:
    """Tables in Markdown with human-readable values, after the leading paragraphs."""
    told = [
        f"### {_markdown(visible(heading))}\n\n" + "".join(f"- {_markdown(visible(each))}\n" for each in sentences)
        for heading, *sentences in lead
    ]
    return "\n".join([*told, *(_markdown_block(upright(table)) for table in tables)])


def _record(table: Table) -> dict[str, Any]:
    columns = [{"name": c.name, "kind": str(c.kind), "unit": c.unit, "about": c.about} for c in table.columns]
    return {"title": table.title, "columns": columns, "rows": table.records(), "note": table.note}


def _finite(value: Any) -> Any:
    """The value for JSON: non-finite numbers become null, numpy scalars Python numbers."""
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if value is None or isinstance(value, (str, int, float)):
        return plain(value)
    if hasattr(value, "item"):
        return _finite(value.item())
    raise TypeError(f"a result has a {type(value).__name__}, which JSON does not support: {value!r}")


def _json_line(line: str) -> str:
    return line if line.isprintable() else "".join(map(_json_character, line))


def _json_character(character: str) -> str:
    if character.isprintable() or visible(character) == character:
        return character
    code = ord(character)
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\u{0xD800 + (code - 0x10000 >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def _csv_block(table: Table) -> str:
    lines = [",".join(_csv_cell(column.name) for column in table.columns)]
    # A row with a single null would be a blank line, which readers skip.
    lines += [",".join(map(_csv_cell, row)) or '""' for row in table.rows]
    return "\n".join(lines) + "\n"


def _csv_cell(cell: Cell) -> str:
    cell = plain(cell)
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if not isinstance(cell, str):
        return repr(cell)
    text = _UNQUOTABLE.sub(lambda found: visible(found[0]), cell)
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        text = f"'{text}"
    return '"' + text.replace('"', '""') + '"' if not text or _NEEDS_QUOTES.search(text) else text


def _markdown_block(table: Table) -> str:
    heads = [_markdown(headed(column)) for column in table.columns]
    rules = ["---:" if is_numeric(column.kind) else "---" for column in table.columns]
    pairs = [zip(row, table.columns, strict=True) for row in table.rows]
    rows = [[_markdown(shown(cell, column, _LONGEST_CELL)) for cell, column in row] for row in pairs]
    lines = [f"### {_markdown(visible(table.title))}", "", *(f"| {' | '.join(row)} |" for row in (heads, rules, *rows))]
    return "\n".join(lines + (["", _markdown(visible(table.note))] if table.note else [])) + "\n"


def _markdown(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKDOWN_ACTIVE.sub(lambda found: "\\" + found[0], text) or MISSING
