"""Elements of a file that a user writes in TOML: fields taken by name and type, every refusal naming the element."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from adapt.core.errors import BadInput, did_you_mean

Choice = TypeVar("Choice", bound=StrEnum)


class Element:
    """One table of the file, whose fields are taken by name and type."""

    def __init__(self, where: str, fields: Mapping[str, Any], known: Sequence[str]) -> None:
        """A table with its place in the file as messages name it, and the fields it may have.

        Raises:
            BadInput: it has another.
        """
        only(where, fields, known)
        self.where, self._fields = where, fields

    def text(self, name: str) -> str:
        """A field that must be there."""
        value = self._given(name)
        if not isinstance(value, str):
            raise BadInput(f"{self.where}: {name} is {value!r} instead of a text")
        return value

    def text_or_none(self, name: str) -> str | None:
        """A field that may be left out."""
        return self.text(name) if name in self._fields else None

    def number(self, name: str, default: float | None = None) -> float:
        """A field that must be there unless it has a default."""
        if default is not None and name not in self._fields:
            return default
        return number_of(self.where, name, self._given(name))

    def number_or_none(self, name: str) -> float | None:
        """A field that may be left out."""
        return self.number(name) if name in self._fields else None

    def whole(self, name: str, default: int) -> int:
        """A field that may be left out."""
        value = self._fields.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise BadInput(f"{self.where}: {name} is {value!r} instead of a whole number")
        return value

    def truth(self, name: str, default: bool) -> bool:
        """A field that may be left out."""
        value = self._fields.get(name, default)
        if not isinstance(value, bool):
            raise BadInput(f"{self.where}: {name} is {value!r} instead of true or false")
        return value

    def choice(self, name: str, kinds: type[Choice], default: Choice | None = None) -> Choice:
        """A field with one of some names."""
        if default is not None and name not in self._fields:
            return default
        value = self.text(name)
        if value not in [str(kind) for kind in kinds]:
            raise BadInput(f"{self.where}: there is no {name} {value!r}{did_you_mean(value, kinds)}")
        return kinds(value)

    def get(self, name: str) -> Any:
        """A field of any type; None if left out."""
        return self._fields.get(name)

    def _given(self, name: str) -> Any:
        if name not in self._fields:
            raise BadInput(f"{self.where} has no {name}; add {name} = ...")
        return self._fields[name]


def elements(document: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    """The tables of a kind, none if the file has none."""
    found = document.get(kind, [])
    if not isinstance(found, list) or not all(isinstance(element, dict) for element in found):
        raise BadInput(f"{kind} is not a list of tables; write each as [[{kind}]] with its fields below")
    return found


def called(kind: str, fields: Mapping[str, Any]) -> str:
    """How messages call an element."""
    name = fields.get("name")
    return f"{kind} {name!r}" if isinstance(name, str) else f"one [[{kind}]]"


def only(where: str, fields: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuse a field that is not known."""
    for name in fields:
        if name not in known:
            raise BadInput(f"{where} has an unknown field {name!r}{did_you_mean(name, known)}")


def number_of(where: str, name: str, value: Any) -> float:
    """A value that must be a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput(f"{where}: {name} is {value!r} instead of a number")
    return float(value)
