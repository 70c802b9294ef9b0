"""Counted keys from whatever names them: a trace (counted on Spark), an artefact of counts, or a CSV."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adapt.core.errors import BadInput, UsageError
from adapt.core.frequencies.frequencies import Frequencies
from adapt.core.stream import KeyType, Weight
from adapt.traces.artefacts.frequencies import read_counts, read_frequencies
from adapt.traces.artefacts.manifest import file_sha256, read_manifest
from adapt.traces.artefacts.trace import open_trace
from adapt.traces.counting import count_trace
from adapt.traces.progress import Progress, silent
from adapt.traces.readable import readable
from adapt.traces.session import SparkOptions


@dataclass(frozen=True, slots=True)
class Counted:
    """Frequencies and where they come from.

    Attributes:
        frequencies: The counted keys.
        fingerprint: Content hash of the trace, or of the artefact or file of counts.
        source: What a manifest says of that input.
    """

    frequencies: Frequencies
    fingerprint: str
    source: dict[str, Any]


def counted(
    path: Path,
    *,
    weight: Weight | None = None,
    key_type: KeyType | None = None,
    spark_options: SparkOptions | None = None,
    progress: Progress = silent,
) -> Counted:
    """The keys of a trace, of an artefact of counts, or of a CSV of `key,count`.

    Args:
        weight: What a row weighs when a trace is counted.
        key_type: How the keys of a CSV are to be read; text if not given.

    Raises:
        UsageError: `weight` or `key_type` does not go with the input.
        BadInput: the input is none of these, or damaged.
    """
    with readable(path):
        if path.is_file():
            if weight is not None:
                raise UsageError(f"--weight goes with a trace; the counts of {path} are what they are")
            sha256 = file_sha256(path)
            source = {"name": path.name, "bytes": path.stat().st_size, "sha256": sha256}
            return Counted(read_counts(path, key_type or KeyType.STRING), sha256, source)
        if not path.exists():
            raise BadInput(f"{path} does not exist; give a trace, counted keys, or a CSV of key,count")
    manifest = read_manifest(path)
    source = {"name": path.name, "content_hash": manifest.content_hash}
    if key_type is not None:
        raise UsageError(f"--key-type goes with a CSV of counts; {path} knows the type of its keys")
    if manifest.kind == "trace":
        trace = open_trace(path)
        frequencies = count_trace(trace, weight=weight, spark_options=spark_options, progress=progress)
        return Counted(frequencies, manifest.content_hash, source)
    if manifest.kind == "frequencies":
        frequencies, _ = read_frequencies(path)
        if weight not in (None, frequencies.weight):
            raise UsageError(f"--weight {weight}: {path} was counted by {frequencies.weight}; count the trace again")
        trace_hash = next((str(item["content_hash"]) for item in manifest.made.inputs if "content_hash" in item), None)
        return Counted(frequencies, trace_hash or manifest.content_hash, source)
    raise BadInput(f"{path} is a {manifest.kind}; give a trace, counted keys, or a CSV of key,count")
