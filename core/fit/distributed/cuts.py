"""D-FIT with cuts: node groups exchange linear bounds of scores."""

from collections.abc import Callable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.fit.distributed.messages import (
    HEADER_BYTES,
    Channel,
    Exchange,
    Exchanging,
    Member,
    Sheet,
    Topic,
    Traffic,
    watching,
)
from adapt.core.fit.network.settings import AT_ONCE, Delivery
from adapt.core.fit.network.wiring import Indices, Wiring
from adapt.core.fit.planners.direct_planners import MADE, UNSHED, Plans
from adapt.core.fit.planners.highs import WarmSolver
from adapt.core.fit.planners.program import ROUNDING, Program, Scaled, flow_by_variable, power_of_two
from adapt.core.fit.tables.local_plans import DropOrder, Part, nodes_ahead

_FAR = 1e-11
"""Relative gap above the best score at which a cut counts as tight."""

_UPSTREAM = (Topic.CUTS, Topic.CONDITIONS)


class Recipe(NamedTuple):
    """The ingredients of a cut; any values give a valid upper bound."""

    prices: Floats  # score per unit of each resource of the group, at least 0; shape (resources,)
    shares: dict[int, Floats]  # weights of each child's cuts, summing to at least 1; by child, shape (cuts,) each


Ask: TypeAlias = Callable[[int, Floats, float], bool]
"""Asks a child whether it reaches a score at planned flows, shape (arcs,); returns whether a tighter cut follows."""


class Group(Member):
    """One or more nodes that know their own part and messages.

    Arcs of its cuts that enter other groups count with the rates that these have sent, 0 before any; children without
    cuts, with one per arriving tuple.

    Attributes:
        node: The lowest number of its nodes.
        entering: Arcs that enter it, on each of which it can drop; shape (entering,).
        passing: Arcs of inputs that enter groups downstream of it; shape (passing,).
        dimensions: The arcs that its cuts cover; shape (entering + passing,).
        children: The groups that it feeds, by their lowest nodes.
        parent: The group that feeds it; -1: none.
        drop_arcs: The arc of each of its variables: entering arcs, then splits; shape (variables,).
        rows: Use of its resources per unit of each variable; shape (resources, variables).
        limits: Capacity of its resources: its nodes, then links that end in it; shape (resources,).
        alone: Whether its first recipes are complete.
    """

    def __init__(
        self, program: Program, nodes: Sequence[int], behind: Sequence["Group"], exchange: Exchange, max_cuts: int
    ) -> None:
        """A group that has received nothing, and takes its children from those behind it."""
        super().__init__(min(nodes), exchange)
        wiring = program.wiring
        network = wiring.network
        names = {network.nodes[node].name for node in nodes}
        mine = [wiring.inputs + at for at, operator in enumerate(network.operators) if operator.node in names]
        self.nodes, self._max_cuts = tuple(nodes), max_cuts
        from_mine, to_mine = np.isin(wiring.source, mine), np.isin(wiring.target, mine)
        self.entering = np.flatnonzero(to_mine & ~from_mine)
        self.leaving = np.flatnonzero(from_mine & ~to_mine)
        self.inside = np.flatnonzero(from_mine | to_mine)
        self.parent = -1
        self.children = {group.node: group for group in behind if np.isin(group.entering, self.leaving).any()}
        for child in self.children.values():
            child.parent = self.node
        dimensions: list[Indices] = [child.dimensions for child in self.children.values()]
        passing = [arcs[~np.isin(arcs, self.leaving)] for arcs in dimensions]
        self.passing = np.concatenate([np.empty(0, np.int64), *passing])
        self.dimensions: Indices = np.concatenate((self.entering, self.passing))
        self.splits = program.drop_arcs[from_mine[program.drop_arcs]]
        variables = np.concatenate((self.entering, self.splits))
        every = np.sort(variables)
        flow, offered = flow_by_variable(wiring, every)
        order = np.searchsorted(every, variables)
        self.drop_arcs, self.flow = every[order], np.zeros_like(flow)
        self.flow[self.inside] = flow[np.ix_(self.inside, order)]
        self._through = np.zeros((len(flow), len(self.entering)))
        self._through[self.inside] = flow_by_variable(wiring, self.entering)[0][self.inside]
        self._leaves, self._drops = (from_mine & ~to_mine)[self.inside], np.isin(self.inside, every)
        self.offered = offered[np.ix_(self.splits, order)]
        links = [row for row, link in enumerate(network.links, len(network.nodes)) if link.target in names]
        used = (row for row in links if wiring.use[row, self.inside].any())
        self.resources = np.array([*nodes, *used], np.int64)
        self.limits = program.limits[self.resources]
        self._use, self._gain = wiring.use[np.ix_(self.resources, self.inside)], wiring.gain[self.inside]
        self.rows = self._use @ self.flow[self.inside]
        self._worth = wiring.worth[self.inside]
        ends = np.concatenate((wiring.source[self.inside], wiring.target[self.inside]))
        self._source, self._target = np.split(np.unique(ends, return_inverse=True)[1].reshape(-1), 2)
        self.from_others = wiring.source[self.entering] >= wiring.inputs
        self.alone = not self.children and len(self.resources) == 1
        self._recipes = [Recipe(np.zeros(len(self.limits)), {child: np.ones(1) for child in self.children})]
        if self.alone:
            self._recipes += _prices_of(Part.from_program(program, self.node).program)
        self._made: Master | None = None

    def channels(self) -> list[Channel]:
        """The channels on which it receives messages."""
        ways = [Channel(child, self.node, topic) for child in self.children for topic in _UPSTREAM]
        return ways + [Channel(other, self.node, Topic.RATES) for other in self.watched]

    def follow(self, before: "Group") -> None:
        """Continue from itself before a change: recipes that still fit stay."""
        if not self.alone and before.shape() == self.shape():
            self._recipes = before._recipes
        if before.decides() != self.decides():
            self.react()

    def shape(self) -> tuple[object, ...]:
        """Everything that determines which recipes fit; for comparison."""
        return (
            self.nodes,
            *self.children,
            *(tuple(arcs) for arcs in (self.resources, self.dimensions, self.drop_arcs)),
        )

    def decides(self) -> tuple[object, ...]:
        """Everything that determines its cuts, except messages; for comparison."""
        arrays = (self.flow[self.inside], self.rows, self.limits, self._worth, self._gain)
        return (self.parent, self.channels(), self.shape(), *(array.tobytes() for array in arrays))

    def cuts(self) -> Floats:
        """Its current cuts: a score, then a slope per dimension."""
        sheets = self.sheets()
        return np.array([self._cut(recipe, sheets) for recipe in self._recipes])

    def fits(self, arriving: Floats, passing: Floats) -> NDArray[np.bool_]:
        """Whether nothing needs to be dropped from here on; shape (points,).

        Args:
            arriving: Tuples/s on the entering arcs, shape (points, entering).
            passing: Tuples/s on passing arcs, shape (points, passing).
        """
        rows = self._conditions()
        if rows is None:
            return np.zeros(len(arriving), np.bool_)
        return np.asarray((np.concatenate((arriving, passing), axis=1) @ rows.T <= 1 + ROUNDING).all(axis=1))

    def shares(self, arriving: Floats, passing: Floats, ask: Ask | None) -> Floats:
        """The share that each of its variables keeps; shape (variables,).

        Args:
            arriving: Tuples/s on the entering arcs, shape (entering,).
            passing: Tuples/s on passing arcs, shape (passing,).
            ask: Asks the groups downstream first; None: they are not asked.
        """
        _, values = self._agreed(arriving, passing, ask)
        variables = values[: len(self.drop_arcs)]
        offered = np.concatenate((arriving, self.offered @ variables))
        share = np.divide(variables, offered, out=np.ones_like(offered), where=offered > 0)
        return np.clip(share, 0.0, 1.0)

    def answer(self, planned: Floats, passing: Floats, promised: float, ask: Ask) -> bool:
        """Whether a tighter cut than promised follows; it is sent.

        Args:
            planned: Tuples/s on the entering arcs.
            ask: Asks the groups downstream.
        """
        score, _ = self._agreed(planned, passing, ask)
        return self._tightened(score, promised, np.concatenate((planned, passing)))

    def tighten(self, arriving: Floats, passing: Floats) -> None:
        """Send a tighter cut if its cuts promise more than it reaches."""
        if self.parent >= 0 and not self.alone:
            point, cuts = np.concatenate((arriving, passing)), self.cuts()
            score, _ = self._master().solve(arriving, passing)
            self._tightened(score, float((cuts[:, 0] + cuts[:, 1:] @ point).min()), point)

    def react(self) -> None:
        """Send its cuts and conditions."""
        self._made = None
        if self.parent < 0:
            return
        self.send(self.parent, Topic.CUTS, Sheet(self.dimensions, self.cuts()))
        rows = self._conditions()
        if rows is not None:
            self.send(self.parent, Topic.CONDITIONS, Sheet(self.dimensions, rows))

    def worth(self) -> Floats:
        """Weight per tuple on leaving arcs, 0 except at outputs; shape (leaving,)."""
        return self._worth[np.searchsorted(self.inside, self.leaving)]

    def sheets(self) -> dict[int, Sheet]:
        """The received cuts of each child."""
        sheets = {}
        for child, group in self.children.items():
            received, arcs = self.heard(child, Topic.CUTS, group.dimensions), group.dimensions
            if received is None or not len(received.rows):
                received = Sheet(arcs, np.concatenate((np.zeros((1, 1)), np.ones((1, len(arcs)))), axis=1))
            sheets[child] = received
        return sheets

    def _agreed(self, arriving: Floats, passing: Floats, ask: Ask | None) -> tuple[float, Floats]:
        """Its best score and variables, once no child that is asked has a tighter cut for them."""
        columns, asked = len(self.drop_arcs), {} if ask is None else self.children
        while True:
            score, values = self._master().solve(arriving, passing)
            flows, tighter = np.maximum(self.flow @ values[:columns], 0.0), False
            for at, (child, group) in enumerate(asked.items()):
                if not group.alone and ask is not None:
                    tighter |= ask(child, flows, float(values[columns + at]))
            if not tighter:
                return score, values

    def _tightened(self, score: float, promised: float, point: Floats) -> bool:
        """Whether it reaches less than promised at a point and has a cut that says so; the cut is sent."""
        if score >= promised * (1 - _FAR) or len(self._recipes) >= self._max_cuts:
            return False
        recipe = self._master().recipe()
        cut = self._cut(recipe, self.sheets())
        if float(cut[0] + cut[1:] @ point) >= promised * (1 - _FAR):
            return False  # the solver's rounding
        self._recipes.append(recipe)
        self.react()
        return True

    def _master(self) -> "Master":
        if self._made is None:
            self._made = Master(self)
        return self._made

    def _cut(self, recipe: Recipe, sheets: dict[int, Sheet]) -> Floats:
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

    def _conditions(self) -> Floats | None:
        """Conditions for no drops from here on: all rows @ rates <= 1; None while those of a child are missing.

        They are the utilization of its resources per tuple/s, and the children's conditions over its own dimensions;
        shape (conditions, dimensions).
        """
        own = self._use @ self._through[self.inside] / self.limits[:, None]
        found = [np.pad(own, ((0, 0), (0, len(self.passing))))]
        for child, group in self.children.items():
            sheet = self.heard(child, Topic.CONDITIONS, group.dimensions)
            if sheet is None:
                return None
            feeds = np.isin(sheet.arcs, self.leaving)
            mine = sheet.rows[:, feeds] @ self._through[sheet.arcs[feeds]]
            found.append(np.concatenate((mine, self.on_passing(sheet.rows[:, ~feeds], sheet.arcs[~feeds])), axis=1))
        return np.concatenate(found)

    def on_passing(self, rows: Floats, arcs: Indices) -> Floats:
        """Rows over some passing arcs as rows over all of them."""
        return np.asarray(rows @ (arcs[:, None] == self.passing[None]).astype(float))


def _prices_of(inner: Program) -> list[Recipe]:
    """The complete recipes of a single node without children, but for that of no drops.

    Such a node has a single price, that of load: one recipe per arc that it closes as load rises.
    """
    order = DropOrder.from_program(inner)
    scores = np.einsum("v,svd->s", inner.weights, order.flows)
    prices = np.diff(scores) / np.diff(order.loads.sum(axis=1))
    return [Recipe(np.array([max(price, 0.0)]), {}) for price in np.unique(prices)]


class Master:
    """The linear program of a group, with its children represented by cuts.

    It maximizes the score of the group's own outputs plus t for each child, where t is below every cut of that child.
    """

    def __init__(self, group: Group) -> None:
        self._group, worth = group, group.worth()
        own = group.leaving[worth != 0]
        columns, children, resources = len(group.drop_arcs), len(group.children), len(group.limits)
        self._weights = np.concatenate((worth[worth != 0] @ group.flow[own], np.ones(children)))
        kept = np.zeros((len(group.splits), columns))
        kept[np.arange(len(group.splits)), len(group.entering) + np.arange(len(group.splits))] = 1.0
        limits = [group.limits, np.zeros(len(group.splits))]
        blocks = [np.pad(np.concatenate((group.rows, kept - group.offered)), ((0, 0), (0, children)))]
        passing = [np.zeros((len(blocks[0]), len(group.passing)))]
        self._cuts: dict[int, slice] = {}
        for at, (child, sheet) in enumerate(group.sheets().items()):
            mine, slopes = np.isin(sheet.arcs, group.leaving), sheet.rows[:, 1:]
            block = np.zeros((len(slopes), columns + children))
            block[:, :columns] = -slopes[:, mine] @ group.flow[sheet.arcs[mine]]
            block[:, columns + at] = 1.0
            start = sum(map(len, blocks))
            self._cuts[child] = slice(start, start + len(slopes))
            blocks.append(block)
            limits.append(sheet.rows[:, 0])
            passing.append(group.on_passing(slopes[:, ~mine], sheet.arcs[~mine]))
        rows = np.concatenate(blocks)
        self._limits, self._passing = np.concatenate(limits), np.concatenate(passing)
        # units of the variables and the score that bring limits, loads and weights near 1
        with np.errstate(divide="ignore", invalid="ignore"):
            most = np.where(group.rows > 0, group.limits[:, None] / group.rows, np.inf).min(axis=0, initial=np.inf)
        self._unit = np.ones(columns + children)
        self._unit[:columns] = unit = power_of_two(np.where(np.isfinite(most), most, 1.0))
        steepest = np.abs(rows[len(blocks[0]) :, :columns] * unit).max(initial=0.0)
        largest = max((self._weights[:columns] * unit).max(initial=0.0), steepest)
        self._score = self._unit[columns:] = float(power_of_two(np.array(largest or 1.0)))
        scaled = rows * self._unit
        heights = np.abs(scaled).max(axis=1, initial=0.0)
        self._height = power_of_two(np.where(heights > 0, heights, 1.0))
        self._height[:resources] = power_of_two(group.limits)
        weights, limit = self._weights * self._unit / self._score, self._limits / self._height
        self._solver = WarmSolver(Scaled(self._unit, self._score, scaled / self._height[:, None], limit, weights))

    def solve(self, arriving: Floats, passing: Floats) -> tuple[float, Floats]:
        """The best score and the variables, followed by t of each child.

        Args:
            arriving: Rates on the entering arcs, tuples/s, shape (entering,).
            passing: Rates of inputs of downstream groups, tuples/s, shape (passing,).

        Returns:
            The score, and an array of shape (variables + children,).
        """
        if len(passing):
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
            {child: _shares(prices[rows], rows.stop - rows.start) for child, rows in self._cuts.items()},
        )


def _shares(shares: Floats, rows: int) -> Floats:
    """Weights for the current number of rows, summing to at least 1."""
    now = np.zeros(rows)
    now[: min(rows, len(shares))] = shares[:rows]
    total = now.sum()
    if total <= 0:
        now[0] = 1.0
    return now / min(total, 1.0) if total > 0 else now


def clusters(wiring: Wiring) -> tuple[tuple[int, ...], ...]:
    """Groups of nodes, upstream first, each fed by one other at most.

    Nodes that share a child plan together, and so do nodes in a cycle; in a tree every node is a group of its own.
    Nodes without operators belong to no group.

    Source: FIT, section 10, which leaves such clusters to future work.
    """
    ahead = dict(nodes_ahead(wiring))
    label = {node: node for node in ahead}
    while True:
        before = {
            group: {label[other] for node in ahead if label[node] == group for other in ahead[node]} - {group}
            for group in label.values()
        }
        together = _to_be_joined(before)
        if not together:
            break
        least = min(together)
        label = {node: least if group in together else group for node, group in label.items()}
    order = TopologicalSorter({group: sorted(before[group]) for group in sorted(before)}).static_order()
    return tuple(tuple(sorted(node for node in label if label[node] == group)) for group in order)


def _to_be_joined(before: dict[int, set[int]]) -> set[int]:
    """Groups that form a cycle, or several parents of one group; empty if neither exists."""
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        return set(error.args[1])
    return next((parents for _, parents in sorted(before.items()) if len(parents) > 1), set())


MAX_CUTS = 2000
"""Maximum number of cuts per group; beyond it, plans may miss the best score."""


class DFitCuts(Exchanging[Group]):
    """The node groups of a network with their cuts and messages.

    The best score of a group and everything downstream is a concave function of the arriving rates: the minimum of
    finitely many linear functions. A node without children knows all of them and sends them in advance. Any other group
    starts with one, that of dropping nothing, and plans by a linear program in which each child is represented by the
    cuts it has sent. Before a plan is applied, the parent asks each child for its score at the planned rates; a child
    whose score is lower than its cuts promise sends the cut that says so. As cuts hold for all rates, questions become
    rare.

    Where plans cannot wait for answers, nobody asks: a parent plans by the cuts it knows, and a child that reaches less
    than they promise sends a tighter cut.

    A group knows its own arcs, its messages and its clock. Its cuts may cover arcs that enter other groups: these send
    it the rates there. Questions and answers are messages too, which are never late.

    A node plans for the rates that arrive, so none is ever overloaded, however old the cuts that others use, unless
    nodes trust upstream. A cut is kept as the prices that define it, and these still define a valid cut when costs
    change: only what changed is sent again.

    Source: FIT, sections 4 and 6, with cuts in place of tables, as in Benders, Partitioning procedures for solving
    mixed-variables programming problems (1962), nested.

    Attributes:
        groups: All groups, upstream first.
        asked: Number of questions that groups were asked.
    """

    def __init__(self, program: Program, delivery: Delivery = AT_ONCE, max_cuts: int = MAX_CUTS) -> None:
        """All groups, before any message is delivered.

        Args:
            program: Of any network.
            delivery: With a delay, no plan waits for answers.
        """
        super().__init__(delivery)
        self._max_cuts, self.asked = max_cuts, 0
        self._place(program)

    @property
    def stale(self) -> bool:
        """Whether some groups lack the latest cuts or rates of others.

        Late conditions cost no score: without them, a group plans where nothing needs to be dropped.
        """
        return not self.exchange.up_to_date(but=Topic.CONDITIONS)

    def _plan(self, rates: Floats) -> Plans:
        """The best plans, agreed on by the groups; nothing is dropped where everything fits.

        Where groups do not ask each other, plans follow the known cuts and the rates that have arrived, and tighter
        cuts are sent.
        """
        wiring = self.program.wiring
        keeps = np.ones((len(rates), len(wiring.arcs)))
        ids = np.full((len(rates), len(self.groups)), UNSHED, np.int64)
        for at, group in enumerate(self.groups):
            flows = wiring.flows(rates, keeps)
            self._exchange_rates(group.node, flows)
            arriving = flows[:, group.entering]
            passing = group.elsewhere()[None] if self.late else flows[:, group.passing]
            for point in np.flatnonzero(~group.fits(arriving, passing)):
                asks = not self.late and group.parent < 0
                shares = group.shares(arriving[point], passing[point], self._asking(flows[point]) if asks else None)
                if self.delivery.trust_upstream:
                    shares[: len(group.entering)][group.from_others] = 1.0
                if self.late:
                    group.tighten(arriving[point], passing[point])
                keeps[point, group.drop_arcs] *= shares
                if (shares < 1).any():
                    ids[point, at] = MADE
        return Plans(keeps, wiring.scores(wiring.flows(rates, keeps)), ids)

    def _asking(self, now: Floats) -> Ask:
        """Carries questions and their answers; `now` are the flows before the plan, shape (arcs,)."""

        def ask(child: int, flows: Floats, promised: float) -> bool:
            group = self.members[child]
            fed = np.isin(group.entering, self.members[group.parent].leaving)
            self.asked += 1
            size = 8 * (int(fed.sum()) + 1)
            self.exchange.count(Channel(group.parent, child, Topic.QUESTIONS), Traffic(1, 1, 0, size))
            planned = np.where(fed, flows[group.entering], now[group.entering])
            tighter = group.answer(planned, now[group.passing], promised, ask)
            self.exchange.count(Channel(child, group.parent, Topic.ANSWERS), Traffic(1, 1, 0, HEADER_BYTES))
            self.settle()
            return tighter

        return ask

    def _place(self, program: Program) -> None:
        self.program = program
        made: dict[int, Group] = {}
        for nodes in reversed(clusters(program.wiring)):
            group = Group(program, nodes, tuple(made.values()), self.exchange, self._max_cuts)
            made[group.node] = group
        self.groups = tuple(reversed(made.values()))
        watching({node: group.entering for node, group in made.items()}, made)
        self._deploy(made)

    def _follow(self, member: Group, before: Group | None) -> None:
        if before is None:
            member.react()
        else:
            member.follow(before)
