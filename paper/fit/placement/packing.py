"""First placement: groups of queries on nodes of their own."""

import numpy as np

from adapt.core.fit.network.wiring import Indices
from paper.fit.placement.problem import Problem


def packed(problem: Problem) -> Indices:
    """Placement for the mean loads of the best shedding.

    Queries form groups of at most `max_inputs` inputs. The largest node left goes to the group that lacks most, until
    all nodes are given away. In each group, a query goes to the node that it fills best. If it fits none, its operators
    follow each other, sources first, to the emptiest node that makes no circle of nodes.
    """
    need = (problem.load @ problem.pooled[1].T).mean(axis=1)
    groups = _groups(problem, need)
    packing = _Packing(problem, need)
    for queries, nodes in zip(groups, _nodes_of(problem, need, groups), strict=True):
        packing.fill(queries, nodes)
    return packing.place


def _groups(problem: Problem, need: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[list[int]]:
    """Queries by group: those with operators fixed on one node together, then first fit by number of inputs."""
    loads = np.bincount(problem.query_of, need, minlength=len(problem.inputs_of))
    order = np.lexsort((-loads, -problem.inputs_of))
    bound: dict[int, list[int]] = {}
    for operator in np.flatnonzero(problem.fixed):
        query, node = int(problem.query_of[operator]), int(problem.first[operator])
        there = {id(each): each for each in bound.values() if query in each}
        there |= {id(bound[node]): bound[node]} if node in bound else {}
        joined = list(dict.fromkeys([query, *(each for group in there.values() for each in group)]))
        bound |= {at: joined for at, group in bound.items() if id(group) in there} | {node: joined}
    groups = list({id(each): each for each in bound.values()}.values())
    taken = {query for group in groups for query in group}
    inputs = [int(problem.inputs_of[group].sum()) for group in groups]
    for query in [int(each) for each in order if int(each) not in taken]:
        mine = int(problem.inputs_of[query])
        most = (problem.max_inputs or np.inf) - mine
        at = next((at for at, there in enumerate(inputs) if there <= most), len(groups))
        if at == len(groups):
            groups.append([])
            inputs.append(0)
        groups[at].append(query)
        inputs[at] += mine
    return groups


def _nodes_of(
    problem: Problem, need: np.ndarray[tuple[int], np.dtype[np.float64]], groups: list[list[int]]
) -> list[list[int]]:
    """The nodes of each group: those of its fixed operators, then the largest to whom lacks most."""
    given: list[list[int]] = []
    lack = np.array([need[np.isin(problem.query_of, queries)].sum() for queries in groups])
    for at, queries in enumerate(groups):
        mine = np.isin(problem.query_of, queries) & problem.fixed
        given.append([int(node) for node in np.unique(problem.first[mine])])
        lack[at] -= problem.capacity[given[at]].sum()
    taken = {node for nodes in given for node in nodes}
    for node in np.argsort(-problem.capacity, kind="stable").tolist():
        if node in taken:
            continue
        without = np.array([not nodes for nodes in given])
        at = int(np.where(without, lack + problem.capacity.sum(), lack).argmax())
        given[at].append(node)
        lack[at] -= problem.capacity[node]
    return given


class _Packing:
    def __init__(self, problem: Problem, need: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
        self._problem, self._need = problem, need
        self.place = np.where(problem.fixed, problem.first, -1)
        self._left = problem.capacity.copy()
        np.subtract.at(self._left, problem.first[problem.fixed], need[problem.fixed])
        nodes = len(problem.capacity)
        self._after = np.eye(nodes, dtype=np.bool_)

    def fill(self, queries: list[int], nodes: list[int]) -> None:
        """Place the queries of a group, the largest first; without nodes of its own, on any."""
        problem, mine = self._problem, np.array(nodes or range(len(self._left)), np.int64)
        loads = np.bincount(problem.query_of, self._need, minlength=len(problem.inputs_of))
        for query in sorted(queries, key=lambda each: -loads[each]):
            members = np.flatnonzero(problem.query_of == query)
            whole = self._left[mine] >= loads[query]
            if whole.any() and not problem.fixed[members].any():
                best = int(mine[whole][self._left[mine][whole].argmin()])
                for operator in members:
                    self._put(int(operator), best)
                continue
            for operator in members[~problem.fixed[members]]:
                self._put(int(operator), self._node_for(int(operator), mine))

    def _node_for(self, operator: int, nodes: Indices) -> int:
        """The node of one operator of a query that is cut."""
        sources = self.place[self._problem.sources_of[operator]]
        sources = np.unique(sources[sources >= 0])
        ahead = np.logical_not(np.asarray(self._after[:, sources].any(axis=1)))  # tuples to these nodes never come back
        ahead[sources[[not self._after[one, sources[sources != one]].any() for one in sources]]] = True
        fits = self._left >= self._need[operator]
        near = sources[(ahead & fits)[sources]]
        if len(near):
            return int(near[0])
        nodes = nodes[ahead[nodes]] if ahead[nodes].any() else nodes
        return int(nodes[self._left[nodes].argmax()])

    def _put(self, operator: int, node: int) -> None:
        self.place[operator] = node
        self._left[node] -= self._need[operator]
        for source in self._problem.sources_of[operator]:
            sender = int(self.place[source])
            if sender >= 0 and sender != node:
                self._after |= np.outer(self._after[:, sender], self._after[node])
