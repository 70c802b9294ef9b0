"""How each client assigns units to workers, whatever their loads."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType

import numpy as np

from adapt.core.engines.unit_owners import in_key_group_ranges, in_ranges, in_turn
from adapt.core.errors import UsageError
from adapt.core.keys.channel_count import check_channels
from adapt.core.keys.partitioner import Channels

_MOST_WORKERS = 1 << 20


class Client(StrEnum):
    """A client with its own assignment of units to workers."""

    RANGE = "range"
    """Kafka's `RangeAssignor`."""

    ROUND_ROBIN = "round-robin"
    """Kafka's `RoundRobinAssignor`."""

    STICKY = "sticky"
    """Kafka's `StickyAssignor`, for a new group."""

    COOPERATIVE_STICKY = "cooperative-sticky"
    """Kafka's `CooperativeStickyAssignor`, for a new group."""

    FLINK = "flink"
    """Flink's ranges of key groups, or of a smaller number of units."""

    KCL = "kcl"
    """Leases of the Kinesis Client Library 1 and 2."""


def assigned_by(client: Client, topics: Sequence[str], workers: int, seed: int = 0) -> Channels:
    """The worker of each unit, as a client assigns them.

    No client knows the loads. Kafka's assignors see all consumers subscribed to the same topics, in the order of their
    member ids; worker i is the i-th of them. A lease goes to any worker that has fewer than its part, so that leases
    are dealt at random, equally many to each worker or one more.

    Args:
        client: The client.
        topics: Topic of each unit, shape (units,); units of a topic are in the order of their numbers. Streams and key
            groups have one name.
        workers: Number of workers, from 1. Those above the number of units stay idle.
        seed: Random seed of the leases, unused elsewhere.

    Returns:
        Worker of each unit, from 0; int32, shape (units,).

    Raises:
        UsageError: no unit, a number of workers out of range, or more subtasks than key groups.

    Source: Kafka's, Flink's and the Kinesis Client Library's own assignment, against which it is tested where they run.
    """
    check_channels(workers, _MOST_WORKERS)
    if not topics:
        raise UsageError("there must be at least 1 unit to assign (got 0)")
    return _ASSIGNED[client](topics, workers, seed)


def _ranges(topics: Sequence[str], workers: int, _: int) -> Channels:
    """Ranges of each topic by itself, so that the first workers have the longer ranges of all topics."""
    names = np.asarray(topics)
    out = np.empty(len(names), np.int32)
    for topic in dict.fromkeys(topics):
        out[names == topic] = in_ranges(int((names == topic).sum()), workers)
    return out


def _in_turn(topics: Sequence[str], workers: int, _: int) -> Channels:
    """One unit to each worker in turn, topics by name."""
    out = np.empty(len(topics), np.int32)
    out[np.argsort(np.asarray(topics), kind="stable")] = in_turn(len(topics), workers)
    return out


def _key_groups(topics: Sequence[str], workers: int, _: int) -> Channels:
    if workers > len(topics):
        raise UsageError(f"Flink needs a key group for each subtask (got {len(topics)} units, {workers} workers)")
    return in_key_group_ranges(len(topics), workers)


def _leases(topics: Sequence[str], workers: int, seed: int) -> Channels:
    return np.random.default_rng(seed).permutation(in_turn(len(topics), workers))


_ASSIGNED: Mapping[Client, Callable[[Sequence[str], int, int], Channels]] = MappingProxyType(
    {
        Client.RANGE: _ranges,
        Client.ROUND_ROBIN: _in_turn,
        Client.STICKY: _in_turn,
        Client.COOPERATIVE_STICKY: _in_turn,
        Client.FLINK: _key_groups,
        Client.KCL: _leases,
    }
)
