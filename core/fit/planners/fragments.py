"""Fragments: independent parts of a network, which are planned separately."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.names import OperatorKind
from adapt.core.fit.network.network import Network
from adapt.core.fit.network.wiring import Indices, Wiring
from adapt.core.fit.planners.direct_planners import Planner, Plans
from adapt.core.fit.planners.program import AlikeInputs, Program


@dataclass(frozen=True, slots=True, eq=False)
class Fragment:
    """A part of a network that shares no tuples, nodes or links."""

    network: Network
    inputs: Indices  # numbers of its inputs in the whole network, shape (inputs of the fragment,)
    arcs: Indices  # numbers of its arcs in the whole network, shape (arcs of the fragment,)
    # tuples of each of its inputs that one tuple of each input of the whole network is like, where inputs are merged;
    # shape (inputs of the fragment, inputs). None: they are not
    merged: Floats | None = None
    # numbers of arcs of inputs merged into others, and of the arc that each does as; shape (2, arcs merged)
    follows: Indices | None = None

    def rates(self, rates: Floats) -> Floats:
        """Rates of its inputs at rates of the whole network.

        Shape (..., inputs) to (..., inputs of the fragment).

        Where inputs are merged, they are sums.
        """
        return np.ascontiguousarray(rates[..., self.inputs] if self.merged is None else rates @ self.merged.T)


def fragments(network: Network, *, merge: bool = False) -> tuple[Fragment, ...]:
    """The fragments of a network, in the order of their first inputs.

    Args:
        merge: Whether alike inputs that enter at one node are planned as one.
    """
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
        inputs = np.array([at for at, given in enumerate(network.inputs) if ("source", given.name) in names], np.int64)
        arcs = np.array([number[arc.source, arc.target, arc.port] for arc in Wiring.from_network(part).arcs], np.int64)
        fragment = Fragment(part, inputs, arcs)
        parts.append(_merged(fragment, len(network.inputs)) if merge else fragment)
    return tuple(parts)


class FragmentPlanner:
    """Plans each fragment by a planner of its own.

    Attributes:
        merge: Whether alike inputs are planned as one.
    """

    def __init__(self, network: Network, planner_of: Callable[[Fragment], Planner], *, merge: bool = False) -> None:
        self.merge, self.fragments = merge, fragments(network, merge=merge)
        self.planners = tuple(planner_of(fragment) for fragment in self.fragments)
        self._arcs = len(Wiring.from_network(network).arcs)

    def plan(self, rates: Floats) -> Plans:
        """The plans of all fragments together."""
        keeps, scores, ids = np.ones((len(rates), self._arcs)), np.zeros(len(rates)), []
        for fragment, planner in zip(self.fragments, self.planners, strict=True):
            planned = planner.plan(fragment.rates(rates))
            keeps[:, fragment.arcs] = planned.keeps
            if fragment.follows is not None:
                keeps[:, fragment.follows[0]] = keeps[:, fragment.follows[1]]
            scores += planned.scores
            ids.append(planned.ids)
        return Plans(keeps, scores, np.concatenate(ids, axis=1))


def _merged(fragment: Fragment, inputs: int) -> Fragment:
    """The fragment with alike inputs merged, if every operator left is still one.

    Inputs go that are like an earlier one at the same node, and with them the operators that only they feed.
    """
    network = fragment.network
    program = Program.from_network(network)
    alike, arcs = AlikeInputs.from_program(program), program.wiring.arcs
    enters = [network.node_of(entering) for entering in network.inputs]
    first: dict[tuple[int, str], int] = {}
    stands = [first.setdefault((int(alike.set_of[at]), enters[at]), at) for at in range(len(enters))]
    gone = {network.inputs[at].name for at, other in enumerate(stands) if at != other}
    operators = []
    for operator in network.operators:
        left = tuple(name for name in operator.inputs if name not in gone)
        if not left:
            gone.add(operator.name)
        elif operator.kind is OperatorKind.JOIN and left != operator.inputs:
            return fragment
        else:
            operators.append(replace(operator, inputs=left))
    if not gone:
        return fragment
    kept = [at for at, other in enumerate(stands) if at == other]
    part = Network(
        network.nodes,
        tuple(network.inputs[at] for at in kept),
        tuple(operators),
        tuple(output for output in network.outputs if output.source not in gone),
        network.links,
    )
    merged = np.zeros((len(kept), inputs))
    merged[[kept.index(other) for other in stands], fragment.inputs] = alike.factor / alike.factor[stands]
    pairs = [(alike.arcs[at], alike.arcs[other]) for at, other in enumerate(stands) if at != other]
    numbers: dict[tuple[str, str], list[int]] = {}
    for at, arc in enumerate(arcs):  # ports of unions may have other numbers
        numbers.setdefault((arc.source, arc.target), []).append(at)
    there = [numbers[arc.source, arc.target].pop(0) for arc in Wiring.from_network(part).arcs]
    follows = np.concatenate([np.stack(pair) for pair in pairs], axis=1)
    return Fragment(part, fragment.inputs[kept], fragment.arcs[there], merged, fragment.arcs[follows])


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
