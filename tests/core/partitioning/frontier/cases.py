"""Random steps: Zipf keys anywhere on the channels of today, and the budgets for moving them."""

from itertools import product

import numpy as np

from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.frontier.today import Budget, Today


def zipf_step(seed: int, fewest: int, most: int, channels: int | None = None) -> tuple[Today, np.random.Generator]:
    """A step of up to `most` keys: Zipf 0.5 to 1.5, whole counts, on 4 to 32 channels with a residual."""
    chance = np.random.default_rng(seed)
    keys, width = int(chance.integers(fewest, most + 1)), int(chance.choice([4, 8, 16, 32]))
    width = channels or width
    shares = 1 / np.arange(1, int(chance.choice([1.1, 1.5, 5.0]) * keys) + 1) ** chance.uniform(0.5, 1.5)
    counts = np.rint(1e6 * shares / shares.sum())
    loads, others = counts[:keys], float(counts[keys:].sum())
    residual = np.rint(chance.dirichlet(np.full(width, 50.0)) * others)
    state = loads if seed % 2 else chance.permutation(loads)
    capacities = chance.integers(1, 4, width).astype(float) if seed % 4 == 3 else np.ones(width)
    home = chance.integers(0, width, keys).astype(np.int32)
    return Today(loads, state, home, residual, capacities, others), chance


def tiny_step(seed: int) -> tuple[Today, Budget]:
    """A step of up to 6 keys on up to 4 channels, and a budget."""
    chance = np.random.default_rng(seed)
    keys, channels = int(chance.integers(1, 7)), int(chance.integers(1, 5))
    loads = [chance.integers(0, 20, keys).astype(float), chance.random(keys), np.rint(100 / np.arange(1, keys + 1))]
    today = Today(
        loads[seed % 3],
        chance.integers(0, 9, keys).astype(float) if seed % 2 else loads[seed % 3],
        chance.integers(0, channels, keys).astype(np.int32),
        chance.integers(0, 10, channels) * float(seed % 5 > 0),
        chance.integers(1, 4, channels).astype(float) if seed % 4 == 0 else np.ones(channels),
        float(chance.integers(0, 5)),
    )
    shares = [None, float(chance.random()), float(chance.random() * 0.3)]
    return today, Budget(shares[seed % 3], [None, int(chance.integers(0, 4))][seed // 3 % 2])


def keeps(today: Today, budget: Budget, placed: Channels) -> bool:
    """Whether a placement is within a budget."""
    return today.moved(placed) <= today.state_in(budget) and today.pins(placed) <= budget.pins


def least_of_all(today: Today, budget: Budget) -> float:
    """The least imbalance of all placements within a budget, one after the other."""
    every = product(range(len(today.residual)), repeat=len(today.loads))
    placements = (np.array(each, np.int32) for each in every)
    return min(today.imbalance(placed) for placed in placements if keeps(today, budget, placed))
