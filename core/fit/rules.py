"""Rules of load shedding, as tables, and the worth of capacity."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.network import Network
from adapt.core.fit.network.wiring import Indices, Wiring
from adapt.core.fit.planners.direct_planners import Exact
from adapt.core.fit.planners.fragments import Fragment, FragmentPlanner, fragments
from adapt.core.fit.planners.program import Program
from adapt.core.fit.regimes import ALL, NOTHING, PART, Regime, arc_names, regimes_of
from adapt.core.table import Column, Kind, Table

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

    Where rates are in no known regime, all inputs are scaled down by the same share until they are in one, or fit. As
    the best score is a concave function of the rates, no more than that share of it is lost.
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
            lost = np.flatnonzero(at == UNKNOWN)
            down = 1 / (mine[lost] @ part.loads().T).max(axis=1, initial=1.0)
            for regime in part.regimes:
                reach = regime.reach(mine[lost])
                further = reach > down
                down = np.where(further, reach, down)
                shares[lost[further]] = regime.shares(down[further, None] * mine[lost[further]])
            shares[lost] *= np.where(program.input_of >= 0, down[:, None], 1.0)
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
    gains = []
    for kind, capacity in (("nodes", "capacity"), ("links", "bytes_per_s")):
        every = getattr(network, kind)
        for at, each in enumerate(every):
            larger = replace(each, **{capacity: (1 + MORE) * getattr(each, capacity)})
            gains.append(score(replace(network, **{kind: (*every[:at], larger, *every[at + 1 :])})) / before - 1)
    return np.array(gains)


RULE_COLUMNS = (
    Column("rule", Kind.COUNT),
    Column("ticks", Kind.COUNT, "ticks"),
    Column("keep", about="best for the rates of these ticks; shares at their mean rates"),
    Column("bottleneck", about="the one with the highest value first"),
    Column("growth", Kind.SHARE, about="of all rates, from the mean, until the rule changes; empty: never"),
    Column("change", about="what changes then"),
)

CAPACITY_COLUMNS = (
    Column("node", about="or link"),
    Column("capacity", Kind.NUMBER, "per s", "CPU seconds, or bytes of a link"),
    Column("needed", Kind.NUMBER, "per s", "so that the busiest tick fits without drops, headroom included"),
    Column("bottleneck", Kind.COUNT, "ticks", "in which more of it would raise the score"),
    Column("price", Kind.NUMBER, about="score per unit of capacity, mean over overloaded ticks"),
    Column("gain", Kind.SHARE, about=f"of the score in overloaded ticks, by {MORE:.0%} more capacity"),
)


def rules_table(rules: Rules) -> Table:
    """One row per regime of the trace; the first drops nothing."""
    rows = [_unshed_row(rules)]
    for number, (part, at, ticks) in enumerate(rules.used(), 1):
        regime, rates = part.regimes[at], rules.rates[ticks][:, part.fragment.inputs].mean(axis=0)
        factor, event = regime.growth(rates)
        change = (factor - 1, event) if np.isfinite(factor) else (None, None)
        rows.append((number, len(ticks), rule_text(part, regime, rates), bottlenecks(part, regime), *change))
    return Table.from_rows("Rules", RULE_COLUMNS, rows)


def capacities_table(rules: Rules) -> Table:
    """One row per node and link: capacity, need, worth of more."""
    wiring, prices = Wiring.from_network(rules.network), rules.prices()
    needed = (wiring.unshed(rules.rates) @ wiring.use.T).max(axis=0, initial=0.0) / (1 - rules.headroom)
    rows = [
        (
            name,
            float(limit),
            float(most),
            int((price > 0).sum()),
            float(price.mean()) if len(price) else 0.0,
            float(gain),
        )
        for name, limit, most, gain in zip(wiring.resources, wiring.limits, needed, rules.gains, strict=True)
        for price in [prices.get(name, np.zeros(0))]
    ]
    return Table.from_rows("Capacities", CAPACITY_COLUMNS, rows)


def _unshed_row(rules: Rules) -> tuple[int, int, str, str | None, float | None, str | None]:
    calm = np.setdiff1d(np.arange(len(rules.rates)), rules.overloaded)
    wiring = Wiring.from_network(rules.network)
    uses = wiring.uses(wiring.unshed(rules.rates[calm].mean(axis=0, keepdims=True)))[0] if len(calm) else np.zeros(1)
    fullest = float(uses.max(initial=0.0)) / (1 - rules.headroom)
    if not fullest:
        return 0, len(calm), "Keep everything", None, None, None
    event = f"{wiring.resources[int(np.argmax(uses))]} becomes a bottleneck"
    return 0, len(calm), "Keep everything", None, 1 / fullest - 1, event


def rule_text(part: FragmentRules, regime: Regime, rates: Floats | None = None) -> str:
    """The rule of a regime in words.

    Args:
        rates: Of the inputs, shape (inputs,): shares at these rates are given instead of functions of the rates.
    """
    inputs = [entering.name for entering in part.fragment.network.inputs]
    said = []
    for variable in np.flatnonzero(regime.keeps == PART):
        name, limit = part.names[variable], _formula(regime.kept[variable], inputs)
        share = "" if rates is None else f"{regime.shares(rates[None])[0, variable]:.0%}"
        if rates is None or not regime.kept[variable, 1:].any():
            said.append(f"keep {limit} tuples/s of {name} while more arrives{share and f' ({share})'}")
        else:
            said.append(f"keep {share} of {name}")
    offered = np.abs(regime.offered).max(axis=1) > 0
    dropped = [part.names[arc] for arc in np.flatnonzero(offered & (regime.keeps == NOTHING))]
    if dropped:
        said.append(f"drop {', '.join(dropped)}")
    whole = [part.names[arc] for arc in np.flatnonzero(offered & (regime.keeps == ALL))]
    if whole:
        said.append(f"keep all of {' and '.join(whole)}" if len(whole) <= 2 else "keep everything else")
    text = "; ".join(said)
    return text[:1].upper() + text[1:]


def _formula(function: Floats, inputs: list[str]) -> str:
    """A linear function of the rates, such as 29.2 - 0.5 x orders."""
    size = max(abs(function[0]), 1e-12)
    terms = [f"{function[0]:.4g}"] if function[0] else []
    for factor, name in zip(function[1:], inputs, strict=True):
        if abs(factor) > 1e-12 * size:
            sign = "-" if factor < 0 else "+" if terms else ""
            terms.append(f"{sign} {abs(factor):.4g} x {name}".strip())
    return " ".join(terms) or "0"


def bottlenecks(part: FragmentRules, regime: Regime) -> str:
    """The resources that limit a regime, by the value of their capacity."""
    value = regime.prices * part.program.limits[: part.program.resources]
    order = [at for at in np.argsort(-value, kind="stable") if value[at] > 0]
    return ", then ".join(part.program.wiring.resources[at] for at in order) or "none"


_HEADER = """\
# Shares to keep, by regime of input rates; read by shedder.py in this folder.
# A linear function of the rates of a part's inputs, in tuples/s, is [constant, factor of the first input, ...].
# loads: of each node and link, as a share of its capacity, per tuple/s of each input; above 1, tuples must be dropped.
# when: functions that are all at least 0 in a regime. The first regime that holds applies; where none does, all inputs
# are scaled down by the same share until one does, or everything fits.
# keep: share kept on an arc, or the functions kept / offered."""


def rule_file(rules: Rules) -> str:
    """All regimes as TOML."""
    return "\n".join((_HEADER, *(line for part in rules.parts for line in _part(part)))) + "\n"


def _part(part: FragmentRules) -> Iterator[str]:
    program = part.program
    arcs = [program.wiring.arcs[arc].name for arc in program.drop_arcs]
    yield "\n[[part]]"
    yield f"inputs = {_json([entering.name for entering in part.fragment.network.inputs])}"
    yield f"arcs = {_json(arcs)}"
    yield f"roots = {_json([arc for arc, entering in zip(arcs, program.input_of, strict=True) if entering >= 0])}"
    yield f"loads = {_json(part.loads().tolist())}"
    for regime in part.regimes:
        yield "\n[[part.regime]]"
        yield f"rule = {_json(rule_text(part, regime))}"
        yield f"bottleneck = {_json(bottlenecks(part, regime))}"
        yield f"when = {_json(regime.when.tolist())}"
        yield "[part.regime.keep]"
        yield from (f"{_json(arc)} = {_keep(regime, at)}" for at, arc in enumerate(arcs))


def _keep(regime: Regime, variable: int) -> str:
    if regime.keeps[variable] == PART:
        kept, offered = (_json(functions[variable].tolist()) for functions in (regime.kept, regime.offered))
        return f"{{ kept = {kept}, offered = {offered} }}"
    return "1.0" if regime.keeps[variable] == ALL else "0.0"


def _json(value: object) -> str:
    """Strings and lists are written in TOML as in JSON."""
    return json.dumps(value, ensure_ascii=False)
