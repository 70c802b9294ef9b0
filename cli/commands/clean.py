"""`adapt clean`: remove what interrupted runs left."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adapt.cli.options.amounts import seconds
from adapt.cli.options.groups import setting
from adapt.cli.terminal.output import Format, FormatOption, is_for_programs, narrate, show

if TYPE_CHECKING:
    from adapt.core.table import Table


def clean(
    place: Annotated[Path, typer.Argument(metavar="LOCATION", help="A folder or artefact, on a disk or as a URI.")],
    yes: bool = setting(False, "Remove the leftovers, instead of listing them only.", None, "--yes"),
    older_than: str = setting("1h", "Skip younger leftovers, which a run may be writing.", "DURATION"),
    format: FormatOption = Format.TABLE,
) -> "Table":
    """List or remove what interrupted runs left.

    On a disk, hidden outputs such as `.web.trace.partial` that no run holds, and results in `.adapt-counts` that no
    run read for 30 days; in a store, folders of runs that no manifest names, and pinned keys that no plan names.
    Readers see none of them.

    Example: adapt clean s3://bucket/traces --yes
    """
    from adapt.traces.leftovers import leftovers, table_of

    least = seconds("--older-than", older_than)
    found = leftovers(place)
    old = [each for each in found if each.age_s >= least]
    if yes:
        for each in old:
            each.remove()
    told = table_of(old)
    if old or is_for_programs(format):
        show([told], format)
    young = len(found) - len(old)
    skipped = f"; {young} younger than {older_than} skipped, see --older-than" if young else ""
    done = "removed" if yes else "found; --yes removes them" if old else "found"
    narrate(f"{len(old)} leftover{'' if len(old) == 1 else 's'} {done}{skipped}")
    return told
