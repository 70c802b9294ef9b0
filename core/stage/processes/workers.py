"""Interface of the worker processes of a stage, and what they report."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeAlias

from adapt.core.stage.records.arrays import Records


class Order(StrEnum):
    """An order to a worker, with its arguments."""

    ASK = "ask"
    """Answer when read: question."""
    GIVE = "give"
    """Extract and send the state of a partition: partition, seat of the receiver, whether to keep it."""
    DROP = "drop"
    """Drop a partition: the copy kept until its receiver took over, or a replica."""
    KEEP = "keep"
    """Go on with a partition whose receiver is dead: partition."""
    RESET = "reset"
    """Begin a partition without state: partition."""
    DRAIN = "drain"
    """Answer when all that a dead worker has sent is processed: question, seat."""
    STATES = "states"
    """Report the state of all keys."""


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """Processed rows in order, and idle seconds until then."""

    at_s: float
    idle_s: float
    rows: Records


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question, and idle seconds until then."""

    question: int
    at_s: float
    idle_s: float


@dataclass(frozen=True, slots=True)
class Installed:
    """A partition that arrived, with size and times of its move."""

    partition: int
    state_bytes: int
    began_s: float
    extracted_s: float
    received_s: float
    installed_s: float


@dataclass(frozen=True, slots=True, eq=False)
class States:
    """The state of all keys of a worker."""

    keys: Records


Message: TypeAlias = Report | Answer | Installed | States


class Workers(Protocol):
    """The processes of a stage, by worker number."""

    def now_s(self) -> float:
        """Seconds since the start."""

    def poll(self, until_s: float) -> Sequence[tuple[int, Message]]:
        """Wait for messages of workers, until a time."""

    def rows(self, worker: int, rows: Records) -> None:
        """Send rows."""

    def order(self, worker: int, order: Order, *arguments: int) -> None:
        """Send an order, read before rows that wait at the worker."""

    def kill(self, worker: int) -> Sequence[tuple[int, Message]]:
        """Kill the process of a worker; returns what it had reported."""

    def revive(self, worker: int, seat: int) -> None:
        """Start a new process for a worker."""

    def close(self) -> None:
        """End all processes."""
