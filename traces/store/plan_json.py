"""Plan files as JSON data, read without building the partitioner."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from adapt.core.errors import BadInput
from adapt.core.units.seals import check_seal
from adapt.traces.locations.run_folders import MANIFEST, in_run
from adapt.traces.read_errors import damaged, note_unsealed, readable
from adapt.traces.store.manifest import note_readings, readings_of

REMEDY = "create one with `adapt partition build TRACE -o PLAN`"


def read_plan_json(path: Path) -> Mapping[str, Any]:
    """Read the JSON object of a plan file without checking it."""
    try:
        with readable(path):
            path = in_run(path)
            _check_is_file(path)
            data = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} is not a plan, or is damaged: not JSON ({error}); {REMEDY}") from error
    if not isinstance(data, dict):
        raise BadInput(f"{path} is not a plan: not a JSON object; {REMEDY}")
    check_plan_seal(path, data)
    return data


def check_plan_seal(path: Path, data: Mapping[str, Any]) -> bool:
    """Check the seal of a plan file; warn if it has none.

    Returns:
        Whether it is sealed.
    """
    try:
        check_seal(data)
    except KeyError:
        note_unsealed(str(path), "build it again")
        return False
    except ValueError as error:
        raise BadInput(
            f"{path} was changed after it was written: its content does not match its seal; build it again, or remove"
            " the fields seal and content_hash if you changed the plan on purpose"
        ) from error
    return True


def readings_of_plan(path: Path, data: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Readings of the sources of a plan; they are logged.

    Args:
        data: The plan's JSON object, if it was read already.
    """
    made = (read_plan_json(path) if data is None else data).get("made")
    try:
        found = readings_of(made.get("inputs", ())) if isinstance(made, dict) else {}
    except (ValueError, TypeError, AttributeError) as error:
        raise damaged(f"{path}, field 'made',", error) from error
    note_readings(path, found)
    return found


def _check_is_file(path: Path) -> None:
    """Check that the path is a file; errors name the plans in a folder."""
    if path.is_dir():
        plans = ", ".join(sorted(each.name for each in path.glob("*.plan")))
        inside = f"; name one of the plans in it: {plans}" if plans else ""
        what = "an artefact" if (path / MANIFEST).is_file() else "a folder"
        raise BadInput(f"{path} is {what}, but a plan is a single file{inside or f'; {REMEDY}'}")
    if not path.exists():
        raise BadInput(f"{path} does not exist; {REMEDY}")
