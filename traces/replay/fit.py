"""Replaying a trace from disk through a query network that sheds load, and keeping what came out; without Spark."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from adapt.core.errors import BadInput, UsageError
from adapt.core.fit.drop_plans import PRECOMPUTED, DropPlans, from_tables
from adapt.core.fit.network.network_file import NetworkFile, read_network
from adapt.core.fit.registry import PlannerOptions
from adapt.core.fit.replay.bound_rows import Binding
from adapt.core.fit.replay.replay import FitOptions, FitRun, planner_options, replay_fit
from adapt.traces.read_errors import parsed
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.store.atomic import check_folder_free
from adapt.traces.store.drop_plans import read_drop_plans, write_drop_plans
from adapt.traces.store.manifest import Provenance
from adapt.traces.store.runs import keep_run
from adapt.traces.store.trace import Trace


@dataclass(frozen=True, slots=True)
class NamedNetwork:
    """A network file, with what it was called and what it said.

    Attributes:
        name: Of the file.
        text: All of it.
        read: What it means.
    """

    name: str
    text: str
    read: NetworkFile


def open_network(path: Path) -> NamedNetwork:
    """Read a network from its file.

    Raises:
        BadInput: there is none, or it is none; the sentence begins with the file.
    """
    no_text = "is not UTF-8 text; give a query network in TOML"
    return parsed(path, lambda text: NamedNetwork(path.name, text, read_network(text)), no_text)


@dataclass(frozen=True, slots=True)
class FitTraceOptions:
    """How a trace goes through a query network.

    Attributes:
        network: The network; the settings are those of `fit`.
        fit: How load is shed.
        speedup: Trace seconds that pass in a second of the network.
        plans: Where the plans made in advance are kept: used if there are any, else made and put there, before anything
            is run.
        workload_source: Where the workload of `fit` comes from, for the run to keep.
    """

    network: NamedNetwork
    fit: FitOptions
    speedup: float = 1.0
    plans: Path | None = None
    workload_source: Mapping[str, Any] | None = None


def replay_fit_trace(
    trace: Trace,
    out: Path | None,
    options: FitTraceOptions,
    *,
    clock: Callable[[], float],
    force: bool = False,
    command: str = "adapt.traces.replay.fit.replay_fit_trace",
    progress: Progress = silent,
    warn: Callable[[str], None] | None = None,
) -> FitRun:
    """Run a trace through a network with each planner, and keep the run at `out`, if given; see `replay_fit`.

    Args:
        trace: The stream, read twice, a row group at a time.
        clock: Tells seconds, for how long planning takes.
        warn: Given a sentence for each input that no row is bound to, or that comes at higher rates than `plans` are
            for.

    Raises:
        UsageError: an argument is out of its range, or a planner cannot take the network.
        EnvironmentFailure: `out` is taken or cannot be written.
        BadInput: a part of the trace is damaged, an input is bound to what the trace does not have, or `plans` were
            made for another network or otherwise.
    """
    check_folder_free(out, force=force)
    network, fit = options.network, options.fit
    binding = Binding(network.read.network, fit.settings.tick_us, options.speedup)
    binding.check(trace.columns)
    columns = binding.columns
    parameters: dict[str, Any] = {"network": {"name": network.name, "text": network.text}}
    if options.workload_source is not None:
        parameters["workload"] = dict(options.workload_source)
    inputs = [trace.as_input]
    kept = None
    if options.plans is not None:
        kept = _Kept(options.plans, network, fit, Provenance(command, parameters, inputs))
    run = replay_fit(
        lambda: trace.batches(columns),
        binding,
        fit,
        clock=clock,
        parameters=parameters,
        progress=lambda what, done, total: progress(what, done, total or trace.rows),
        plans=kept,
    )
    warnings = run.counts.unmatched(run.network)
    if kept is not None:
        run = replace(run, parameters={**run.parameters, "plans": kept.content_hash})
        warnings += kept.plans.beyond(run.rates)
        inputs.append({"name": kept.path.name, "content_hash": kept.content_hash})
    for sentence in warnings:
        if warn is not None:
            warn(sentence)
    keep_run(run, out, command, inputs, force=force)
    return run


class _Kept:
    """Plans made in advance and where they are kept."""

    def __init__(self, path: Path, network: NamedNetwork, options: FitOptions, made: Provenance) -> None:
        """Read them, if there are any.

        Raises:
            UsageError: no planner makes any.
            BadInput: they were made for another network or otherwise.
        """
        if not set(options.planners) & set(PRECOMPUTED):
            raise UsageError(
                f"--plans {path} needs one of {', '.join(PRECOMPUTED)} (got {', '.join(options.planners)})"
            )
        self.path, self.content_hash = path, ""
        self._network, self._options, self._made = network, options, made
        self._plans: DropPlans | None = None
        if not path.exists():
            check_folder_free(path, force=False)
        else:
            asked = planner_options(options)
            stored = read_drop_plans(path, asked)
            self._plans, self.content_hash = stored.plans, stored.manifest.content_hash
            try:
                stored.plans.check(network.read.network, options.planners, asked)
            except BadInput as error:
                raise BadInput(f"{path} {error}; give another folder or remove it") from None

    @property
    def plans(self) -> DropPlans:
        """They, once they are there."""
        assert self._plans is not None
        return self._plans

    def __call__(self, asked: PlannerOptions) -> DropPlans:
        """The plans, made and put in their place if they were not there."""
        if self._plans is None:
            made = DropPlans.made(self._network.read.network, self._options.planners, asked)
            self.content_hash = write_drop_plans(made, self._network.text, self.path, self._made).content_hash
            # Nodes that exchange updates go on from the tables that are kept, with the same random draws.
            self._plans = from_tables(made.network, asked, list(made.planners), made.tables())
        return self._plans
