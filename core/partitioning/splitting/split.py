"""Splitting the keys of a stream message by message, and what that loads, replicates and merges."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled
from adapt.core.errors import UsageError
from adapt.core.keys.channel_count import check_channels
from adapt.core.keys.names import HashName
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.splitting.choices import Choices, choices_of
from adapt.core.partitioning.splitting.messages import Messages
from adapt.core.partitioning.splitting.names import Splitting

CHOICES = 8
"""d of d-choices where none is given."""


@dataclass(frozen=True, slots=True)
class Split:
    """Where the messages of a stream went.

    Attributes:
        choices: The choices of a heavy key; N where it may use every channel.
        head_keys: The heavy keys; 0 where they are as any other.
        places: The channels that each key may use.
        weights: What each key sent to each of its channels, by place; shape (places,).
        key_periods: The keys that occurred, in each period anew.
        place_periods: The pairs of key and channel that occurred, in each period anew.
    """

    splitting: Splitting
    channels: int
    choices: int
    head_keys: int
    places: Choices
    weights: Floats
    key_periods: int
    place_periods: int

    @property
    def merge_tuples(self) -> int:
        """The partial results to be merged: one for each channel beyond the first of each key, in every period."""
        return self.place_periods - self.key_periods

    @property
    def channels_per_key(self) -> float | None:
        """The channels that hold state of a key, on average over keys and periods; None without messages."""
        return self.place_periods / self.key_periods if self.key_periods else None

    @property
    def most_channels_per_key(self) -> int:
        """The channels of the key that is on most of them, over the whole stream."""
        used = np.bincount(self.places.keys[self.weights > 0], minlength=1)
        return int(used.max())


def split(
    messages: Messages,
    splitting: Splitting,
    channels: int,
    *,
    choices: int = CHOICES,
    sources: int = 1,
    hash: HashName = HashName.MURMUR3,
) -> Split:
    """Send each message to the least loaded of its key's channels.

    Heavy keys are those with a share of the stream above 1/(5N), as published; we take the shares of the whole stream,
    where the papers estimate them on the way. The number of choices of d-choices is fixed, where the paper derives it
    from the shares; from N up it is w-choices. Sources take messages in turns, and each knows only what it has sent
    itself, as published (local load estimation). Of equally loaded channels the first choice is taken; every channel of
    w-choices is in the order of numbers.

    Args:
        choices: d of d-choices, from 2.
        sources: How many senders there are, from 1.

    Raises:
        UsageError: a number is out of its range.

    Source: Nasir et al., The Power of Both Choices (ICDE 2015), for two choices; When Two Choices Are Not Enough (ICDE
    2016), for d and all, and for the threshold.
    """
    check_channels(channels)
    if choices < 2 or sources < 1:
        raise UsageError(f"{choices} choices and {sources} sources cannot split keys: give from 2 and from 1")
    heavy = _heavy(messages, channels)
    most = _choices_of_heavy(splitting, channels, choices)
    has_head = splitting in (Splitting.D_CHOICES, Splitting.W_CHOICES)
    of_each = np.where(heavy & has_head, most, min(most, 2))
    places = choices_of(messages.keys, of_each, heavy & has_head & (most == channels), channels, hash)
    weights, met = np.zeros(len(places.channels)), np.zeros(2, np.int64)
    _deal(
        messages.rows,
        messages.weights,
        messages.periods,
        places.channels,
        places.offsets,
        np.zeros((sources, channels)),
        weights,
        met,
    )
    head = int(np.count_nonzero(heavy)) if has_head else 0
    return Split(splitting, channels, most, head, places, weights, int(met[0]), int(met[1]))


def _choices_of_heavy(splitting: Splitting, channels: int, choices: int) -> int:
    match splitting:
        case Splitting.ONE_CHOICE:
            return 1
        case Splitting.PKG:
            return 2
        case Splitting.D_CHOICES:
            return min(choices, channels)
        case Splitting.W_CHOICES:
            return channels


def _heavy(messages: Messages, channels: int) -> NDArray[np.bool_]:
    """Which keys have a share above 1/(5N), shape (keys,)."""
    sums = np.bincount(messages.rows, weights=messages.weights, minlength=len(messages.keys))
    return np.asarray(sums * 5 * channels > sums.sum())


@compiled
def _deal(
    rows: NDArray[np.int64],
    weights: Floats,
    periods: NDArray[np.int64],
    channels: Channels,
    offsets: NDArray[np.int64],
    sent: Floats,
    of_place: Floats,
    met: NDArray[np.int64],
) -> None:
    """Fill `of_place`, and count keys and places in `met`; `sent` is what each source sent to each channel."""
    key_seen = np.full(len(offsets) - 1, -1)
    place_seen = np.full(len(channels), -1)
    for message in range(len(rows)):
        key, period, known = rows[message], periods[message], sent[message % len(sent)]
        best = offsets[key]
        for place in range(best + 1, offsets[key + 1]):
            if known[channels[place]] < known[channels[best]]:
                best = place
        known[channels[best]] += weights[message]
        of_place[best] += weights[message]
        if key_seen[key] != period:
            key_seen[key] = period
            met[0] += 1
        if place_seen[best] != period:
            place_seen[best] = period
            met[1] += 1
