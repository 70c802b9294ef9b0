"""Splitters on disk, as text that Python and Java read."""

from pathlib import Path

from adapt.core.errors import BadInput, UsageError
from adapt.core.partitioning.build import Recipe
from adapt.core.partitioning.loop.saved import is_sealed
from adapt.core.partitioning.loop.splitter import Splitter
from adapt.traces.locations.location import location
from adapt.traces.read_errors import note_unsealed, readable
from adapt.traces.store.atomic import replace_whole


def write_splitter(splitter: Splitter, path: Path | str) -> None:
    """Save a splitter atomically, over an older file.

    Raises:
        EnvironmentFailure: it cannot be written.
    """
    replace_whole(location(path), splitter.to_text())


def read_splitter(path: Path | str, recipe: Recipe | None = None) -> Splitter:
    """Continue a saved splitter.

    Args:
        recipe: A recipe in place of the saved one.

    Raises:
        BadInput: it is missing, damaged, or of another version; the message names the file.
        UsageError: the recipe has another base or hash than the saved plan.
    """
    with readable(location(path)):
        text = location(path).read_bytes()
    try:
        splitter = Splitter.from_text(text, recipe)
    except (BadInput, UsageError) as error:
        raise type(error)(f"{path}: {error}") from error
    if not is_sealed(text):
        note_unsealed(str(path), "save the splitter again")
    return splitter
