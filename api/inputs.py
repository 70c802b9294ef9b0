"""Results and data frames where commands take paths."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adapt.core.errors import BadInput, UsageError, did_you_mean
from adapt.traces.sources.frames import frame_name, frame_reader, is_frame, is_spark_frame

if TYPE_CHECKING:
    from adapt.core.counting.frequencies import Frequencies


def new_trace() -> Path:
    """A path for a trace that is removed when Python ends."""
    folder = tempfile.mkdtemp(prefix="adapt-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder) / "stream.trace"


def counts_in(frame: Any) -> "Frequencies":
    """The counted keys of a frame with columns key and count.

    Counts of a repeated key are added up.

    Raises:
        UsageError: a column is missing or has another type.
        BadInput: a count is missing or negative.
    """
    from adapt.core.counting.exact import KeyCounts, count_keys, frequencies_of
    from adapt.core.keys.columns import keys_as_column
    from adapt.core.stream import KeyType, Weight

    table = frame.toArrow() if is_spark_frame(frame) else frame_reader(frame).read_all()
    if lacking := {"key", "count"} - {*table.column_names}:
        near = did_you_mean(min(lacking), table.column_names)
        raise UsageError(f"a frame of counted keys has the columns key and count{near}")
    counts = table["count"].to_numpy()
    if counts.dtype.kind not in "iuf":
        raise UsageError(f"column 'count' must be a number (got {table['count'].type})")
    if table["count"].null_count or not (counts >= 0).all():
        raise BadInput("column 'count' has a missing or negative number")
    kept = counts.astype("float64" if counts.dtype.kind == "f" else "int64")
    summed = count_keys(keys_as_column(table["key"]), kept)
    kind = str(table["key"].type)
    key_type = KeyType(kind) if kind in ("int8", "int16", "int32") else None
    return frequencies_of(KeyCounts(summed.keys, summed.counts, round(float(kept.sum()))), Weight.COUNT, key_type)


def path_of(value: Any, parameter: Any, folder: Path) -> str:
    """A value as a command takes it.

    Text stays as it is; an artefact becomes its path, if need be one in a passing folder.

    Raises:
        UsageError: it is neither a value nor anything that the command reads.
    """
    if isinstance(value, (str, int, float, os.PathLike)):  # before anything is imported
        return str(value)
    from adapt.core.counting.frequencies import Frequencies
    from adapt.core.partitioning.plans.plan import Plan
    from adapt.traces.counting.survey import Surveyed
    from adapt.traces.ingest.ingest import Ingested
    from adapt.traces.store.frequencies import write_frequencies
    from adapt.traces.store.manifest import Provenance
    from adapt.traces.store.plans import write_plan
    from adapt.traces.store.trace import Trace

    made = Provenance("import adapt", {}, [])
    number = len(list(folder.iterdir())) + 1
    match value:
        case Ingested():
            return str(value.trace.path)
        case Trace():
            return str(value.path)
        case Plan():
            write_plan(value, folder / f"plan-{number}.plan", made)
            return str(folder / f"plan-{number}.plan")
        case Frequencies() | Surveyed():
            counts = value if isinstance(value, Frequencies) else value.frequencies
            write_frequencies(counts, folder / f"keys-{number}.freq", made)
            return str(folder / f"keys-{number}.freq")
    if is_frame(value) and "COUNTS" in str(parameter.metavar):
        return path_of(counts_in(value), parameter, folder)
    if is_frame(value) and parameter.name == "sources":
        return frame_name(value)
    if is_frame(value):
        raise UsageError(f"{parameter.name}: make the {frame_name(value)} a trace first: adapt.ingest(frame, key=...)")
    raise UsageError(f"{parameter.name}: a {type(value).__name__} is neither a path, a frame nor a result of adapt")
