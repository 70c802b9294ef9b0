"""Keys that a user names as text, to pin them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.counting.frequencies import Frequencies
from adapt.core.errors import BadInput, UsageError, near_miss
from adapt.core.keys.key_text import key_to_text, keys_from_texts
from adapt.core.partitioning.measures.plan_settings import refused
from adapt.core.partitioning.schemes.explicit import ExplicitMap, beyond
from adapt.core.stream import Key

_LOOKED_AT = 1000
"""Number of hot keys that a misspelled key is compared with."""


@dataclass(frozen=True, slots=True)
class NamedKey:
    """A key as text, and where it was named."""

    text: str  # as `key_to_text` writes keys of the counted type
    where: str  # E.g. "--pin" or "pins.csv line 3"


@dataclass(frozen=True, slots=True)
class Pin:
    """A key with the channel it is pinned to, from 0."""

    key: NamedKey
    channel: int

    @classmethod
    def parse(cls, text: str) -> "Pin":
        """A pin as typed, `KEY=CHANNEL`; the key may contain `=`."""
        key, equals, channel = text.rpartition("=")
        if not equals or not is_channel(channel):
            raise refused(
                f"{{pin}} takes KEY=CHANNEL with a worker from 0 up, such as amazon=3, or a CSV of key,channel (got"
                f" {text!r})"
            )
        return cls(NamedKey(key, "--pin"), int(channel))


def is_channel(text: str) -> bool:
    """Whether a text is a channel number."""
    return text.isascii() and text.isdigit() and len(text) < 10


def one_pin_each(pins: Iterable[Pin], channels: Iterable[int]) -> tuple[Pin, ...]:
    """The pins without repetitions, checked against every channel count."""
    fewest = min(channels)
    found: dict[str, Pin] = {}
    for pin in pins:
        first = found.setdefault(pin.key.text, pin)
        if first.channel != pin.channel:
            raise UsageError(
                f"{pin.key.where}: key {pin.key.text!r} is pinned to worker {pin.channel} here and to {first.channel}"
                f" by {first.key.where}; remove one"
            )
        if pin.channel >= fewest:
            raise UsageError(f"{pin.key.where}: {beyond(pin.key.text, pin.channel, fewest)}")
    return tuple(found.values())


def pinned_keys(pins: Sequence[Pin], frequencies: Frequencies) -> ExplicitMap:
    """Pins as keys of the counted type, with their channels."""
    return ExplicitMap(typed_keys([pin.key for pin in pins], frequencies), [pin.channel for pin in pins])


def typed_keys(named: Sequence[NamedKey], frequencies: Frequencies) -> pa.Array:
    """Named keys as keys of the counted type; shape (named,)."""
    keys = _of_type(named, frequencies)
    absent = absent_keys(keys, frequencies)
    if len(absent):
        key = absent[0]
        where = named[pc.index(keys, key).as_py()].where
        raise BadInput(f"{where}: key {absence(key.as_py(), frequencies)}")
    return keys


def unlisted(keys: pa.Array, frequencies: Frequencies) -> int:
    """How many of these keys the counts do not list."""
    return len(keys) - int(pc.sum(pc.is_in(keys, value_set=frequencies.keys)).as_py() or 0)


def _of_type(named: Sequence[NamedKey], frequencies: Frequencies) -> pa.Array:
    try:
        keys = keys_from_texts((key.text for key in named), frequencies.key_type)
    except BadInput:
        for key in named:
            try:
                keys_from_texts([key.text], frequencies.key_type)
            except BadInput as error:
                raise BadInput(f"{key.where}: {error}") from error
        raise
    return keys.cast(frequencies.keys.type)


def absent_keys(keys: pa.Array, frequencies: Frequencies) -> pa.Array:
    """The keys that are certainly not in the stream.

    Empty if the counter may have missed keys.
    """
    if frequencies.complete_above > 0:
        return keys[:0]
    return keys.filter(pc.invert(pc.is_in(keys, value_set=frequencies.keys)))


def absence(key: Key, frequencies: Frequencies) -> str:
    """The error of an uncounted key, with the nearest match."""
    if key is None:
        return "null is not among the counted keys"
    names = [key_to_text(known) for known in frequencies.keys[:_LOOKED_AT].to_pylist() if known is not None]
    text = key_to_text(key)
    return f"{text!r} is not among the {len(frequencies.keys):,} counted keys{near_miss(text, names)}"
