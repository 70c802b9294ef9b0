"""Traces kept for a source, and used again while it stays unchanged."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from adapt.core.errors import AdaptError
from adapt.core.units.seals import as_json, hash_of
from adapt.traces.block_cache import cache_of, keep_bytes, read_kept_bytes
from adapt.traces.locations.location import is_stored
from adapt.traces.read_errors import readable
from adapt.traces.sources.reading.files import source_files
from adapt.traces.store.manifest import TRACE_VERSION, file_sha256, program_versions, read_manifest


def source_fingerprint(sources: Sequence[str], options: Mapping[str, Any]) -> str:
    """Fingerprint of all that makes a trace: sources, their content, options."""
    files = []
    for path in dict.fromkeys(file.path for file in source_files(sources)):
        with readable(path):
            files.append([str(path), path.found().version if is_stored(path) else file_sha256(path)])
    return hash_of([list(sources), files, dict(options), program_versions()["adapt-streams"], TRACE_VERSION])


def holds(trace: Path, fingerprint: str) -> bool:
    """Whether a trace matches the fingerprint of its source."""
    with suppress(OSError, AdaptError):
        return read_kept_bytes(_place(trace)) == as_json([fingerprint, read_manifest(trace).content_hash])
    return False


def remember(trace: Path, fingerprint: str) -> None:
    """Note the source of a trace, for `holds`."""
    keep_bytes(_place(trace), as_json([fingerprint, read_manifest(trace).content_hash]))


def _place(trace: Path) -> Path:
    return cache_of(trace) / f"{trace.name}.source"
