"""Replays of traces through query networks, from file to run, without Spark."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from adapt.core.errors import BadInput, UsageError
from adapt.core.fit.drop_plans import DropPlans, from_tables
from adapt.core.fit.network.names import PRECOMPUTED, Drops, Flow
from adapt.core.fit.network.network_file import NetworkFile, read_network
from adapt.core.fit.network.wiring import Wiring, doubts
from adapt.core.fit.planners.solver import Learnt
from adapt.core.fit.registry import PlannerOptions
from adapt.core.fit.replay.bound_rows import Binding
from adapt.core.fit.replay.replay import FitOptions, FitRun, planner_options, replay_fit
from adapt.core.fit.running.window_drop import doubts_of_batches
from adapt.traces.read_errors import parsed
from adapt.traces.replay.length import Length
from adapt.traces.replay.replay import Asked, Replayed
from adapt.traces.replay.rules import write_rules
from adapt.traces.store.atomic import check_folder_free
from adapt.traces.store.drop_plans import read_drop_plans, write_drop_plans
from adapt.traces.store.manifest import Manifest, Provenance
from adapt.traces.store.trace import Trace

MOST_TUPLES = 20_000_000
"""Most tuples of scaled inputs, each of which may wait."""


@dataclass(frozen=True, slots=True)
class NamedNetwork:
    """A network file."""

    name: str  # of the file
    text: str  # its contents
    read: NetworkFile  # the parsed contents


def open_network(path: Path) -> NamedNetwork:
    """Read a network file."""
    no_text = "is not UTF-8 text; give a query network in TOML"
    return parsed(path, lambda text: NamedNetwork(path.name, text, read_network(text)), no_text)


@dataclass(frozen=True, slots=True)
class FitReplay:
    """Replay through a query network with each planner; see `replay_fit`.

    The trace is read twice, one row group at a time.
    """

    network: NamedNetwork  # the network; the settings are those of `fit`
    fit: FitOptions  # options of load shedding
    plans: Path | None = None  # folder of precomputed plans: reused if it exists, else written before the replay starts
    rules: Path | None = None  # folder to write the rules to; None: none
    # costs fitted to measurements, by operator, to record in the run; None: those of the network file
    costs: Mapping[str, float] | None = None
    workload_source: Mapping[str, Any] | None = None  # where the workload of `fit` comes from, to record in the run
    clock: Callable[[], float] = perf_counter  # seconds; measures planning time
    # called with a warning for each input that reads no row, or whose rates exceed those of `plans`
    warn: Callable[[str], None] | None = None

    @contextmanager
    def replayed(self, trace: Trace, asked: Asked) -> Iterator[Replayed[FitRun]]:
        """Replay a trace."""
        check_folder_free(self.rules, force=asked.force)
        network, fit = self.network, self.fit
        binding = Binding(network.read.network, fit.settings.tick_us, fit.execution.speedup)
        binding.check(trace.columns)
        columns = binding.columns
        parameters: dict[str, Any] = {"network": {"name": network.name, "text": network.text}}
        if self.plans is not None and isinstance(fit.workload, Learnt):
            raise UsageError("--plans cannot be combined with --workload online, which makes new plans while it runs")
        if self.workload_source is not None:
            parameters["workload"] = dict(self.workload_source)
        if self.costs is not None:
            if self.plans is not None:
                raise UsageError("--plans cannot be combined with --utilization; write the costs to the network file")
            parameters["costs"] = dict(self.costs)
        inputs = [trace.as_input]
        kept = None
        if self.plans is not None:
            kept = _Kept(self.plans, network, fit, Provenance(asked.command, parameters, inputs))
        ticks = (trace.last_us - trace.first_us) / binding.speedup / binding.tick_us
        cases = len({*fit.planners, "best possible"})
        Length(trace.rows, ticks, cases=cases).check("increase --speedup or --network tick, or choose fewer planners")
        tuples = round(trace.rows * max(each.scale for each in network.read.network.inputs))
        if fit.execution.flow is Flow.TUPLES and tuples > max(MOST_TUPLES, trace.rows):
            raise UsageError(
                f"the scale of the inputs makes up to {tuples:,} tuples of {trace.rows:,} rows, and at most"
                f" {MOST_TUPLES:,} are simulated one by one; decrease scale, or give --flow fluid"
            )
        run = replay_fit(
            lambda: trace.batches(columns),
            binding,
            fit,
            clock=self.clock,
            parameters=parameters,
            progress=lambda what, done, total: asked.progress(what, done, total or trace.rows),
            plans=kept,
        )
        wiring = Wiring.from_network(run.network)
        warnings = [*run.counts.unmatched(run.network), *doubts(wiring, run.rates)]
        if fit.settings.drops is Drops.WINDOW:
            warnings += doubts_of_batches(wiring, fit.settings.batch, run.rates, fit.settings.tick_us)
        if kept is not None:
            run = replace(run, parameters={**run.parameters, "plans": kept.manifest.content_hash})
            warnings += kept.plans.beyond(run.rates)
            inputs.append(kept.manifest.as_input(kept.path.name))
        for sentence in warnings:
            if self.warn is not None:
                self.warn(sentence)
        yield Replayed(run, inputs)
        if self.rules is not None:
            write_rules(run.rules, self.rules, force=asked.force)


class _Kept:
    """Precomputed plans and their folder."""

    def __init__(self, path: Path, network: NamedNetwork, options: FitOptions, made: Provenance) -> None:
        """Read the plans if the folder exists."""
        if not set(options.planners) & set(PRECOMPUTED):
            raise UsageError(
                f"--plans {path} needs one of {', '.join(PRECOMPUTED)} (got {', '.join(options.planners)})"
            )
        self.path = path
        self._network, self._options, self._made = network, options, made
        self._plans: DropPlans | None = None
        self._manifest: Manifest | None = None
        if not path.exists():
            check_folder_free(path, force=False)
        else:
            asked = planner_options(options)
            stored = read_drop_plans(path, asked)
            self._plans, self._manifest = stored.plans, stored.manifest
            try:
                stored.plans.check(network.read.network, options.planners, asked)
            except BadInput as error:
                raise BadInput(f"{path} {error}; give another folder or remove it") from None

    @property
    def plans(self) -> DropPlans:
        """The plans, once read or built."""
        assert self._plans is not None
        return self._plans

    @property
    def manifest(self) -> Manifest:
        """Their manifest, once read or written."""
        assert self._manifest is not None
        return self._manifest

    def __call__(self, asked: PlannerOptions) -> DropPlans:
        """The plans; built and written if the folder did not exist."""
        if self._plans is None:
            made = DropPlans.made(self._network.read.network, self._options.planners, asked)
            self._manifest = write_drop_plans(made, self._network.text, self.path, self._made)
            # Nodes that exchange updates continue from the stored tables.
            planned = {name: each.merge for name, each in made.planners.items()}
            self._plans = from_tables(made.network, asked, planned, made.tables())
        return self._plans
