"""Load of keys that a producer places at random, spread evenly."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.counting.frequencies import Counts, Frequencies
from adapt.core.engines.names import AnyScheme, Engine
from adapt.core.engines.registry import definition_of, placement_of
from adapt.core.keys.partitioner import Channels, random_keys
from adapt.core.partitioning.measures.population import Counted, Population, frequencies_in, stand_in_keys
from adapt.core.partitioning.schemes.explicit import ExplicitMap

PARTS = 4096
"""About how many keys stand for the load at random."""

_NOTHING = 1e-12
"""Share of a key's load that is a rounding error."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Load of keys outside the channel of their placement."""

    engine: Engine  # engine, channels: the placement of the stand-ins
    channels: int
    keys: pa.Array  # the keys, distinct
    key: NDArray[np.int64]  # row of the key of each cell; shape (cells,)
    channel: NDArray[np.int64]  # where it lies; shape (cells,)
    share: NDArray[np.float64]  # share of the key's load; shape (cells,)


def spread_elsewhere(counted: Counted, elsewhere: Elsewhere) -> Counted:
    """Counted keys, with load that lies elsewhere on stand-ins of those channels."""
    if isinstance(counted, Population):
        return _with_spread(counted, frequencies_in(spread_elsewhere(counted.frequencies, elsewhere)))
    rows = counted.rows_of(elsewhere.keys)[elsewhere.key]
    known = rows >= 0
    rows, shares, places = rows[known], elsewhere.share[known], elsewhere.channel[known]
    if not len(rows):
        return counted
    channels = elsewhere.channels
    parts = _even_keys(counted, elsewhere.engine, channels)
    homes = placement_of(elsewhere.engine, channels, key_type=counted.key_type).channels_of(parts)
    alike = np.bincount(homes, minlength=channels)
    left = 1 - np.bincount(rows, shares, len(counted.keys))

    def divided(weights: Counts) -> NDArray[np.float64]:
        moved = np.bincount(places, weights[rows] * shares, channels)
        lost = float(moved[alike == 0].sum()) / len(parts)
        return np.concatenate((weights * left, moved[homes] / alike[homes] + lost))

    low = divided(counted.count_low)
    kept = np.flatnonzero(left > _NOTHING)
    order = np.append(kept[np.argsort(-low[kept], kind="stable")], np.arange(len(left), len(low)))
    return replace(
        counted,
        keys=pa.concat_arrays([counted.keys, parts]).take(pa.array(order)),
        count_low=low[order],
        count_high=divided(counted.count_high)[order],
        measured=tuple(replace(each, values=divided(each.values)[order]) for each in counted.measured),
        distinct=counted.distinct + len(order) - len(left),
        stand_ins=parts,
    )


def _with_spread(counted: Population, spread: Frequencies) -> Population:
    if spread is counted.frequencies:
        return counted
    return Population.from_counts(spread) if counted.sums is None else Population.with_sums(spread, counted.sums)


def spread_at_random(counted: Counted, hashing: AnyScheme, channels: int, pinned: ExplicitMap | None = None) -> Counted:
    """Counted keys, with load at random on stand-ins for each channel.

    A null key that the engine sends anywhere has many channels, and cannot be pinned. Its load is spread over made-up
    keys of equal weight.

    Args:
        pinned: Keys with channels of their own, which are not at random.
    """
    if isinstance(counted, Population):
        return _with_spread(counted, frequencies_in(spread_at_random(counted.frequencies, hashing, channels, pinned)))
    mask = _at_random(counted, hashing, pinned)
    if not mask.any() or not isinstance(hashing, Engine):
        return counted
    kept = pa.array(~mask)
    parts = _even_keys(counted, hashing, channels)
    low, high = (_with_parts(counts, mask, len(parts)) for counts in (counted.count_low, counted.count_high))
    keys = pa.concat_arrays([counted.keys.filter(kept), parts])
    measured = tuple(
        replace(column, values=_with_parts(column.values, mask, len(parts))) for column in counted.measured
    )
    return replace(
        counted,
        keys=keys,
        count_low=low,
        count_high=high,
        measured=measured,
        distinct=counted.distinct + len(parts) - int(mask.sum()),
        stand_ins=parts,
    )


def share_at_random(counted: Frequencies, hashing: AnyScheme, pinned: ExplicitMap | None = None) -> float:
    """Share of the load that the engine places at random."""
    mask = _at_random(counted, hashing, pinned)
    return float(counted.count_low[mask].sum() / counted.total) if mask.any() else 0.0


def _at_random(counted: Frequencies, hashing: AnyScheme, pinned: ExplicitMap | None) -> NDArray[np.bool_]:
    if not isinstance(hashing, Engine) or counted.stand_ins is not None:
        return np.zeros(len(counted.keys), np.bool_)
    mask = random_keys(definition_of(hashing).at_random, counted.keys)
    return mask if pinned is None or not mask.any() else mask & (pinned.rows_of(counted.keys) < 0)


def _even_keys(counted: Frequencies, engine: Engine, channels: int) -> pa.Array:
    """Stand-ins, as many for each channel, in turns; any if there are many channels."""
    keys = stand_in_keys(counted.keys.type, 2 * PARTS)
    placed = placement_of(engine, channels, key_type=counted.key_type).channels_of(keys)
    order = np.argsort(placed, kind="stable")
    ranked = placed[order]
    turn = np.empty(len(keys), np.int64)
    turn[order] = np.arange(len(keys)) - np.searchsorted(ranked, ranked)
    whole = turn < np.bincount(placed, minlength=channels).min()
    chosen = np.flatnonzero(whole) if whole.any() else np.arange(len(keys))
    return keys.take(pa.array(chosen[np.argsort(turn[chosen], kind="stable")][: PARTS // channels * channels or PARTS]))


def _with_parts(weights: Counts, mask: NDArray[np.bool_], parts: int) -> NDArray[np.float64]:
    """The weights outside the mask, then the others' sum in equal parts."""
    return np.concatenate((weights[~mask].astype(np.float64), np.full(parts, float(weights[mask].sum()) / parts)))


def settled(before: Channels, placed: Channels, counted: Frequencies) -> Channels:
    """The channels before, with stand-ins where they are now.

    What has no fixed channel does not migrate.
    """
    if counted.stand_ins is None:
        return before
    rows = counted.rows_of(counted.stand_ins)
    after = before.copy()
    after[rows] = placed[rows]
    return after
