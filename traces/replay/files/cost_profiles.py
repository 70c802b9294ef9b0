"""Cost profiles on disk, for `--costs`."""

from pathlib import Path

from adapt.core.costs.profile import Profile
from adapt.core.costs.profile_file import read_profile
from adapt.core.errors import BadInput
from adapt.core.stage.input.profiled import row_costs_of
from adapt.core.stage.input.row_costs import RowCosts
from adapt.traces.read_errors import parsed
from adapt.traces.store.trace import Trace


def read_cost_profile(path: Path) -> Profile:
    """Read a cost profile."""
    return parsed(path, read_profile)


def profiled_row_costs(path: Path, trace: Trace, row_bytes: float, seed: int) -> RowCosts | None:
    """CPU time of each row by a profile; None if drawn."""
    try:
        return row_costs_of(read_cost_profile(path), list(trace.columns), trace.key_type, row_bytes, seed)
    except BadInput as error:
        raise BadInput(str(error) if str(error).startswith(str(path)) else f"{path}: {error}") from error
