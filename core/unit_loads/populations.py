"""Random populations of keys, hashed to units."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats

_APART = 128
"""The hottest keys are placed each by itself; sums of all others are normal, with their mean and variance."""

_MOST_KEYS = 300_000
_KNOWN_WITHIN = 3.0
"""Keys number from a third to three times a known number, which is seldom exact and says little of busy keys."""

_Draws: TypeAlias = np.random.Generator


@dataclass(frozen=True, slots=True)
class Populations:
    """Loads of units in several populations, and the hottest keys behind them."""

    shares: Floats  # of each unit in the load of a window; shape (populations, units, windows)
    hottest: Floats  # share of the hottest key in all load; shape (populations,)
    on_busiest: Floats  # share of the hottest key on the busiest unit; shape (populations,)


def populations(random: _Draws, count: int, fair: Floats, windows: int, keys: int | None = None) -> Populations:
    """Populations drawn at random.

    Numbers of keys are uniform in their logarithm. Shares of keys fall by rank, as a Zipf-Mandelbrot law or
    exponentially, or are equal; a few keys may be hot on top, and change more or less than others. In time a key varies
    on its own, with more or less memory, and may be active in a part of the windows only; with or without the same
    total. A finite number of rows adds noise.

    Args:
        count: Number of populations.
        fair: Share of equal keys that each unit gets on average, shape (units,).
        windows: Number of windows.
        keys: Number of keys, if known.

    Source: ours.
    """
    low, high = (2.0, float(_MOST_KEYS)) if keys is None else (keys / _KNOWN_WITHIN, keys * _KNOWN_WITHIN)
    number = np.maximum(np.floor(np.exp(random.uniform(np.log(low), np.log(high), count))), 2.0)
    own, is_hot, rest, squares = _by_rank(random, number)
    spread, memory = np.exp(random.uniform(np.log(0.02), np.log(2.0), count)), random.uniform(0, 1, count)
    life = np.where(random.random(count) < 0.3, np.exp(random.uniform(-np.log(windows), 0, count)), 1.0)
    of_hot = np.exp(random.uniform(np.log(0.02), np.log(2.0), count))
    spreads = np.where(is_hot, of_hot[:, None], spread[:, None]) * np.exp(0.4 * random.normal(size=own.shape))
    loads = _over_time(random, own, spreads, memory, life, windows)
    home = np.searchsorted(np.cumsum(fair)[:-1], random.random(own.shape), side="right")
    units = len(fair)
    rows = (np.arange(count)[:, None] * units + home).ravel()
    shares = np.empty((count, units, windows))
    placed = rest[:, None] * fair + np.sqrt(squares[:, None] * fair * (1 - fair)) * random.normal(size=(count, units))
    changes = np.sqrt(squares * (np.exp(np.minimum(spread**2, 4.0)) - 2 + 1 / life))[:, None] * np.sqrt(fair)
    for at, noise in enumerate(_noise(random, (count, units), memory, windows)):
        on = np.bincount(rows, loads[:, :, at].ravel(), count * units).reshape(count, units)
        shares[:, :, at] = on + np.maximum(placed + changes * noise, 0.0)
    totals = np.maximum(shares.sum(axis=1, keepdims=True), 1e-12)
    shares, of_keys = shares / totals, (loads / totals).mean(axis=2)
    sampled = np.exp(random.uniform(np.log(100), np.log(3e6), count))[:, None, None]
    shares = np.maximum(shares + np.sqrt(shares / sampled) * random.normal(size=shares.shape), 0.0)
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-12)
    is_busiest = home == shares.mean(axis=2).argmax(axis=1)[:, None]
    return Populations(shares, of_keys.max(axis=1), np.where(is_busiest, of_keys, 0.0).max(axis=1))


def _by_rank(random: _Draws, number: Floats) -> tuple[Floats, NDArray[np.bool_], Floats, Floats]:
    """Shares of the hottest keys, and which are hot on top; the sum of all others', and of their squares.

    Shapes (populations, keys) and (populations,).
    """
    count, rank = len(number), np.arange(1, _APART + 1)
    exponent, kind = random.uniform(0, 1.6, count), random.random(count)
    widest = np.log(np.maximum(number / 3, 1.0))
    shift = np.where(random.random(count) < 0.4, 0.0, np.exp(random.uniform(np.log(0.3), widest)))
    exponent = np.where(kind < 0.15, 0.0, exponent)
    own = (rank + shift[:, None]) ** -exponent[:, None]
    first, last = _APART + 0.5 + shift, np.maximum(number, _APART) + 0.5 + shift
    rest, squares = _power(exponent, first, last), _power(2 * exponent, first, last)
    falls, is_exponential = np.maximum(random.uniform(0, 7, count), 1e-6), kind > 0.75
    begin = np.minimum(_APART / number, 1.0)
    own = np.where(is_exponential[:, None], np.exp(-falls[:, None] * rank / number[:, None]), own)
    rest = np.where(is_exponential, number / falls * (np.exp(-falls * begin) - np.exp(-falls)), rest)
    of_squares = number / (2 * falls) * (np.exp(-2 * falls * begin) - np.exp(-2 * falls))
    squares = np.where(is_exponential, of_squares, squares)
    own = np.where(rank <= number[:, None], own, 0.0)
    total = own.sum(axis=1) + rest
    hot = np.where(rank <= random.integers(1, 6, count)[:, None], random.exponential(1, own.shape), 0.0)
    part = np.where(random.random(count) < 0.3, np.exp(random.uniform(np.log(1e-4), np.log(0.6), count)), 0.0)
    own = own / total[:, None] * (1 - part[:, None]) + hot / hot.sum(axis=1, keepdims=True) * part[:, None]
    is_hot = (hot > 0) & (part[:, None] > 0)
    return own, is_hot, rest / total * (1 - part), squares / total**2 * (1 - part) ** 2


def _power(exponent: Floats, first: Floats, last: Floats) -> Floats:
    """The integral of x^-exponent."""
    rising = 1 - exponent
    is_log = np.abs(rising) < 1e-6
    integral = (last**rising - first**rising) / np.where(is_log, 1.0, rising)
    return np.asarray(np.where(is_log, np.log(last / first), integral))


def _over_time(random: _Draws, own: Floats, spreads: Floats, memory: Floats, life: Floats, windows: int) -> Floats:
    """Loads of keys in windows; shape (populations, keys, windows)."""
    loads = np.stack(list(_noise(random, own.shape, memory, windows)), axis=2)
    loads = own[:, :, None] * np.exp(spreads[:, :, None] * loads - spreads[:, :, None] ** 2 / 2)
    start, middle = random.uniform(-life[:, None], 1.0, own.shape)[:, :, None], (np.arange(windows) + 0.5) / windows
    is_active = (middle >= start) & (middle < start + life[:, None, None])
    loads *= np.where(life[:, None, None] < 1, is_active / life[:, None, None], 1.0)
    mean = loads.mean(axis=2, keepdims=True)
    keeps_total = (random.random(len(own)) < 0.5)[:, None, None] & (mean > 0)
    return np.asarray(np.where(keeps_total, loads * own[:, :, None] / np.maximum(mean, 1e-15), loads))


def _noise(random: _Draws, shape: tuple[int, ...], memory: Floats, windows: int) -> list[NDArray[np.float64]]:
    """Standard normal noise by window, with memory by population."""
    kept, fresh = memory[:, None], np.sqrt(1 - memory[:, None] ** 2)
    noise = [random.normal(size=shape)]
    for _ in range(windows - 1):
        noise.append(kept * noise[-1] + fresh * random.normal(size=shape))
    return noise
