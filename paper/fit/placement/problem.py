"""Where operators may run, and what a placement is worth."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from adapt.core.arrays import Floats
from adapt.core.errors import BadInput, did_you_mean
from adapt.core.fit.network.network import Network
from adapt.core.fit.network.wiring import Indices, Wiring
from adapt.core.fit.planners.highs import WarmProgram
from adapt.core.fit.planners.program import ROUNDING, AlikeInputs, Program

_KEPT = 200_000
"""Fragments whose worth is remembered."""


@dataclass(frozen=True, slots=True)
class Worth:
    """Worth of a placement, or of a fragment, with the best shedding.

    Attributes:
        faults: Inputs of fragments above the limit, and circles of nodes that send to each other.
        score: Weighted tuples/s, on average over the points of rates.
        traffic: Bytes/s between nodes, or tuples/s where a size is unknown; on average too.
        inputs: Of the fragment with most inputs, alike ones counted once.
        fragments: Number of fragments with operators.
    """

    faults: int = 0
    score: float = 0.0
    traffic: float = 0.0
    inputs: int = 0
    fragments: int = 0

    def __add__(self, other: "Worth") -> "Worth":
        """Both fragments together."""
        return Worth(
            self.faults + other.faults,
            self.score + other.score,
            self.traffic + other.traffic,
            max(self.inputs, other.inputs),
            self.fragments + other.fragments,
        )


class Problem:
    """The placements of a network's operators, with the best shedding of each.

    A placement is the number of each operator's node, shape (operators,). Operators connected by tuples form a query;
    queries that share nodes form a fragment, which is planned by itself.

    Attributes:
        network: The network, as placed at first.
        rates: Points of rates, tuples/s, shape (points, inputs); all count the same.
        headroom: Share of each node and link that plans leave free.
        load: CPU seconds/s of each operator per unit of each variable; shape (operators, variables).
        query_of: The query of each operator, shape (operators,).
        inputs_of: Number of inputs of each query, shape (queries,).
        capacity: CPU seconds/s of each node that plans may use, shape (nodes,).
        fixed: Whether an operator has to stay, shape (operators,).
        named: Nodes that links, inputs or fixed operators name, ascending.
        sources_of: The operators that each operator reads, by operator.
        max_inputs: Inputs of a fragment, at most; None: any number. A query with more is a fragment of its own.
    """

    def __init__(
        self,
        network: Network,
        rates: Floats,
        headroom: float = 0.0,
        max_inputs: int | None = None,
        fixed: Collection[str] = (),
    ) -> None:
        """A problem.

        Raises:
            BadInput: an operator to fix does not exist, or links limit bytes and the size of a tuple is unknown.
        """
        names = [operator.name for operator in network.operators]
        for name in fixed:
            if name not in names:
                raise BadInput(f"operator {name!r} to fix does not exist{did_you_mean(name, names)}")
        unsized = [source.name for source in network.sources if source.out_bytes is None]
        if network.links and unsized:
            raise BadInput(f"links limit bytes, so {unsized[0]!r}, which could cross one, needs out_bytes")
        self.network, self.rates, self.headroom, self.max_inputs = network, rates, headroom, max_inputs
        program, wiring = Program.from_network(network, headroom), Wiring.from_network(network)
        self._program, self._wiring = program, wiring
        self._inner = np.flatnonzero(wiring.target >= 0)
        self._reads = wiring.target[self._inner] - wiring.inputs
        costs = np.array([operator.cost for operator in network.operators])
        self.load = np.zeros((len(network.operators), len(program.drop_arcs)))
        np.add.at(self.load, self._reads, program.flow[self._inner] * costs[self._reads, None])
        self._splits = program.rows[program.resources :]
        self._split_of = np.where(program.input_of < 0, np.cumsum(program.input_of < 0) - 1, -1)
        self.capacity = wiring.limits[: len(network.nodes)] * (1 - headroom)
        self.fixed = np.isin(names, list(fixed))
        self._unshed = wiring.unshed(rates)
        sources = len(network.sources)
        ties = coo_array(
            (np.ones(len(self._inner)), (wiring.source[self._inner], wiring.target[self._inner])), (sources, sources)
        )
        self._queries, query = connected_components(ties, directed=False)
        self.query_of = query[wiring.inputs :]
        self.inputs_of = np.bincount(query[: wiring.inputs], minlength=self._queries)
        of = (self.query_of, query[wiring.source[program.drop_arcs]], query[wiring.source[self._inner]])
        self._members = [tuple(np.flatnonzero(each == at) for each in of) for at in range(self._queries)]
        sizes = [source.out_bytes for source in network.sources]
        self.in_bytes = None not in sizes
        self._size = np.array([size if self.in_bytes and size is not None else 1.0 for size in sizes])
        number = {node.name: at for at, node in enumerate(network.nodes)}
        self.first = np.array([number[operator.node] for operator in network.operators], np.int64)
        self._enters = np.array([number.get(each.node or "", -1) for each in network.inputs], np.int64)
        ends = [end for way in network.links for end in (way.source, way.target)]
        self.named = np.unique(
            [*self._enters[self._enters >= 0], *(number[end] for end in ends), *self.first[self.fixed]]
        )
        self.named = self.named.astype(np.int64)
        reads = {name: at for at, each in reversed([*enumerate(network.operators)]) for name in each.inputs}
        self._reader = np.array([reads.get(each.name, -1) for each in network.inputs], np.int64)
        self.sources_of = [
            self._wiring.source[self._inner[(self._reads == at)]] - wiring.inputs for at in range(len(self.load))
        ]
        self.sources_of = [sources[sources >= 0] for sources in self.sources_of]
        self._links = [(number[link.source], number[link.target]) for link in network.links]
        self._limits = np.array([link.bytes_per_s for link in network.links]) * (1 - headroom)
        self._known: dict[tuple[tuple[int, ...], bytes], Worth] = {}

    @cached_property
    def pooled(self) -> tuple[float, Floats]:
        """The best score and flows if every node could share every operator.

        No operator gets more than the largest node. No placement scores more. Flows have shape (points, variables).
        """
        every = np.arange(len(self._program.drop_arcs))
        rows = np.concatenate((self.load.sum(axis=0)[None], self.load))
        limits = np.concatenate(([self.capacity.sum()], np.full(len(self.load), self.capacity.max())))
        flows = self._best(self._small(every, rows, limits))
        return float((flows @ self._program.weights).mean()), flows

    def network_of(self, place: Indices) -> Network:
        """The network with its operators placed so."""
        names = [node.name for node in self.network.nodes]
        operators = (
            replace(operator, node=names[at]) for operator, at in zip(self.network.operators, place, strict=True)
        )
        return replace(self.network, operators=tuple(operators))

    def worth(self, place: Indices) -> Worth:
        """What a placement is worth."""
        return sum((self.worth_of(queries, place) for queries in self.fragments(place)), Worth())

    def fragments(self, place: Indices) -> list[tuple[int, ...]]:
        """The queries of each fragment, ascending."""
        part = list(range(self._queries))
        first: dict[int, int] = {}
        for query, node in zip(self.query_of.tolist(), place.tolist(), strict=True):
            one, other = _root(part, query), _root(part, first.setdefault(node, query))
            part[max(one, other)] = min(one, other)
        parts: dict[int, list[int]] = {}
        for query in range(self._queries):
            parts.setdefault(_root(part, query), []).append(query)
        return [tuple(queries) for queries in parts.values()]

    def lost(self, place: Indices) -> Floats:
        """Score that each query's fragment loses against pooled capacity, shape (queries,)."""
        lost = np.zeros(self._queries)
        for queries in self.fragments(place):
            there, score = list(queries), self.worth_of(queries, place).score
            lost[there] = max(float(self._pooled_scores[there].sum()) - score, 0.0)
        return lost

    @cached_property
    def _pooled_scores(self) -> Floats:
        """The score of each query with pooled capacity."""
        flows = self.pooled[1].mean(axis=0) * self._program.weights
        return np.array([flows[variables].sum() for _, variables, _ in self._members])

    def worth_of(self, queries: tuple[int, ...], place: Indices) -> Worth:
        """Worth of the fragment of some queries."""
        parts = [self._members[query] for query in queries]
        operators, variables, arcs = (np.concatenate([part[kind] for part in parts]) for kind in range(3))
        key = (queries, place[operators].tobytes())
        if key not in self._known:
            if len(self._known) >= _KEPT:
                self._known.clear()
            variables.sort()
            self._known[key] = self._measured(queries, variables, arcs, place)
        return self._known[key]

    def _measured(self, queries: tuple[int, ...], variables: Indices, arcs: Indices, place: Indices) -> Worth:
        """The worth of a fragment, by the best flows of its queries on its nodes."""
        operators = np.concatenate([self._members[query][0] for query in queries])
        ends = np.stack((self._sends(arcs, place), place[self._reads[arcs]]))
        flow = self._program.flow[np.ix_(self._inner[arcs], variables)]
        nodes, at = np.unique(place[operators], return_inverse=True)
        rows = np.zeros((len(nodes), len(variables)))
        np.add.at(rows, at, self.load[np.ix_(operators, variables)])
        limits = self.capacity[nodes]
        moved = flow * self._size[self._wiring.source[self._inner[arcs]], None]
        for way, limit in zip(self._links, self._limits, strict=True):
            over = (ends[0] == way[0]) & (ends[1] == way[1])
            if over.any():
                rows, limits = np.concatenate((rows, moved[over].sum(axis=0)[None])), np.append(limits, limit)
        program = self._small(variables, rows, limits)
        flows = self._best(program)
        crosses = ends[0] != ends[1]
        entering = self._wiring.source[self._inner[arcs]] < self._wiring.inputs
        inputs = len(AlikeInputs.from_program(program).first)
        most = np.inf if self.max_inputs is None else max(self.max_inputs, max(self.inputs_of[list(queries)]))
        return Worth(
            int(max(inputs - most, 0)) + _circles(ends[:, crosses & ~entering], len(self.capacity)),
            float((flows @ program.weights).mean()),
            float((flows @ moved[crosses].sum(axis=0)).mean()),
            inputs if len(operators) else 0,
            int(len(operators) > 0),
        )

    def _sends(self, arcs: Indices, place: Indices) -> Indices:
        """The node that each arc's tuples come from; those of inputs without one from their first reader's."""
        source = self._wiring.source[self._inner[arcs]]
        entering = source < self._wiring.inputs
        sends = place[np.where(entering, 0, source - self._wiring.inputs)]
        given, reader = self._enters[source[entering]], self._reader[source[entering]]
        sends[entering] = np.where(given >= 0, given, place[reader])
        return np.asarray(sends)

    def _small(self, variables: Indices, rows: Floats, limits: Floats) -> Program:
        """The program of some variables with these resources."""
        program = self._program
        splits = self._splits[np.ix_(self._split_of[variables][self._split_of[variables] >= 0], variables)]
        return replace(
            program,
            wiring=replace(self._wiring, limits=limits),
            drop_arcs=program.drop_arcs[variables],
            input_of=program.input_of[variables],
            flow=program.flow[:, variables],
            rows=np.concatenate((rows, splits)),
            limits=np.concatenate((limits, np.zeros(len(splits)))),
            weights=program.weights[variables],
        )

    def _best(self, program: Program) -> Floats:
        """The best flows at each point, shape (points, variables)."""
        flows = self._unshed[:, program.drop_arcs]
        resources = slice(program.resources)
        full = (flows @ program.rows[resources].T > program.limits[resources] * (1 + ROUNDING)).any(axis=1)
        if full.any():
            solver = WarmProgram(program)
            for point in np.flatnonzero(full):
                flows[point] = solver.flows(self.rates[point])
        return flows


def _root(part: list[int], query: int) -> int:
    """The first query of a part."""
    while part[query] != query:
        part[query] = query = part[part[query]]
    return query


def _circles(ends: Indices, nodes: int) -> int:
    """Number of nodes that tuples come back to, beyond one for each circle."""
    if ends.shape[1] == 0:
        return 0
    ways = coo_array((np.ones(ends.shape[1]), (ends[0], ends[1])), (nodes, nodes))
    return nodes - int(connected_components(ways, connection="strong")[0])
