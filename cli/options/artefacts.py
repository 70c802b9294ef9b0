"""Arguments that name input artefacts."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from adapt.cli.options.groups import Several
from adapt.cli.terminal.narration import narrate, narrate_reading


def stream_typed(paths: list[Path], *, aloud: bool = True) -> Path:
    """The stream of typed traces, narrated if they are several.

    Raises:
        BadInput: as `stream_of`.
    """
    from adapt.traces.locations.series_path import SeriesPath
    from adapt.traces.series import stream_of

    stream = stream_of(*paths)
    if isinstance(stream, SeriesPath):
        narrate(f"reading {stream.sentence}")
    note_reading(stream, aloud=aloud)
    return stream


def note_reading(path: Path, *, aloud: bool = True) -> None:
    """Say how the sources of traces were read.

    Args:
        path: A trace, or several; nothing is said of other artefacts.
        aloud: Whether it is printed too, not just part of the JSON document.
    """
    from adapt.traces.locations.series_path import SeriesPath
    from adapt.traces.store.manifest import is_trace

    for each in path.members if isinstance(path, SeriesPath) else [path]:
        if is_trace(each):
            from adapt.traces.store.trace import open_trace

            narrate_reading(each.name, open_trace(each).reading, aloud=aloud)


STREAM = Several(Path, stream_typed)

TracePath: TypeAlias = Annotated[
    Path, typer.Argument(metavar="TRACE", help="A trace made by `adapt ingest`, or several as one stream."), STREAM
]
CountedPath: TypeAlias = Annotated[
    Path,
    typer.Argument(
        metavar="TRACE|FREQ|COUNTS.csv",
        help="A trace, or several as one stream; counted keys, or a CSV of key,count.",
    ),
    STREAM,
]
PlanPath: TypeAlias = Annotated[Path, typer.Argument(metavar="PLAN", help="A plan made by `adapt partition build`.")]
