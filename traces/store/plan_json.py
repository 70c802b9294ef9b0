"""Plan files as JSON data, read without building the partitioner."""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from adapt.core.errors import BadInput
from adapt.traces.locations.run_folders import MANIFEST, in_run
from adapt.traces.read_errors import readable

REMEDY = "create one with `adapt partition build TRACE -o PLAN`"

_DECISIVE = (
    "scheme",
    "base",
    "shards",
    "construction",
    "channels",
    "key_type",
    "hash",
    "replicas",
    "ring_replicas",
    "max_parallelism",
    "explicit",
    "explicit_null",
    "split",
    "parameters",
)


def read_plan_json(path: Path) -> Mapping[str, Any]:
    """Read the JSON object of a plan file without checking it.

    Raises:
        BadInput: the file is missing, or not a JSON object.
    """
    try:
        with readable(path):
            path = in_run(path)
            _check_is_file(path)
            data = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} is not a plan, or is damaged: not JSON ({error}); {REMEDY}") from error
    if not isinstance(data, dict):
        raise BadInput(f"{path} is not a plan: not a JSON object; {REMEDY}")
    return data


def is_as_written(data: Mapping[str, Any]) -> bool:
    """Whether a plan's data certainly matches its content hash (`Plan.content_hash`).

    If False it may still match (other spelling, pinned keys in a separate file); `read_plan` decides.
    """
    if data.get("explicit_file") is not None or data.get("explicit") is None:
        return False
    decisive = {name: data[name] for name in _DECISIVE if name in data}
    canonical = json.dumps(decisive, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest() == data.get("content_hash")


def _check_is_file(path: Path) -> None:
    """Check that the path is a file; errors name the plans in a folder."""
    if path.is_dir():
        plans = ", ".join(sorted(each.name for each in path.glob("*.plan")))
        inside = f"; name one of the plans in it: {plans}" if plans else ""
        what = "an artefact" if (path / MANIFEST).is_file() else "a folder"
        raise BadInput(f"{path} is {what}, but a plan is a single file{inside or f'; {REMEDY}'}")
    if not path.exists():
        raise BadInput(f"{path} does not exist; {REMEDY}")
