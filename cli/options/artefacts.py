"""Arguments that name input artefacts."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from adapt.cli.options.groups import Several
from adapt.cli.terminal.narration import narrate


def stream_typed(paths: list[Path]) -> Path:
    """The stream of typed traces, narrated if they are several."""
    from adapt.traces.locations.series_path import SeriesPath
    from adapt.traces.series import stream_of

    stream = stream_of(*paths)
    if isinstance(stream, SeriesPath):
        narrate(f"reading {stream.sentence}")
    return stream


STREAM = Several(Path, stream_typed)

TracePath: TypeAlias = Annotated[
    Path, typer.Argument(metavar="TRACE", help="A trace made by `adapt ingest`, or several as one stream."), STREAM
]
CountedPath: TypeAlias = Annotated[
    Path,
    typer.Argument(
        metavar="TRACE|FREQ|COUNTS",
        help="A trace, or several as one stream; counted keys, or a table of key,count.",
    ),
    STREAM,
]
PlanPath: TypeAlias = Annotated[Path, typer.Argument(metavar="PLAN", help="A plan made by `adapt partition build`.")]
