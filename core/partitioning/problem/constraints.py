"""What a placement must keep to: channels of unequal capacity, keys with a fixed channel, a limit to migration."""

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
from adapt.core.partitioning.problem.named_keys import absence, absent_keys, beyond
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.names import MAPPED_SCHEMES, Construction, Scheme
from adapt.core.partitioning.splitting.names import Splitting

MOST_CAPACITY_RATIO = 1e6
"""A channel of less than this part of another's capacity is none."""


class Constraint(StrEnum):
    """The constraints by the options that set them."""

    CAPACITY = "--capacity"
    PIN = "--pin"
    MAX_MIGRATION = "--max-migration"


@dataclass(frozen=True, slots=True)
class MigrationLimit:
    """How much state may migrate in one step.

    Attributes:
        amount: Finite, from 0.
        of_all: Whether that is a share of all state; otherwise it is m, in units of the state of an average channel.
    """

    amount: float
    of_all: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.amount) and self.amount >= 0) or (self.of_all and self.amount > 1):
            raise UsageError(f"a migration of at most {self} is no limit; {_LIMITS}")

    @classmethod
    def parse(cls, text: str) -> "MigrationLimit":
        """A limit as a user writes it: `0.5` (half the state of an average channel), or `5%` of all state.

        Raises:
            UsageError: it is neither.
        """
        number = text.strip()
        try:
            amount = float(number.removesuffix("%"))
        except ValueError:
            raise UsageError(f"a migration of at most {text!r} is no limit; {_LIMITS}") from None
        return cls(amount / 100, of_all=True) if number.endswith("%") else cls(amount)

    def state(self, total: float, channels: int) -> float:
        """The limit in units of state, where all keys have `total` on `channels` channels."""
        return self.amount * total if self.of_all else self.amount * total / channels

    def at_least(self, state: float, total: float, channels: int) -> "MigrationLimit":
        """The least limit of this kind that allows a state, rounded up to a thousandth, or to a hundredth of 1%."""
        share = state / total if total > 0 else 0.0
        if self.of_all:
            return MigrationLimit(min(math.ceil(share * 1e4) / 1e4, 1.0), of_all=True)
        return MigrationLimit(math.ceil(share * channels * 1e3) / 1e3)

    def __str__(self) -> str:
        """The text that `parse` reads."""
        return f"{self.amount * 100:.12g}%" if self.of_all else f"{self.amount:.12g}"


_LIMITS = "give a number from 0 up (1 is the state of an average channel), or a share of all state from 0% to 100%"


@dataclass(frozen=True, slots=True)
class Constraints:
    """What a placement must keep to; nothing, if nothing is given.

    Attributes:
        capacities: What each channel can carry of every resource, in relation to the others, shape (N,), N > 0; None,
            all the same. Each is finite and above 0.
        pinned: Keys that have a fixed channel. They are mapped explicitly, however light, and nothing moves them.
        max_migration: The most state that may migrate in a step; None, any.
    """

    capacities: tuple[float, ...] | None = None
    pinned: ExplicitMap = field(default_factory=lambda: ExplicitMap.from_mapping({}))
    max_migration: MigrationLimit | None = None

    def __post_init__(self) -> None:
        """Any mapping will do for `pinned`."""
        object.__setattr__(self, "pinned", ExplicitMap.from_mapping(self.pinned))
        if self.capacities is not None and not self.capacities:
            raise UsageError("no capacity is given: give one for each channel, such as 1,1,2 for 3")
        for capacity in self.capacities or ():
            if not (math.isfinite(capacity) and capacity > 0):
                raise UsageError(f"a channel cannot have capacity {capacity:g}: give a number above 0 for each")
        if self.capacities and max(self.capacities) > MOST_CAPACITY_RATIO * min(self.capacities):
            raise UsageError(
                f"capacities {min(self.capacities):g} and {max(self.capacities):g} are too far apart: a channel with"
                f" less than 1/{MOST_CAPACITY_RATIO:,.0f} of another's capacity is none; leave it out"
            )

    @property
    def given(self) -> tuple[Constraint, ...]:
        """The constraints that there are."""
        present = (self.capacities is not None, len(self.pinned) > 0, self.max_migration is not None)
        return tuple(constraint for constraint, there in zip(Constraint, present, strict=True) if there)

    @property
    def parameters(self) -> dict[str, Any]:
        """What a plan records of this, as JSON data: only what is given. The null key has no text, as in a plan."""
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
        """The capacity of each channel over that of the average one, shape (channels,): exactly 1 if all are equal."""
        return np.ones(channels) if self.unequal is None else self.unequal

    @property
    def unequal(self) -> Floats | None:
        """The capacities over their mean, shape (N,); None if they are all the same."""
        return unequal_capacities(self.capacities)

    def pins_of(self, keys: pa.Array) -> Channels:
        """The fixed channel of each key, -1 where it has none; shape (keys,)."""
        rows = self.pinned.rows_of(keys) if len(self.pinned) else np.full(len(keys), -1)
        return np.where(rows >= 0, np.append(self.pinned.channels, -1)[rows], -1).astype(np.int32)

    def check_channels(self, channels: int) -> None:
        """Do nothing if this many channels can keep to the constraints.

        Raises:
            UsageError: there are capacities, but not one for each channel, or a key is pinned to a channel beyond.
        """
        check_capacities(self.capacities, channels)
        outside = np.flatnonzero(self.pinned.channels >= channels)
        if len(outside):
            key, channel = self.pinned.column[int(outside[0])].as_py(), int(self.pinned.channels[outside[0]])
            raise UsageError(beyond(key, channel, channels))

    def check_keys(self, frequencies: Frequencies) -> None:
        """Do nothing if every pinned key may be one of the stream: a counter that lists every key would have listed it.

        Raises:
            BadInput: one is not, or is of another type; the sentence names it.
        """
        if len(self.pinned) == 0:
            return
        if self.pinned.key_type is not frequencies.key_type and self.pinned.column.null_count < len(self.pinned):
            raise BadInput(
                f"the pinned keys are {self.pinned.key_type}, but the counted keys are {frequencies.key_type}"
            )
        absent = absent_keys(self.pinned.column.cast(frequencies.keys.type), frequencies)
        if len(absent):
            raise BadInput(f"pinned key {absence(absent[0].as_py(), frequencies)}")


def check_capacities(capacities: Sequence[float] | None, channels: int) -> None:
    """Do nothing if there is a capacity for each channel, or none at all.

    Raises:
        UsageError: there are more or fewer.
    """
    if capacities is not None and len(capacities) != channels:
        numbers = f"{len(capacities)} capacities are" if len(capacities) != 1 else "1 capacity is"
        raise UsageError(f"{numbers} given for {channels} channels: give one for each, such as 1,1,2 for 3")


def recorded_capacities(parameters: Mapping[str, Any], channels: int) -> tuple[float, ...] | None:
    """The capacities that a plan records among its parameters, one a channel; None if it records none.

    Raises:
        BadInput: they are not one number above 0 for each channel.
    """
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
    """Capacities over their mean, shape (N,); None if there are none, or they are all the same."""
    if capacities is None or min(capacities) == max(capacities):
        return None
    given = np.array(capacities, np.float64) / max(capacities)
    return np.asarray(given / given.mean())


def limits_nothing(limit: MigrationLimit) -> str:
    """That a limit has nothing to limit, in a sentence to be ended with what to do."""
    return f"{Constraint.MAX_MIGRATION} {limit} limits nothing without a plan before it, from which state could migrate"


_PINNING = frozenset(Construction)
_MAPPED = MAPPED_SCHEMES - {Scheme.HYBRID}

HONOURED: Mapping[Constraint, tuple[frozenset[Construction], frozenset[Scheme]]] = MappingProxyType(
    {
        Constraint.CAPACITY: (frozenset({Construction.LEVEL}), _MAPPED),
        Constraint.PIN: (_PINNING, _MAPPED),
        Constraint.MAX_MIGRATION: (frozenset({Construction.LEVEL}), frozenset[Scheme]()),
    }
)
"""By which constructions of the hybrid scheme, and by which other schemes, each constraint is honoured."""


def honours(scheme: AnyScheme | Splitting, construction: Construction, constraints: Constraints) -> bool:
    """Whether a scheme (with this construction, if it is the hybrid one) keeps to all of the constraints."""
    return not _unhonoured(scheme, construction, constraints)


def refuse_unhonoured(scheme: AnyScheme | Splitting, construction: Construction, constraints: Constraints) -> None:
    """Do nothing if a scheme keeps to all of the constraints; a way of splitting keys keeps to none.

    Raises:
        UsageError: it does not keep to one; the sentence has those that do.
    """
    for constraint in _unhonoured(scheme, construction, constraints):
        named = f"construction {construction}" if scheme is Scheme.HYBRID else f"scheme {scheme}"
        raise UsageError(f"{named} cannot honour {constraint}; {_those_that_can(constraint)} can")


def _unhonoured(
    scheme: AnyScheme | Splitting, construction: Construction, constraints: Constraints
) -> list[Constraint]:
    return [
        constraint
        for constraint in constraints.given
        if not (
            construction in HONOURED[constraint][0] if scheme is Scheme.HYBRID else scheme in HONOURED[constraint][1]
        )
    ]


def _those_that_can(constraint: Constraint) -> str:
    constructions, schemes = HONOURED[constraint]
    hybrid = f"{Scheme.HYBRID} ({', '.join(each for each in Construction if each in constructions)})"
    others = [scheme.value for scheme in Scheme if scheme in schemes]
    return hybrid if not others else f"{', '.join([hybrid, *others[:-1]])} and {others[-1]}"
