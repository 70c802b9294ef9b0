"""Plans on disk: JSON, with many pinned keys in Parquet."""

import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from adapt.core.errors import AdaptError, BadInput, EnvironmentFailure
from adapt.core.partitioning.plans.plan import Plan, plan_from_data, plan_to_data
from adapt.core.units.seals import as_json, sealed
from adapt.core.verdict.answer import Answer
from adapt.traces.locations import run_folders
from adapt.traces.locations.location import StorePath, is_stored, location
from adapt.traces.locations.run_folders import in_run
from adapt.traces.read_errors import damaged
from adapt.traces.store import disk
from adapt.traces.store.answers import found_in, kept
from adapt.traces.store.atomic import alone, check_free, replace_whole, whole_file
from adapt.traces.store.manifest import Provenance, as_input, inside
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
    of_run = f"-{secrets.token_hex(4)}" if is_stored(out) else ""  # no two runs name the same object
    side = out.with_name(f"{out.name}.{content[:12]}{of_run}.parquet") if aside else None
    data |= {"content_hash": content, "made": asdict(made), **kept(answer)}
    if side is not None:
        explicit = packed(plan.to_arrow())
        data["explicit_file"] = {"name": side.name, "sha256": hashlib.sha256(explicit).hexdigest()}
    whole = as_json(sealed(data))
    if is_stored(out):
        _write_stored(out, whole, None if side is None else (cast(StorePath, side), explicit), force=force)
        return content
    try:
        with whole_file(out, force=force) as partial:
            if side is not None:
                replace_whole(side, explicit)
            disk.write_bytes(partial, whole)
    finally:
        _clear_old_sides(out)
    return content


def _write_stored(out: StorePath, whole: bytes, aside: tuple[StorePath, bytes] | None, *, force: bool) -> None:
    """Write a plan and its side file to a store, and remove the side file of the plan that it overwrites."""
    version = run_folders.check_free(out, force=force, folder=False)
    try:
        old = named_side(out)
    except ValueError:
        old = ""
    if aside is not None:
        side, explicit = aside
        side.write_bytes(explicit)
    try:
        run_folders.write_over(version, out, whole, out)
    except run_folders.Overtaken:
        if aside is not None:
            side.unlink()
        raise
    if plan_of_side(old) == out.name:
        with suppress(AdaptError, OSError):  # else `adapt clean` removes it
            out.with_name(old).unlink()


@dataclass(frozen=True, slots=True)
class NamedPlan:
    """A plan and the name of its file."""

    name: str
    plan: Plan
    readings: Mapping[str, Any] = field(default_factory=dict)  # of the sources behind it

    @property
    def as_input(self) -> dict[str, Any]:
        """The plan as an input of others."""
        return as_input(self.name, self.plan.content_hash(), self.readings)


def open_named_plan(path: Path) -> NamedPlan:
    """Read a plan file; raises as `read_plan` does."""
    return NamedPlan(path.name, read_plan(path), readings_of_plan(path))


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
    old = [path for path in out.absolute().parent.iterdir() if plan_of_side(path.name) == out.name]
    if not old:
        return
    with suppress(EnvironmentFailure, ValueError), alone(out):
        named = named_side(out)
        for path in old:
            if path.name != named:
                path.unlink(missing_ok=True)


def plan_of_side(name: str) -> str:
    """Plan name of a side file; empty for other files."""
    found = re.fullmatch(r"(.+)\.[0-9a-f]{12}(-[0-9a-f]{8})?\.parquet", name)
    return found[1] if found else ""


def named_side(plan: Path | StorePath) -> str:
    """Name of a plan's side file; empty if there is none.

    Raises:
        ValueError: the plan is not JSON.
    """
    try:
        return str(json.loads(plan.read_bytes())["explicit_file"]["name"])
    except (FileNotFoundError, KeyError, TypeError):
        return ""
