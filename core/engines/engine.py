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
from adapt.core.keys.at_random import AtRandom
from adapt.core.keys.partitioner import Channels
from adapt.core.stream import KeyType


@dataclass(frozen=True, slots=True)
class KeyGroupLimits:
    """Limits on the number of key groups.

    Attributes:
        default: Their default number for a number of channels.
        most: Their largest number.
        fixed: Whether a job can never change their number.
    """

    default: Callable[[int], int]
    most: int
    fixed: bool


@dataclass(frozen=True, slots=True)
class WorkUnits:
    """The indivisible units of work that an engine assigns to workers.

    Attributes:
        name: The units, e.g. `key groups`.
        short: The same in one word.
        workers: The workers, e.g. `subtasks`.
        count: The setting of the number of workers, e.g. `parallelism`.
        default: The default number of units for a number of workers; None if it has no default.
        most: The largest number of units; None if unlimited.
        note: How units are assigned, and what changing their number does.
        owners: The worker of each unit, for numbers of units and workers; None if units depend on the workers.
    """

    name: str
    short: str
    workers: str
    count: str
    default: Callable[[int], int] | None
    most: int | None
    note: str
    owners: Callable[[int, int], Channels] | None = in_ranges


class OtherKeys(StrEnum):
    """How an engine places keys of other types."""

    EXACT = "by their type, several columns too"
    TEXT = "by their text, as all keys are"
    ASSUMED = "by their text, which is assumed"
    REFUSED = "not known"


@dataclass(frozen=True, slots=True)
class EngineDefinition:
    """An engine, for plans, exports and advice.

    Attributes:
        hash: The hash of each key that decides its channel, or its first word; shape (rows,).
        placement: The partitioner for a number of channels and of key groups (None: the default; ignored without key
            groups). Raises UsageError for numbers out of range.
        export: Creates the files of a plan; None if the engine reads plans only as text.
        default_channels: The default number of channels.
        key_groups: The limits of its key groups; None if it has none.
        rescale: What changing the number of workers or channels does.
        units: The units of work of its workers.
        at_random: The keys that it places at random; they have a fixed channel in `placement`.
        key_types: Types, apart from text and bytes, that it places by their own bytes.
        other_keys: How it places others.
    """

    title: str
    hash: Callable[[pa.Array | pa.ChunkedArray], NDArray[np.integer[Any]]]
    hash_title: str
    placement: Callable[[int, int | None], EnginePartitioner]
    export: Exporter | None
    channel: str
    worker: str
    default_channels: int
    channels_setting: str
    key_groups: KeyGroupLimits | None
    null_key: str
    empty_key: str
    rescale: str
    units: WorkUnits
    at_random: AtRandom = AtRandom.NONE
    key_types: frozenset[KeyType] = frozenset({KeyType.INT64})
    other_keys: OtherKeys = OtherKeys.REFUSED
