"""Keys that a user names as text: pinned to channels, or to be tracked."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.counting.frequencies import Frequencies
from adapt.core.errors import BadInput, UsageError, near_miss
from adapt.core.keys.key_text import key_to_text, keys_from_texts
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.stream import Key

_LOOKED_AT = 1000
"""So many of the heaviest keys are looked at for one that may have been meant."""


@dataclass(frozen=True, slots=True)
class NamedKey:
    """A key as text, with the place where it was named, for refusals.

    Attributes:
        text: As `key_to_text` writes keys of the type of those that were counted.
        where: E.g. "--pin" or "pins.csv line 3".
    """

    text: str
    where: str


@dataclass(frozen=True, slots=True)
class Pin:
    """A key with its fixed channel, from 0."""

    key: NamedKey
    channel: int

    @classmethod
    def parse(cls, text: str) -> "Pin":
        """A pin as a user writes it, `KEY=CHANNEL`; the key may hold further signs of equality.

        Raises:
            UsageError: it is none.
        """
        key, equals, channel = text.rpartition("=")
        if not equals or not is_channel(channel):
            raise UsageError(f"--pin {text!r} is not KEY=CHANNEL with a channel from 0 up, e.g. --pin amazon=3")
        return cls(NamedKey(key, "--pin"), int(channel))


def is_channel(text: str) -> bool:
    """Whether a text is the number of a channel that there can be."""
    return text.isascii() and text.isdigit() and len(text) < 10


def one_pin_each(pins: Iterable[Pin], channels: Iterable[int]) -> tuple[Pin, ...]:
    """One pin for each key that has several which agree, after a look at whether it fits every channel count.

    Raises:
        UsageError: two pins of a key differ, or a channel is beyond those of a count; the sentence names the key.
    """
    fewest = min(channels)
    found: dict[str, Pin] = {}
    for pin in pins:
        first = found.setdefault(pin.key.text, pin)
        if first.channel != pin.channel:
            raise UsageError(
                f"{pin.key.where}: key {pin.key.text!r} is pinned to channel {pin.channel}, but to {first.channel} by"
                f" {first.key.where}; remove one"
            )
        if pin.channel >= fewest:
            raise UsageError(f"{pin.key.where}: {beyond(pin.key.text, pin.channel, fewest)}")
    return tuple(found.values())


def pinned_keys(pins: Sequence[Pin], frequencies: Frequencies) -> ExplicitMap:
    """Pins as keys of the type of those that were counted, with their channels.

    Raises:
        BadInput: a text is no key of that type, or no key that was counted (`typed_keys`).
    """
    return ExplicitMap(typed_keys([pin.key for pin in pins], frequencies), [pin.channel for pin in pins])


def typed_keys(named: Sequence[NamedKey], frequencies: Frequencies) -> pa.Array:
    """Keys of the type of those that were counted; shape (named,).

    Raises:
        BadInput: a text is no key of that type, or was certainly not in the stream; the sentence says where it stands.
    """
    keys = _of_type(named, frequencies)
    absent = absent_keys(keys, frequencies)
    if len(absent):
        key = absent[0]
        where = named[pc.index(keys, key).as_py()].where
        raise BadInput(f"{where}: key {absence(key.as_py(), frequencies)}")
    return keys


def unlisted(keys: pa.Array, frequencies: Frequencies) -> int:
    """How many of some keys are not among the counted ones."""
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


def beyond(key: Key, channel: int, channels: int) -> str:
    """That a key is pinned to a channel that is not there, in a sentence."""
    there = "is only channel 0" if channels == 1 else f"are only channels 0 to {channels - 1}"
    return f"key {key!r} is pinned to channel {channel}, but there {there}; pin it to one of these, or give more"


def absent_keys(keys: pa.Array, frequencies: Frequencies) -> pa.Array:
    """Which of some keys were certainly not in the stream; none where the counter may have left keys out."""
    if frequencies.complete_above > 0:
        return keys[:0]
    return keys.filter(pc.invert(pc.is_in(keys, value_set=frequencies.keys)))


def absence(key: Key, frequencies: Frequencies) -> str:
    """That a key is not among the counted ones, with a near one among the heaviest, if there is one."""
    if key is None:
        return "null is not among the counted keys"
    names = [key_to_text(known) for known in frequencies.keys[:_LOOKED_AT].to_pylist() if known is not None]
    text = key_to_text(key)
    return f"{text!r} is not among the {len(frequencies.keys):,} counted keys{near_miss(text, names)}"
