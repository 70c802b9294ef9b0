"""Split keys message by message, and measure the result."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled
from adapt.core.errors import UsageError
from adapt.core.keys.channel_count import check_channels
from adapt.core.keys.hashes import HASHES
from adapt.core.keys.names import HashName
from adapt.core.keys.partitioner import Channels
from adapt.core.metrics import columns_named
from adapt.core.partitioning.measures.metrics import Metrics, metrics_of
from adapt.core.partitioning.measures.population import Counted, Population, frequencies_in
from adapt.core.partitioning.measures.resources import ResourceFunction, Resources, load_of
from adapt.core.partitioning.splitting.names import Splitting
from adapt.core.random_bits import GOLDEN

_MIX1 = np.uint64(0xFF51AFD7ED558CCD)
_MIX2 = np.uint64(0xC4CEB9FE1A85EC53)


@dataclass(frozen=True, slots=True)
class Choices:
    """The distinct channels that each key may use, first choice first."""

    channels: Channels  # those of all keys, one key after the other, shape (places,)
    offsets: NDArray[np.int64]  # key i has channels[offsets[i]:offsets[i + 1]]; shape (keys + 1,)

    @property
    def keys(self) -> NDArray[np.int64]:
        """The key of each place, shape (places,)."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


def hashed_choice(keys: pa.Array, choice: int, channels: int, hash: HashName = HashName.MURMUR3) -> Channels:
    """A given choice of channel of each key.

    By a hash of its own; shape (keys,).

    Choice 0 is the channel of the uniform scheme. Choice j is the finalizer of MurmurHash3 over the first word of the
    key's position plus j times 2^64 over the golden ratio, modulo N.
    """
    known = HASHES[hash]
    if choice == 0:
        return known.modulo(keys, channels)
    high, _ = known.positions(keys)
    word = high + np.uint64(choice * int(GOLDEN) % 2**64)
    word = (word ^ (word >> np.uint64(33))) * _MIX1
    word = (word ^ (word >> np.uint64(33))) * _MIX2
    return ((word ^ (word >> np.uint64(33))) % np.uint64(channels)).astype(np.int32)


def choices_of(
    keys: pa.Array,
    of_each: NDArray[np.int64],
    everywhere: NDArray[np.bool_],
    channels: int,
    hash: HashName = HashName.MURMUR3,
) -> Choices:
    """The hashed choices of keys, or all channels in order.

    Hash functions may agree, so a key can have fewer channels than choices, as in the papers.

    Args:
        of_each: Number of hashed choices of each key, from 1; shape (keys,).
        everywhere: Which keys may use every channel instead, shape (keys,).
    """
    anywhere = np.flatnonzero(everywhere)
    hashed = np.where(everywhere, 0, of_each)
    owners = [np.repeat(anywhere, channels)]
    ranks = [np.tile(np.arange(channels), len(anywhere))]
    found = [np.tile(np.arange(channels, dtype=np.int32), len(anywhere))]
    for choice in range(int(hashed.max(initial=0))):
        having = np.flatnonzero(hashed > choice)
        owners.append(having)
        ranks.append(np.full(len(having), choice))
        found.append(hashed_choice(keys.take(pa.array(having)), choice, channels, hash))
    return _distinct(np.concatenate(owners), np.concatenate(ranks), np.concatenate(found), len(keys))


def _distinct(owners: NDArray[np.int64], ranks: NDArray[np.int64], channels: Channels, keys: int) -> Choices:
    """Each channel of a key once, at its first choice."""
    by_channel = np.lexsort((ranks, channels, owners))
    first = np.ones(len(owners), np.bool_)
    first[1:] = (np.diff(owners[by_channel]) != 0) | (np.diff(channels[by_channel]) != 0)
    kept = by_channel[first]
    kept = kept[np.lexsort((ranks[kept], owners[kept]))]
    offsets = np.zeros(keys + 1, np.int64)
    np.cumsum(np.bincount(owners[kept], minlength=keys), out=offsets[1:])
    return Choices(channels[kept], offsets)


MOST_MESSAGES = 10_000_000
"""Most messages that represent a counted stream; in a larger stream each represents several."""


@dataclass(frozen=True, slots=True)
class Messages:
    """The messages of a stream in order."""

    keys: pa.Array  # the distinct keys, shape (keys,)
    rows: NDArray[np.int64]  # the row in `keys` of each message, shape (messages,)
    weights: Floats  # the weight of each message, shape (messages,)
    periods: NDArray[np.int64]  # the period of each message, from 0, never falling; shape (messages,)

    def __post_init__(self) -> None:
        if not len(self.rows) == len(self.weights) == len(self.periods):
            raise ValueError(
                f"{len(self.rows)} messages do not fit {len(self.weights)} weights and {len(self.periods)} periods"
            )

    @classmethod
    def of_counts(cls, counted: Counted, generator: np.random.Generator, most: int = MOST_MESSAGES) -> "Messages":
        """Messages in random order with these counts, in one period.

        Whole counts are met exactly with at most `most` messages. Otherwise messages are sampled at even steps of the
        cumulated weight, so each key's weight is exact to one step. Keys that a lossy counter did not list have
        stand-ins: splitting follows keys, not sums.
        """
        population = Population.from_counts(frequencies_in(counted))
        ends = np.cumsum(population.loads(ResourceFunction.LINEAR))
        total = float(ends[-1]) if len(ends) else 0.0
        whole = np.issubdtype(population.frequencies.count_low.dtype, np.integer)
        number = min(round(total) if whole else population.frequencies.rows, most) if total > 0 else 0
        step = total / max(number, 1)
        rows = np.searchsorted(ends, (np.arange(number) + 0.5) * step, side="right").astype(np.int64)
        generator.shuffle(rows)
        return cls(population.keys, rows, np.full(number, step), np.zeros(number, np.int64))


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


@dataclass(frozen=True, slots=True)
class MergeCost:
    """Cost of splitting keys.

    Source: docs/theory.md, the verdict: each further worker of a split key costs a message per window.
    """

    # mean number of channels with state of a key, over keys and periods; None without messages
    channels_per_key: float | None
    merge_tuples: int  # merge messages: one per key, channel beyond its first, and period


WHOLE = MergeCost(1.0, 0)
"""Merge cost of schemes that do not split keys."""

MERGE_COLUMNS = (*columns_named("channels_per_key merge_tuples"),)
"""How `MergeCost` is shown."""


def merge_cost(done: Split) -> MergeCost:
    """The merge cost of a split."""
    return MergeCost(done.channels_per_key, done.merge_tuples)


def split_loads(done: Split, resources: Resources) -> Floats:
    """L_k(i) of every channel, from what each key sent.

    Shape (3, channels).

    A constant function counts the keys on a channel, so that a split key counts on each of its channels.
    """
    used = done.weights > 0
    owners, weights = done.places.channels[used], done.weights[used]
    costs = (load_of(load, weights) for load in resources.loads)
    return np.stack([np.bincount(owners, each, done.channels) for each in costs])


def measure_split(done: Split, messages: Messages, resources: Resources) -> Metrics:
    """The metrics of a split.

    Floors are those of whole keys; splitting can go below them.

    Loads exclude the merge messages, which go to the merger; each channel that received a key holds a part of its
    state. There is no migration: keys are not assigned to channels.
    """
    if resources.sources:
        raise UsageError(
            "schemes that split keys cannot be compared by measured resources; omit --measure, and columns of"
            f" --resources (got {resources.sources[0]!r}), or omit these schemes"
        )
    whole = np.bincount(messages.rows, weights=messages.weights, minlength=len(messages.keys))
    keys = np.sort(load_of(resources.network, whole[whole > 0]))[::-1]
    return metrics_of(
        split_loads(done, resources),
        resources,
        total=float(keys.sum()),
        heavy=keys,
        pair_floor=None,
        pinned_keys=0,
        moved=None,
    )
