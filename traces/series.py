"""Several traces as one stream in time."""

import glob
import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pyarrow.parquet as pq

from adapt.core.errors import BadInput
from adapt.core.lint.evidence import LINT
from adapt.core.units.seals import as_json, hash_of
from adapt.core.values import instant
from adapt.traces.block_cache import Decisive, Work, cache_of, keep_bytes, kept_blocks, read_kept_bytes
from adapt.traces.ingest.profile import profile_trace
from adapt.traces.locations.arrow import arrow_source
from adapt.traces.locations.location import is_stored, location
from adapt.traces.locations.run_folders import MANIFEST
from adapt.traces.locations.series_path import SeriesPath
from adapt.traces.read_errors import readable
from adapt.traces.spark.progress import OF_COMMAND
from adapt.traces.store.manifest import Manifest, Provenance, is_trace, program_versions, read_manifest
from adapt.traces.store.trace import blocks_of

_SAME = ("mapping", "time_zone", "cleaning", "streams", "generator", "topic")
"""Parameters of an ingest that traces of one source have in common."""


def stream_of(*paths: Path) -> Path:
    """Path of a stream: one artefact, or several traces as one.

    Args:
        paths: Each a path; a glob such as `days/*.trace`, a folder of traces, or traces with commas between them.
    """
    found: list[Path] = []
    for path in paths:
        with readable(path):
            traces = traces_of(path)
            if not traces and glob.has_magic(str(path)) and not path.exists():
                raise BadInput(f"no trace matches {path}; check the pattern, or create one with `adapt ingest`")
            found += traces or [path]
    read = {each: read_manifest(each, "trace") for each in dict.fromkeys(found)} if len(found) > 1 else {}
    if len(read) < 2:
        return found[0]
    members = sorted(read, key=lambda each: (read[each].summary["first_us"], read[each].summary["last_us"]))
    _check_alike(members, [read[each] for each in members])
    span_us = read[members[0]].summary["first_us"], read[members[-1]].summary["last_us"]
    return cast(Path, SeriesPath(tuple(members), _named(paths, members), span_us, joined))


def _named(paths: Sequence[Path], members: Sequence[Path]) -> str:
    """Several traces as one typed text: the path, the folder that holds just them, or all of them."""
    if len(paths) == 1:
        return str(paths[0])
    folder = members[0].parent
    if sorted(each.absolute() for each in traces_of(folder)) == sorted(each.absolute() for each in members):
        return str(folder)
    return ",".join(map(str, members))


def traces_of(path: Path) -> list[Path]:
    """The traces that a path names, or none.

    Itself, those of a folder or glob, or those with commas between them.
    """
    text = str(path)
    if (path / MANIFEST).is_file() or path.is_file():
        return [path] if is_trace(path) else []
    if path.is_dir():
        return sorted(each for each in path.iterdir() if is_trace(each))
    if "," in text and not glob.has_magic(text):
        return [location(each) for each in text.split(",")]
    if not glob.has_magic(text):
        return []
    if is_stored(path):
        parts = path.key.split("/")
        fixed = next(at for at, part in enumerate(parts) if glob.has_magic(part))
        root = location("/".join([f"{path.scheme}://{path.bucket}", *parts[:fixed]]))
        return sorted(each for each in root.glob("/".join(parts[fixed:])) if is_trace(each))
    return [Path(each) for each in sorted(glob.glob(text)) if is_trace(Path(each))]


def _check_alike(members: Sequence[Path], manifests: Sequence[Manifest]) -> None:
    """Check that traces are parts of one stream."""
    for (one, first), (other, second) in pairwise(zip(members, manifests, strict=True)):
        if first.summary["last_us"] > second.summary["first_us"]:
            raise BadInput(
                f"{one} and {other} overlap in time: {one.name} ends at {instant(first.summary['last_us'])}, but"
                f" {other.name} begins at {instant(second.summary['first_us'])}; ingest both as one trace, or give one"
            )
        for what in ("key_type", "columns", "types"):
            if first.summary.get(what) != second.summary.get(what):
                raise BadInput(
                    f"{one} and {other} differ in {what.replace('_', ' ')}: {_shown(first.summary[what])} and"
                    f" {_shown(second.summary[what])}; give traces with the same columns"
                )
        for name in _SAME:
            before, after = (each.made.parameters.get(name) for each in (first, second))
            if before != after:
                raise BadInput(
                    f"{one} and {other} come from different sources: {name.replace('_', ' ')} is {_shown(before)} and"
                    f" {_shown(after)}; give traces ingested alike"
                )


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {each}" for name, each in value.items() if each) or "none"
    return ", ".join(map(str, value)) if isinstance(value, list) else "none" if value is None else str(value)


def joined(series: SeriesPath) -> Manifest:
    """The manifest of several traces as one."""
    parts = [read_manifest(each, "trace") for each in series.members]
    files = [
        {**entry, "name": "/".join(each for each in (str(number), part.run, entry["name"]) if each)}
        for number, part in enumerate(parts)
        for entry in part.files
    ]
    first, last = parts[0].summary, parts[-1].summary
    content_hash = hash_of(["series", [part.content_hash for part in parts]])
    summary = {
        **first,
        "rows": sum(part.summary["rows"] for part in parts),
        "last_us": last["last_us"],
        "rejects": _rejects([part.summary["rejects"] for part in parts]),
        "profile": _profile(series, files, (first["first_us"], last["last_us"]), content_hash),
    }
    lint = [part.summary["profile"].get(LINT, {}) for part in parts]
    summary["profile"][LINT].update(_of_source(lint))
    inputs = [part.as_input(each.name) for each, part in zip(series.members, parts, strict=True)]
    made = Provenance("several traces as one stream", parts[0].made.parameters, inputs)
    return Manifest("trace", content_hash, made, files, summary)


def _profile(series: SeriesPath, files: Sequence[Any], span_us: tuple[int, int], content_hash: str) -> dict[str, Any]:
    """The profile of all rows, kept next to the traces."""
    name = hash_of([content_hash, program_versions()["adapt-streams"]])[:32]
    kept = cache_of(series) / f"{name}.profile"
    data = read_kept_bytes(kept)
    if data is not None:
        return dict(json.loads(data))
    blocks = blocks_of(cast(Path, series), files)
    schema = pq.read_schema(arrow_source(blocks[0].pieces[0].path)).remove_metadata()

    def keeping(work: Work, decisive: Decisive) -> Work:
        return kept_blocks(cast(Path, series), files, blocks, work, decisive)

    found = profile_trace(None, blocks, schema, span_us, OF_COMMAND.get(), keeping).data
    keep_bytes(kept, as_json(found))
    return found


def _rejects(parts: Sequence[Any]) -> dict[str, Any]:
    """The rejected rows of all traces."""
    reasons: dict[str, int] = {}
    examples: dict[str, Any] = {}
    for part in parts:
        for reason, rows in part["reasons"].items():
            reasons[reason] = reasons.get(reason, 0) + rows
            examples.setdefault(reason, part["examples"].get(reason, []))
    ordered = dict(sorted(reasons.items(), key=lambda each: -each[1]))
    return {"rows": sum(ordered.values()), "reasons": ordered, "examples": examples}


def _of_source(parts: Sequence[Any]) -> dict[str, Any]:
    """What is known of the sources of all traces: samples, and how they print null."""
    found: dict[str, Any] = {name: parts[0][name] for name in ("null_text",) if name in parts[0]}
    if local := [each for part in parts for each in part.get("local_times", ())]:
        found["local_times"] = local
    if all("sample" in part for part in parts):
        found["sample"] = {**parts[0]["sample"], "left_out": sum(part["sample"]["left_out"] for part in parts)}
    if all("record_sample" in part for part in parts):
        samples = [part["record_sample"] for part in parts]
        records, effect = sum(each["records"] for each in samples), max(each.get("effect", 1.0) for each in samples)
        found["record_sample"] = {**samples[0], "records": records, "effect": effect}
    return found
