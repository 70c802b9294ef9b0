"""Choice of the hot keys to pin."""

import math
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.counting.frequencies import Counts, Frequencies
from adapt.core.partitioning.measures.plan_settings import PlanSettings
from adapt.core.partitioning.measures.resources import (
    Load,
    Measured,
    ResourceFunction,
    Resources,
    largest_shares,
    listed_loads,
    load_of,
    loads_at,
    whole_load,
)
from adapt.core.phrases import percent
from adapt.core.stream import Weight

COARSEST = 1e-3
"""Largest derived error of counts."""

FINEST = 1e-9
"""Smallest derived error of counts: a tolerance of 1 leaves hashed keys no room."""

SERVED = 1000
"""Default number of pinned keys that counts must serve: that of the level construction."""


MOST_TRACKED = 10_000
"""More keys than these are pinned only if they reach delta, or on request."""

_RING_NOISE = 1.05
"""Hashed load of a channel / an even part of it, as a ring of a thousand replicas may leave it."""


def tracked_keys(
    frequencies: Frequencies,
    resources: Resources,
    channels: int,
    track: int | None = None,
    least: int = 0,
    held: pa.Array | None = None,
) -> pa.Array:
    """D_p: the keys to pin, by falling count, then key bytes.

    Exact counts give the keys with f >= delta; lossy counts every key whose upper bound reaches delta, so no such key
    is missed. With a measured resource, listed keys whose share of that load reaches the delta of a linear one are
    pinned too, since a rare key may be large in bytes. With one channel no key is pinned, whatever `track` is (Eq. 15
    divides by N - 1).

    Args:
        resources: Functions, tolerances and sigma, which set delta.
        track: Take this many of the hottest keys instead of those that reach delta; with measured resources, those with
            the largest share of a load.
        least: Take at least this many of the hottest keys, and up to `MOST_TRACKED` until the channel of the hottest
            key can keep the network tolerance, if it can at all. Ignored with `track`.
        held: Keys pinned now that would move if they were hashed. They stay, since leaving costs their state (Eq. 18,
            first sum) and balances nothing: the hottest of them, up to `MOST_TRACKED` keys in all. Ignored with
            `track`.

    Source: partitioning functions, sections 4.1.1 to 4.1.3.
    """
    PlanSettings(max_pins=track)  # in its range
    if channels == 1 or frequencies.total == 0:
        return frequencies.keys[:0]
    if track is not None:
        return frequencies.keys.take(pa.array(np.sort(_heaviest(frequencies, resources, track))))
    # With exact counts this is the head of the list; upper bounds need not fall as the counts do.
    reached = reaches(frequencies, threshold(frequencies, resources, channels))
    for load, alpha in zip(resources.loads, resources.tolerance, strict=True):
        if isinstance(load, Measured):
            loads, whole = listed_loads(frequencies, load), whole_load(frequencies, load)
            reached |= (loads > 0) & (loads >= _room(resources, alpha, channels) * whole)
    if least:
        reached[_heaviest(frequencies, resources, _enough(frequencies, resources, channels, least))] = True
    if held is not None:
        rows = np.sort(frequencies.rows_of(held))
        rows = rows[rows >= 0]
        rows = rows[~reached[rows]]
        reached[rows[: max(MOST_TRACKED - np.count_nonzero(reached), 0)]] = True
    return frequencies.keys.filter(pa.array(reached))


def with_held(
    frequencies: Frequencies, resources: Resources, tracked: pa.Array, held: pa.Array, excess: float
) -> pa.Array:
    """Tracked keys, with those that a migration limit holds.

    As many as before: held keys take the place of the coldest tracked ones that are not held, those of most state
    first, until the limit holds.

    Args:
        held: Keys pinned now that would move if they were hashed.
        excess: State by which the migration of all keys that are not tracked exceeds the limit.
    """
    leaving = held.filter(pc.invert(pc.is_in(held, value_set=tracked)))
    state = loads_at(frequencies, frequencies.rows_of(leaving), resources.state)
    order = np.argsort(-state, kind="stable")
    staying = order[np.cumsum(state[order]) - state[order] < excess]
    free = np.flatnonzero(~pc.is_in(tracked, value_set=held).to_numpy(zero_copy_only=False))
    kept = np.delete(np.arange(len(tracked)), free[max(len(free) - len(staying), 0) :])
    either = pa.concat_arrays([tracked.take(pa.array(kept)), leaving.take(pa.array(staying[: len(free)]))])
    return frequencies.keys.filter(pc.is_in(frequencies.keys, value_set=either))


def _heaviest(frequencies: Frequencies, resources: Resources, most: int) -> NDArray[np.int64]:
    """The rows of the hottest listed keys: by count, or with measured resources by largest share of a load."""
    if not resources.sources:
        return np.arange(min(most, len(frequencies.keys)))
    return np.argsort(-largest_shares(frequencies, resources), kind="stable")[:most]


def _enough(frequencies: Frequencies, resources: Resources, channels: int, least: int) -> int:
    """How many keys to pin so that the ring adds little to the hottest key; at least `least`.

    The channel of the hottest key has its share, f1, and about an even part of the hashed load: over the mean,
    N f1 + 1 - (f1 + f2 + ...).
    """
    if resources.sources or resources.network is not ResourceFunction.LINEAR or not len(frequencies.keys):
        return least
    shares = frequencies.count_low[:MOST_TRACKED] / frequencies.total
    alone = channels * float(shares[0])
    if alone > resources.tolerance[2]:
        return least  # no assignment can keep it
    over_mean = alone + _RING_NOISE * (1 - np.cumsum(shares))
    return max(least, min(int(np.count_nonzero(over_mean > resources.tolerance[2])) + 1, MOST_TRACKED))


def theta(alpha: float, channels: int) -> float:
    """theta_k: tolerated relative distance of a load from the mean.

    Eq. 15; 0 for one channel.
    """
    return (alpha - 1) / (1 + alpha / (channels - 1)) if channels > 1 else 0.0


def threshold(frequencies: Frequencies, resources: Resources, channels: int) -> float:
    """delta: least share of the stream of a pinned key.

    The least over the resources (Eqs. 16, 17).

    A resource that is not linear first takes all keys above the delta of Eq. 17, then predicts its load from them and
    raises its delta accordingly (section 4.1.3; the predicted load is divided by N, since Eq. 16 is about the average
    channel). Measured columns do not count.
    """
    domain = max(frequencies.distinct, len(frequencies.keys))
    known = Known(domain, frequencies.total)
    collected = reaches(frequencies, min(_deltas(resources, channels, known)))
    return min(_deltas(resources, channels, replace(known, hottest=frequencies.count_low[collected])))


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a stream's keys before they are counted."""

    domain: int  # the number of distinct keys, or an estimate
    # the weight of all rows. Default: as if each key had one row; powers of the count do not depend on it
    total: float = 0.0
    # counts of some of the hottest keys, or lower bounds; the other keys are taken as equally frequent, for which a
    # load that grows faster than the count is least
    hottest: Counts = field(default_factory=lambda: np.zeros(0))

    @property
    def rows(self) -> float:
        """The weight of all rows, above 0."""
        return self.total or max(self.domain, 1)

    def whole(self, load: Load) -> float:
        """The load of all keys (section 4.1.3)."""
        others = max(self.domain - len(self.hottest), 0)
        left = max(self.rows - float(self.hottest.sum()), 0.0)
        return float(load_of(load, self.hottest).sum()) + (
            others * float(load_of(load, left / others)) if others else 0
        )


def epsilon_for(resources: Resources, channels: int, known: Known | int, track: int | None = None) -> float:
    """Error of lossy counts that identify the keys to pin.

    For up to `channels`: 0.1 delta.

    Delta falls as channels grow, so the most channels count. Of a resource that is not linear, Eq. 16 is solved for the
    load that the known keys have at least; without any, that is Eq. 17. The error is at most `COARSEST`, so that a
    table of hot keys has rows.

    Args:
        resources: Functions, tolerances and sigma, which set delta.
        channels: The most channels that the counts serve.
        known: What is known of the keys, or their number.
        track: Number of keys to pin; the error is at most a tenth of an even share among them.

    Source: partitioning functions, sections 4.1.2 and 5.4, which proposes to estimate the distribution. Our reading of
    the paper's 0.1: a share of delta.
    """
    keys = Known(known) if isinstance(known, int) else known
    delta = min(_deltas(resources.by_count, max(channels, 2), keys))
    wanted = min(delta, 1 / (10 * track)) if track else delta
    return max(min(0.1 * wanted, COARSEST), FINEST)


def counted_sentence(frequencies: Frequencies, resources: Resources, channels: int, *, estimate: bool) -> str:
    """A sentence on the counts: how exact and complete.

    Complete if they list all keys to pin.

    Args:
        estimate: Whether the load of unlisted keys on a channel is estimated.
    """
    keys = f"{frequencies.distinct:,} keys, weighed by {frequencies.weight}"
    how = "exactly" if frequencies.exact else "lossily"
    if frequencies.complete_above == 0:
        return f"{keys}, counted {how}" + ("" if frequencies.exact else " without error")
    share = frequencies.complete_above / frequencies.total
    about = "" if frequencies.exact else "about "
    listed = f"every key above {percent(share)} is listed ({len(frequencies.keys):,} keys)"
    lossy = f"{about}{keys}, counted {how}: {listed}"
    if channels > 1 and share > threshold(frequencies, resources, channels):
        return f"{lossy}, but keys below that should be pinned too; count exactly, or with a smaller --epsilon"
    rest = "the load of all others on a worker is an estimate" if estimate else "all others are summed by worker"
    return f"{lossy}, {rest}"


def measured_sentences(frequencies: Frequencies, resources: Resources, channels: int) -> list[str]:
    """A sentence on each measured column that is partly on unlisted keys.

    A counter of frequent keys may miss a rare key that is large as measured.
    """
    sentences = []
    for source in resources.sources:
        column = frequencies.column(source)
        if column.unlisted == 0:
            continue
        share = column.unlisted / column.total
        sentence = f"{source}: {percent(share)} is on unlisted keys"
        alphas = [
            alpha for load, alpha in zip(resources.loads, resources.tolerance, strict=True) if load == Measured(source)
        ]
        if share >= min(_room(resources, alpha, channels) for alpha in alphas):
            sentence += f"; a key large in {source} but low in {frequencies.weight} would be missed: count exactly" + (
                f", or with --weight {source}" if source in list(Weight) else ""
            )
        sentences.append(sentence)
    return sentences


def reaches(frequencies: Frequencies, delta: float) -> NDArray[np.bool_]:
    """Which listed keys may have a share of at least `delta`.

    Shape (keys,).
    """
    return np.asarray(frequencies.count_high / frequencies.total >= delta)


def _deltas(resources: Resources, channels: int, known: Known) -> list[float]:
    """delta_k of each resource (Eqs. 16 and 17)."""
    return [
        _delta(load, _room(resources, alpha, channels), known)
        for load, alpha in zip(resources.loads, resources.tolerance, strict=True)
    ]


def _room(resources: Resources, alpha: float, channels: int) -> float:
    """Load left to hashed keys on one channel, as a share of the whole load: delta of a linear resource."""
    return resources.sigma * theta(alpha, channels) / channels


def _delta(load: Load, room: float, known: Known) -> float:
    """The share of the stream at which beta fills `room` of the whole load; at most 1."""
    if load is ResourceFunction.LINEAR:
        return room
    if load is ResourceFunction.QUADRATIC:
        return min(math.sqrt(room * known.whole(load)) / known.rows, 1.0)
    return 1.0
