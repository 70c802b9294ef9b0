"""Rules of load shedding as tables and sentences."""

from collections.abc import Iterator

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.rules.regimes import ALL, NOTHING, PART, Regime
from adapt.core.fit.rules.rules import MORE, FragmentRules, Rules
from adapt.core.table import Column, Kind, Table

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


def sentences(rules: Rules) -> Iterator[str]:
    """What to do, and which capacity is worth most."""
    table, over = rules_table(rules), len(rules.overloaded)
    if len(table.rows) == 1:
        return
    _, ticks, keep, bottleneck, *_ = table.rows[1]
    rule = str(keep)[:1].lower() + str(keep)[1:]
    yield f"Best in {ticks:,} of the {over:,} overloaded ticks: {rule}; bottleneck: {bottleneck}."
    best = int(np.argmax(rules.gains))
    if rules.gains[best] > 0:
        name = Wiring.from_network(rules.network).resources[best]
        yield f"{MORE:.0%} more capacity of {name} is worth {rules.gains[best]:.1%} of the score in overloaded ticks."


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
