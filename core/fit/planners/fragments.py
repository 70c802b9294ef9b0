"""Fragments: independent parts of a network, which are planned separately."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.network import Network
from adapt.core.fit.network.wiring import Indices, Wiring
from adapt.core.fit.planners.planner import Planner, Plans


@dataclass(frozen=True, slots=True, eq=False)
class Fragment:
    """A part of a network that shares no tuples, nodes or links.

    Attributes:
        inputs: Numbers of its inputs in the whole network, shape (inputs of the fragment,).
        arcs: Numbers of its arcs in the whole network, shape (arcs of the fragment,).
    """

    network: Network
    inputs: Indices
    arcs: Indices


def fragments(network: Network) -> tuple[Fragment, ...]:
    """The fragments of a network, in the order of their first inputs."""
    whole = Wiring.from_network(network)
    number = {(arc.source, arc.target, arc.port): at for at, arc in enumerate(whole.arcs)}
    parts = []
    for names in _together(network):
        links = tuple(link for link in network.links if ("link", link.name) in names)
        entering = tuple(entering for entering in network.inputs if ("source", entering.name) in names)
        named = {end for link in links for end in (link.source, link.target)} | {given.node for given in entering}
        part = Network(
            tuple(n for n in network.nodes if ("node", n.name) in names or n.name in named) or network.nodes[:1],
            entering,
            tuple(operator for operator in network.operators if ("source", operator.name) in names),
            tuple(output for output in network.outputs if ("source", output.source) in names),
            links,
        )
        inputs = [at for at, given in enumerate(network.inputs) if ("source", given.name) in names]
        arcs = [number[arc.source, arc.target, arc.port] for arc in Wiring.from_network(part).arcs]
        parts.append(Fragment(part, np.array(inputs, np.int64), np.array(arcs, np.int64)))
    return tuple(parts)


class FragmentPlanner:
    """Plans each fragment by a planner of its own."""

    def __init__(self, network: Network, planner_of: Callable[[Fragment], Planner]) -> None:
        self.fragments = fragments(network)
        self.planners = tuple(planner_of(fragment) for fragment in self.fragments)
        self._arcs = sum(len(fragment.arcs) for fragment in self.fragments)

    def plan(self, rates: Floats) -> Plans:
        """The plans of all fragments together."""
        keeps, scores, ids = np.ones((len(rates), self._arcs)), np.zeros(len(rates)), []
        for fragment, planner in zip(self.fragments, self.planners, strict=True):
            planned = planner.plan(np.ascontiguousarray(rates[:, fragment.inputs]))
            keeps[:, fragment.arcs] = planned.keeps
            scores += planned.scores
            ids.append(planned.ids)
        return Plans(keeps, scores, np.concatenate(ids, axis=1))


def _together(network: Network) -> list[set[tuple[str, str]]]:
    """Sources and nodes by fragment, as pairs of kind and name, in the order of first inputs."""
    near: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for one, other in _ties(network):
        near.setdefault(one, set()).add(other)
        near.setdefault(other, set()).add(one)
    found: list[set[tuple[str, str]]] = []
    for entering in network.inputs:
        start = ("source", entering.name)
        if any(start in names for names in found):
            continue
        names, frontier = {start}, [start]
        while frontier:
            new = near.get(frontier.pop(), set()) - names
            names |= new
            frontier += sorted(new)
        found.append(names)
    return found


def _ties(network: Network) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """What must be planned together: an operator with its inputs, its node, and links it reads over."""
    by_name = {source.name: source for source in network.sources}
    ties = []
    for operator in network.operators:
        me = ("source", operator.name)
        ties.append((me, ("node", operator.node)))
        ties += [(me, ("source", read)) for read in operator.inputs]
        over = {(network.node_of(by_name[read]), operator.node) for read in operator.inputs}
        ties += [(me, ("link", link.name)) for link in network.links if (link.source, link.target) in over]
    return ties
