"""Results and data frames where commands take paths."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from adapt.core.errors import UsageError
from adapt.traces.sources.frames import frame_name, frame_reader, is_frame, is_spark_frame


def new_trace() -> Path:
    """A path for a trace that is removed when Python ends."""
    folder = tempfile.mkdtemp(prefix="adapt-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder) / "stream.trace"


def path_of(value: Any, parameter: Any, folder: Path) -> str:
    """A value as a command takes it.

    Text stays as it is; an artefact becomes its path, if need be one in a passing folder.

    Raises:
        UsageError: it is neither a value nor anything that the command reads.
    """
    if isinstance(value, (str, int, float, os.PathLike)):  # before anything is imported
        return str(value)
    from pyarrow.parquet import write_table

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
    if is_frame(value) and str(parameter.metavar).startswith("SOURCE"):
        return frame_name(value)
    if is_frame(value) and "COUNTS" in str(parameter.metavar):
        counts = value.toArrow() if is_spark_frame(value) else frame_reader(value).read_all()
        write_table(counts, folder / frame_name(value))
        return str(folder / frame_name(value))
    if is_frame(value):
        raise UsageError(f"{parameter.name}: make the {frame_name(value)} a trace first: adapt.ingest(frame, key=...)")
    raise UsageError(f"{parameter.name}: a {type(value).__name__} is neither a path, a frame nor a result of adapt")
