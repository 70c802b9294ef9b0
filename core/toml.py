"""Typed fields of TOML files, with errors that name the element."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from adapt.core.errors import BadInput, did_you_mean

Choice = TypeVar("Choice", bound=StrEnum)
Value = TypeVar("Value")


class Element:
    """One table of the file, with typed access to its fields."""

    def __init__(
        self, where: str, fields: Mapping[str, Any], known: Sequence[str], faults: list[str] | None = None
    ) -> None:
        """A table, its name in messages, and its allowed fields.

        Args:
            faults: Collects what is wrong; None: the first fault is raised.

        Raises:
            BadInput: the table has an unknown field.
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
