"""Plans on disk: JSON, with many pinned keys in Parquet."""

import hashlib
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from adapt.core.errors import BadInput, EnvironmentFailure
from adapt.core.partitioning.plans.plan import Plan, plan_from_data, plan_to_data
from adapt.core.units.seals import as_json, sealed
from adapt.core.verdict.answer import Answer
from adapt.traces.locations.location import is_stored, location
from adapt.traces.locations.run_folders import in_run
from adapt.traces.read_errors import damaged
from adapt.traces.store import disk
from adapt.traces.store.answers import found_in, kept
from adapt.traces.store.atomic import alone, check_free, replace_whole, whole_file, write_whole
from adapt.traces.store.manifest import Provenance, inside
from adapt.traces.store.plan_json import read_plan_json, readings_of_plan
from adapt.traces.store.tables import packed

MOST_KEYS_IN_JSON = 10_000
"""More pinned keys go to a separate Parquet file."""


def write_plan(plan: Plan, out: Path, made: Provenance, *, answer: Answer | None = None, force: bool = False) -> str:
    """Write a plan atomically.

    The side file has the content hash in its name, so it never overwrites one that another plan needs.

    Returns:
        The content hash of the plan.
    """
    check_free(out, force=force)
    content = plan.content_hash()
    aside = len(plan.explicit) > MOST_KEYS_IN_JSON
    data = plan_to_data(plan, with_explicit=not aside)
    side = out.with_name(f"{out.name}.{content[:12]}.parquet") if aside else None
    data |= {"content_hash": content, "made": asdict(made), **kept(answer)}
    if side is not None:
        explicit = packed(plan.to_arrow())
        data["explicit_file"] = {"name": side.name, "sha256": hashlib.sha256(explicit).hexdigest()}
    whole = as_json(sealed(data))
    if is_stored(out):
        if side is not None:
            replace_whole(side, explicit)
        write_whole(cast(Path, out), whole, force=force)
        return content
    try:
        with whole_file(out, force=force) as partial:
            if side is not None:
                replace_whole(side, explicit)
            disk.write_bytes(partial, whole)
    finally:
        _clear_old_sides(out)
    return content


def read_plan(path: Path | str) -> Plan:
    """Read a plan and verify its content hash.

    Raises:
        BadInput: it is not a plan, or it or its side file is damaged; the message names the file.
    """
    path = location(path)
    data = read_plan_json(path)
    explicit = _side_table(path, data)
    try:
        plan = plan_from_data(data, explicit)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error
    stated = data.get("content_hash")
    if stated is not None and stated != plan.content_hash():
        raise BadInput(
            f"{path} was changed after it was written: its content does not match its content_hash; build it again, or"
            " remove the fields seal and content_hash if you changed the plan on purpose"
        )
    readings_of_plan(path, data)
    return plan


def read_plan_made(path: Path) -> dict[str, Any]:
    """How a plan was made: the fields of `Provenance`, or empty."""
    made = read_plan_json(path).get("made")
    return made if isinstance(made, dict) else {}


def read_plan_answer(path: Path) -> Answer | None:
    """The verdict stored with a plan, if any."""
    return found_in(read_plan_json(path), str(path))


def _side_table(path: Path, data: Mapping[str, Any]) -> pa.Table | None:
    """The pinned keys in a separate file, if there is one."""
    entry = data.get("explicit_file")
    if entry is None:
        return None
    try:
        name, stated = entry["name"], entry["sha256"]
        inside(path.parent, name.replace("/", "\\"))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadInput(
            f"{path}: plan field 'explicit_file' must name a file in the plan's folder, with its sha256"
        ) from error
    side = in_run(path.with_name(name))
    try:
        found = side.read_bytes()
    except OSError as error:
        raise BadInput(
            f"{side} cannot be read ({error.strerror or error}), but holds the pinned keys of {path.name}; keep both"
            " files in one folder, or build the plan again"
        ) from error
    if hashlib.sha256(found).hexdigest() != stated:
        raise damaged(side, f"its SHA-256 does not match {path.name}", "build the plan again")
    return pq.read_table(pa.BufferReader(found))


def _clear_old_sides(out: Path) -> None:
    """Remove side files that the plan at `out` does not name, unless a run is writing one, which does so itself."""
    ours = re.compile(re.escape(out.name) + r"\.[0-9a-f]{12}\.parquet")
    old = [path for path in out.absolute().parent.iterdir() if ours.fullmatch(path.name)]
    if not old:
        return
    with suppress(EnvironmentFailure, BadInput), alone(out):
        named = (read_plan_json(out).get("explicit_file") if out.exists() else None) or {"name": None}
        for path in old:
            if path.name != named["name"]:
                path.unlink(missing_ok=True)
