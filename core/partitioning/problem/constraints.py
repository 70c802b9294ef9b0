"""Constraints on a plan: channel capacities, pinned keys, a migration limit."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from adapt.core.arrays import Floats
from adapt.core.counting.frequencies import Frequencies
from adapt.core.engines.names import AnyScheme
from adapt.core.errors import BadInput, UsageError
from adapt.core.keys.key_text import key_to_text
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.measures.plan_settings import refused
from adapt.core.partitioning.problem.named_keys import absence, absent_keys
from adapt.core.partitioning.schemes.explicit import ExplicitMap, beyond
from adapt.core.partitioning.schemes.names import MAPPED_SCHEMES, Construction, Scheme
from adapt.core.partitioning.splitting.names import Splitting
from adapt.core.phrases import counted

MOST_CAPACITY_RATIO = 1e6
"""Largest ratio of two channels' capacities."""


class Constraint(StrEnum):
    """What not every scheme supports, by the setting."""

    CAPACITY = "capacity"
    PIN = "pin"
    MAX_MIGRATION = "max_migration"
    UTILITY = "utility"


@dataclass(frozen=True, slots=True)
class MigrationLimit:
    """Limit on the state that migrates in one step.

    Source: partitioning functions, section 3.4: M <= gamma L_s as a hard constraint.
    """

    amount: float  # finite, from 0
    # whether `amount` is a share of all state; otherwise it is in units of an average worker's state
    of_all: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.amount) and self.amount >= 0) or (self.of_all and self.amount > 1):
            raise refused(f"{_LIMITS} (got {self})")

    @classmethod
    def parse(cls, text: str) -> "MigrationLimit":
        """A limit as typed: `0.5` channels' state, or `5%`."""
        number = text.strip()
        try:
            amount = float(number.removesuffix("%"))
        except ValueError:
            raise refused(f"{_LIMITS} (got {text!r})") from None
        return cls(amount / 100, of_all=True) if number.endswith("%") else cls(amount)

    def state(self, total: float, channels: int) -> float:
        """The limit in units of state, for a total state."""
        return self.amount * total if self.of_all else self.amount * total / channels

    def at_least(self, state: float, total: float, channels: int) -> "MigrationLimit":
        """The least limit that allows this state, rounded up."""
        share = state / total if total > 0 else 0.0
        if self.of_all:
            return MigrationLimit(min(math.ceil(share * 1e4) / 1e4, 1.0), of_all=True)
        return MigrationLimit(math.ceil(share * channels * 1e3) / 1e3)

    def __str__(self) -> str:
        """The text that `parse` reads."""
        return f"{self.amount * 100:.12g}%" if self.of_all else f"{self.amount:.12g}"


_LIMITS = "{max_migration} takes a number from 0 up (1 is an average worker's state), or 0% to 100% of all state"


@dataclass(frozen=True, slots=True)
class Constraints:
    """Constraints on an assignment of keys to channels; all optional."""

    # relative capacity of each channel, shape (N,), N > 0, finite and above 0. Default: all equal
    capacities: tuple[float, ...] | None = None
    # keys that the user pins to a channel; nothing moves them
    pinned: ExplicitMap = field(default_factory=lambda: ExplicitMap.from_mapping({}))
    max_migration: MigrationLimit | None = None  # limit on the state that migrates in one step. Default: no limit

    def __post_init__(self) -> None:
        """Accept any mapping as `pinned`."""
        object.__setattr__(self, "pinned", ExplicitMap.from_mapping(self.pinned))
        if self.capacities is not None and not self.capacities:
            raise refused("{capacity} takes one number per worker, such as 1,1,2 for 3 workers (got none)")
        for capacity in self.capacities or ():
            if not (math.isfinite(capacity) and capacity > 0):
                raise refused(f"{{capacity}} must be above 0 for each worker (got {capacity:g})")
        if self.capacities and max(self.capacities) > MOST_CAPACITY_RATIO * min(self.capacities):
            raise refused(
                f"{{capacity}} {min(self.capacities):g} and {max(self.capacities):g} are too far apart: use capacities"
                f" within a factor of {MOST_CAPACITY_RATIO:,.0f}"
            )

    @property
    def given(self) -> tuple[Constraint, ...]:
        """The constraints that are set."""
        present = (self.capacities is not None, len(self.pinned) > 0, self.max_migration is not None)
        return tuple(constraint for constraint, there in zip(Constraint, present, strict=False) if there)

    @property
    def parameters(self) -> dict[str, Any]:
        """The constraints that are set, as JSON data.

        The null key has a field of its own.
        """
        recorded: dict[str, Any] = {}
        if self.capacities is not None:
            recorded["capacities"] = list(self.capacities)
        if len(self.pinned):
            recorded["pinned"] = {key_to_text(key): channel for key, channel in self.pinned.items() if key is not None}
        if None in self.pinned:
            recorded["pinned_null"] = self.pinned[None]
        if self.max_migration is not None:
            recorded["max_migration"] = str(self.max_migration)
        return recorded

    def relative(self, channels: int) -> Floats:
        """The capacity of each channel / mean capacity.

        Shape (channels,); exactly 1 if all are equal.
        """
        return np.ones(channels) if self.unequal is None else self.unequal

    @property
    def unequal(self) -> Floats | None:
        """The capacities / mean capacity, shape (N,); None if all are equal."""
        return unequal_capacities(self.capacities)

    def pins_of(self, keys: pa.Array) -> Channels:
        """The pinned channel of each key, or -1; shape (keys,)."""
        rows = self.pinned.rows_of(keys) if len(self.pinned) else np.full(len(keys), -1)
        return np.where(rows >= 0, np.append(self.pinned.channels, -1)[rows], -1).astype(np.int32)

    def check_channels(self, channels: int) -> None:
        """Check that the constraints fit this number of channels."""
        check_capacities(self.capacities, channels)
        outside = np.flatnonzero(self.pinned.channels >= channels)
        if len(outside):
            key, channel = self.pinned.column[int(outside[0])].as_py(), int(self.pinned.channels[outside[0]])
            raise UsageError(beyond(key, channel, channels))

    def check_keys(self, frequencies: Frequencies) -> None:
        """Check that every pinned key may occur in the stream.

        Counts of all keys must list it.
        """
        if len(self.pinned) == 0:
            return
        stored = frequencies.key_type.storage
        if self.pinned.key_type is not stored and self.pinned.column.null_count < len(self.pinned):
            raise BadInput(
                f"the pinned keys are {self.pinned.key_type}, but the counted keys are {frequencies.key_type}; pin"
                f" {frequencies.key_type} keys"
            )
        absent = absent_keys(self.pinned.column.cast(frequencies.keys.type), frequencies)
        if len(absent):
            raise BadInput(f"pinned key {absence(absent[0].as_py(), frequencies)}")


def check_capacities(capacities: Sequence[float] | None, channels: int) -> None:
    """Check that there is one capacity per channel, or none at all."""
    if capacities is not None and len(capacities) != channels:
        raise refused(
            f"{{capacity}} takes one number per worker, such as 1,1,2 for 3 workers (got {len(capacities)} for"
            f" {counted(channels, 'worker')})"
        )


def recorded_capacities(parameters: Mapping[str, Any], channels: int) -> tuple[float, ...] | None:
    """The capacities among a plan's parameters, one per channel; None without any."""
    recorded = parameters.get("capacities")
    if recorded is None:
        return None
    try:
        capacities = tuple(float(each) for each in recorded)
        Constraints(capacities).check_channels(channels)
    except (TypeError, ValueError, UsageError) as error:
        raise BadInput(f"plan field 'parameters.capacities': {error}") from error
    return capacities


def unequal_capacities(capacities: Sequence[float] | None) -> Floats | None:
    """Capacities / mean capacity; None if equal or not given.

    Shape (N,).
    """
    if capacities is None or min(capacities) == max(capacities):
        return None
    given = np.array(capacities, np.float64) / max(capacities)
    return np.asarray(given / given.mean())


def limits_nothing(limit: MigrationLimit) -> str:
    """Start of an error: a migration limit without current plan."""
    return f"{{max_migration}} {limit} needs a current plan to migrate from"


_PINNING = frozenset(Construction)
_MAPPED = MAPPED_SCHEMES - {Scheme.HYBRID}

HONOURED: Mapping[Constraint, tuple[frozenset[Construction], frozenset[Scheme]]] = MappingProxyType(
    {
        Constraint.CAPACITY: (frozenset({Construction.LEVEL}), _MAPPED),
        Constraint.PIN: (_PINNING, _MAPPED),
        Constraint.MAX_MIGRATION: (_PINNING, _MAPPED),
        Constraint.UTILITY: (_PINNING - {Construction.LEVEL}, frozenset[Scheme]()),
    }
)
"""The constructions of the hybrid scheme, and the other schemes, that support each constraint."""


def honours(scheme: AnyScheme | Splitting, construction: Construction, given: Sequence[Constraint]) -> bool:
    """Whether a scheme or hybrid construction supports the constraints."""
    return not _unhonoured(scheme, construction, given)


def refuse_unhonoured(scheme: AnyScheme | Splitting, construction: Construction, given: Sequence[Constraint]) -> None:
    """Refuse constraints that a scheme does not support.

    Schemes that split keys support none.
    """
    for constraint in _unhonoured(scheme, construction, given):
        named = f"construction {construction}" if scheme is Scheme.HYBRID else f"scheme {scheme}"
        raise refused(f"{named} does not support {{{constraint}}}; use {_supporters(constraint)}")


def _unhonoured(
    scheme: AnyScheme | Splitting, construction: Construction, given: Sequence[Constraint]
) -> list[Constraint]:
    return [
        constraint
        for constraint in given
        if not (
            construction in HONOURED[constraint][0] if scheme is Scheme.HYBRID else scheme in HONOURED[constraint][1]
        )
    ]


def _supporters(constraint: Constraint) -> str:
    constructions, schemes = HONOURED[constraint]
    hybrid = f"{Scheme.HYBRID} ({', '.join(each for each in Construction if each in constructions)})"
    others = [scheme.value for scheme in Scheme if scheme in schemes]
    return hybrid if not others else f"{', '.join([hybrid, *others[:-1]])} or {others[-1]}"
