"""Engine definitions: hash, placement, export and facts."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.engines.exporter import Exporter
from adapt.core.engines.placement import EnginePartitioner
from adapt.core.engines.unit_owners import in_ranges
from adapt.core.keys.partitioner import AtRandom, Channels
from adapt.core.stream import KeyType


@dataclass(frozen=True, slots=True)
class KeyGroupLimits:
    """Limits on the number of key groups."""

    default: Callable[[int], int]  # their default number for a number of channels
    most: int  # their largest number
    fixed: bool  # whether a job can never change their number


@dataclass(frozen=True, slots=True)
class WorkUnits:
    """The indivisible units of work that an engine assigns to workers."""

    name: str  # the units, e.g. `key groups`
    short: str  # the same in one word
    workers: str  # the workers, e.g. `subtasks`
    count: str  # the setting of the number of workers, e.g. `parallelism`
    # the default number of units for a number of workers; None if it has no default
    default: Callable[[int], int] | None
    most: int | None  # the largest number of units; None if unlimited
    note: str  # how units are assigned, and what changing their number does
    # the worker of each unit, for numbers of units and workers; None if units depend on the workers
    owners: Callable[[int, int], Channels] | None = in_ranges


class OtherKeys(StrEnum):
    """How an engine places keys of other types."""

    EXACT = "by their type, several columns too"
    TEXT = "by their text, as all keys are"
    ASSUMED = "by their text, which is assumed"
    REFUSED = "not known"


@dataclass(frozen=True, slots=True)
class EngineDefinition:
    """An engine, for plans, exports and advice."""

    title: str
    # the hash of each key that decides its channel, or its first word; shape (rows,)
    hash: Callable[[pa.Array | pa.ChunkedArray], NDArray[np.integer[Any]]]
    hash_title: str
    # the partitioner for a number of channels and of key groups (None: the default; ignored without key groups).
    # Raises UsageError for numbers out of range
    placement: Callable[[int, int | None], EnginePartitioner]
    export: Exporter | None  # creates the files of a plan; None if the engine reads plans only as text
    channel: str
    worker: str
    default_channels: int
    channels_setting: str
    key_groups: KeyGroupLimits | None  # the limits of its key groups; None if it has none
    null_key: str
    empty_key: str
    rescale: str  # what changing the number of workers or channels does
    units: WorkUnits  # the units of work of its workers
    at_random: AtRandom = AtRandom.NONE  # the keys that it places at random; they have a fixed channel in `placement`
    # types, apart from text and bytes, that it places by their own bytes
    key_types: frozenset[KeyType] = frozenset({KeyType.INT64})
    other_keys: OtherKeys = OtherKeys.REFUSED  # how it places others
