"""Cuts: linear upper bounds of a node group's best score."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.distributed.messages import Sheet
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.program.highs import WarmSolver
from adapt.core.fit.program.program import Program, Scaled, flow_by_variable, power_of_two
from adapt.core.fit.tables.local_plans import DropOrder, Part


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """The ingredients of a cut; any values give a valid upper bound.

    Attributes:
        prices: Score per unit of each resource of the group, at least 0; shape (resources,).
        shares: Weights of each child's cuts, summing to at least 1; by child, shape (cuts,) each.
    """

    prices: Floats
    shares: dict[int, Floats]


class Group:
    """One or more nodes with their operators and the groups downstream.

    Attributes:
        name: The lowest number of its nodes.
        entering: Arcs that enter it, on each of which it can drop; shape (entering,).
        passing: Arcs of inputs that enter groups downstream of it; shape (passing,).
        children: Names of the groups that it sends tuples to.
        drop_arcs: The arc of each of its variables: entering arcs, then splits; shape (variables,).
        rows: Use of its resources per unit of each variable; shape (resources, variables).
        limits: Capacity of its resources: its nodes, then links that end in it; shape (resources,).
    """

    def __init__(self, program: Program, nodes: Sequence[int], behind: Sequence["Group"]) -> None:
        wiring = program.wiring
        network = wiring.network
        names = {network.nodes[node].name for node in nodes}
        mine = [wiring.inputs + at for at, operator in enumerate(network.operators) if operator.node in names]
        self.name, self.nodes = min(nodes), tuple(nodes)
        from_mine, to_mine = np.isin(wiring.source, mine), np.isin(wiring.target, mine)
        self.entering = np.flatnonzero(to_mine & ~from_mine)
        self.leaving = np.flatnonzero(from_mine & ~to_mine)
        self.inside = np.flatnonzero(from_mine | to_mine)
        self.children = tuple(group.name for group in behind if np.isin(group.entering, self.leaving).any())
        after = [group for group in behind if group.name in self.children]
        passing = [arcs[~np.isin(arcs, self.leaving)] for arcs in (group.dimensions for group in after)]
        self.passing = np.concatenate([np.empty(0, np.int64), *passing])
        splits = program.drop_arcs[from_mine[program.drop_arcs]]
        self.splits = splits
        every = np.sort(np.concatenate((self.entering, splits)))
        flow, offered = flow_by_variable(wiring, every)
        order = np.searchsorted(every, np.concatenate((self.entering, splits)))
        self.drop_arcs, self.flow = every[order], np.zeros_like(flow)
        self.flow[self.inside] = flow[np.ix_(self.inside, order)]
        self._through = np.zeros((len(flow), len(self.entering)))
        self._through[self.inside] = flow_by_variable(wiring, self.entering)[0][self.inside]
        self.from_inputs = wiring.source[self.entering] < wiring.inputs
        self._leaves, self._drops = (from_mine & ~to_mine)[self.inside], np.isin(self.inside, every)
        self.offered = offered[np.ix_(splits, order)]
        number = {node.name: at for at, node in enumerate(network.nodes)}
        links = [row for row, link in enumerate(network.links, len(number)) if link.target in names]
        used = (row for row in links if wiring.use[row, self.inside].any())
        self.resources = np.array([*nodes, *used], np.int64)
        self.limits = program.limits[self.resources]
        self.rows = wiring.use[np.ix_(self.resources, self.inside)] @ self.flow[self.inside]
        self._use, self._gain = wiring.use[np.ix_(self.resources, self.inside)], wiring.gain[self.inside]
        self._worth = wiring.worth[self.inside]
        ends = np.concatenate((wiring.source[self.inside], wiring.target[self.inside]))
        self._source, self._target = np.split(np.unique(ends, return_inverse=True)[1].reshape(-1), 2)
        self.alone = not self.children and len(self.resources) == 1
        """Whether its first recipes are complete."""
        self._part = Part.from_program(program, self.name) if self.alone else None

    @property
    def dimensions(self) -> Indices:
        """The arcs that its cuts cover; shape (entering + passing,)."""
        return np.concatenate((self.entering, self.passing))

    def facts(self) -> tuple[object, ...]:
        """Everything that determines its cuts, except its children's cuts; for comparison."""
        arrays = (self.flow[self.inside], self.rows, self.limits, self._worth, self._gain)
        return (*self.shape(), *(array.tobytes() for array in arrays))

    def shape(self) -> tuple[object, ...]:
        """Everything that determines which recipes fit; for comparison."""
        return (self.nodes, tuple(self.resources), self.children, tuple(self.dimensions), tuple(self.drop_arcs))

    def shares(self, arriving: Floats, values: Floats) -> Floats:
        """The share that each variable keeps, 1 by default; shape (variables,)."""
        variables = values[: len(self.drop_arcs)]
        offered = np.concatenate((arriving, self.offered @ variables))
        share = np.divide(variables, offered, out=np.ones_like(offered), where=offered > 0)
        return np.clip(share, 0.0, 1.0)

    def first_recipes(self) -> list[Recipe]:
        """The recipes to start with; complete for a single node without children.

        Such a node has a single price, that of load: one recipe per arc that it closes as load rises, and one for no
        drops.
        """
        nothing = {child: np.ones(1) for child in self.children}
        recipes = [Recipe(np.zeros(len(self.limits)), nothing)]
        if self._part is None:
            return recipes
        inner = self._part.program
        order = DropOrder.from_program(inner)
        scores = np.einsum("v,svd->s", inner.weights, order.flows)
        prices = np.diff(scores) / np.diff(order.loads.sum(axis=1))
        return recipes + [Recipe(np.array([max(price, 0.0)]), {}) for price in np.unique(prices)]

    def cut(self, recipe: Recipe, sheets: dict[int, Sheet]) -> Floats:
        """A recipe's cut: score, then slope per dimension; shape (1 + dimensions,)."""
        worth, base = self._worth.copy(), float(recipe.prices @ self.limits)
        passing = np.zeros(len(self.flow))
        for child, shares in recipe.shares.items():
            sheet = sheets[child]
            used = _shares(shares, len(sheet.rows))
            base += float(used @ sheet.rows[:, 0])
            passing[sheet.arcs] += used @ sheet.rows[:, 1:]
        worth[self._leaves] += passing[self.inside[self._leaves]]
        price = recipe.prices @ self._use
        given = np.zeros(self._source.max(initial=0) + self._target.max(initial=0) + 1)
        for arc in range(len(worth) - 1, -1, -1):
            if not self._leaves[arc]:
                worth[arc] = self._gain[arc] * given[self._target[arc]] - price[arc]
            if self._drops[arc]:
                worth[arc] = max(worth[arc], 0.0)
            given[self._source[arc]] += worth[arc]
        entering = worth[np.searchsorted(self.inside, self.entering)]
        return np.concatenate(([base], entering, passing[self.passing]))

    def worth(self) -> Floats:
        """Weight per tuple on leaving arcs, 0 except at outputs; shape (leaving,)."""
        return self._worth[np.searchsorted(self.inside, self.leaving)]

    def conditions(self) -> Floats:
        """Utilization of its resources per tuple/s, without drops; shape (resources, dimensions)."""
        own = self._use @ self._through[self.inside] / self.limits[:, None]
        return np.pad(own, ((0, 0), (0, len(self.passing))))

    def mapped(self, behind: Sheet) -> Floats:
        """A child's conditions over its own dimensions; shape (conditions, dimensions)."""
        feeds = np.isin(behind.arcs, self.leaving)
        mine = behind.rows[:, feeds] @ self._through[behind.arcs[feeds]]
        others = behind.rows[:, ~feeds] @ (behind.arcs[~feeds, None] == self.passing[None]).astype(float)
        return np.concatenate((mine, others), axis=1)


class Master:
    """The linear program of a group, with its children represented by cuts.

    It maximizes the score of the group's own outputs plus t for each child, where t is below every cut of that child.
    """

    def __init__(self, group: Group, sheets: dict[int, Sheet]) -> None:
        self._group, worth = group, group.worth()
        own = group.leaving[worth != 0]
        columns, children = len(group.drop_arcs), len(group.children)
        weights = np.concatenate((worth[worth != 0] @ group.flow[own], np.ones(children)))
        kept = np.zeros((len(group.splits), columns))
        kept[np.arange(len(group.splits)), len(group.entering) + np.arange(len(group.splits))] = 1.0
        blocks = [np.pad(group.rows, ((0, 0), (0, children))), np.pad(kept - group.offered, ((0, 0), (0, children)))]
        limits = [group.limits, np.zeros(len(group.splits))]
        passing = [np.zeros((len(group.limits) + len(group.splits), len(group.passing)))]
        self.cuts: dict[int, slice] = {}
        for at, child in enumerate(group.children):
            sheet = sheets[child]
            mine = np.isin(sheet.arcs, group.leaving)
            slopes = sheet.rows[:, 1:]
            block = np.zeros((len(slopes), columns + children))
            block[:, :columns] = -slopes[:, mine] @ group.flow[sheet.arcs[mine]]
            block[:, columns + at] = 1.0
            start = sum(map(len, limits))
            self.cuts[child] = slice(start, start + len(slopes))
            blocks.append(block)
            limits.append(sheet.rows[:, 0])
            passing.append(slopes[:, ~mine] @ (sheet.arcs[~mine, None] == group.passing[None]).astype(float))
        rows = np.concatenate(blocks)
        self._limits, self._passing = np.concatenate(limits), np.concatenate(passing)
        self._weights = weights
        self._unit, self._score = _units(group, rows, weights, columns)
        scaled = rows * self._unit
        largest = np.abs(scaled).max(axis=1, initial=0.0)
        height = power_of_two(np.where(largest > 0, largest, 1.0))
        height[: len(group.limits)] = power_of_two(group.limits)
        self._height = height
        gains = weights * self._unit / self._score
        self._solver = WarmSolver(
            Scaled(self._unit, self._score, scaled / height[:, None], self._limits / height, gains)
        )
        self._moves = bool(len(group.passing))

    def solve(self, arriving: Floats, passing: Floats) -> tuple[float, Floats]:
        """The best score and the variables, followed by t of each child.

        Args:
            arriving: Rates on the entering arcs, tuples/s, shape (entering,).
            passing: Rates of inputs of downstream groups, tuples/s, shape (passing,).

        Returns:
            The score, and an array of shape (variables + children,).
        """
        if self._moves:
            self._solver.limit((self._limits + self._passing @ passing) / self._height)
        upper = np.full(len(self._unit), np.inf)
        upper[: len(arriving)] = arriving
        values = np.minimum(self._solver.values(upper / self._unit) * self._unit, upper)
        return float(values @ self._weights), values

    def recipe(self) -> Recipe:
        """The recipe of the cut that is tight at the last solution."""
        prices = self._solver.prices() * self._score / self._height
        return Recipe(
            prices[: len(self._group.limits)],
            {child: _shares(prices[rows], rows.stop - rows.start) for child, rows in self.cuts.items()},
        )


def _shares(shares: Floats, rows: int) -> Floats:
    """Weights for the current number of rows, summing to at least 1."""
    now = np.zeros(rows)
    now[: min(rows, len(shares))] = shares[:rows]
    total = now.sum()
    if total <= 0:
        now[0] = 1.0
    return now / min(total, 1.0) if total > 0 else now


def _units(group: Group, rows: Floats, weights: Floats, columns: int) -> tuple[Floats, float]:
    """Units of the variables and the score that bring limits, loads and weights near 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.where(group.rows > 0, group.limits[:, None] / group.rows, np.inf).min(axis=0, initial=np.inf)
    unit = np.ones(rows.shape[1])
    unit[:columns] = power_of_two(np.where(np.isfinite(most), most, 1.0))
    slopes = np.abs(rows[len(group.limits) + len(group.splits) :, :columns] * unit[:columns]).max(initial=0.0)
    score = float(power_of_two(np.array(max((weights[:columns] * unit[:columns]).max(initial=0.0), slopes) or 1.0)))
    unit[columns:] = score
    return unit, score
