"""A class or function that a user wrote, with its options."""

import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from adapt.core.errors import BadInput, UsageError

OptionValue: TypeAlias = bool | int | float | str | None
"""The value of an option of a user's class."""


@dataclass(frozen=True, slots=True)
class OwnCode:
    """A class or function that a user wrote."""

    kind: str  # what it is for, such as policy
    name: str  # `module:name`
    file: str
    source: str  # SHA-256 of its source, and of the modules of its folder that it imports
    call: Callable[..., Any]  # the class or function
    options: tuple[tuple[str, OptionValue], ...] = ()  # values of its parameters

    @property
    def value(self) -> str:
        """The name, as of a built-in one."""
        return self.name

    def __str__(self) -> str:
        """The name."""
        return self.name

    def as_data(self) -> dict[str, Any]:
        """What decides its results, as JSON data."""
        module, _, name = self.name.partition(":")
        return {"module": module, "name": name, "options": dict(self.options), "source": self.source}

    def made(self) -> Any:
        """A new instance with its options."""
        try:
            return self.call(**dict(self.options))
        except Exception as error:
            given = ", ".join(f"{name}={value}" for name, value in self.options)
            raise UsageError(
                f"{self.kind} {self.name} cannot be made{given and f' with {given}'}: {self.said(error)}"
            ) from error

    def failed(self, error: Exception, on: str) -> BadInput:
        """An exception of the user's code as a sentence.

        Args:
            on: When it was called, such as "round 3 at 0.5 s".
        """
        return BadInput(f"{self.kind} {self.name} failed in {on}: {self.said(error)}")

    def said(self, error: Exception) -> str:
        """An exception with its place in the user's file."""
        frames = traceback.extract_tb(error.__traceback__)
        lines = [each.lineno for each in frames if each.filename == self.file]
        place = f" ({self.file}, line {lines[-1]})" if lines else ""
        text = " ".join(str(error).split())
        return f"{type(error).__name__}{text and f': {text}'}{place}"


def own_parameters(members: Iterable[object]) -> dict[str, Any]:
    """Users' own policies of a run, as parameters; empty without any."""
    own = [each.as_data() for each in members if isinstance(each, OwnCode)]
    return {"own_policies": own} if own else {}
