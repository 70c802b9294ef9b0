"""Shares of the partitioners of a topic, by maximum likelihood.

A record of key k comes from partitioner c with probability pi_c, and lies in partition h_c(k). Records at random are
equally likely in each partition. A custom partitioner puts key k into one partition, a hidden variable of the key. The
shares that maximize the likelihood are found by expectation and maximization.

Source: Dempster, Laird and Rubin, "Maximum likelihood from incomplete data via the EM algorithm", 1977; variances
clustered by key: Huber (1967), White (1980), Liang and Zeger (1986).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import log, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.audit.observed import KeyPartitions

Places = NDArray[np.int64]

RARE, RARER = 1e-6, 1e-9
"""A partitioner is in the mixture if its keys lie so by coincidence with a smaller probability: a known
client's, and one of many deviations."""

_LIKELIER = 7.0
"""Log likelihood that a second kind of unexplained records has to gain."""

_OWNED = 0.3
"""Correlation of the records of a key from which producers have keys of their own."""

_MUCH_LIKELIER = 10.0
"""Log likelihood that a partitioner has to gain whose keys lie so by coincidence with a probability near `UNLIKELY`."""

_TOLD = 3.0
"""Log likelihood by which one kind alone has to beat as much of the other."""

UNLIKELY = 1e-3
"""Below this probability a partitioner is in the mixture too, if it makes the records much likelier."""

_TILTS = tuple(2.0 ** np.arange(-3, 9))
"""Where the bound on a probability is looked for."""

_ROUNDS = 2000
_CLOSE = 1e-4
_TINY = 1e-300
_Z = NormalDist().inv_cdf(0.975)
"""Of a normal distribution, at 95 % confidence."""


@dataclass(frozen=True, slots=True)
class Share:
    """Share of the keyed records, with the ends of its confidence interval."""

    share: float
    low: float
    high: float


class Kind(StrEnum):
    """A kind of records that no known partitioner explains."""

    AT_RANDOM = "random"
    CUSTOM = "custom"
    EITHER = "random or custom"
    """Too few records of the same key to tell."""


@dataclass(frozen=True, slots=True)
class Mixture:
    """Shares of a mixture."""

    hashed: dict[int, Share]  # those of the partitioners in it, by number, largest first
    others: dict[Kind, Share]  # those of records that none of them explains


def mixture_of(seen: KeyPartitions, placed: Sequence[Places], partitions: int, clients: int | None = None) -> Mixture:
    """The mixture of partitioners that explains where records lie.

    Args:
        seen: Keys that are neither null nor empty.
        placed: The partition of each key by each partitioner, no two alike; shapes (keys,).
        partitions: Number of partitions, of which some may have no records.
        clients: Number of partitioners of known clients, which come first; the others need more evidence.
    """
    clients = len(placed) if clients is None else clients
    seen = replace(seen, loads=np.append(seen.loads, np.zeros(partitions - len(seen.loads), np.int64)))
    chosen = _present(seen, placed, clients)
    fit, kinds = _explained(seen, placed, chosen)
    for at in range(clients if kinds else 0):
        everything = np.ones(len(seen.key), np.bool_)
        if at in chosen or _log_coincidence(
            seen, everything, placed[at][seen.key] == seen.partition, placed[at], []
        ) > log(UNLIKELY):
            continue
        more, others = _explained(seen, placed, [*chosen, at])
        if more.likelihood > fit.likelihood + _MUCH_LIKELIER:
            fit, kinds, chosen = more, others, [*chosen, at]
    found = _with_intervals(seen, fit)
    hashed = sorted(zip(chosen, found, strict=False), key=lambda each: (-each[1].share, each[0]))
    return Mixture(dict(hashed), dict(zip(kinds, found[len(chosen) :], strict=True)))


def _explained(seen: KeyPartitions, placed: Sequence[Places], chosen: Sequence[int]) -> tuple["_Fit", tuple[Kind, ...]]:
    """The fit of some partitioners, with the kinds of records that they leave."""
    hits = np.stack([placed[at][seen.key] == seen.partition for at in chosen]).T if chosen else _none(seen)
    if hits.any(axis=1).all():
        return _fitted(seen, hits, ()), ()
    alone = {kind: _fitted(seen, hits, (kind,)) for kind in (Kind.AT_RANDOM, Kind.CUSTOM)}
    both = _fitted(seen, hits, tuple(alone))
    kind = max(alone, key=lambda each: alone[each].likelihood)
    if both.likelihood > alone[kind].likelihood + _LIKELIER:
        return both, tuple(alone)
    return alone[kind], (kind if alone[kind].likelihood >= both.halved + _TOLD else Kind.EITHER,)


def _none(seen: KeyPartitions) -> NDArray[np.bool_]:
    return np.zeros((len(seen.key), 0), np.bool_)


def _present(seen: KeyPartitions, placed: Sequence[Places], clients: int) -> list[int]:
    """Partitioners that explain more than coincidence would, given those before them; the clearest first."""
    hits = [where[seen.key] == seen.partition for where in placed]
    left, chosen = np.ones(len(seen.key), np.bool_), list[int]()
    while left.any() and len(chosen) < len(placed):
        others = [at for at in range(len(placed)) if at not in chosen]
        odds = {
            at: _log_coincidence(seen, left, hits[at], placed[at], [placed[each] for each in chosen]) for at in others
        }
        at = min(others, key=lambda each: odds[each])
        if odds[at] >= log(RARE if at < clients else RARER):
            break
        chosen.append(at)
        left &= ~hits[at]
    return chosen


def _log_coincidence(
    seen: KeyPartitions, left: NDArray[np.bool_], hits: NDArray[np.bool_], where: Places, chosen: Sequence[Places]
) -> float:
    """Log of a bound on the probability that so much lies by coincidence where a partitioner puts it.

    Of each key counts the share of its records that lies there, so that a hot key is no more evidence than another; or
    that share times the root of its records, as a key with few records at random is hardly any evidence. By
    coincidence, each partition that no other partitioner explains is equally likely. The bound is Chernoff's, for the
    clearer of the two.
    """
    records = np.where(left, seen.records, 0)
    of_key = np.add.reduceat(records, seen.starts)
    free = np.full(len(seen.keys), float(len(seen.loads)))
    decides = of_key > 0
    for at, each in enumerate(chosen):
        free -= ~np.any([each == other for other in chosen[:at]], axis=0) if at else 1.0
        decides &= each != where
    cells = np.add.reduceat(left.astype(np.float64), seen.starts)

    def bound(parts: Floats, tilt: float) -> float:
        most = tilt * np.maximum.reduceat(parts, seen.starts)
        raised = np.add.reduceat(np.where(left, np.exp(tilt * parts - most[seen.key]), 0.0), seen.starts)
        raised += (free - cells) * np.exp(-most)
        found = tilt * float(parts[hits & decides[seen.key]].sum())
        return float((np.log(raised[decides] / free[decides]) + most[decides]).sum()) - found

    shares = records / np.maximum(of_key, 1)[seen.key]
    rooted = shares * np.sqrt(of_key)[seen.key]
    return min(0.0, log(2) + min(bound(parts, tilt) for parts in (shares, rooted) for tilt in _TILTS))


@dataclass(frozen=True, slots=True)
class _Fit:
    """Shares of maximum likelihood."""

    likelihood: float
    shares: Floats  # those of the hashed ones, then at random, then custom; shape (kinds,)
    densities: Floats  # probability of each cell by kind; shape (cells, kinds)
    halved: float  # log likelihood if records at random and custom ones were as many


def _fitted(seen: KeyPartitions, hits: NDArray[np.bool_], others: Sequence[Kind]) -> _Fit:
    custom = Kind.CUSTOM in others
    is_owned = custom and _is_owned(seen, hits)
    may_hide = np.asarray(~hits.any(axis=1) if is_owned else np.ones(len(hits), np.bool_))
    even = [np.full(len(seen.key), 1 / len(seen.loads))] * (Kind.AT_RANDOM in others)
    known = np.column_stack([*hits.T.astype(np.float64), *even]) if len(hits.T) or even else np.zeros((len(hits), 0))
    weights = seen.records * seen.stands_for[seen.key]
    shares, before = np.full(known.shape[1] + custom, 1 / (known.shape[1] + custom)), -np.inf
    for _ in range(_ROUNDS):
        likelihood, hidden, given = _expected(seen, known, may_hide, shares)
        sums = (given * weights[:, None]).sum(axis=0)
        shares = sums / sums.sum()
        if likelihood - before < _CLOSE:
            break
        before = likelihood
    if is_owned:
        shares = _with_coincidences(shares, hits.shape[1], len(seen.loads))
    halved = -np.inf
    if len(others) == 2:
        halved = _expected(seen, known, may_hide, np.append(shares[:-2], np.full(2, shares[-2:].sum() / 2)))[0]
    return _Fit(likelihood, shares, np.column_stack([known, hidden]) if custom else known, halved)


def _is_owned(seen: KeyPartitions, hits: NDArray[np.bool_]) -> bool:
    """Whether producers have keys of their own, rather than that all write all keys.

    By the correlation of the records of a key: each lies where a known partitioner puts it, or not. Where producers own
    keys, a key that a known one explains says nothing about a custom one.
    """
    of_key = np.add.reduceat(seen.records, seen.starts)
    several = of_key > 1
    if not several.any():
        return False
    parts = np.add.reduceat(np.where(hits.any(axis=1), seen.records, 0), seen.starts)[several] / of_key[several]
    mean = parts.mean()
    spread = mean * (1 - mean)
    alone = ((parts - mean) ** 2 - spread / of_key[several]).sum()
    return bool(alone > _OWNED * (spread * (1 - 1 / of_key[several])).sum())


def _with_coincidences(shares: Floats, hashed: int, partitions: int) -> Floats:
    """Shares after custom records that coincide with a known partitioner are taken back from it."""
    more = shares[-1] * ((1 - 1 / partitions) ** -hashed - 1)
    changed = shares.copy()
    changed[-1] += more
    changed[:hashed] = np.maximum(shares[:hashed] - more / max(hashed, 1), 0.0)
    return np.asarray(changed / changed.sum())


def _expected(
    seen: KeyPartitions, known: Floats, may_hide: NDArray[np.bool_], shares: Floats
) -> tuple[float, Floats, Floats]:
    """Log likelihood, the probability that a cell is in the hidden partition of its key, and that of each kind.

    Shapes (), (cells,), (cells, kinds).
    """
    kinds = known.shape[1]
    plain = np.maximum(known @ shares[:kinds], _TINY)
    likelihood, parts = float(seen.records @ np.log(plain)), known * shares[:kinds]
    if len(shares) == kinds:
        return likelihood, np.zeros(0), parts / plain[:, None]
    own = shares[-1]
    hidden, gained = _hidden(seen, plain, own, may_hide)
    inside = hidden / (plain + own)
    given = np.column_stack([parts * (inside + (1 - hidden) / plain)[:, None], inside * own])
    return likelihood + float(gained.sum()), hidden, given


def _hidden(seen: KeyPartitions, plain: Floats, own: float, may_hide: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Probability that a cell's partition is the hidden one of its key, and the log likelihood that this gains.

    Args:
        may_hide: Cells that may be hidden partitions, as those without records may.

    Returns:
        Shapes (cells,), (keys,).
    """
    starts = seen.starts
    gains = np.where(may_hide, seen.records * np.log1p(own / plain), -np.inf)
    explained = np.add.reduceat(~may_hide, starts, dtype=np.int64)
    most = np.maximum(np.maximum.reduceat(gains, starts), 0.0)
    likely = np.exp(gains - most[seen.key])
    cells = np.diff(np.append(starts, len(seen.key)))
    total = np.add.reduceat(likely, starts) + (len(seen.loads) - cells) * np.exp(-most)
    possible = np.maximum(len(seen.loads) - explained, 1)
    return likely / np.maximum(total, _TINY)[seen.key], np.log(np.maximum(total, _TINY) / possible) + most


def _with_intervals(seen: KeyPartitions, fit: _Fit) -> list[Share]:
    """The shares with intervals of Wilson's form, for as many records as their variance is worth."""
    weights = seen.records * seen.stands_for[seen.key]
    total, kinds = float(weights.sum()), len(fit.shares)
    worth = np.full(kinds, float(len(seen.keys)))
    inner = np.flatnonzero(fit.shares > 1e-9)
    if len(inner) > 1:
        last, free = inner[-1], inner[:-1]
        mixed = np.maximum(fit.densities @ fit.shares, _TINY)
        slopes = (fit.densities[:, free] - fit.densities[:, [last]]) / mixed[:, None]
        information = slopes.T @ (slopes * weights[:, None])
        scores = np.add.reduceat(slopes * weights[:, None], seen.starts)
        inverse = np.linalg.pinv(information)
        clustered = inverse @ (scores.T @ scores) @ inverse
        for form in (inverse, clustered):
            variances = np.append(np.diag(form), form.sum())
            spread = fit.shares[inner] * (1 - fit.shares[inner])
            worth[inner] = np.minimum(
                worth[inner] if form is clustered else total, spread / np.maximum(variances, spread / total)
            )
    return [_wilson(float(share), float(each)) for share, each in zip(fit.shares, worth, strict=True)]


def _wilson(share: float, records: float) -> Share:
    """The interval of Wilson (1927) for a share of this many records."""
    middle = (share + _Z**2 / (2 * records)) / (1 + _Z**2 / records)
    half = _Z / (1 + _Z**2 / records) * sqrt(share * (1 - share) / records + (_Z / (2 * records)) ** 2)
    return Share(share, max(min(middle - half, share), 0.0), min(max(middle + half, share), 1.0))
