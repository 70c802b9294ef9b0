"""Replays of a trace: one way for all mechanisms."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from adapt.core.run import Run
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.store.atomic import check_folder_free
from adapt.traces.store.manifest import Provenance
from adapt.traces.store.runs import write_run
from adapt.traces.store.trace import Trace

AnyRun = TypeVar("AnyRun", bound=Run, covariant=True)


@dataclass(frozen=True, slots=True)
class Asked:
    """How a replay runs, besides its settings."""

    out: Path | None = None  # where the run is kept; None keeps nothing
    force: bool = False  # whether what is there is overwritten
    command: str = "adapt.traces.replay.replay"  # recorded with the run
    progress: Progress = silent


@dataclass(frozen=True, slots=True)
class Replayed(Generic[AnyRun]):
    """A run, and what it was made from."""

    run: AnyRun
    inputs: Sequence[Mapping[str, Any]]  # artefacts that were read
    seed: int | None = None
    runner: str | None = None  # where it ran
    parts: Mapping[str, Path] = field(default_factory=dict)  # further files to keep with it, by name


class Mechanism(Protocol[AnyRun]):
    """A mechanism with its settings."""

    def replayed(self, trace: Trace, asked: Asked) -> AbstractContextManager[Replayed[AnyRun]]:
        """The run, which is kept within the context."""


def replay(
    trace: Trace,
    mechanism: Mechanism[AnyRun],
    out: Path | None = None,
    *,
    force: bool = False,
    command: str = "adapt.traces.replay.replay",
    progress: Progress = silent,
) -> AnyRun:
    """Replay a trace through a mechanism.

    Args:
        out: Where to keep the run; None keeps nothing.
        force: Overwrite `out`.
    """
    check_folder_free(out, force=force)
    with mechanism.replayed(trace, Asked(out, force, command, progress)) as done:
        if out is not None:
            made = Provenance(command, dict(done.run.parameters), done.inputs, done.seed, done.runner)
            write_run(done.run, out, made, force=force, parts=done.parts)
    return done.run
