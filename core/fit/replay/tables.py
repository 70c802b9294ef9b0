"""Results of each planner in a replay, as tables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.fit.control import Decision
from adapt.core.fit.distributed.coordinated import dropping_node
from adapt.core.fit.distributed.messages import Topic, Traffic
from adapt.core.fit.network.names import DropPlanner, Drops
from adapt.core.fit.network.settings import SheddingSettings
from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.planners.plan_table import Proof
from adapt.core.fit.registry import COORDINATED
from adapt.core.fit.replay.bound_rows import Counts
from adapt.core.fit.running.fluid import Tick
from adapt.core.fit.running.observing import Observation
from adapt.core.fit.running.window_drop import windows_behind
from adapt.core.histogram import percentile
from adapt.core.metrics import column_named, columns_named
from adapt.core.phrases import listed, percent
from adapt.core.table import Cell, Column, Kind, Table
from adapt.core.values import duration

FULL = 1 + 1e-9
"""Utilization above which a resource is overloaded; less is rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class Followed:
    """What nodes observed, and what they sent each other because of it."""

    observations: tuple[Observation, ...]  # one per tick
    first_bytes: int  # bytes of the first tables, conditions, bounds and cuts; 0 where messages take time
    bytes: int  # bytes of all of them, later changes included


@dataclass(frozen=True, slots=True, eq=False)
class FitOutcome:
    """One planner over a trace."""

    planner: str
    ticks: tuple[Tick, ...]
    decisions: tuple[Decision, ...]  # one per tick
    latencies: NDArray[np.int64]  # results by latency bin; empty for a fluid flow
    prepared_s: float  # time to build the planner
    sent: Traffic  # messages exchanged to plan
    table: int | None  # number of precomputed plans or table rows; None without tables
    proof: Proof  # the proved loss of precomputed plans
    kept_use: Floats  # utilization of each node and link by the tuples kept; shape (ticks, resources)
    traffic: Mapping[Topic, Traffic] = field(default_factory=dict)  # the same messages by topic
    followed: Followed | None = None  # what nodes observed; None if they did not

    @property
    def scores(self) -> Floats:
        """Weighted tuples/s of each tick, shape (ticks,)."""
        return np.array([tick.score for tick in self.ticks])

    def reached(self, optimum: Floats, ticks: NDArray[np.bool_] | None = None) -> float | None:
        """The score as a share of the best; None without one.

        Args:
            ticks: The ticks to count, shape (ticks,); None: all.
        """
        chosen = slice(None) if ticks is None else ticks
        best = float(optimum[chosen].sum())
        return min(float(self.scores[chosen].sum()) / best, 1.0) if best else None

    @property
    def overloaded(self) -> NDArray[np.bool_]:
        """Whether plans keep more than a resource can do; shape (ticks,)."""
        return overloaded(self.kept_use)

    def grows(self, offered_use: Floats) -> bool:
        """Whether the queue of an overloaded resource grows.

        More is kept than it can do, over the ticks in which more is offered than it can do.

        A plan made from rates of earlier ticks may overload a resource once, and let its queue drain then.

        Args:
            offered_use: Utilization by everything offered, shape (ticks, resources).

        Source: FIT, Eq. 1, over time.
        """
        excess = np.where(offered_use > FULL, self.kept_use - 1, 0.0).sum(axis=0)
        return bool((excess > (FULL - 1) * len(offered_use)).any())

    @property
    def planned_s(self) -> float:
        """Total planning time, without building the planner."""
        return sum(decision.planned_s for decision in self.decisions)

    @property
    def changes(self) -> int:
        """Ticks with a changed share."""
        return sum(decision.changed for decision in self.decisions)

    @property
    def stale(self) -> int:
        """Ticks planned before all messages had arrived."""
        return sum(decision.stale for decision in self.decisions)

    @property
    def plans(self) -> int:
        """Number of distinct plans used, including the one that drops nothing."""
        return len({decision.plans.tobytes() for decision in self.decisions})

    def total(self, name: str) -> Floats:
        """The sum over all ticks of an amount by arc; shape (arcs,)."""
        return np.asarray(sum(getattr(tick, name) for tick in self.ticks))

    def latency_s(self, share: float) -> float | None:
        """The latency that `share` of the results do not exceed."""
        return percentile(self.latencies, share)

    def errors(self, optimum: Floats) -> Floats:
        """Relative loss of score per tick, in [0, 1]; empty ticks omitted."""
        possible = optimum > 0
        return np.clip(1 - self.scores[possible] / optimum[possible], 0.0, 1.0)


def overloaded(use: Floats) -> NDArray[np.bool_]:
    """Which ticks overload a resource; shape (ticks, resources) to (ticks,)."""
    return np.asarray((use > FULL).any(axis=1))


def kept_use(wiring: Wiring, flows: Floats, cost_scale: float) -> Floats:
    """Utilization of resources by flows, tuples/s, shape (ticks, arcs); see `FitOutcome.kept_use`."""
    uses = wiring.uses(flows)
    uses[:, : len(wiring.network.nodes)] *= cost_scale
    return uses


Mask: TypeAlias = NDArray[np.bool_]

PLANNER = Column("planner")

PLANNER_COLUMNS = (
    PLANNER,
    *columns_named("optimum_share optimum_share_full score error_p50 error_p95 error_p99 overloaded drop_rate"),
    *columns_named("queue_drops results_dropped waiting wait_max latency_p50 latency_p95 latency_p99 plans changes"),
    *columns_named("prepared_s planned_s"),
    Column("table", Kind.COUNT, "plans", "or rows, precomputed"),
    Column("combinations", Kind.NUMBER, "rows", "that merging tables would try without pruning"),
    Column("epsilon", Kind.SHARE, about="proved: share of the best score lost at most; with solver-w, on average"),
    Column(
        "unproved", Kind.SHARE, about="of the overloaded rates: the table could lose more than the epsilon asked for"
    ),
    Column("stale", Kind.COUNT, "ticks", "planned before all messages had arrived"),
    Column("coordination", about="by messages with a coordinator, or between nodes; none: every node for itself"),
    *columns_named("messages message_rows message_bytes"),
    Column("messages_per_s", Kind.NUMBER, about="over the whole replay"),
    Column("bytes_per_s", Kind.NUMBER, "bytes/s", "likewise"),
    Column("messages_per_change", Kind.NUMBER, about="per tick with a changed drop rate"),
    Column("bytes_per_change", Kind.BYTES, "bytes", "likewise"),
    Column("sample", about="whether precomputed plans know the rates that they are judged on, or others"),
)

TRAFFIC_COLUMNS = (
    PLANNER,
    Column("about"),
    *columns_named("messages rows"),
    Column("erased", Kind.COUNT, "rows", "withdrawn"),
    Column("bytes", Kind.BYTES, "bytes"),
)

_SHOWN_IF_ANY = {
    *("queue_drops", "results_dropped"),
    *("latency_p50", "latency_p95", "latency_p99"),
    *("table", "combinations", "epsilon", "unproved", "stale", "messages", "message_rows", "message_bytes"),
    *("messages_per_s", "bytes_per_s", "messages_per_change", "bytes_per_change", "sample"),
}
"""Columns of planners shown only if a cell is neither empty nor 0."""

BRIEF = (
    "planner, optimum_share: of the best score, optimum_share_full: in overloaded ticks, drop_rate: dropped,"
    "wait_max: longest queue, messages"
)
"""Columns of planners shown below the conclusion, and their headings."""

SUMMARY_COLUMNS = (
    Column("best", about="planner closest to the best score, of those whose queues do not grow"),
    *columns_named("rows unbound ticks full"),
    Column("tick", Kind.SECONDS, "s"),
    column_named("optimum"),
)

TICK_COLUMNS = (
    PLANNER,
    Column("end", Kind.SECONDS, "s", "of the tick"),
    Column("offered", Kind.NUMBER, "tuples/s", "at the inputs"),
    *columns_named("score optimum drop_rate"),
    Column("utilization_max", Kind.SHARE, about="of the busiest node or link"),
    *columns_named("wait_max waiting queue_drops"),
    Column("latency", Kind.SECONDS, "s", "on average"),
    Column("latency_max", Kind.SECONDS, "s"),
    Column(
        "plan",
        about="id per independent part of the network, or per node; 0 drops nothing, -3 is exact, -4 a node's own",
    ),
    Column("changed", about="whether a drop rate changed"),
    column_named("planned_s"),
    Column("stale", about="whether messages were still on their way"),
    *columns_named("message_rows message_bytes"),
)

NODE_COLUMNS = (
    PLANNER,
    Column("end", Kind.SECONDS, "s", "of the tick"),
    Column("node", about="or link"),
    Column("utilization", Kind.SHARE),
    Column("wait", Kind.SECONDS, "s", "to drain its queue, at the end of the tick"),
)

DROP_COLUMNS = (
    PLANNER,
    Column("end", Kind.SECONDS, "s", "of the tick"),
    Column("node", about="that drops"),
    Column("arc"),
    Column("drop", about="operator: of random tuples, or of whole windows"),
    Column("offered", Kind.COUNT, "tuples"),
    Column("dropped", Kind.COUNT, "tuples"),
    Column("keep", Kind.SHARE, about="planned share kept: of tuples, or of windows where windows are dropped"),
)


def planners_table(
    outcomes: Sequence[FitOutcome], wiring: Wiring, optimum: Floats, full: Mask, tick_us: int, sample: str | None
) -> Table:
    """One row per planner.

    Args:
        full: Which ticks are overloaded, shape (ticks,).
        sample: What precomputed plans know: in-sample or out-of-sample rates; None: not known.
    """
    seconds = len(full) * tick_us / 1e6
    rows = [
        [*_planner(each, wiring, optimum, full), *_price(each, seconds), None if each.table is None else sample]
        for each in outcomes
    ]
    return Table.from_rows("Planners", PLANNER_COLUMNS, rows)


def _price(outcome: FitOutcome, seconds: float) -> list[Cell]:
    """What the coordination of a planner costs."""
    sent, changes = outcome.sent, outcome.changes
    central = outcome.planner in COORDINATED
    alone = outcome.planner in (DropPlanner.NONE, DropPlanner.GREEDY_LOCAL)
    return [
        "none" if alone else "coordinator" if central else "nodes",
        *(sent.messages, sent.rows, sent.size),
        *(sent.messages / seconds, sent.size / seconds),
        *((sent.messages / changes, sent.size / changes) if changes else (None, None)),
    ]


def traffic_table(outcomes: Sequence[FitOutcome]) -> Table:
    """One row per planner and topic of messages."""
    rows = [
        (outcome.planner, topic.value, *astuple(traffic))
        for outcome in outcomes
        for topic, traffic in sorted(outcome.traffic.items())
    ]
    return Table.from_rows("Messages", TRAFFIC_COLUMNS, rows)


def _planner(outcome: FitOutcome, wiring: Wiring, optimum: Floats, full: Mask) -> list[Cell]:
    roots = wiring.source < wiring.inputs
    offered, dropped = outcome.total("offered")[roots].sum(), outcome.total("dropped")[roots].sum()
    errors = outcome.errors(optimum)
    return [
        outcome.planner,
        outcome.reached(optimum),
        outcome.reached(optimum, full),
        float(outcome.scores.mean()),
        *(float(np.quantile(errors, share)) if len(errors) else None for share in (0.5, 0.95, 0.99)),
        float(outcome.overloaded.mean()),
        float(dropped / offered) if offered else 0.0,
        round(float(outcome.total("queue_drops").sum())),
        float(outcome.total("withdrawn").sum()),
        round(float(outcome.ticks[-1].queued.sum())),
        _longest_wait_s(outcome),
        *(outcome.latency_s(share) for share in (0.5, 0.95, 0.99)),
        outcome.plans,
        outcome.changes,
        outcome.prepared_s,
        outcome.planned_s,
        outcome.table,
        outcome.proof.combinations,
        outcome.proof.epsilon,
        outcome.proof.unproved if outcome.table else None,
        outcome.stale,
    ]


def planners_shown(planners: Table) -> Table:
    """The table of planners without its empty columns."""
    return planners.without_zeros(_SHOWN_IF_ANY)


def _longest_wait_s(outcome: FitOutcome) -> float:
    return max(float(tick.wait_s.max(initial=0.0)) for tick in outcome.ticks)


def best_of(outcomes: Sequence[FitOutcome], optimum: Floats, offered_use: Floats) -> list[FitOutcome]:
    """The best planner, and those that do as well.

    Planners whose queues do not grow come first, then those that score more in the overloaded ticks, if there are any,
    then those whose queues are shorter.
    """
    full = overloaded(offered_use)
    ticks = full if optimum[full].any() else np.ones_like(full)

    def rank(each: FitOutcome) -> tuple[bool, float]:
        return not each.grows(offered_use), round(each.reached(optimum, ticks) or 0.0, 3)

    most = max(map(rank, outcomes))
    return sorted((each for each in outcomes if rank(each) == most), key=_longest_wait_s)


def facts_table(
    outcomes: Sequence[FitOutcome], counts: Counts, optimum: Floats, offered_use: Floats, settings: SheddingSettings
) -> Table:
    """All planners in one row."""
    best, full = best_of(outcomes, optimum, offered_use)[0], overloaded(offered_use)
    of_rows = best.planner, counts.rows, counts.unbound, len(counts.by_tick), int(full.sum())
    return Table.from_rows("The run", SUMMARY_COLUMNS, [(*of_rows, settings.tick_us / 1e6, float(optimum.mean()))])


def proofs(outcomes: Sequence[FitOutcome], asked: float) -> Iterator[str]:
    """What precomputed plans promise, where it is not what was asked for."""
    for outcome in outcomes:
        name, proof = outcome.planner, outcome.proof
        kept = proof.epsilon is not None and proof.epsilon <= asked
        if outcome.table is None or (kept and not proof.unproved):
            continue
        some = f"{percent(proof.unproved)} of the overloaded rates"
        if proof.beyond:
            yield f"{name}: nothing is proved of its plans for overloaded rates above those that they cover."
        elif proof.epsilon is None:
            yield f"{name}: nothing is proved of its plans while messages are on their way."
        elif proof.bounds is not None:
            yield f"{name}: its table cannot prove epsilon {percent(asked)} in {some}, so these are planned exactly."
        elif name in (DropPlanner.C_FIT, DropPlanner.D_FIT):
            lost = percent(proof.epsilon)
            yield f"{name} may lose {lost} of the best score, and more than {percent(asked)} in {some}."
        else:
            yield f"{name} may lose {percent(proof.epsilon)} of the best score, not {percent(asked)}; raise max-plans."


def fit_conclusion(outcomes: Sequence[FitOutcome], optimum: Floats, offered_use: Floats) -> str:
    """The best planner, with its scores and queues."""
    best, *alike = best_of(outcomes, optimum, offered_use)
    full = overloaded(offered_use)
    if best.reached(optimum) is None:
        return "Nothing to do: no arriving row has a value at an output."
    if not full.any():
        return f"Nothing to do: no tick is overloaded; {best.planner} reaches {_reached(best, optimum)}."
    ticks = full if best.reached(optimum, full) is not None else np.ones_like(full)
    of_ticks = "" if ticks.all() else f" in the {full.sum():,} overloaded ticks (of {len(full):,})"
    reached = f"{_reached(best, optimum, ticks)}{of_ticks}, {_queues(best, offered_use)}"
    others = [
        f"{each.planner} {percent(each.reached(optimum, ticks) or 0.0)} ({_queues(each, offered_use)})"
        for each in outcomes
        if each is not best and each not in alike
    ]
    told = (
        f" {listed([each.planner for each in alike])} {'score' if alike[1:] else 'scores'} the same." if alike else ""
    )
    if others:
        told += f" Others: {', '.join(others[:3])}{', ...' if others[3:] else ''}."
    if best.grows(offered_use):
        known = any(each.planner == DropPlanner.EXACT for each in outcomes)
        how = "shorten the tick or raise the headroom" if known else "add planner exact"
        grow = f"With each planner, queues grow in the overloaded ticks; {how}."
        return f"{grow} Closest is {best.planner}: {reached}.{told}"
    if best.planner == DropPlanner.NONE or any(each.planner == DropPlanner.NONE for each in alike):
        return f"Dropping does not help: without it, the network reaches {reached}."
    return f"Drop by the plans of {best.planner}: {reached}.{told}"


def _reached(one: FitOutcome, optimum: Floats, ticks: Mask | None = None) -> str:
    return f"{percent(one.reached(optimum, ticks) or 0.0)} of the best possible score"


def _queues(one: FitOutcome, offered_use: Floats) -> str:
    longest = duration(round(_longest_wait_s(one), 6))
    return f"queues {'grow' if one.grows(offered_use) else 'up'} to {longest}"


def fit_notes(
    outcomes: Sequence[FitOutcome], optimum: Floats, offered_use: Floats, settings: SheddingSettings
) -> Iterator[str]:
    """Overloads by the best plans, headroom, proofs."""
    best, full = best_of(outcomes, optimum, offered_use)[0], overloaded(offered_use)
    if best.overloaded.any():
        yield f"The plans of {best.planner} overload a node or link in {percent(best.overloaded.mean())} of the ticks."
    if full.any() and settings.headroom and any(each.planner != DropPlanner.NONE for each in outcomes):
        yield f"Plans leave {percent(settings.headroom)} of every node and link free, so that queues drain."
    yield from proofs(outcomes, settings.epsilon)


def ticks_table(outcomes: Sequence[FitOutcome], wiring: Wiring, rates: Floats, optimum: Floats, tick_us: int) -> Table:
    """One row per planner and tick."""
    roots = wiring.source < wiring.inputs
    tick_s = tick_us / 1e6
    rows = [
        (
            outcome.planner,
            (at + 1) * tick_s,
            float(rates[at].sum()),
            tick.score,
            float(optimum[at]),
            _share(tick.dropped[roots].sum(), tick.offered[roots].sum()),
            float(tick.busy_s.max(initial=0.0)) / tick_s,
            float(tick.wait_s.max(initial=0.0)),
            round(float(tick.queued.sum())),
            round(float(tick.queue_drops.sum())),
            tick.latency_s,
            tick.latency_max_s,
            " ".join(map(str, decision.plans)),
            "yes" if decision.changed else "no",
            decision.planned_s,
            "yes" if decision.stale else "no",
            decision.sent.rows,
            decision.sent.size,
        )
        for outcome in outcomes
        for at, (tick, decision) in enumerate(zip(outcome.ticks, outcome.decisions, strict=True))
    ]
    return Table.from_rows("Ticks", TICK_COLUMNS, rows)


def nodes_table(outcomes: Sequence[FitOutcome], wiring: Wiring, tick_us: int) -> Table:
    """One row per planner, tick, and node or link."""
    tick_s = tick_us / 1e6
    rows = [
        (outcome.planner, (at + 1) * tick_s, name, float(busy) / tick_s, float(wait))
        for outcome in outcomes
        for at, tick in enumerate(outcome.ticks)
        for name, busy, wait in zip(wiring.resources, tick.busy_s, tick.wait_s, strict=True)
    ]
    return Table.from_rows("Nodes", NODE_COLUMNS, rows)


def drops_table(outcomes: Sequence[FitOutcome], wiring: Wiring, tick_us: int, drops: Drops) -> Table:
    """One row per planner, tick, and arc with drops."""
    behind = windows_behind(wiring) if drops is Drops.WINDOW else ((),) * len(wiring.arcs)
    kinds = [Drops.WINDOW if windows else Drops.RANDOM for windows in behind]
    rows = [
        (
            outcome.planner,
            (at + 1) * tick_us / 1e6,
            dropping_node(wiring, int(arc)),
            wiring.arcs[arc].name,
            kinds[arc].value,
            round(float(tick.offered[arc])),
            round(float(tick.dropped[arc])),
            float(decision.keeps[arc]),
        )
        for outcome in outcomes
        for at, (tick, decision) in enumerate(zip(outcome.ticks, outcome.decisions, strict=True))
        for arc in np.flatnonzero(tick.dropped > 0)
    ]
    return Table.from_rows("Drops", DROP_COLUMNS, rows)


def shedders_table(drops: Table) -> tuple[Table, ...]:
    """The drop operators of each node; empty without drops."""
    sums: dict[tuple[Cell, ...], list[float]] = {}
    for row in drops.records():
        named = (row["planner"], row.get("node"), row["arc"], row.get("drop"))
        amounts = (1, float(row["offered"] or 0), float(row["dropped"] or 0))
        so_far = sums.setdefault(named, [0, 0, 0, 1.0])
        so_far[:3] = (mine + more for mine, more in zip(so_far, amounts, strict=False))
        so_far[3] = min(so_far[3], float(row["keep"] or 0))
    columns = [
        PLANNER,
        Column("node", about="that drops"),
        Column("arc"),
        Column("drop", about="operator: of random tuples, or of whole windows"),
        Column("ticks", Kind.COUNT, about="with drops on this arc"),
        Column("offered", Kind.COUNT, "tuples", "in these ticks"),
        Column("dropped", Kind.COUNT, "tuples"),
        Column("keep_min", Kind.SHARE, about="smallest planned share kept"),
    ]
    order = {planner: at for at, planner in enumerate(dict.fromkeys(named[0] for named in sums))}
    rows = [
        (*named, *map(round, amounts[:3]), amounts[3])
        for named, amounts in sorted(sums.items(), key=lambda each: (order[each[0][0]], str(each[0][1])))
    ]
    return (Table.from_rows("Shedders", columns, rows),) if rows else ()


def _share(part: float, whole: float) -> float | None:
    return float(part / whole) if whole else None
