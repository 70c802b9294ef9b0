"""The pulsar scheme: consumers of a Key_Shared subscription."""

from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np

from adapt.core.engines.hash_functions.murmur3_32 import murmur3_32
from adapt.core.engines.placement import EnginePartitioner, Hashes, as_text
from adapt.core.keys.channel_count import check_channels
from adapt.core.keys.columns import KeyBytes, one_key
from adapt.core.keys.partitioner import Channels
from adapt.core.stream import KeyType

SLOTS = 65_536
"""Size of the hash range of a subscription."""

MOST_CONSUMERS = 32_768
"""Ranges can be halved down to two slots."""

NO_KEY = b"NONE_KEY"
"""What Pulsar hashes for a message without a key."""


def murmur3_31(keys: KeyBytes, key_type: KeyType) -> Hashes:
    """Pulsar's MurmurHash3 of each text, without the sign bit."""
    return murmur3_32(as_text(keys, key_type)) & np.uint32(0x7FFFFFFF)


@dataclass(frozen=True, slots=True)
class PulsarPartitioner(EnginePartitioner):
    """Ranges of slots, auto-split: each new consumer halves the largest range.

    A key's slot is its hash modulo 65,536. Partition keys are text; an integer is hashed in decimal. A message without
    a key has the key `NONE_KEY`.

    Source: Pulsar, HashRangeAutoSplitStickyKeyConsumerSelector.java.
    """

    channels: int  # N, the consumers in the order in which they came
    key_type: KeyType | None = None
    _owners: Channels = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_channels(self.channels, MOST_CONSUMERS)
        object.__setattr__(self, "_owners", _owners(self.channels))

    def of_bytes(self, keys: KeyBytes, key_type: KeyType) -> Channels:
        """The channel of each key, without nulls."""
        return np.asarray(self._owners[murmur3_31(keys, key_type) & np.uint32(SLOTS - 1)])

    def of_null(self, key_type: KeyType) -> int:  # noqa: ARG002 - of every type
        """The channel of messages without a key."""
        return int(self.of_bytes(one_key(NO_KEY), KeyType.STRING)[0])


def _owners(consumers: int) -> Channels:
    """The consumer of each slot; shape (slots,). A range ends at its slot and begins after the one before."""
    ranges = [(-SLOTS, SLOTS, 0)]
    for consumer in range(1, consumers):
        width, end, owner = heappop(ranges)  # the first of the widest
        half = -width // 2
        heappush(ranges, (-half, end, owner))
        heappush(ranges, (width + half, end - half, consumer))
    ends, owners = np.array(sorted(each[1:] for each in ranges), np.int32).T
    return np.asarray(owners[np.searchsorted(ends, np.arange(SLOTS), side="left")])
