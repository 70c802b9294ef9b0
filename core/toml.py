"""Typed fields of TOML files; errors name element and line."""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from adapt.core.errors import BadInput, did_you_mean

Choice = TypeVar("Choice", bound=StrEnum)
Value = TypeVar("Value")

_HEADER = re.compile(r"\s*\[{1,2}\s*(\w+)\s*\]{1,2}")
_FIELD = re.compile(r"\s*(\w+)\s*=\s*(?:[\"'](.*?)[\"'])?")


def document_of(text: str, what: str) -> dict[str, Any]:
    """Parse TOML text.

    Args:
        what: What the text is, with its verb, for messages.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{what} not valid TOML: {error}") from None


def versioned_document(text: str, schema: str, command: str) -> dict[str, Any]:
    """Parse TOML text that names its schema.

    Args:
        command: The command that writes such files.
    """
    document = document_of(text, "it is")
    if document.get("schema") != schema:
        found = document.get("schema")
        raise BadInput(f'it must begin with schema = "{schema}" (got {found!r}); write it with {command}')
    return document


class Element:
    """One table of the file, with typed access to its fields."""

    def __init__(
        self, where: str, fields: Mapping[str, Any], known: Sequence[str], faults: list[str] | None = None
    ) -> None:
        """A table, its name in messages, and its allowed fields.

        Args:
            faults: Collects what is wrong; None: the first fault is raised.
        """
        self.where, self._fields, self._faults = where, fields, faults
        self._collected(lambda: only(where, fields, known), None)

    def text(self, name: str) -> str:
        """A required text."""
        return self.read(name, text_of, "?")

    def text_or_none(self, name: str) -> str | None:
        """An optional text."""
        return self.text(name) if name in self._fields else None

    def number(self, name: str, default: float | None = None) -> float:
        """A number, required without default."""
        if default is not None and name not in self._fields:
            return default
        return self.read(name, number_of, 1.0)

    def number_or_none(self, name: str) -> float | None:
        """An optional number."""
        return self.number(name) if name in self._fields else None

    def whole(self, name: str, default: int) -> int:
        """An optional integer."""
        return self.read(name, _whole_of, default) if name in self._fields else default

    def truth(self, name: str, default: bool) -> bool:
        """An optional boolean."""
        return self.read(name, _truth_of, default) if name in self._fields else default

    def choice(self, name: str, kinds: type[Choice], default: Choice | None = None) -> Choice:
        """A field with one of several names, required without default."""
        if default is not None and name not in self._fields:
            return default

        def kind_of(where: str, name: str, value: Any) -> Choice:
            text = text_of(where, name, value)
            if text not in [str(kind) for kind in kinds]:
                raise BadInput(f"{where}: there is no {name} {text!r}{did_you_mean(text, kinds)}")
            return kinds(text)

        return self.read(name, kind_of, default or next(iter(kinds)))

    def get(self, name: str) -> Any:
        """A field of any type; None if omitted."""
        return self._fields.get(name)

    def read(self, name: str, parse: Callable[[str, str, Any], Value], fallback: Value) -> Value:
        """A required field as `parse` gives it.

        Args:
            parse: Takes the element's name, the field's name and its value; raises BadInput.
            fallback: Where faults are collected: what takes the place of an invalid value.
        """

        def given() -> Value:
            if name not in self._fields:
                raise BadInput(f"{self.where} has no {name}; add {name} = ...")
            return parse(self.where, name, self._fields[name])

        return self._collected(given, fallback)

    def _collected(self, read: Callable[[], Value], fallback: Value) -> Value:
        try:
            return read()
        except BadInput as error:
            if self._faults is None:
                raise
            self._faults.append(str(error))
            return fallback


def elements(document: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    """The tables of a kind; empty if omitted."""
    found = document.get(kind, [])
    if not isinstance(found, list) or not all(isinstance(element, dict) for element in found):
        raise BadInput(f"{kind} must be a list of tables; write each as [[{kind}]] with its fields below")
    return found


def called(kind: str, fields: Mapping[str, Any]) -> str:
    """The name of an element in messages."""
    name = fields.get("name")
    return f"{kind} {name!r}" if isinstance(name, str) else f"one [[{kind}]]"


def only(where: str, fields: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuse unknown fields."""
    for name in fields:
        if name not in known:
            raise BadInput(f"{where} has an unknown field {name!r}{did_you_mean(name, known)}")


def number_of(where: str, name: str, value: Any) -> float:
    """A required number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput(f"{where}: {name} must be a number (got {value!r})")
    return float(value)


def text_of(where: str, name: str, value: Any) -> str:
    """A required text."""
    if not isinstance(value, str):
        raise BadInput(f"{where}: {name} must be a text in quotes (got {value!r})")
    return value


def _whole_of(where: str, name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadInput(f"{where}: {name} must be an integer (got {value!r})")
    return value


def _truth_of(where: str, name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise BadInput(f"{where}: {name} must be true or false (got {value!r})")
    return value


@dataclass(frozen=True, slots=True)
class _Block:
    """One table of the file: its line, and line and text of its fields."""

    kind: str
    line: int
    fields: dict[str, tuple[int, str]]

    def names(self) -> tuple[str, ...]:
        """How a fault may begin that is about this table."""
        if self.kind == "link":
            ends = (self.fields.get(end, (0, "?"))[1] for end in ("from", "to"))
            return (f"link '{' to '.join(ends)}'",)
        if "name" not in self.fields:
            return (self.kind if self.kind == "settings" else f"one [[{self.kind}]]", f"[{self.kind}]")
        name = f"'{self.fields['name'][1]}'"
        merged = (f"input or operator {name}",) if self.kind in ("input", "operator") else ()
        return (f"{self.kind} {name}", *merged)


def with_lines(text: str, faults: Sequence[str]) -> str:
    """All faults in one sentence, in the order of their lines.

    Args:
        text: Of the file.
        faults: Each begins with the element that it is about.
    """
    blocks = _blocks(text)
    placed = sorted(((_line_of(blocks, fault), fault) for fault in dict.fromkeys(faults)), key=lambda each: each[0])
    said = [f"line {line}: {fault}" if line else fault for line, fault in placed]
    if len(said) == 1:
        return said[0]
    return f"{len(said)} mistakes: {'; '.join(f'({number}) {each}' for number, each in enumerate(said, 1))}"


def _blocks(text: str) -> list[_Block]:
    blocks: list[_Block] = []
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            blocks.append(_Block(header[1], number, {}))
        elif blocks and (field := _FIELD.match(line)):
            blocks[-1].fields.setdefault(field[1], (number, field[2] or ""))
    return blocks


def _line_of(blocks: Sequence[_Block], fault: str) -> int:
    """The line of the last element that a fault begins with, and of the first of its fields in it; 0 if unknown."""
    about = [(block, name) for block in blocks for name in block.names() if re.match(rf"{re.escape(name)}\W", fault)]
    if not about:
        return next((block.line for block in blocks if f"field {block.kind!r}" in fault), 0)
    block, name = about[-1]
    words = {"reads": "inputs" if block.kind in ("operator", "stage") else "from"}
    said = [words.get(word, word) for word in re.findall(r"\w+", fault[len(name) :])]
    return next((block.fields[word][0] for word in said if word in block.fields), block.line)
