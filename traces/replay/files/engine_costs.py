"""Measured costs of the ordered engine on disk, for `--costs`."""

from pathlib import Path

from adapt.core.ordered.engine.costs import EngineProfile
from adapt.core.ordered.engine.costs_file import read_engine_profile
from adapt.traces.read_errors import parsed


def read_engine_costs(path: Path) -> EngineProfile:
    """Read measured costs of the ordered engine.

    Raises:
        BadInput: The file is missing or invalid.
    """
    return parsed(path, read_engine_profile)
