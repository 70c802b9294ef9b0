"""What a worker process does for each row."""

from collections.abc import Callable, Sequence
from importlib import import_module
from multiprocessing.connection import Connection
from struct import Struct
from time import thread_time
from typing import Any, Protocol

LATENCY = Struct("<d")
"""A request to the loopback service: the latency of its answer in seconds."""


class Unusable(Exception):
    """A function that cannot be called; the message is a sentence."""


class Work(Protocol):
    """What is done for a row."""

    def __call__(self, state: Any, group: int, number: int, cost_s: float, /) -> Any:
        """Process a row; returns the new state of its key, None at first."""


def spin(state: Any, group: int, number: int, cost_s: float) -> Any:  # noqa: ARG001
    """Use the CPU for the cost of the row."""
    until_s = thread_time() + cost_s
    while thread_time() < until_s:
        pass
    return state


class Wait:
    """Waits for the loopback service for the cost of a row."""

    def __init__(self, service: Connection) -> None:
        self._service = service

    def __call__(self, state: Any, group: int, number: int, cost_s: float) -> Any:  # noqa: ARG002
        """Send a request, and block until its answer comes."""
        self._service.send_bytes(LATENCY.pack(cost_s))
        self._service.recv_bytes()
        return state


class Call:
    """Calls a function with state, key and row number."""

    def __init__(self, named: str, keys: Sequence[Any]) -> None:
        """Import the function.

        Args:
            named: MODULE:FUNCTION.
            keys: The key of each group.

        Raises:
            Unusable: The function does not exist.
        """
        self._named, self._keys = named, keys
        module, _, name = named.partition(":")
        try:
            function = getattr(import_module(module), name)
        except Exception as error:
            raise Unusable(f"--function {named} cannot be imported: {type(error).__name__}: {error}") from None
        if not callable(function):
            raise Unusable(f"--function {named} is not a function; give MODULE:FUNCTION")
        self._function: Callable[[Any, Any, int], Any] = function

    def __call__(self, state: Any, group: int, number: int, cost_s: float) -> Any:  # noqa: ARG002
        """Call the function.

        Raises:
            Unusable: It raised an error.
        """
        try:
            return self._function(state, self._keys[group], number)
        except Exception as error:
            raise Unusable(f"--function {self._named}, row {number}: {type(error).__name__}: {error}") from None
