"""Split the keys of a stream, message by message."""

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
"""Default d of d-choices."""


@dataclass(frozen=True, slots=True)
class Split:
    """The channels that received the messages of a stream."""

    splitting: Splitting
    channels: int
    choices: int  # number of choices of a hot key; N if it may use every channel
    places: Choices  # the channels that each key may use
    weights: Floats  # what each key sent to each of its channels, by place; shape (places,)
    key_periods: int  # number of keys that occurred, summed over periods
    place_periods: int  # number of pairs of key and channel that occurred, summed over periods

    @property
    def merge_tuples(self) -> int:
        """Merge messages: one per key, further channel and period."""
        return self.place_periods - self.key_periods

    @property
    def channels_per_key(self) -> float | None:
        """Mean number of channels of a key; None without messages.

        Over keys and periods.
        """
        return self.place_periods / self.key_periods if self.key_periods else None


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

    Hot keys have a share of the stream above 1/(5N), as published; we take the shares of the whole stream, where the
    papers estimate them online. The number of choices of d-choices is fixed, where the paper derives it from the
    shares; from N up it is w-choices. Sources take messages in turns, and each knows only what it has sent itself, as
    published (local load estimation). Of equally loaded channels the first choice wins; w-choices tries channels in
    order.

    Args:
        choices: d of d-choices, from 2.
        sources: Number of senders, from 1.

    Source: Nasir et al., The Power of Both Choices (ICDE 2015), for two choices; When Two Choices Are Not Enough (ICDE
    2016), for d and all, and for the threshold.
    """
    check_channels(channels)
    if choices < 2 or sources < 1:
        raise UsageError(f"key splitting needs at least 2 choices and 1 source (got {choices} and {sources})")
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
    return Split(splitting, channels, most, places, weights, int(met[0]), int(met[1]))


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
