"""The replay of a trace through a query network, planner by planner."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import Any, ClassVar, NoReturn, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.fit.control import Control, Decision
from adapt.core.fit.drop_plans import DropPlans
from adapt.core.fit.network.names import PRECOMPUTED, DropPlanner, Drops, Flow
from adapt.core.fit.network.network import Network
from adapt.core.fit.network.settings import (
    Delivery,
    Execution,
    KnownRates,
    NodeQueue,
    Observing,
    SheddingSettings,
    TableSettings,
)
from adapt.core.fit.network.true_values import Given, TrueSource, TrueValues
from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.planners.solver import Learnt, Observed, Workload
from adapt.core.fit.registry import PlannerOptions, planner_of
from adapt.core.fit.replay.bound_rows import Binding, Counts, binding_text
from adapt.core.fit.replay.observed import Judged, observed_tables
from adapt.core.fit.replay.tables import (
    BRIEF,
    FitOutcome,
    Followed,
    drops_table,
    facts_table,
    fit_conclusion,
    fit_notes,
    kept_use,
    nodes_table,
    overloaded,
    planners_shown,
    planners_table,
    shedders_table,
    ticks_table,
    traffic_table,
)
from adapt.core.fit.rules import Rules, capacities_table, rules_table
from adapt.core.fit.running.fluid import Fluid, Running, Tick, scales
from adapt.core.fit.running.tuples import Tuples
from adapt.core.fit.running.window_drop import LivingWindows, windows_of_arcs
from adapt.core.run import Run
from adapt.core.stage.conditions.shed_factor import Overload, ShedFactor
from adapt.core.table import Table
from adapt.core.units.settings import SettingError, settings

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with what is being done, rows done, and rows in total."""


@settings()
class FitOptions:
    """Options of a replay with load shedding."""

    planners: tuple[DropPlanner, ...]  # each is a case of the run
    settings: SheddingSettings = SheddingSettings()  # its planner is ignored
    execution: Execution = Execution()
    tables: TableSettings = TableSettings()
    delivery: Delivery = Delivery()
    known: KnownRates = KnownRates()
    queue: NodeQueue | None = None  # load shedding at full queues, in addition to the plan
    # distribution of rates for solver-w, and, if observed, the rates that tables cover; None: those of the stream.
    # Learnt: solver-w plans again as rates are reported
    workload: Workload | None = None
    true: TrueSource | None = None  # true values over time; None: those of the network, with `cost_scale`
    observing: Observing | None = None  # None: plans use the costs and selectivities of the network

    def __post_init__(self) -> None:
        windows, fluid = self.settings.drops is Drops.WINDOW, self.execution.flow is Flow.FLUID
        if self.true is not None and self.execution.cost_scale != 1:
            self._refuse("{cost_scale} cannot be combined with {true}; write the costs to its file")
        if self.observing is not None and self.settings.feedback:
            self._refuse("{observing} cannot be combined with {feedback}; both correct what plans assume of nodes")
        if windows and (self.true is not None or self.observing is not None):
            self._refuse("{true} and {observing} need {drops}=random; dropped windows hide selectivities")
        if not self.planners:
            self._refuse("at least one drop planner is needed")
        if self.queue is not None and fluid:
            self._refuse("{queue} needs {flow} tuples; a fluid flow has no queue of tuples")
        if windows and fluid:
            self._refuse("{drops}=window needs {flow} tuples; a fluid flow has no windows")

    def _refuse(self, text: str) -> NoReturn:
        raise SettingError(FitOptions, text)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FitRun(Run):
    """The measurements of a replay."""

    mechanism: ClassVar[str] = "fit"
    first: ClassVar[str] = "planners"
    brief: ClassVar[str] = BRIEF

    outcomes: tuple[FitOutcome, ...]  # one per planner
    network: Network
    options: FitOptions
    counts: Counts  # rows by tick and input
    covered: Floats  # highest rate of each input that precomputed plans cover, tuples/s, shape (inputs,)
    rates: Floats  # Tuples/s of each input in each tick, shape (ticks, inputs)
    optimum: Floats  # the best score of each tick's rates with actual costs, shape (ticks,)
    parameters: Mapping[str, Any]  # everything that determines the result, except the stream; JSON data
    # the true values, where they differ from those of the network or are observed; else None
    true: TrueValues | None = None
    # utilization by everything offered, by the true values, where they change; shape (ticks, resources)
    true_use: Floats | None = None
    _made: list[Rules] = field(default_factory=list)
    """The rules, once they are asked for."""

    @property
    def offered_use(self) -> Floats:
        """Utilization of nodes and links by everything offered; shape (ticks, resources)."""
        if self.true_use is not None:
            return self.true_use
        wiring = Wiring.from_network(self.network)
        return kept_use(wiring, wiring.unshed(self.rates), self.options.execution.cost_scale)

    @property
    def full(self) -> NDArray[np.bool_]:
        """Whether a tick is overloaded: more arrives than fits; shape (ticks,)."""
        return overloaded(self.offered_use)

    @property
    def rules(self) -> Rules:
        """The best plan over all rates."""
        if not self._made:
            options = self.options
            headroom, seed = options.settings.headroom, options.execution.seed
            self._made.append(Rules.from_network(self.network, self.rates, headroom, seed))
        return self._made[0]

    def conclusion(self) -> str:
        """By which plans to drop."""
        return fit_conclusion(self.outcomes, self.optimum, self.offered_use)

    def notes(self) -> list[str]:
        """Plans, and what they know."""
        ranked = self.outcomes, self.optimum, self.offered_use
        true = [] if self.true is None else ["The optimum knows the true values."]
        return [*fit_notes(*ranked, self.options.settings), *true, self._known()]

    def facts(self) -> Table:
        """The run in one row."""
        return facts_table(self.outcomes, self.counts, self.optimum, self.offered_use, self.options.settings)

    @property
    def _sample(self) -> str | None:
        """Whether precomputed plans know rates of the replay; None where they are from files."""
        if self.options.known.learn:
            return "out-of-sample"
        from_file = "plans" in self.parameters or isinstance(self.options.workload, Observed)
        return None if from_file else "in-sample"

    def _known(self) -> str:
        """What precomputed plans knew of the rates."""
        if not set(self.options.planners) & set(PRECOMPUTED):
            return ""
        options = self.options
        online = isinstance(options.workload, Learnt)
        if "plans" not in self.parameters and not options.known.learn and (options.workload is None or online):
            said = "Precomputed plans know the highest rates of this trace; with learn=0.5, they know its start."
            often = "solver-w also knows how often they occur; a workload of online learns that while the network runs."
            return f"{said} {often}" if DropPlanner.SOLVER_W in options.planners and not online else said
        first = f"the first {options.known.learn:.0%} of the trace" if options.known.learn else ""
        said = f"Precomputed plans know {first}; the rest was replayed." if first else ""
        if "plans" in self.parameters:
            said = f"{first[:1].upper()}{first[1:]} was not replayed." if first else ""
        beyond = int((self.rates > self.covered).any(axis=1).sum())
        over = f"Rates of {beyond:,} of {len(self.rates):,} ticks exceed those that precomputed plans cover."
        return " ".join(filter(None, (said, over if beyond else "")))

    def tables(self) -> dict[str, Table]:
        """All tables of the run, by name."""
        wiring, tick_us = Wiring.from_network(self.network), self.options.settings.tick_us
        return {
            "planners": self._planners(),
            "traffic": traffic_table(self.outcomes),
            "ticks": ticks_table(self.outcomes, wiring, self.rates, self.optimum, tick_us),
            "nodes": nodes_table(self.outcomes, wiring, tick_us),
            "drops": drops_table(self.outcomes, wiring, tick_us, self.options.settings.drops),
            "rules": rules_table(self.rules),
            "capacities": capacities_table(self.rules),
            **self._observed(),
        }

    def _observed(self) -> dict[str, Table]:
        """The tables of observed statistics; empty where true values are those of the network."""
        if self.true is None:
            return {}
        return observed_tables(self.outcomes, self.network, self.true, self.optimum, self.options.settings.tick_us)

    def leading(self) -> Table:
        """The planners."""
        return self._planners().only(self.brief)

    def shown(self) -> tuple[Table, ...]:
        """Planners, facts, rules, capacities."""
        tables = planners_shown(self._planners()), self.facts()
        further = [] if self.true is None else [self._observed()["statistics"]]
        traffic = traffic_table(self.outcomes)
        further += [traffic] if traffic.rows else []
        settings, wiring = self.options.settings, Wiring.from_network(self.network)
        shedders = shedders_table(drops_table(self.outcomes, wiring, settings.tick_us, settings.drops))
        return (*tables, *shedders, *further, rules_table(self.rules), capacities_table(self.rules))

    def _planners(self) -> Table:
        wiring, tick_us = Wiring.from_network(self.network), self.options.settings.tick_us
        return planners_table(self.outcomes, wiring, self.optimum, self.full, tick_us, self._sample)


def replay_fit(
    batches: Callable[[], Iterable[pa.RecordBatch]],
    binding: Binding,
    options: FitOptions,
    *,
    clock: Callable[[], float],
    parameters: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    plans: Callable[[PlannerOptions], DropPlans] | None = None,
) -> FitRun:
    """Replay a stream through a network, once per planner.

    Every planner gets its own copy of the network. The stream is read twice: to count rows, which precomputed plans
    need, and to run all copies side by side.

    Args:
        batches: The rows in time order, from the start at every call.
        binding: Assigns rows to the inputs of the network; its ticks are those of the settings.
        clock: Seconds; used only to measure planning time.
        parameters: Further parameters to record.
        progress: Called with what is being done, rows done and rows in total.
        plans: Gives precomputed plans, once the rates are counted. Default: each planner builds its own.
    """
    report = progress or (lambda *_: None)
    network, settings, scale = binding.network, options.settings, options.execution.cost_scale
    wiring = Wiring.from_network(network)
    if settings.drops is Drops.WINDOW:
        windows_of_arcs(wiring)
    counts = Counts.from_batches(binding, batches(), lambda rows: report("counting", rows, 0))
    rates = counts.by_tick * (scales(wiring) / (settings.tick_us / 1e6))
    names = tuple(dict.fromkeys(options.planners))
    learnt = int(options.known.learn * len(rates))
    if options.known.learn and not learnt:
        raise SettingError(
            FitOptions,
            f"{{learn}}={options.known.learn:g} of {len(rates):,} ticks is less than one tick; shorten {{tick_us}}",
        )
    asked = planner_options(options, rates[:learnt] if learnt else rates)
    counts, rates = replace(counts, by_tick=counts.by_tick[learnt:]), rates[learnt:]
    kept = None if plans is None else plans(asked)
    ahead, covered = ({}, asked.max_rates) if kept is None else (kept.planners, kept.max_rates)
    assert covered is not None
    controls = [Control(network, name, asked, clock, ahead.get(name), options.observing) for name in names]
    truth = options.true or (Given(scale) if options.observing else None)
    true = None if truth is None else truth.over(network, np.arange(len(rates)) * settings.tick_us)
    changing = true if options.true is not None else None
    first_bytes = [control.plan_bytes for control in controls]
    running = [_running(wiring, options, changing) for _ in names]
    for control in controls:
        control.announce(rates)
    done: list[list[tuple[Decision, Tick]]] = [[] for _ in names]
    passed, bound, learnt_us = 0, int(counts.by_tick.sum()), learnt * settings.tick_us
    replayed = islice(binding.ticks(batches(), learnt + len(rates)), learnt, None)
    for at, offered in enumerate(each.after(learnt_us) for each in replayed):
        for control, runs, log in zip(controls, running, done, strict=True):
            decision = control.decide(rates[at])
            if changing is not None:
                runs.follow(changing.wiring(at))
            tick = runs.run(offered, decision.keeps)
            control.observe(tick, offered.tick_s)
            log.append((decision, tick))
        passed += len(offered.at_us)
        report(f"tick {at + 1:,} of {len(rates):,}", passed, bound)
    all_keeps = [np.stack([decision.keeps for decision, _ in log]) for log in done]
    if changing is not None:
        judged = Judged.by(changing, rates, all_keeps)
        optimum, uses = judged.optimum, judged.uses
    else:
        optimum = optimum_of(network, rates, scale)
        uses = tuple(
            kept_use(
                wiring, _kept(wiring, rates, keeps, [tick for _, tick in log], settings), options.execution.cost_scale
            )
            for keeps, log in zip(all_keeps, done, strict=True)
        )
    over = overloaded(kept_use(wiring, wiring.unshed(rates), scale / (1 - settings.headroom)))
    beyond = bool((rates[over] > covered).any())
    outcomes = []
    for number, (name, control, runs, log) in enumerate(zip(names, controls, running, done, strict=True)):
        decisions, ticks = tuple(decision for decision, _ in log), tuple(tick for _, tick in log)
        prepared = (control.prepared_s, control.sent, control.table, control.proof.over(beyond))
        seen, observer = (first_bytes[number], control.plan_bytes), control.observer
        followed = None if observer is None else Followed(tuple(observer.observations), *seen)
        measured = (runs.latencies(), *prepared, uses[number], control.traffic(), followed)
        outcomes.append(FitOutcome(name.value, ticks, decisions, *measured))
    decisive = {**parameters_of(binding, options), **(parameters or {})}
    true_use = None if changing is None else judged.offered_use
    return FitRun(tuple(outcomes), network, options, counts, covered, rates, optimum, decisive, true, true_use)


def _kept(wiring: Wiring, rates: Floats, keeps: Floats, ticks: Sequence[Tick], settings: SheddingSettings) -> Floats:
    """Tuples/s kept on each arc, shape (ticks, arcs): as planned, or of whole windows, as chance had it."""
    if settings.drops is Drops.RANDOM:
        return wiring.flows(rates, keeps)
    return np.array([tick.offered - tick.dropped for tick in ticks]) / (settings.tick_us / 1e6)


def optimum_of(network: Network, rates: Floats, cost_scale: float = 1.0) -> Floats:
    """Best score per tick, without headroom; shape (ticks, inputs) to (ticks,)."""
    true = tuple(replace(node, capacity=node.capacity / cost_scale) for node in network.nodes)
    return planner_of(DropPlanner.EXACT, replace(network, nodes=true)).plan(rates).scores


def parameters_of(binding: Binding, options: FitOptions) -> dict[str, Any]:
    """Parameters of a replay, except its stream and network; JSON data."""
    return {
        "planners": [planner.value for planner in options.planners],
        "settings": {name: value for name, value in asdict(options.settings).items() if name != "planner"},
        **asdict(options.execution),
        "speedup": binding.speedup,
        **asdict(options.tables),
        **asdict(options.known),
        "message_delay_s": options.delivery.delay_s,
        "trust_upstream": options.delivery.trust_upstream,
        "queue": options.queue and asdict(options.queue),
        "bindings": {entering.name: binding_text(entering.stream) for entering in binding.network.inputs},
        **({} if options.true is None else {"true": dict(options.true.as_data())}),
        **({} if options.observing is None else {"observing": asdict(options.observing)}),
    }


def planner_options(options: FitOptions, rates: Floats | None = None) -> PlannerOptions:
    """The options for planners.

    Args:
        rates: Known of the trace, tuples/s, shape (ticks, inputs): precomputed plans cover these, up to the highest of
            each input, times the margin, unless a workload was observed. None: plans are precomputed already.
    """
    highest = None
    if rates is not None:
        known = options.workload.rates if isinstance(options.workload, Observed) else rates
        highest = known.max(axis=0) * options.known.margin
        highest = np.where(highest > 0, highest, 1.0)
    workload = options.workload or (None if rates is None else Observed(rates))
    if isinstance(workload, Learnt) and rates is not None and highest is not None:
        workload = Learnt(rates if options.known.learn else workload.rates, highest)
    merge = options.observing is None and not options.settings.feedback
    return PlannerOptions(options.settings, highest, workload, options.tables, options.delivery, merge)


def _running(wiring: Wiring, options: FitOptions, true: TrueValues | None) -> Running:
    if options.execution.flow is Flow.FLUID:
        return Fluid(wiring, options.execution.cost_scale)
    windows, settings = None, options.settings
    if settings.drops is Drops.WINDOW:
        windows = LivingWindows(wiring, options.execution.seed, settings.batch, tallies=options.queue is not None)
    highest, overload = None if true is None else true.highest(), None
    if (queue := options.queue) is not None:
        overload = Overload(ShedFactor(queue.tau2, queue.min_drop, queue.drop_curve), queue.capacity_tuples, 1.0)
    return Tuples(wiring, options.execution.seed, options.execution.cost_scale, overload, windows, highest)
