"""Typed fields of TOML files, with errors that name the element."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from adapt.core.errors import BadInput, did_you_mean

Choice = TypeVar("Choice", bound=StrEnum)


class Element:
    """One table of the file, with typed access to its fields."""

    def __init__(self, where: str, fields: Mapping[str, Any], known: Sequence[str]) -> None:
        """A table, its name in messages, and its allowed fields.

        Raises:
            BadInput: the table has an unknown field.
        """
        only(where, fields, known)
        self.where, self._fields = where, fields

    def text(self, name: str) -> str:
        """A required text."""
        value = self._given(name)
        if not isinstance(value, str):
            raise BadInput(f"{self.where}: {name} must be a text in quotes (got {value!r})")
        return value

    def text_or_none(self, name: str) -> str | None:
        """An optional text."""
        return self.text(name) if name in self._fields else None

    def number(self, name: str, default: float | None = None) -> float:
        """A number, required without default."""
        if default is not None and name not in self._fields:
            return default
        return number_of(self.where, name, self._given(name))

    def number_or_none(self, name: str) -> float | None:
        """An optional number."""
        return self.number(name) if name in self._fields else None

    def whole(self, name: str, default: int) -> int:
        """An optional integer."""
        value = self._fields.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise BadInput(f"{self.where}: {name} must be an integer (got {value!r})")
        return value

    def truth(self, name: str, default: bool) -> bool:
        """An optional boolean."""
        value = self._fields.get(name, default)
        if not isinstance(value, bool):
            raise BadInput(f"{self.where}: {name} must be true or false (got {value!r})")
        return value

    def choice(self, name: str, kinds: type[Choice], default: Choice | None = None) -> Choice:
        """A field with one of several names, required without default."""
        if default is not None and name not in self._fields:
            return default
        value = self.text(name)
        if value not in [str(kind) for kind in kinds]:
            raise BadInput(f"{self.where}: there is no {name} {value!r}{did_you_mean(value, kinds)}")
        return kinds(value)

    def get(self, name: str) -> Any:
        """A field of any type; None if omitted."""
        return self._fields.get(name)

    def _given(self, name: str) -> Any:
        if name not in self._fields:
            raise BadInput(f"{self.where} has no {name}; add {name} = ...")
        return self._fields[name]


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
