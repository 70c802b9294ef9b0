"""The definition of an engine: its hash, placement and export, and the facts about it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.engines.exporter import Exporter
from adapt.core.keys.partitioner import Partitioner


@dataclass(frozen=True, slots=True)
class KeyGroupLimits:
    """How many key groups a placement by key groups may have.

    Attributes:
        default: Their number for so many channels where nothing is set.
        most: The most of them.
        fixed: Whether a job keeps their number for its whole life.
    """

    default: Callable[[int], int]
    most: int
    fixed: bool


@dataclass(frozen=True, slots=True)
class WorkUnits:
    """The whole units of work that the workers of an engine share.

    Attributes:
        name: The units, e.g. `key groups`.
        short: The same in one word.
        workers: The workers that have them, e.g. `subtasks`.
        count: The number of workers, e.g. `parallelism`.
        default: The number of units that the engine takes for so many workers; None, it has to be given.
        most: The most units that the engine allows; None, it sets no limit.
        note: How units are dealt, and what a change of their number does.
    """

    name: str
    short: str
    workers: str
    count: str
    default: Callable[[int], int] | None
    most: int | None
    note: str


@dataclass(frozen=True, slots=True)
class EngineDefinition:
    """An engine that places keys, as plans, exports and advice need it.

    Attributes:
        hash: The number of each key that decides its place; shape (rows,).
        placement: The partitioner for a channel count and a number of key groups (None, the engine's default; without
            meaning where it has no key groups). Raises UsageError where a number is out of its range.
        export: Makes the files of a plan; None, the engine takes a plan only as text.
        default_channels: Channels where nothing is set.
        key_groups: The limits of its key groups; None, it has none.
        rescale: What a change of the workers or of the channels does.
        units: What its workers share.
    """

    title: str
    hash: Callable[[pa.Array | pa.ChunkedArray], NDArray[np.int32]]
    hash_title: str
    placement: Callable[[int, int | None], Partitioner]
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
