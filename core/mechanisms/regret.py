"""Regret of scenarios: their cost over that of the offline optimum."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from adapt.core.elastic.planning.prices import Prices
from adapt.core.mechanisms.recommendation import knows_stream, real
from adapt.core.mechanisms.sweep.finding import Margin
from adapt.core.mechanisms.sweep.race import Record, difference
from adapt.core.phrases import listed
from adapt.core.stage.outcome import ORDERED
from adapt.core.values import duration

NAMED = 3
"""Scenarios of least regret that the sentence names."""


def with_optimum(runs: Mapping[str, Sequence[Record]]) -> dict[str, list[Record]]:
    """Runs in which the optimum has the cheapest outcome with each seed.

    That is the cheapest of its schedules and of all scenarios that split no key, drop no row and share no memory, so no
    regret is negative.

    Args:
        runs: Outcomes by scenario, in the order of seeds.
    """
    found = {name: list(each) for name, each in runs.items()}
    for name in _optima(runs):
        for at, own in enumerate(runs[name]):
            tried = [each[at] for each in runs.values() if at < len(each) and _is_whole(each[at])]
            best = min([own, *tried], key=_cost)
            found[name][at] = {**best, "scenario": name, "cost_bound": own["cost_bound"]}
    return found


def regrets(runs: Mapping[str, Sequence[Record]]) -> dict[str, Margin]:
    """Cost over that of the optimum with equal seeds, by scenario.

    Scenarios that split keys, drop rows or share memory have none, as the optimum does none of these. Intervals end at
    1: no cost is below that of the optimum.

    Args:
        runs: Those of `with_optimum`; without an optimum, nothing is found.
    """
    return {
        name: margin if margin.low is None else replace(margin, low=max(1.0, margin.low))
        for name, margin in _over_optimum(runs).items()
        if all(map(_is_whole, runs[name]))
    }


def regret_sentence(runs: Mapping[str, Sequence[Record]], prices: Prices) -> str:
    """Sentence on costs and regrets.

    Empty without an optimum, or if nothing is compared with it.

    Args:
        runs: Those of `with_optimum`.
    """
    whole = {name: margin for name, margin in regrets(runs).items() if name not in _optima(runs)}
    if not whole:
        return ""
    optimum = runs[_optima(runs)[0]]
    seeds = len(optimum)
    cost_s, bound_s = (sum(real(each[name]) for each in optimum) / seeds for name in ("cost", "cost_bound"))
    known = f"the optimum, which knows the stream, costs {duration(cost_s)}{' in the mean' if seeds > 1 else ''}"
    same = [name for name in whole if all(a["cost"] == b["cost"] for a, b in zip(runs[name], optimum, strict=False))]
    if same:
        known += f" (no schedule made in advance was cheaper than {same[0]})"
    known += f", {_more(Margin(cost_s / bound_s, None, None))} than the least in its model with free rescales"
    ranked = sorted(whole.keys() - same[:1], key=lambda name: (whole[name].ratio, name))[:NAMED]
    others = ", ".join(f"{name} {_more(whole[name])}" for name in ranked)
    said = f"{prices.sentence()}: {known}{'; ' if others else ''}{others}."
    cheaper = [name for name, margin in _over_optimum(runs).items() if margin.ratio < 1]
    if cheaper:
        shares = any(_is_ordered(runs[name][0]) for name in cheaper)
        how = "splitting keys, dropping rows or sharing memory" if shares else "splitting keys or dropping rows"
        said += f" {listed(cheaper)} {'costs' if len(cheaper) == 1 else 'cost'} less than it, by {how}."
    if any(_is_ordered(each) and each["restarts"] for rows in runs.values() for each in rows):
        said += " Rescales of workers that share memory are free."
    return said


def _over_optimum(runs: Mapping[str, Sequence[Record]]) -> dict[str, Margin]:
    """Cost of each scenario over that of the optimum, for the seeds that both have."""
    optima = _optima(runs)
    if not optima:
        return {}
    pairs = {name: list(zip(each, runs[optima[0]], strict=False)) for name, each in runs.items()}
    return {
        name: Margin.from_differences([difference(one, best, "cost") for one, best in each])
        for name, each in pairs.items()
        if each
    }


def _optima(runs: Mapping[str, Sequence[Record]]) -> list[str]:
    return [name for name, each in runs.items() if each and knows_stream(each[0])]


def _is_whole(record: Record) -> bool:
    """Whether no key is split, no row dropped, and no memory shared."""
    return not record["merge_tuples"] and not record["drop_rate"] and not _is_ordered(record)


def _is_ordered(record: Record) -> bool:
    return record["queueing"] == ORDERED


def _cost(record: Record) -> float:
    return real(record["cost"])


def _more(margin: Margin) -> str:
    """A ratio as a difference, with its interval."""
    said = f"{margin.ratio - 1:.0%} more"
    if margin.low is None or margin.high is None or f"{margin.low:.2f}" == f"{margin.high:.2f}":
        return said
    return f"{said} ({margin.low - 1:.0%} to {margin.high - 1:.0%})"
