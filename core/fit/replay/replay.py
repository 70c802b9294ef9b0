"""A trace through a query network that sheds load: one planner or several, over the same rows with the same draws."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError
from adapt.core.fit.control import Control, Decision
from adapt.core.fit.distributed.exchange import Transport
from adapt.core.fit.drop_plans import DropPlans
from adapt.core.fit.network.names import DropPlanner, Drops, Flow, Grid
from adapt.core.fit.network.network import Network
from adapt.core.fit.network.settings import SheddingSettings
from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.planners.solver import MOST_PLANS
from adapt.core.fit.planners.workload import Observed, Workload
from adapt.core.fit.registry import PlannerOptions, planner_of
from adapt.core.fit.replay.bound_rows import Binding, Counts, binding_text
from adapt.core.fit.replay.outcome import FitOutcome, kept_use, overloaded
from adapt.core.fit.replay.tables import (
    drops_table,
    nodes_table,
    planners_table,
    planners_told,
    summary_table,
    ticks_table,
)
from adapt.core.fit.running.fluid import Fluid, scales
from adapt.core.fit.running.living_windows import LivingWindows, windows_of_arcs
from adapt.core.fit.running.tick import Running, Tick
from adapt.core.fit.running.tuples import Tuples
from adapt.core.run import run_as_data, verdict_under
from adapt.core.stage.conditions.shed_factor import Overload
from adapt.core.table import Table

Told: TypeAlias = Callable[[str, int, int], None]
"""Told what is done, rows done, and rows in all."""


@dataclass(frozen=True, slots=True)
class FitOptions:
    """How load is shed.

    Attributes:
        planners: One case each.
        settings: Ticks, lag, headroom and the like; its planner is one of `planners`, or not used.
        flow: Tuples or fluid.
        seed: Random seed.
        cost_scale: True costs of operators over those in the file, which planners go by.
        overload: How nodes refuse what comes while their queues are long, beside what the planner drops.
        grid: Of feasible input tables.
        distance: Part of the score that tables which nodes tell each other may be off, in [0, 1).
        transport: What messages between nodes meet; they begin to tell when the trace begins. None: everything is told
            by then, and what changes later at once.
        trusting: Whether nodes let in whatever others send, be it what these should have dropped.
        most_plans: A table made in advance has no more plans; what they then lose may be above epsilon.
        workload: How likely rates are, for solver-w; None, as they are in the stream.
    """

    planners: tuple[DropPlanner, ...]
    settings: SheddingSettings = SheddingSettings()  # noqa: RUF009 - frozen
    flow: Flow = Flow.TUPLES
    seed: int = 0
    cost_scale: float = 1.0
    overload: Overload | None = None
    grid: Grid = Grid.SAFE
    distance: float = 0.0
    transport: Transport | None = None
    trusting: bool = False
    most_plans: int = MOST_PLANS
    workload: Workload | None = None

    def __post_init__(self) -> None:
        if self.most_plans < 1:
            raise UsageError(f"tables of {self.most_plans} plans are none; allow 1 or more")
        if not self.planners:
            raise UsageError("no planner is given; name one or several")
        if not 0 < self.cost_scale < np.inf:
            raise UsageError(f"true costs cannot be {self.cost_scale:g} times those of the file; give a number above 0")
        if not 0 <= self.seed < 2**63:
            raise UsageError(f"a seed of {self.seed} is none; give a whole number from 0 to 2^63 - 1")
        if self.overload is not None and self.flow is Flow.FLUID:
            raise UsageError("nodes refuse tuples, which fluid has none of; let tuples flow, or leave the refusal away")
        if self.settings.drops is Drops.WINDOW and self.flow is Flow.FLUID:
            raise UsageError("windows are of tuples, which fluid has none of; let tuples flow, or drop at random")
        if self.settings.drops is Drops.WINDOW and self.overload is not None:
            raise UsageError("tuples that nodes refuse lack in windows; leave the refusal away, or drop at random")


@dataclass(frozen=True, slots=True, eq=False)
class FitRun:
    """What a replay measured.

    Attributes:
        outcomes: One a planner.
        counts: Rows by tick and input.
        rates: Tuples/s of each input in each tick, shape (ticks, inputs).
        optimum: The best score of each tick's rates with true costs, shape (ticks,).
        parameters: All that decides the result, beside the stream; JSON data.
    """

    mechanism: ClassVar[str] = "fit"

    outcomes: tuple[FitOutcome, ...]
    network: Network
    options: FitOptions
    counts: Counts
    rates: Floats
    optimum: Floats
    parameters: Mapping[str, Any]

    @property
    def full(self) -> NDArray[np.bool_]:
        """Whether more came in a tick than a node or link can do, shape (ticks,)."""
        wiring = Wiring.from_network(self.network)
        return overloaded(kept_use(wiring, wiring.unshed(self.rates), self.options.cost_scale))

    def summary(self) -> Table:
        """The run in one row, with its verdict."""
        return summary_table(self.outcomes, self.counts, self.optimum, self.full, self.options.settings.tick_us)

    def tables(self) -> dict[str, Table]:
        """`planners`, one row each; `ticks`, `nodes` and `drops` of all of them."""
        wiring, tick_us = Wiring.from_network(self.network), self.options.settings.tick_us
        return {
            "planners": planners_table(self.outcomes, wiring, self.optimum, self.full),
            "ticks": ticks_table(self.outcomes, wiring, self.rates, self.optimum, tick_us),
            "nodes": nodes_table(self.outcomes, wiring, tick_us),
            "drops": drops_table(self.outcomes, wiring, tick_us),
        }

    def shown(self) -> tuple[Table, Table]:
        """The planners under the verdict, and the rest of the summary."""
        wiring = Wiring.from_network(self.network)
        table = planners_table(self.outcomes, wiring, self.optimum, self.full)
        return verdict_under(planners_told(table), self.summary())

    def as_data(self) -> dict[str, Any]:
        """The run as JSON data."""
        return run_as_data(self.mechanism, self.parameters, self.summary(), self.tables())

    def _repr_html_(self) -> str:
        """Summary and planners, for a notebook."""
        return "".join(table._repr_html_() for table in self.shown())


def replay_fit(
    batches: Callable[[], Iterable[pa.RecordBatch]],
    binding: Binding,
    options: FitOptions,
    *,
    clock: Callable[[], float],
    parameters: Mapping[str, Any] | None = None,
    told: Told | None = None,
    plans: Callable[[PlannerOptions], DropPlans] | None = None,
) -> FitRun:
    """Run a stream through a network, tick by tick, with each planner at its own copy of it.

    The stream is read twice: to count, which planners that plan in advance need, and to run all copies side by side.

    Args:
        batches: The rows in time order, from the start at every call.
        binding: Of rows to the inputs of the network; its ticks are those of the settings.
        clock: Tells seconds, for how long planning takes; nothing else depends on it.
        parameters: What is recorded as decisive, beside what is known here.
        told: Progress.
        plans: Gives the plans that planners have made in advance, once the rates are counted; each makes its own if
            left out.

    Raises:
        UsageError: an argument is out of its range, or a planner cannot take the network.
        BadInput: a row of the stream cannot be.
    """
    tell = told or (lambda *_: None)
    network, settings = binding.network, options.settings
    wiring = Wiring.from_network(network)
    if settings.drops is Drops.WINDOW:
        windows_of_arcs(wiring)
    counts = Counts.from_batches(binding, batches(), lambda rows: tell("counting", rows, 0))
    rates = counts.by_tick * (scales(wiring) / (settings.tick_us / 1e6))
    names = tuple(dict.fromkeys(options.planners))
    asked = planner_options(options, rates)
    ahead = {} if plans is None else plans(asked).planners
    controls = [Control(network, name, settings, asked, clock, ahead.get(name)) for name in names]
    running = [_running(wiring, options) for _ in names]
    for control in controls:
        control.foresee(rates)
    done: list[list[tuple[Decision, Tick]]] = [[] for _ in names]
    passed = 0
    for at, offered in enumerate(binding.ticks(batches(), len(rates))):
        for control, runs, log in zip(controls, running, done, strict=True):
            decision = control.decide(rates[at])
            tick = runs.run(offered, decision.keeps)
            control.observe(tick, offered.tick_s)
            log.append((decision, tick))
        passed += len(offered.at_us)
        tell(f"tick {at + 1:,} of {len(rates):,}", passed, int(counts.by_tick.sum()))
    outcomes = []
    for name, control, runs, log in zip(names, controls, running, done, strict=True):
        decisions, ticks = tuple(decision for decision, _ in log), tuple(tick for _, tick in log)
        flows = control.flows(rates, np.stack([decision.keeps for decision in decisions]))
        use = kept_use(wiring, flows, options.cost_scale)
        prepared = (control.prepared_s, control.sent, control.table, control.epsilon)
        outcomes.append(FitOutcome(name.value, ticks, decisions, runs.latencies(), *prepared, use))
    optimum = optimum_of(network, rates, options.cost_scale)
    decisive = {**parameters_of(binding, options), **(parameters or {})}
    return FitRun(tuple(outcomes), network, options, counts, rates, optimum, decisive)


def optimum_of(network: Network, rates: Floats, cost_scale: float = 1.0) -> Floats:
    """The best score of each tick's rates, nothing left free; shape (ticks, inputs) to (ticks,)."""
    true = tuple(replace(node, capacity=node.capacity / cost_scale) for node in network.nodes)
    return planner_of(DropPlanner.EXACT, replace(network, nodes=true)).plan(rates).scores


def parameters_of(binding: Binding, options: FitOptions) -> dict[str, Any]:
    """All that decides a replay, beside the stream and what the network is; JSON data."""
    overload = options.overload
    return {
        "planners": [planner.value for planner in options.planners],
        "settings": {name: value for name, value in asdict(options.settings).items() if name != "planner"},
        "speedup": binding.speedup,
        "flow": options.flow.value,
        "seed": options.seed,
        "cost_scale": options.cost_scale,
        "grid": options.grid.value,
        "distance": options.distance,
        "most_plans": options.most_plans,
        "messages": options.transport and asdict(options.transport),
        "trusting": options.trusting,
        "refuse": overload
        and {
            "tau2": overload.factor.tau2,
            "min_drop": overload.factor.min_drop,
            "drop_curve": str(overload.factor.drop_curve),
            "capacity_tuples": overload.capacity_tuples,
        },
        "bindings": {entering.name: binding_text(entering.stream) for entering in binding.network.inputs},
    }


def planner_options(options: FitOptions, rates: Floats | None = None) -> PlannerOptions:
    """What planners are given.

    Args:
        rates: Those of the trace, tuples/s, shape (ticks, inputs): plans made in advance are for these, up to the
            highest of each input. None, plans were made before.
    """
    highest = None if rates is None else rates.max(axis=0)
    return PlannerOptions(
        headroom=options.settings.headroom,
        epsilon=options.settings.epsilon,
        most_rates=None if highest is None else np.where(highest > 0, highest, 1.0),
        workload=options.workload or (None if rates is None else Observed(rates)),
        grid=options.grid,
        distance=options.distance,
        most_plans=options.most_plans,
        transport=options.transport,
        trusting=options.trusting,
        seed=options.seed,
    )


def _running(wiring: Wiring, options: FitOptions) -> Running:
    if options.flow is Flow.FLUID:
        return Fluid(wiring, options.cost_scale)
    dropped = options.settings.drops is Drops.WINDOW
    windows = LivingWindows(wiring, options.seed, options.settings.batch) if dropped else None
    return Tuples(wiring, options.seed, options.cost_scale, options.overload, windows)
