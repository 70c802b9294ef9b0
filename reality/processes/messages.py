"""Orders to worker processes, and what they report."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from adapt.core.stage.records.arrays import Records


class Order(StrEnum):
    """An order to a worker, with its arguments."""

    ASK = "ask"
    """Answer when read: question."""
    GIVE = "give"
    """Extract and send the state of a partition: partition, receiver."""
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
