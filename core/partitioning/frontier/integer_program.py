"""Integer program of the least utilization of the busiest channel."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import highspy
import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.measures.floors import pigeonhole_peak


@dataclass(frozen=True, slots=True)
class Alike:
    """Groups of equal keys, and how many each channel needs.

    Interchangeable channels may be renumbered in any assignment by the first key on each. Then the j-th of them,
    counted from 0, has none of the first j keys; no other assignment needs to be searched.
    """

    keys: NDArray[np.intp]  # the keys in the order of their groups, shape (keys,)
    sizes: NDArray[np.int64]  # number of keys of each group, shape (groups,)
    # the groups of interchangeable channels, by rising number; unique channels may be missing
    channels: tuple[NDArray[np.intp], ...]
    most: NDArray[np.int64]  # how many keys of each group each channel may have, shape (groups, channels)

    @classmethod
    def from_descriptions(cls, described: Sequence[Floats], channels: Floats, unlike: Channels) -> "Alike":
        """Group keys and channels of equal properties.

        Args:
            described: Properties of keys, loads first; each of shape (keys,).
            channels: A property of channels, shape (channels,).
            unlike: Channels that are unique whatever their property; numbers out of range are ignored.
        """
        columns = np.stack([-described[0], *described[1:]])
        _, of_key, sizes = np.unique(columns, axis=1, return_inverse=True, return_counts=True)
        others = np.setdiff1d(np.arange(len(channels)), unlike)
        alike = tuple(others[channels[others] == each] for each in np.unique(channels[others]))
        before = np.zeros(len(channels), np.int64)
        for group in alike:
            before[group] = np.arange(len(group))
        most = np.where(np.cumsum(sizes)[:, None] > before, sizes[:, None], 0)
        return cls(np.argsort(of_key.reshape(-1), kind="stable"), sizes, alike, most)

    @property
    def heads(self) -> NDArray[np.intp]:
        """One key of each group, shape (groups,)."""
        return np.asarray(self.keys[np.cumsum(self.sizes) - self.sizes])

    def counted(self, placement: Channels) -> NDArray[np.int64]:
        """Number of keys of each group per channel, after renumbering.

        Shape (groups, channels).
        """
        channels = self.most.shape[1]
        placed = placement[self.keys]
        first = np.full(channels, len(placed))
        np.minimum.at(first, placed, np.arange(len(placed)))
        number = np.arange(channels)
        for group in self.channels:
            number[group[np.argsort(first[group], kind="stable")]] = group
        group_of = np.repeat(np.arange(len(self.sizes)), self.sizes)
        counted = np.zeros(self.most.shape, np.int64)
        np.add.at(counted, (group_of, number[placed]), 1)
        return counted

    def placement(self, counted: NDArray[np.int64]) -> Channels:
        """The channel of each key, from numbers per group.

        Earlier keys are on lower channels.
        """
        placed = np.empty(len(self.keys), np.int32)
        groups, channels = counted.shape
        placed[self.keys] = np.repeat(np.tile(np.arange(channels), groups), counted.reshape(-1))
        return placed


TOLERANCE = 1e-8
"""Resolution of loads, relative to an average channel's."""

_SECONDS = 60.0
"""A backstop, since a single node may take long."""

_FEASIBLE = 1e-9
"""Feasibility tolerance of the solver, at an average channel load of 32 to 64."""


@dataclass(frozen=True, slots=True)
class Found:
    """Result of one search."""

    placement: Channels  # the best assignment, including the first one; int32, shape (keys,)
    bound: float  # lower bound of the highest utilization of all allowed assignments
    proved: bool  # whether the assignment is optimal: it reaches the bound up to twice the tolerance


@dataclass(frozen=True, slots=True)
class Program:
    """All assignments of keys to channels within a migration limit.

    With y[g, c] the number of keys of group g on channel c, n_g keys in the group, each of load l_g and state s_g, and
    residual R_c and capacity C_c:

        sum over c of y[g, c] = n_g                          for every group
        R_c + sum over g of l_g y[g, c] <= U C_c             for every channel
        sum over g of s_g y[g, home of g] >= what must stay  if migration is limited
        sum over g of y[g, home of g] >= how many must stay  if pins are limited

    U is the highest utilization of a channel: load, if all capacities are 1. Equal keys are one group, and channels of
    equal residual and capacity are interchangeable (`Alike`); if migration or pins are limited, equal keys have one
    home too, and a home is unique. U is bounded beforehand by what whole keys allow (`least_highest`), which the linear
    relaxation, splitting keys, does not see.

    Source: ours. Solved by HiGHS (Huangfu and Hall, Parallelizing the dual revised simplex method, Mathematical
    Programming Computation 10, 2018), by one thread and with a fixed seed.
    """

    loads: Floats  # of each key, shape (keys,)
    residual: Floats  # fixed load of each channel, shape (channels,)
    state: Floats  # of each key, shape (keys,)
    home: Channels  # current channel of each key; `channels` or above if it is removed. Shape (keys,)
    most_moved: float | None  # state that may leave a remaining home. Default: unlimited
    capacities: Floats  # of each channel / mean capacity; shape (channels,)
    most_pins: int | None = None  # number of keys that may leave a remaining home. Default: unlimited

    @property
    def channels(self) -> int:
        """N."""
        return len(self.residual)

    @property
    def total(self) -> float:
        """Load of all keys and channels."""
        return float(self.loads.sum() + self.residual.sum())

    @property
    def average(self) -> float:
        """Mean load of a channel: the utilization of all capacity."""
        return self.total / float(self.capacities.sum())

    @property
    def least_highest(self) -> float:
        """Lower bound of the load of the busiest channel.

        The mean; its residual; and what whole keys need (`pigeonhole_peak`), on the largest channel.
        """
        together = pigeonhole_peak(np.sort(self.loads)[::-1], self.channels)
        some = (together + float(self.residual.min())) / float(self.capacities.max())
        return max(self.average, float((self.residual / self.capacities).max()), some)

    def on_channels(self, placement: Channels) -> Floats:
        """The utilization of each channel, shape (channels,)."""
        return (self.residual + np.bincount(placement, self.loads, minlength=self.channels)) / self.capacities

    def allows(self, placement: Channels) -> bool:
        """Whether an assignment keeps to the limits of migration and pins."""
        leaves = (placement != self.home) & (self.home < self.channels)
        is_little = self.most_moved is None or float(self.state[leaves].sum()) <= self.most_moved * (1 + TOLERANCE)
        return is_little and (self.most_pins is None or int(leaves.sum()) <= self.most_pins)

    def minimise(self, first: Channels, nodes: int) -> Found:
        """Minimize U.

        Args:
            first: An allowed assignment to start from.
            nodes: Node limit of the search tree.
        """
        alike = self._alike()
        # A power of two, so that whole loads stay exact, while tolerances mean the same for every unit of load.
        scale = 2.0 ** (6 - math.frexp(self.average)[1])
        solver = _solver(nodes)
        solver.passModel(self._model(alike, scale))
        value = float(self.on_channels(first).max())
        known = np.append(alike.counted(first).reshape(-1), value * scale)
        solver.setSolution(len(known), np.arange(len(known), dtype=np.int32), known)
        solver.run()
        best, info = first, solver.getInfo()
        if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
            cells = np.rint(solver.getSolution().col_value[: alike.most.size]).astype(np.int64)
            found = alike.placement(cells.reshape(alike.most.shape))
            reached = float(self.on_channels(found).max())
            best, value = (found, reached) if reached < value and self.allows(found) else (first, value)
        slack = TOLERANCE * self.average
        bound = self._bound(info.mip_dual_bound / scale - slack, slack)
        return Found(best, bound, value - bound <= 2 * slack)

    def _bound(self, searched: float, slack: float) -> float:
        """The best bound of the search and of whole keys; a whole number if only such can be reached."""
        bound = max(self.least_highest, searched) if math.isfinite(searched) else self.least_highest
        loads = np.concatenate((self.loads, self.residual))
        whole = bool((loads == np.rint(loads)).all() and (self.capacities == 1).all()) and 100 * slack < 0.1
        return float(math.ceil(bound - 100 * slack)) if whole else bound

    def _alike(self) -> Alike:
        described = np.stack((self.residual, self.capacities))
        channels = np.unique(described, axis=1, return_inverse=True)[1].reshape(-1).astype(np.float64)
        if self.most_moved is None and self.most_pins is None:
            return Alike.from_descriptions([self.loads], channels, np.empty(0, np.int32))
        return Alike.from_descriptions([self.loads, self.state, self.home.astype(np.float64)], channels, self.home)

    def _model(self, alike: Alike, scale: float) -> highspy.HighsLp:
        """The program for the solver: columns y[g, c] by group, then U; rows as above."""
        (groups, channels), cells = alike.most.shape, alike.most.size
        heads, sizes = alike.heads, alike.sizes.astype(np.float64)
        residual, carried = self.residual * scale, np.repeat(self.loads[heads] * scale, channels)
        cell, channel = np.arange(cells), np.arange(channels)
        under_u, stays = groups, groups + channels
        entries = [
            (cell // channels, cell, np.ones(cells)),
            (under_u + cell % channels, cell, -carried),
            (under_u + channel, np.full(channels, cells), self.capacities),
        ]
        lower = [sizes, residual]
        upper = [sizes, np.full(channels, highspy.kHighsInf)]
        home = self.home[heads]
        left = np.flatnonzero(home < channels)
        for most, each in ((self.most_moved, self.state[heads][left]), (self.most_pins, np.ones(len(left)))):
            if most is not None:
                total = float((each * sizes[left]).sum())
                unit = total or 1.0
                entries.append((np.full(len(left), stays), left * channels + home[left], each / unit))
                lower.append(np.array([(total - most) / unit]))
                upper.append(np.array([highspy.kHighsInf]))
                stays += 1
        row, column, value = (np.concatenate(parts) for parts in zip(*entries, strict=True))
        order = np.lexsort((row, column))
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = cells + 1, stays
        model.col_cost_ = np.append(np.zeros(cells), 1.0)
        model.col_lower_ = np.append(np.zeros(cells), self.least_highest * scale)
        model.col_upper_ = np.append(alike.most.reshape(-1), self.total / float(self.capacities.min()) * scale)
        model.row_lower_, model.row_upper_ = np.concatenate(lower), np.concatenate(upper)
        whole, real = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
        model.integrality_ = [whole] * cells + [real]
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_ = np.searchsorted(column[order], np.arange(cells + 2))
        model.a_matrix_.index_, model.a_matrix_.value_ = row[order], value[order]
        return model


def _solver(nodes: int) -> highspy.Highs:
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    options = {
        "output_flag": False,
        "threads": 1,
        "random_seed": 0,
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 0.0,
        "mip_feasibility_tolerance": _FEASIBLE,
        "primal_feasibility_tolerance": _FEASIBLE,
        "dual_feasibility_tolerance": _FEASIBLE,
        "small_matrix_value": 1e-12,  # the solver would round rare keys to 0 otherwise
        "mip_max_nodes": nodes,
        "time_limit": _SECONDS,
    }
    for name, value in options.items():
        solver.setOptionValue(name, value)
    return solver
