"""Arguments that name input artefacts."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

TracePath: TypeAlias = Annotated[
    Path, typer.Argument(metavar="TRACE", help="A trace made by `adapt ingest`, or a folder or quoted glob of traces.")
]
CountedPath: TypeAlias = Annotated[
    Path, typer.Argument(metavar="TRACE|FREQ|COUNTS.csv", help="A trace, counted keys, or a CSV of key,count.")
]
PlanPath: TypeAlias = Annotated[Path, typer.Argument(metavar="PLAN", help="A plan made by `adapt partition build`.")]
