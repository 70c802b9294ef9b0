"""A placement in progress: loads and migration of the tracked keys placed so far, and the price of the next one."""

import numpy as np

from adapt.core.partitioners.problem import Problem
from adapt.core.resources.functions import Floats


class Placement:
    """Tracked keys on channels, some placed, some not yet; prices each channel for the next key.

    A key is named by its row in the problem. With constant resources left out, the exponent of Eq. 20 is one over the
    number of resources left; with none left, rho is 0.

    Source: partitioning functions, section 4.2.1.
    """

    def __init__(self, problem: Problem) -> None:
        """Start with no key placed; keys that lose their explicit entry are moved, or not, by the ring."""
        self._problem = problem
        self._loads = np.zeros((len(problem.functions), problem.channels))  # (balanced resources, channels)
        self._moved = problem.owed

    def balance_penalties(self, key: int) -> Floats:
        """Rho (Eqs. 19, 20) after placing `key` on each channel; shape (channels,)."""
        load = self._problem.loads[:, key, None]
        raised = self._loads + load
        heaviest = np.maximum(raised, self._loads.max(axis=1, keepdims=True))
        lowest, runner_up = _two_lightest(self._loads)
        lightest = np.where(self._loads == lowest, np.minimum(raised, runner_up), lowest)
        average = (self._loads.sum(axis=1, keepdims=True) + load) / self._problem.channels
        return _geometric_mean(_ratio(heaviest - lightest, self._problem.theta[:, None] * average))

    def migration_penalties(self, key: int) -> Floats:
        """Gamma (Eq. 18) after placing `key` on each channel; shape (channels,).

        0 where no tracked key holds any state.
        """
        leaves_home = np.arange(self._problem.channels) != self._problem.home[key]
        moved = self._moved + self._problem.state[key] * leaves_home
        return _ratio(moved, np.float64(self._problem.ideal))

    def place(self, key: int, channel: int) -> None:
        """Give `key` its channel, for good."""
        self._loads[:, channel] += self._problem.loads[:, key]
        if channel != self._problem.home[key]:
            self._moved += self._problem.state[key]


def _two_lightest(loads: Floats) -> tuple[Floats, Floats]:
    """The least and the second least load of each row, each of shape (rows, 1); the second of one is infinite."""
    if loads.shape[1] == 1:
        return loads, np.full_like(loads, np.inf)
    least = np.partition(loads, 1, axis=1)
    return least[:, :1], least[:, 1:2]


def _ratio(numerator: Floats, denominator: Floats | np.float64) -> Floats:
    """The quotient; 0 where the denominator is, since then there is no load and so none of it uneven or moved."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=np.asarray(denominator) > 0)


def _geometric_mean(values: Floats) -> Floats:
    """Over the rows; zeros without any rows."""
    rows, columns = values.shape
    return np.asarray(values.prod(axis=0) ** (1 / rows)) if rows else np.zeros(columns)
