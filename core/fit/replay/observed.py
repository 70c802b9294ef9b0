"""Tables of a replay with true values: estimates, errors, important changes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.fit.network.network import Network
from adapt.core.fit.network.true_values import TrueValues, values_of
from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.planners.direct_planners import Exact
from adapt.core.fit.planners.program import Program
from adapt.core.fit.replay.tables import FitOutcome, overloaded
from adapt.core.fit.running.observing import KINDS
from adapt.core.table import Cell, Column, Kind, Table

Mask: TypeAlias = NDArray[np.bool_]

_PLANNER, _END = Column("planner"), Column("end", Kind.SECONDS, "s", "of the tick")

STATISTICS_COLUMNS = (
    _PLANNER,
    Column("lost", Kind.SHARE, about="of the best score by the true values"),
    Column("overloaded", Kind.SECONDS, "s", "more kept than a node or link can do"),
    Column("overloaded_longest", Kind.SECONDS, "s", "without a break"),
    Column("cost_error", Kind.SHARE, about="of costs that plans use, mean over ticks and operators"),
    Column("selectivity_error", Kind.SHARE, about="likewise, of selectivities"),
    Column("estimate_error", Kind.SHARE, about="of the nodes' estimates, likewise"),
    Column("rate_error", Kind.SHARE, about="of rates estimated for the next tick, median over ticks and arcs"),
    Column("held", Kind.SHARE, about="of the 95 % intervals hold the true value"),
    Column("changes", Kind.COUNT, about="important changes of a value"),
    Column("replans", Kind.COUNT, "ticks", "after which plans changed for them"),
    Column("first_bytes", Kind.BYTES, "bytes", "of the first tables, cuts or plans"),
    Column("replan_bytes", Kind.BYTES, "bytes", "sent per replan, mean"),
)

ERROR_COLUMNS = (
    _PLANNER,
    _END,
    Column("lost", Kind.SHARE, about="of the best score by the true values"),
    Column("cost_error", Kind.SHARE, about="of costs that plans use, mean over operators"),
    Column("selectivity_error", Kind.SHARE, about="likewise, of selectivities"),
    Column("estimate_error", Kind.SHARE, about="of the nodes' estimates"),
    Column("changes", Kind.COUNT, about="important changes found at its end"),
)

ESTIMATE_COLUMNS = (
    _PLANNER,
    Column("node"),
    Column("name", about="of an operator, or of an arc that enters the node"),
    Column("value", about="cost, selectivity or rate"),
    Column("error_p50", Kind.SHARE, about="of the estimates, over ticks; of a rate, from that of the next tick"),
    Column("error_p95", Kind.SHARE, about="likewise"),
    Column("used_p50", Kind.SHARE, about="error of the values that plans use, over ticks"),
    Column("used_p95", Kind.SHARE, about="likewise"),
    Column("held", Kind.SHARE, about="of the 95 % intervals hold the true value"),
    Column("changes", Kind.COUNT, about="important ones"),
)

CHANGE_COLUMNS = (
    _PLANNER,
    _END,
    Column("node"),
    Column("operator"),
    Column("value", about="cost or selectivity"),
    Column("before", Kind.NUMBER, about="used by plans"),
    Column("estimate", Kind.NUMBER, about="used from now on"),
    Column("low", Kind.NUMBER, about="end of its 95 % interval"),
    Column("high", Kind.NUMBER, about="likewise"),
    Column("true", Kind.NUMBER),
)


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Plans judged by the true values."""

    optimum: Floats  # the best score of each tick, shape (ticks,)
    offered_use: Floats  # utilization by everything offered, shape (ticks, resources)
    # of each planner, the utilization of each node and link by the tuples kept; shape (ticks, resources)
    uses: tuple[Floats, ...]

    @classmethod
    def by(cls, true: TrueValues, rates: Floats, keeps: Sequence[Floats]) -> "Judged":
        """Judge plans.

        Args:
            rates: Shape (ticks, inputs).
            keeps: Of each planner, shape (ticks, arcs).
        """
        optimum = np.zeros(len(rates))
        offered_use, *uses = (np.zeros((len(rates), len(true.wiring(0).limits))) for _ in (None, *keeps))
        for ticks, wiring in true.constant():
            offered = wiring.unshed(rates[ticks])
            optimum[ticks], offered_use[ticks] = wiring.scores(offered), wiring.uses(offered)
            if overloaded(offered_use[ticks]).any():
                optimum[ticks] = Exact(Program.from_network(wiring.network)).plan(rates[ticks]).scores
            for use, kept in zip(uses, keeps, strict=True):
                use[ticks] = wiring.uses(wiring.flows(rates[ticks], kept[ticks]))
        return cls(optimum, offered_use, tuple(uses))


@dataclass(frozen=True, slots=True, eq=False)
class Errors:
    """How wrong one planner was; kinds are those of `KINDS`."""

    used: Floats  # relative errors of the values that plans used, shape (ticks, kinds, operators)
    estimated: Floats  # relative errors of the nodes' estimates at the end of each tick, nan if unknown; likewise
    held: Floats  # 1 if the interval of an estimate holds the true value, 0 if not, nan if unknown; likewise
    # relative errors of the rates estimated for the next tick, nan if none was offered; shape (ticks - 1, arcs)
    rates: Floats
    changes: NDArray[np.int64]  # important changes, shape (ticks, kinds, operators)

    @classmethod
    def of_planner(cls, outcome: FitOutcome, network: Network, true: TrueValues, tick_s: float) -> "Errors":
        """The errors of a planner."""
        means = np.stack((true.mean_costs, true.mean_selectivities), axis=1)
        used = np.repeat(values_of(network)[None], len(means), axis=0)
        changes, estimated, held = (
            np.zeros(means.shape, np.int64),
            np.full_like(means, np.nan),
            np.full_like(means, np.nan),
        )
        came = np.stack([tick.offered for tick in outcome.ticks]) / tick_s
        rates = np.full_like(came[1:], np.nan)
        seen = outcome.followed.observations if outcome.followed else ()
        for at, observed in enumerate(seen):
            estimated[at] = _apart(observed.values, means[at])
            known = np.isfinite(observed.high)
            held[at, known] = ((observed.low <= means[at]) & (means[at] <= observed.high))[known]
            if at < len(rates):
                rates[at] = _apart(observed.rates, came[at + 1])
            for change in observed.changes:
                kind = KINDS.index(change.kind)
                used[at + 1 :, kind, change.operator] = change.estimate
                changes[at, kind, change.operator] += 1
        return cls(_apart(used, means), estimated, held, rates, changes)


def observed_tables(
    outcomes: Sequence[FitOutcome], network: Network, true: TrueValues, optimum: Floats, tick_us: int
) -> dict[str, Table]:
    """The tables `statistics`, `errors`, `estimates` and `changes`."""
    wiring, tick_s = Wiring.from_network(network), tick_us / 1e6
    found = [(outcome, Errors.of_planner(outcome, network, true, tick_s)) for outcome in outcomes]
    statistics = [_statistics(*each, optimum, tick_s) for each in found]
    errors = [row for each in found for row in _errors(*each, optimum, tick_s)]
    estimates = [row for each in found for row in _estimates(*each, wiring)]
    changes = [row for outcome in outcomes for row in _changes(outcome, network, true, tick_s)]
    return {
        "statistics": Table.from_rows("Observed statistics", STATISTICS_COLUMNS, statistics),
        "errors": Table.from_rows("Errors of statistics", ERROR_COLUMNS, errors),
        "estimates": Table.from_rows("Estimates", ESTIMATE_COLUMNS, estimates),
        "changes": Table.from_rows("Important changes", CHANGE_COLUMNS, changes),
    }


def _statistics(outcome: FitOutcome, errors: Errors, optimum: Floats, tick_s: float) -> list[Cell]:
    followed, replans = outcome.followed, int(errors.changes.any(axis=(1, 2)).sum())
    reached, sent = outcome.reached(optimum), followed.bytes - followed.first_bytes if followed else 0
    return [
        outcome.planner,
        None if reached is None else 1 - reached,
        float(outcome.overloaded.sum() * tick_s),
        _longest(outcome.overloaded) * tick_s,
        *(_mean(errors.used[:, kind]) for kind in range(len(KINDS))),
        _mean(errors.estimated),
        _quantiles(errors.rates)[0],
        _mean(errors.held),
        int(errors.changes.sum()),
        replans,
        followed.first_bytes if followed else None,
        round(sent / replans) if replans else None,
    ]


def _errors(outcome: FitOutcome, errors: Errors, optimum: Floats, tick_s: float) -> Iterator[tuple[Cell, ...]]:
    for at, (score, best) in enumerate(zip(outcome.scores.tolist(), optimum.tolist(), strict=True)):
        yield (
            outcome.planner,
            (at + 1) * tick_s,
            max(0.0, 1 - score / best) if best else None,
            *(_mean(errors.used[at, kind]) for kind in range(len(KINDS))),
            _mean(errors.estimated[at]),
            int(errors.changes[at].sum()),
        )


def _estimates(outcome: FitOutcome, errors: Errors, wiring: Wiring) -> Iterator[tuple[Cell, ...]]:
    for at, operator in enumerate(wiring.network.operators):
        for kind, name in enumerate(KINDS):
            yield (
                *(outcome.planner, operator.node, operator.name, name),
                *_quantiles(errors.estimated[:, kind, at]),
                *_quantiles(errors.used[:, kind, at]),
                _mean(errors.held[:, kind, at]),
                int(errors.changes[:, kind, at].sum()),
            )
    nodes = {operator.name: operator.node for operator in wiring.network.operators}
    for at, arc in enumerate(wiring.arcs):
        if outcome.followed and arc.target in nodes:
            yield (outcome.planner, nodes[arc.target], arc.name, "rate", *_quantiles(errors.rates[:, at]), *4 * (None,))


def _changes(outcome: FitOutcome, network: Network, true: TrueValues, tick_s: float) -> Iterator[tuple[Cell, ...]]:
    means = dict(zip(KINDS, (true.mean_costs, true.mean_selectivities), strict=True))
    for observed in outcome.followed.observations if outcome.followed else ():
        for change in observed.changes:
            operator = network.operators[change.operator]
            yield (
                outcome.planner,
                (change.tick + 1) * tick_s,
                *(operator.node, operator.name, change.kind),
                *(change.before, change.estimate, change.low, change.high),
                float(means[change.kind][change.tick, change.operator]),
            )


def _apart(values: Floats, true: Floats) -> Floats:
    """Relative errors, nan where the true value is 0."""
    return np.asarray(np.abs(np.divide(values, true, out=np.full_like(true, np.nan), where=true > 0) - 1))


def _mean(values: Floats) -> float | None:
    """The mean of the known values."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _quantiles(values: Floats) -> tuple[float | None, float | None]:
    """Median and 95th percentile of the known values."""
    known = values[~np.isnan(values)]
    return (float(np.quantile(known, 0.5)), float(np.quantile(known, 0.95))) if len(known) else (None, None)


def _longest(marks: Mask) -> int:
    """The longest run of marks."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], marks, [0]))))
    return int((edges[1::2] - edges[::2]).max(initial=0))
