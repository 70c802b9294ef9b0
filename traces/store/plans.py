"""Plans on disk: one readable JSON file, with a Parquet file beside it where very many keys are mapped one by one."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adapt.core.errors import BadInput
from adapt.core.partitioning.plans.plan import Plan, explicit_table, plan_from_data, plan_to_data
from adapt.core.verdict.answer import Answer
from adapt.traces.store.answers import found_in, kept
from adapt.traces.store.atomic import check_free, replace_whole, write_whole
from adapt.traces.store.manifest import Provenance, as_json
from adapt.traces.store.plan_json import read_plan_json
from adapt.traces.store.tables import packed

MOST_KEYS_IN_JSON = 10_000
"""An explicit map of more keys stands in a file of its own."""


def write_plan(plan: Plan, out: Path, made: Provenance, *, answer: Answer | None = None, force: bool = False) -> str:
    """Write a plan; what stands at `out` is the old plan or the new one, whole, at any time.

    The side file has the content hash in its name, so that it never takes the place of one that a plan still needs.

    Returns:
        The content hash of the plan.

    Raises:
        EnvironmentFailure: the place is taken or cannot be written.
    """
    check_free(out, force=force)
    content = plan.content_hash()
    aside = len(plan.explicit) > MOST_KEYS_IN_JSON
    data = plan_to_data(plan, with_explicit=not aside)
    side = out.with_name(f"{out.name}.{content[:12]}.parquet") if aside else None
    with _gone_on_failure(side):
        if side is not None:
            explicit = packed(explicit_table(plan))
            data["explicit_file"] = {"name": side.name, "sha256": hashlib.sha256(explicit).hexdigest()}
            replace_whole(side, explicit)
        data |= {"content_hash": content, "made": asdict(made), **kept(answer)}
        write_whole(out, as_json(data), force=force)
    _clear_old_sides(out, side)
    return content


def read_plan(path: Path) -> Plan:
    """Read a plan, and check that it is what was written.

    Raises:
        BadInput: there is no plan, or it or its side file is damaged; the sentence names the file.
    """
    data = read_plan_json(path)
    explicit = _side_table(path, data)
    try:
        plan = plan_from_data(data, explicit)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error
    stated = data.get("content_hash")
    if stated is not None and stated != plan.content_hash():
        raise BadInput(
            f"{path} is not as it was written: its content no longer has the content_hash it states; build it again,"
            " or, if you changed it on purpose, remove that field"
        )
    return plan


def read_plan_made(path: Path) -> dict[str, Any]:
    """How a plan was made: the fields of `Provenance`; nothing where the file does not say.

    Raises:
        BadInput: there is no plan.
    """
    made = read_plan_json(path).get("made")
    return made if isinstance(made, dict) else {}


def read_plan_answer(path: Path) -> Answer | None:
    """What was found of the stream when a plan was made; None where the file does not say.

    Raises:
        BadInput: there is no plan, or this part is damaged.
    """
    return found_in(read_plan_json(path), str(path))


def _side_table(path: Path, data: Mapping[str, Any]) -> pa.Table | None:
    """The explicit entries that stand in a file beside the plan, if they do."""
    entry = data.get("explicit_file")
    if entry is None:
        return None
    match entry:
        case {"name": str(name), "sha256": str(stated)} if Path(name).name == name:
            side = path.with_name(name)
        case _:
            raise BadInput(f"{path}: plan field 'explicit_file' does not name a file beside it, with its sha256")
    try:
        found = side.read_bytes()
    except OSError as error:
        raise BadInput(
            f"{side} cannot be read ({error.strerror or error}), but holds the explicit keys of {path.name}; put the"
            " two side by side, or build the plan again"
        ) from error
    if hashlib.sha256(found).hexdigest() != stated:
        raise BadInput(f"{side} is damaged: its SHA-256 is not the one in {path.name}; build the plan again")
    return pq.read_table(pa.BufferReader(found))


@contextmanager
def _gone_on_failure(side: Path | None) -> Iterator[None]:
    """Remove a side file that was not there before, if the plan that needs it cannot be written."""
    had = side is None or side.exists()
    try:
        yield
    except BaseException:
        if side is not None and not had:
            side.unlink(missing_ok=True)
        raise


def _clear_old_sides(out: Path, kept: Path | None) -> None:
    """Remove the side files of plans that stood at `out` before."""
    ours = re.compile(re.escape(out.name) + r"\.[0-9a-f]{12}\.parquet")
    for path in out.absolute().parent.iterdir():
        if ours.fullmatch(path.name) and (kept is None or path.name != kept.name):
            with suppress(OSError):
                path.unlink()
