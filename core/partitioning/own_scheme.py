"""Pinned keys that a user's function chooses."""

from collections.abc import Mapping
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import BadInput
from adapt.core.keys.key_text import key_to_text
from adapt.core.keys.partitioner import Partitioner
from adapt.core.own.own_code import OwnCode
from adapt.core.partitioning.measures.population import Counted, frequencies_in
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.stream import Key

MOST_KEYS = 100_000
"""Hottest keys that a function sees at most."""


@dataclass(frozen=True, slots=True, eq=False)
class KeysView:
    """What a user's scheme sees; arrays are read-only."""

    channels: int
    keys: tuple[Key, ...]  # the hottest keys, hottest first; null is None
    counts: NDArray[np.float64]  # weight of each key, shape (keys,)
    total: float  # weight of all keys, listed or not
    hashed: NDArray[np.int32]  # channel of each key if it is not pinned, shape (keys,)
    today: NDArray[np.int32] | None  # channel of each key in the current plan, shape (keys,); None without one


def own_pins(
    own: OwnCode, counted: Counted, base: Partitioner, current: Partitioner | None, most: int | None = None
) -> ExplicitMap:
    """The keys that a user's function pins, with their channels.

    Args:
        base: Places the keys that are not pinned.
        current: The current partitioner.
        most: Show it at most this many keys.
    """
    frequencies = frequencies_in(counted)
    shown = min(MOST_KEYS, frequencies.real, MOST_KEYS if most is None else most)
    keys, counts = frequencies.keys.slice(0, shown), np.array(frequencies.count_low[:shown], np.float64)
    hashed = base.channels_of(keys)
    today = None if current is None else current.channels_of(keys)
    seen: list[NDArray[Any]] = [counts, hashed, *([] if today is None else [today])]
    for array in seen:
        array.flags.writeable = False
    view = KeysView(base.channels, tuple(keys.to_pylist()), counts, float(frequencies.total), hashed, today)
    try:
        answer = own.call(view)
    except Exception as error:
        raise own.failed(error, f"the assignment to {base.channels} channels") from error
    return ExplicitMap.from_mapping(_checked(own, view, answer), frequencies.key_type)


def _checked(own: OwnCode, view: KeysView, answer: object) -> dict[Key, int]:
    """The pins of an answer."""
    if not isinstance(answer, Mapping):
        raise BadInput(f"{own.kind} {own.name} must return a mapping of key to channel (got {type(answer).__name__})")
    known, pins = set(view.keys), {}
    for key, channel in answer.items():
        if key not in known:
            raise BadInput(f"{own.kind} {own.name} pins the key {key!r}, which is not among view.keys")
        try:
            to = index(channel)
        except TypeError:
            to = -1
        if not 0 <= to < view.channels:
            raise BadInput(
                f"{own.kind} {own.name} pins the key {key_to_text(key)} to channel {channel!r}, but channels are 0 to"
                f" {view.channels - 1}"
            )
        pins[key] = to
    return pins
