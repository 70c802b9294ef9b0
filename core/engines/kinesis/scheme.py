"""The kinesis scheme: the shard of each partition key."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from adapt.core.engines.hash_functions.md5 import md5
from adapt.core.engines.placement import EnginePartitioner, as_text
from adapt.core.errors import BadInput, UsageError
from adapt.core.keys.channel_count import check_channels
from adapt.core.keys.columns import KeyBytes
from adapt.core.keys.partitioner import Channels, SortedPositions
from adapt.core.stream import KeyType


def even_shards(number: int) -> tuple[int, ...]:
    """The first hash keys of a new stream's shards.

    The last shard also has what the division leaves over.

    Source: kinesalite, actions/createStream.js.
    """
    return tuple(2**128 // number * shard for shard in range(number))


def shards_from_text(text: str) -> tuple[int, ...]:
    """The first hash keys of the open shards of a list, ascending.

    Args:
        text: The JSON of `aws kinesis list-shards` or `describe-stream`; shards with an ending sequence number are
            closed, and skipped.
    """
    try:
        data = json.loads(text)
        listed = data.get("StreamDescription", data)["Shards"]
        ranges = sorted(_range_of(shard) for shard in listed if not _is_closed(shard))
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise BadInput(
            f"not a list of shards ({type(error).__name__}: {error}); write one with `aws kinesis list-shards"
            " --stream-name NAME`"
        ) from error
    if not ranges:
        raise BadInput("no shard is open; list the shards of an active stream")
    expected = 0
    for start, end, name in ranges:
        if start != expected:
            what = "a gap before" if start > expected else "an overlap at"
            raise BadInput(f"{what} shard {name}, which starts at {start} instead of {expected}; list the shards again")
        expected = end + 1
    if expected != 2**128:
        raise BadInput(f"a gap after shard {ranges[-1][2]}, which ends at {expected - 1}; list the shards again")
    return tuple(start for start, _, _ in ranges)


def shard_starts(texts: Sequence[Any], channels: int) -> tuple[int, ...]:
    """The first hash keys of the shards of a plan."""
    if not all(isinstance(text, str) and text.isdecimal() for text in texts):
        raise BadInput("must be a list of numbers as text")
    starts = tuple(map(int, texts))
    if len(starts) != channels or starts[0] != 0 or starts[-1] >= 2**128 or any(a >= b for a, b in pairwise(starts)):
        raise BadInput(f"must be {channels} ascending numbers from 0 below 2^128, one for each channel")
    return starts


def _is_closed(shard: Mapping[str, Any]) -> bool:
    return shard.get("SequenceNumberRange", {}).get("EndingSequenceNumber") is not None


def _range_of(shard: Mapping[str, Any]) -> tuple[int, int, str]:
    keys = shard["HashKeyRange"]
    start, end = int(keys["StartingHashKey"]), int(keys["EndingHashKey"])
    if not 0 <= start <= end < 2**128:
        raise ValueError(f"range {start} to {end} is not within 0 to 2^128 - 1")
    return start, end, str(shard.get("ShardId", start))


MOST_SHARDS = 1_000_000


@dataclass(frozen=True, slots=True)
class KinesisPartitioner(EnginePartitioner):
    """The shard whose hash-key range has the MD5 of the key.

    Partition keys are text; an integer is hashed in decimal, a binary key unchanged. Kinesis has no null or empty keys;
    here both hash as empty text.

    Source: Kinesis Data Streams API reference, PutRecord.
    """

    channels: int  # N, the open shards in the order of their ranges
    shards: tuple[int, ...] = ()  # the first hash key of each shard, ascending. Default: even ranges
    key_type: KeyType | None = None
    _ends: SortedPositions = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_channels(self.channels, MOST_SHARDS)
        if self.shards and len(self.shards) != self.channels:
            raise UsageError(
                f"the shard list has {len(self.shards)} open shards, so --channels must be {len(self.shards)}"
                f" (got {self.channels})"
            )
        starts = self.shards or even_shards(self.channels)
        ends = [start - 1 for start in (*starts[1:], 2**128)]
        high = np.array([end >> 64 for end in ends], np.uint64)
        low = np.array([end & (2**64 - 1) for end in ends], np.uint64)
        object.__setattr__(self, "_ends", SortedPositions.from_sorted(high, low))

    def of_bytes(self, keys: KeyBytes, key_type: KeyType) -> Channels:
        """The channel of each key, without nulls."""
        return self._ends.first_at_or_after(*md5(as_text(keys, key_type))).astype(np.int32)
