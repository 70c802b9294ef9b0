"""Shards of a Kinesis stream: hash-key ranges of 128 bits."""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from adapt.core.errors import BadInput


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
