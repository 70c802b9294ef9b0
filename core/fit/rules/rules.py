"""Rules of load shedding, and the worth of capacity."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.network import Network
from adapt.core.fit.network.wiring import Indices, Wiring
from adapt.core.fit.planners.direct_planners import Exact
from adapt.core.fit.planners.fragments import Fragment, FragmentPlanner, fragments
from adapt.core.fit.program.program import Program
from adapt.core.fit.rules.regimes import Regime, arc_names, regimes_of

UNSHED, UNKNOWN = -1, -2
"""Instead of a regime: everything fits; or none of the regimes holds."""

MORE = 0.1
"""By how much the capacity of a node or link is raised to find what it is worth."""


@dataclass(frozen=True, slots=True, eq=False)
class FragmentRules:
    """The rules of one independent part of a network."""

    program: Program  # of the part
    fragment: Fragment  # its place in the network
    regimes: tuple[Regime, ...]  # those of most rates first
    names: tuple[str, ...]  # of its drop arcs
    of_tick: Indices  # the regime of each tick, or one of the constants above; shape (ticks,)

    def loads(self) -> Floats:
        """Load of resources per tuple/s of inputs, shape (resources, inputs)."""
        program = self.program
        uses = program.unshed(np.eye(program.inputs)) @ program.rows[: program.resources].T
        return np.asarray((uses / program.limits[: program.resources]).T)


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """The best drop plan of a network over all rates.

    Where rates are in no known regime, rules keep the same share of every input, as much as fits.
    """

    network: Network  # of all parts
    rates: Floats  # Tuples/s of each input in each tick, shape (ticks, inputs)
    headroom: float  # share of every capacity left free
    parts: tuple[FragmentRules, ...]
    gains: Floats  # score gained in overloaded ticks by a tenth more of each resource, as a share; shape (resources,)

    @classmethod
    def from_network(cls, network: Network, rates: Floats, headroom: float, seed: int) -> "Rules":
        """The rules of a network.

        Args:
            rates: Known rates, shape (ticks, inputs); the rules cover up to twice the highest.
            seed: Random seed of the rates at which more regimes are looked for.
        """
        parts = []
        for fragment in fragments(network):
            program = Program.from_network(fragment.network, headroom)
            mine = np.ascontiguousarray(rates[:, fragment.inputs])
            regimes = regimes_of(program, mine, np.random.default_rng(seed))
            at = regime_at(program, regimes, mine)
            parts.append(FragmentRules(program, fragment, regimes, arc_names(program), at))
        over = np.any([part.of_tick != UNSHED for part in parts], axis=0)
        return cls(network, rates, headroom, tuple(parts), _gains(network, rates[over], headroom))

    @property
    def overloaded(self) -> Indices:
        """Number of each overloaded tick."""
        return np.flatnonzero(np.any([part.of_tick != UNSHED for part in self.parts], axis=0))

    def keeps(self, rates: Floats) -> Floats:
        """Share kept on each arc, shape (points, arcs).

        Args:
            rates: Tuples/s, shape (points, inputs).
        """
        keeps = np.ones((len(rates), len(Wiring.from_network(self.network).arcs)))
        for part in self.parts:
            mine, program = np.ascontiguousarray(rates[:, part.fragment.inputs]), part.program
            at, shares = regime_at(program, part.regimes, mine), np.ones((len(rates), len(program.drop_arcs)))
            for number, regime in enumerate(part.regimes):
                shares[at == number] = regime.shares(mine[at == number])
            lost = at == UNKNOWN
            fullest = (mine[lost] @ part.loads().T).max(axis=1, initial=1.0)[:, None]
            shares[lost] = np.where(program.input_of >= 0, 1 / fullest, 1.0)
            keeps[:, part.fragment.arcs[program.drop_arcs]] = shares
        return keeps

    def prices(self) -> dict[str, Floats]:
        """Shadow prices of resources in overloaded ticks, score per unit.

        Returns:
            By name, shape (overloaded ticks,) each.
        """
        found: dict[str, Floats] = {}
        for part in self.parts:
            at = part.of_tick[self.overloaded]
            priced = np.zeros((len(at), part.program.resources))
            for number, regime in enumerate(part.regimes):
                priced[at == number] = regime.prices
            found |= dict(zip(part.program.wiring.resources, priced.T, strict=True))
        return found

    def used(self) -> Iterator[tuple[FragmentRules, int, Indices]]:
        """Regimes of overloaded ticks: part, number, ticks; most ticks first."""
        found = [
            (part, number, np.flatnonzero(part.of_tick == number))
            for part in self.parts
            for number in range(len(part.regimes))
        ]
        yield from sorted((each for each in found if len(each[2])), key=lambda each: -len(each[2]))


def regime_at(program: Program, regimes: tuple[Regime, ...], rates: Floats) -> Indices:
    """The first regime that holds at some rates, UNSHED or UNKNOWN.

    Args:
        rates: Tuples/s, shape (points, inputs).
    """
    found = np.where(program.feasible(rates), UNSHED, UNKNOWN)
    for number, regime in enumerate(regimes):
        left = np.flatnonzero(found == UNKNOWN)
        found[left[regime.holds(rates[left])]] = number
    return found


def _gains(network: Network, rates: Floats, headroom: float) -> Floats:
    """What a tenth more of each resource adds to the best score."""

    def score(changed: Network) -> float:
        planner = FragmentPlanner(changed, lambda part: Exact(Program.from_network(part.network, headroom)))
        return float(planner.plan(rates).scores.sum())

    before = score(network)
    if not before:
        return np.zeros(len(network.nodes) + len(network.links))
    changed = [
        replace(network, nodes=(*network.nodes[:at], replace(node, capacity=(1 + MORE) * node.capacity),
                                *network.nodes[at + 1 :]))
        for at, node in enumerate(network.nodes)
    ]  # fmt: skip
    changed += [
        replace(network, links=(*network.links[:at], replace(link, bytes_per_s=(1 + MORE) * link.bytes_per_s),
                                *network.links[at + 1 :]))
        for at, link in enumerate(network.links)
    ]  # fmt: skip
    return np.array([score(each) / before - 1 for each in changed])
