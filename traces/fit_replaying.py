"""Replaying a trace from disk through a query network that sheds load, and keeping what came out; without Spark."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adapt.core.errors import BadInput
from adapt.core.replay.bound_rows import Binding
from adapt.core.replay.fit import FitOptions, FitRun, replay_fit
from adapt.core.shedding.network_file import NetworkFile, read_network
from adapt.traces.artefacts.manifest import Provenance
from adapt.traces.artefacts.runs import write_run
from adapt.traces.artefacts.trace import Trace
from adapt.traces.artefacts.whole import check_folder_free
from adapt.traces.progress import Progress, silent
from adapt.traces.readable import readable


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
    try:
        with readable(path):
            text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is no text in UTF-8; give a query network in TOML") from error
    try:
        return NamedNetwork(path.name, text, read_network(text))
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error


def replay_fit_trace(
    trace: Trace,
    out: Path | None,
    network: NamedNetwork,
    options: FitOptions,
    *,
    clock: Callable[[], float],
    speedup: float = 1.0,
    force: bool = False,
    command: str = "adapt.traces.fit_replaying.replay_fit_trace",
    progress: Progress = silent,
    warn: Callable[[str], None] | None = None,
) -> FitRun:
    """Run a trace through a network with each planner; see `replay_fit`.

    Args:
        trace: The stream, read twice, a row group at a time.
        out: Where the run appears, whole, at the end; None keeps it in memory alone.
        network: The network; the settings are those of `options`.
        options: How load is shed.
        clock: Tells seconds, for how long planning takes.
        speedup: Trace seconds that pass in a second of the network.
        force: Replace an artefact at `out`.
        command: What the manifest says made the run.
        progress: Told what is being done, the rows done and the rows in all.
        warn: Given a sentence for each input that no row is bound to.

    Raises:
        UsageError: an argument is out of its range, or a planner cannot take the network.
        EnvironmentFailure: `out` is taken or cannot be written.
        BadInput: a part of the trace is damaged, or an input is bound to what the trace does not have.
    """
    if out is not None:
        check_folder_free(out, force=force)
    binding = Binding(network.read.network, options.settings.tick_us, speedup)
    binding.check(trace.columns)
    columns = binding.columns
    parameters: dict[str, Any] = {"network": {"name": network.name, "text": network.text}}
    run = replay_fit(
        lambda: trace.batches(columns),
        binding,
        options,
        clock=clock,
        parameters=parameters,
        told=lambda what, done, total: progress(what, done, total or trace.rows),
    )
    for sentence in run.counts.unmatched(run.network):
        if warn is not None:
            warn(sentence)
    if out is not None:
        inputs = [{"name": trace.path.name, "content_hash": trace.manifest.content_hash}]
        write_run(run, out, Provenance(command, dict(run.parameters), inputs), force=force)
    return run
