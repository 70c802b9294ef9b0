"""Cost profile of a job: service times, transport, state, pauses, restarts.

All times are in seconds. What a source does not measure is None, and a replay takes its default instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import BadInput

SCHEMA = "adapt.costs/1"

MOST_QUANTILES = 1000
"""Most numbers that stand for a distribution."""


class CostSource(StrEnum):
    """What a profile was measured on."""

    STAGE = "stage"
    FLINK = "flink"
    SPARK = "spark"
    CSV = "csv"


class ServiceBy(StrEnum):
    """What the mean service time of a row depends on."""

    ALL = "all"
    """Nothing: all rows have the same mean."""

    KEY = "key"
    """The row's key."""

    SIZE = "size"
    """The row's bytes."""

    COST = "cost"
    """The row's stated cost, column `cost_us` of the trace."""


@dataclass(frozen=True, slots=True)
class KeyMean:
    """Mean service time of a key."""

    key: str  # its text, as in a plan file
    mean_s: float  # mean service time
    rows: int = 0  # rows that were measured


@dataclass(frozen=True, slots=True)
class SizeMean:
    """Mean service time of rows up to a size."""

    most_bytes: int  # the largest size of its rows
    mean_s: float  # mean service time
    rows: int = 0  # rows that were measured


def measured(doc: str, default: str) -> Any:
    """A field that a source may not measure.

    Args:
        doc: Its description in the file.
        default: What a replay takes where it is missing.
    """
    return field(default=None, metadata={"doc": doc, "default": default})


@dataclass(frozen=True, slots=True)
class Service:
    """Service time: what a worker needs for a row, without transport."""

    rows: int = 0  # rows that were measured; 0, unknown
    by: ServiceBy = ServiceBy.ALL  # what the mean of a row depends on
    mean_s: float | None = measured("mean", "--service-time, else 1ms")
    # overall distribution, ascending: means of equally many measurements each
    quantiles_s: tuple[float, ...] | None = measured(
        "distribution over all rows", "lognormal with a coefficient of variation of 1"
    )
    # the same of a row's time over its own mean, where this depends on something
    within: tuple[float, ...] | None = None
    cost_factor: float = 0.0  # with a stated cost, seconds per second of it
    fixed_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Transport:
    """Transport of rows: worker time and latency."""

    row_s: float | None = measured("worker time to receive and report a row", "0")
    byte_s: float | None = measured("worker time per byte of a row", "0")
    produce_s: float | None = measured("worker time to produce a row", "0.5us")
    latency_s: float | None = measured("one-way time from producer to worker", "--network latency, 70us")


@dataclass(frozen=True, slots=True)
class StateCosts:
    """Costs of moving state."""

    serialize_row_s: float | None = measured("time to serialize a tuple of state", "0 with a time per byte, else 0.2us")
    serialize_byte_s: float | None = measured("time to serialize a byte of state", "0")
    install_row_s: float | None = measured(
        "time to install a tuple of state", "0 with a time per byte, else as to serialize it"
    )
    install_byte_s: float | None = measured("time to install a byte of state", "as to serialize it")
    transfer_byte_s: float | None = measured("time to send a byte of state", "--network state-bandwidth, 250Mbps")
    plan_s: float | None = measured("time to build the plan of a rescale", "0")
    order_move_s: float | None = measured("time of the controller to order a move", "0")
    serialize_move_s: float | None = measured("worker time to extract a state of any size", "0")
    install_move_s: float | None = measured("worker time to install a state of any size", "0")
    between_rows: bool = False  # whether workers read orders between two rows; else at once


@dataclass(frozen=True, slots=True)
class Restart:
    """Stop, start and restore of a job or worker."""

    stop_s: float | None = measured("time to stop, with a savepoint where the engine takes one", "0s")
    start_s: float | None = measured("time until a started worker takes rows", "--migrate startup-time, 0s")
    restore_byte_s: float | None = measured("time to restore a byte of state", "as to send and install it")


@dataclass(frozen=True, slots=True)
class Pause:
    """Recurring pauses, such as garbage collections or checkpoints."""

    kind: str  # what pauses, in a word
    interval_s: float  # mean time from the end of one to the start of the next
    durations_s: tuple[float, ...]  # distribution of their lengths, ascending, as `quantiles_s`
    together: bool = False  # whether all workers pause at once

    def __post_init__(self) -> None:
        if not (0 < self.interval_s < np.inf and len(self.durations_s)):
            raise BadInput(f"pause {self.kind!r} needs an interval_s above 0, and durations_s")
        _check_ascending(f"durations_s of pause {self.kind!r}", self.durations_s)

    def described(self) -> dict[str, Any]:
        """The pause as JSON data, with the mean of its lengths."""
        mean_s = float(np.mean(self.durations_s))
        return {"kind": self.kind, "interval_s": self.interval_s, "mean_s": mean_s, "together": self.together}


@dataclass(frozen=True, slots=True)
class Profile:
    """A cost profile."""

    source: CostSource  # what it was measured on
    measured: str  # the same in words, with names and numbers of rows
    service: Service = Service()  # service time
    keys: tuple[KeyMean, ...] = ()  # means of keys, for service by key
    sizes: tuple[SizeMean, ...] = ()  # means of sizes, ascending, for service by size; larger rows take the last
    transport: Transport = Transport()  # transport of rows
    state: StateCosts = StateCosts()  # moving of state
    restart: Restart = Restart()  # stop, start and restore
    pauses: tuple[Pause, ...] = ()  # recurring pauses; empty, none were found

    def __post_init__(self) -> None:
        for name, part in self.parts():
            for each in fields(part):
                value = getattr(part, each.name)
                if isinstance(value, float) and not 0 <= value < np.inf:
                    raise BadInput(f"[{name}]: {each.name} must be at least 0 (got {value!r})")
        for kind, means in (("key", self.keys), ("size", self.sizes)):
            if not all(0 <= one.mean_s < np.inf for one in means):
                raise BadInput(f"a mean_s of [[{kind}]] is negative or infinite")
        service = self.service
        if service.mean_s is not None and service.mean_s <= 0:
            raise BadInput(f"[service]: mean_s must be above 0 (got {service.mean_s:g})")
        for name in ("quantiles_s", "within"):
            values = getattr(service, name)
            if values is not None:
                _check_ascending(f"[service]: {name}", values)
        wanted = {ServiceBy.KEY: self.keys, ServiceBy.SIZE: self.sizes, ServiceBy.COST: service.cost_factor}
        if not wanted.get(service.by, True):
            lacks = {ServiceBy.KEY: "[[key]]", ServiceBy.SIZE: "[[size]]"}.get(service.by, "cost_factor")
            raise BadInput(f'[service]: by = "{service.by}" needs {lacks}')
        if [one.most_bytes for one in self.sizes] != sorted({one.most_bytes for one in self.sizes}):
            raise BadInput("[[size]] must be in order of most_bytes, each once")

    def parts(self) -> tuple[tuple[str, Any], ...]:
        """The tables of the file with measurements, by name."""
        return (
            ("service", self.service),
            ("transport", self.transport),
            ("state", self.state),
            ("restart", self.restart),
        )

    def missing(self) -> dict[str, str]:
        """What was not found, with what a replay takes instead."""
        found = {
            f"{name}.{each.name}": str(each.metadata["default"])
            for name, part in self.parts()
            for each in fields(part)
            if each.metadata and getattr(part, each.name) is None
        }
        return found if self.pauses else {**found, "pause": "no pauses"}


def quantiles_of(sample: Sequence[float] | NDArray[np.float64]) -> tuple[float, ...]:
    """A sample as at most `MOST_QUANTILES` numbers.

    They are means of equally many ascending measurements each, so that their mean is that of the sample.
    """
    ascending = np.sort(np.asarray(sample, np.float64))
    if len(ascending) <= MOST_QUANTILES:
        return tuple(ascending.tolist())
    cumulative = np.append(0.0, np.cumsum(ascending))
    ends = np.linspace(0, len(ascending), MOST_QUANTILES + 1)
    sums = np.diff(np.interp(ends, np.arange(len(cumulative)), cumulative))
    return tuple((sums * MOST_QUANTILES / len(ascending)).tolist())


def _check_ascending(what: str, values: Sequence[float]) -> None:
    """Check that numbers are from 0, ascending, one above 0."""
    each = np.asarray(values, np.float64)
    if not (len(each) and np.isfinite(each).all() and each[0] >= 0 and each[-1] > 0 and (np.diff(each) >= 0).all()):
        raise BadInput(f"{what} must be ascending numbers of at least 0, one of them above 0")
