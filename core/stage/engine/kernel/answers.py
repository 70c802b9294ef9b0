"""Answers: window sums and join matches."""

from typing import Any

import numpy as np

from adapt.core.compiled import inlined
from adapt.core.random_bits import GOLDEN, mixed
from adapt.core.stage.records.codes import NONE
from adapt.core.stage.records.finding import joined_at, linked_at, newest_at, past_at, rank_at, total_at, window_at
from adapt.core.stage.records.world import World


@inlined
def window_sum(world: World, group_number: int, value: int) -> Any:
    """Sum of the last values of a group, including this one."""
    window = window_at(world, group_number)
    past = past_at(world, group_number * world.window + window.place)
    window.sum += value - past.value
    past.value = value
    window.place += 1
    if window.place == world.window:
        window.place = 0
    return window.sum


@inlined
def aggregate(world: World, worker: Any) -> None:
    """Add the current tuple to the aggregates of its group and part."""
    at: Any = np.int64(worker.group)
    if worker.partition >= world.splits:
        part = worker.partition - world.splits
        at = world.groups + part * world.ranks + rank_at(world, worker.group).place
    total = total_at(world, at)
    total.count += 1
    total.sum += worker.number
    total.least = min(total.least, worker.number)
    total.most = max(total.most, worker.number)


@inlined
def count_matches(world: World, worker: Any) -> None:
    """Count the matches of the current tuple, and update their digest."""
    first = world.joined_first
    row = joined_at(world, worker.number & world.joined_last)
    worker.matches = 0
    worker.pairs = np.uint64(0)
    if row.list == NONE:
        return
    earliest, latest = row.time - world.apart, row.time + world.apart
    at = newest_at(world, row.list ^ 1).at
    while at >= first:
        other = joined_at(world, at & world.joined_last)
        if other.time < earliest:
            return
        if other.time <= latest:
            older, newer = np.uint64(min(at, worker.number)), np.uint64(max(at, worker.number))
            worker.matches += 1
            worker.pairs += mixed(mixed(older * GOLDEN + np.uint64(1)) + newer)
        at = linked_at(world, at & world.joined_last).link


@inlined
def insert_row(world: World, number: int) -> None:
    """Insert a processed row into its list, by rank."""
    row = joined_at(world, number & world.joined_last)
    if row.list == NONE:
        return
    newest = newest_at(world, row.list)
    at = newest.at
    newer: Any = np.int64(NONE)
    while at > number:
        newer = at
        at = linked_at(world, at & world.joined_last).link
    linked_at(world, number & world.joined_last).link = at
    if newer == NONE:
        newest.at = number
    else:
        linked_at(world, newer & world.joined_last).link = number
