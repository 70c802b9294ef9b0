"""Integer program of the optimum, by max and min load."""

import math
from dataclasses import dataclass
from enum import StrEnum

import highspy
import numpy as np

from adapt.core.arrays import Floats
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.measures.floors import highest_level
from adapt.core.partitioning.measures.whole_keys import pigeonhole_peak
from adapt.core.partitioning.optimum.symmetry import Alike

TOLERANCE = 1e-8
"""Resolution of loads, relative to an average channel's."""

_FEASIBLE = 1e-9
"""Feasibility tolerance of the solver, at an average channel load of 32 to 64."""


class EndedBy(StrEnum):
    """What ended a search."""

    PROOF = "proof"
    """Proven optimal."""
    NODES = "nodes"
    """Node limit; the same on every machine."""
    TIME = "time"
    """Time limit; the result depends on the machine."""
    ROUNDING = "rounding"
    """Loads or states too far apart for the solver's arithmetic."""


@dataclass(frozen=True, slots=True)
class Effort:
    """Limits of a search.

    Attributes:
        seconds: A backstop, since a single node may take long.
    """

    nodes: int
    seconds: float

    def less(self, nodes: int, seconds: float) -> "Effort":
        """The effort that remains."""
        return Effort(max(self.nodes - nodes, 0), max(self.seconds - seconds, 0.0))


@dataclass(frozen=True, slots=True)
class Found:
    """Result of one search.

    Attributes:
        placement: The best assignment, including the first one; int32, shape (keys,).
        bound: Lower bound of all allowed assignments, in units of load.
        ended_by: What ended it; a proof if the assignment reaches the bound up to twice the tolerance.
        left: Effort that was not needed.
    """

    placement: Channels
    bound: float
    ended_by: EndedBy
    left: Effort


@dataclass(frozen=True, slots=True)
class Program:
    """All assignments of keys to channels within a migration limit.

    With y[g, c] the number of keys of group g on channel c, n_g keys in the group, each of load l_g and state s_g, and
    residual R_c and capacity C_c:

        sum over c of y[g, c] = n_g                          for every group
        L C_c <= R_c + sum over g of l_g y[g, c] <= U C_c    for every channel
        sum over g of s_g y[g, home of g] >= what must stay  if migration is limited
        sum over g of y[g, home of g] >= how many must stay  if pins are limited

    U and L are the highest and the lowest utilization of a channel: loads, if all capacities are 1. Equal keys are one
    group, and channels of equal residual and capacity are interchangeable (`Alike`); if migration or pins are
    limited, equal keys have one home too, and a home is unique. U and L are bounded beforehand by what whole keys allow
    (`least_highest`, `most_lowest`), which the linear relaxation, splitting keys, does not see.

    Attributes:
        loads: Of each key, shape (keys,).
        residual: Fixed load of each channel, shape (channels,).
        state: Of each key, shape (keys,).
        home: Current channel of each key; `channels` or above if it is removed. Shape (keys,).
        most_moved: State that may leave a remaining home. Default: unlimited.
        capacities: Of each channel / mean capacity; shape (channels,).
        most_pins: Number of keys that may leave a remaining home. Default: unlimited.

    Source: ours. Solved by HiGHS (Huangfu and Hall, Parallelizing the dual revised simplex method, Mathematical
    Programming Computation 10, 2018), by one thread and with a fixed seed.
    """

    loads: Floats
    residual: Floats
    state: Floats
    home: Channels
    most_moved: float | None
    capacities: Floats
    most_pins: int | None = None

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

    @property
    def most_lowest(self) -> float:
        """Upper bound of the load of the least loaded channel.

        The k hottest keys fill at most k channels, and the others, as water, cannot lift all of the other channels
        above its level: highest if the k are the channels that lack most.
        """
        falling = np.sort(self.loads)[::-1]
        return min(
            highest_level(self.residual, self.capacities, float(falling[k:].sum()), k) for k in range(self.channels)
        )

    def on_channels(self, placement: Channels) -> Floats:
        """The utilization of each channel, shape (channels,)."""
        return (self.residual + np.bincount(placement, self.loads, minlength=self.channels)) / self.capacities

    def allows(self, placement: Channels) -> bool:
        """Whether an assignment keeps to the limits of migration and pins."""
        leaves = (placement != self.home) & (self.home < self.channels)
        is_little = self.most_moved is None or float(self.state[leaves].sum()) <= self.most_moved * (1 + TOLERANCE)
        return is_little and (self.most_pins is None or int(leaves.sum()) <= self.most_pins)

    def minimise(self, on_highest: float, on_lowest: float, first: Channels, effort: Effort) -> Found:
        """Minimize on_highest * U - on_lowest * L.

        Args:
            on_highest: Weight of the busiest channel's load, >= 0.
            on_lowest: Weight of the least loaded channel's load, >= 0.
            first: An allowed assignment to start from.
        """
        alike = self._alike()
        # A power of two, so that whole loads stay exact, while tolerances mean the same for every unit of load.
        scale = 2.0 ** (6 - math.frexp(self.average)[1])
        solver = _solver(effort)
        solver.passModel(self._model(alike, on_highest, on_lowest, scale))
        loads = self.on_channels(first) * scale
        known = np.concatenate((alike.counted(first).reshape(-1), [loads.max(), loads.min()]))
        solver.setSolution(len(known), np.arange(len(known), dtype=np.int32), known)
        solver.run()
        best, value = first, self._value(on_highest, on_lowest, first)
        info = solver.getInfo()
        if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
            cells = np.rint(solver.getSolution().col_value[: alike.most.size]).astype(np.int64)
            found = alike.placement(cells.reshape(alike.most.shape))
            reached = self._value(on_highest, on_lowest, found)
            best, value = (found, reached) if reached < value and self.allows(found) else (first, value)
        slack = TOLERANCE * self.average * (on_highest + on_lowest)
        bound = self._bound(on_highest, on_lowest, info.mip_dual_bound / scale - slack, slack)
        ended_by = _ENDS.get(solver.getModelStatus(), EndedBy.ROUNDING)
        if value - bound <= 2 * slack:
            ended_by = EndedBy.PROOF
        return Found(best, bound, ended_by, effort.less(max(info.mip_node_count, 1), solver.getRunTime()))

    def _value(self, on_highest: float, on_lowest: float, placement: Channels) -> float:
        loads = self.on_channels(placement)
        return on_highest * float(loads.max()) - on_lowest * float(loads.min())

    def _bound(self, on_highest: float, on_lowest: float, searched: float, slack: float) -> float:
        """The best bound of the search and of whole keys; a whole number if only such can be reached."""
        bound = on_highest * self.least_highest - on_lowest * self.most_lowest
        bound = max(bound, searched) if math.isfinite(searched) else bound
        loads = np.concatenate((self.loads, self.residual, [on_highest, on_lowest]))
        whole = bool((loads == np.rint(loads)).all() and (self.capacities == 1).all()) and 100 * slack < 0.1
        return float(math.ceil(bound - 100 * slack)) if whole else bound

    def _alike(self) -> Alike:
        described = np.stack((self.residual, self.capacities))
        channels = np.unique(described, axis=1, return_inverse=True)[1].reshape(-1).astype(np.float64)
        if self.most_moved is None and self.most_pins is None:
            return Alike.from_descriptions([self.loads], channels, np.empty(0, np.int32))
        return Alike.from_descriptions([self.loads, self.state, self.home.astype(np.float64)], channels, self.home)

    def _model(self, alike: Alike, on_highest: float, on_lowest: float, scale: float) -> highspy.HighsLp:
        """The program for the solver: columns y[g, c] by group, U, L; rows as above, those of U before L's."""
        (groups, channels), cells = alike.most.shape, alike.most.size
        heads, sizes = alike.heads, alike.sizes.astype(np.float64)
        residual, carried = self.residual * scale, np.repeat(self.loads[heads] * scale, channels)
        cell, channel = np.arange(cells), np.arange(channels)
        under_u, over_l, stays = groups, groups + channels, groups + 2 * channels
        entries = [
            (cell // channels, cell, np.ones(cells)),
            (under_u + cell % channels, cell, -carried),
            (under_u + channel, np.full(channels, cells), self.capacities),
            (over_l + cell % channels, cell, carried),
            (over_l + channel, np.full(channels, cells + 1), -self.capacities),
        ]
        lower = [sizes, residual, -residual]
        upper = [sizes, np.full(2 * channels, highspy.kHighsInf)]
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
        model.num_col_, model.num_row_ = cells + 2, stays
        model.col_cost_ = np.concatenate((np.zeros(cells), [on_highest, -on_lowest]))
        model.col_lower_ = np.concatenate((np.zeros(cells), [self.least_highest * scale, 0.0]))
        highest = np.array([self.total / float(self.capacities.min()), self.most_lowest]) * scale
        model.col_upper_ = np.concatenate((alike.most.reshape(-1), highest))
        model.row_lower_, model.row_upper_ = np.concatenate(lower), np.concatenate(upper)
        whole, real = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
        model.integrality_ = [whole] * cells + [real] * 2
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_ = np.searchsorted(column[order], np.arange(cells + 3))
        model.a_matrix_.index_, model.a_matrix_.value_ = row[order], value[order]
        return model


_ENDS = {highspy.HighsModelStatus.kSolutionLimit: EndedBy.NODES, highspy.HighsModelStatus.kTimeLimit: EndedBy.TIME}


def _solver(effort: Effort) -> highspy.Highs:
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
        "mip_max_nodes": effort.nodes,
        "time_limit": effort.seconds,
    }
    for name, value in options.items():
        solver.setOptionValue(name, value)
    return solver
