"""Write a synthetic stream as a trace."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from adapt.core.reading import Rejects
from adapt.traces.generators.write import GeneratedStream, write_generated
from adapt.traces.ingest.ingest import Ingested
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.spark.session import Spark
from adapt.traces.store.manifest import Provenance


class NamedStream(GeneratedStream, Protocol):
    """A synthetic stream with its seed and parameters."""

    @property
    def seed(self) -> int:
        """Random seed."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Name of the generator, and all parameters that determine the rows."""


def generate(
    stream: NamedStream,
    out: Path,
    *,
    force: bool = False,
    spark_options: Spark = None,
    command: str = "adapt.traces.generators.generate.generate",
    progress: Progress = silent,
) -> Ingested:
    """Write a synthetic stream, such as `zipf_stream(rows=1000)`, as a trace.

    The rows depend only on the stream, not on the number of tasks or machines.
    """
    made = Provenance(command, stream.parameters, seed=stream.seed)
    trace = write_generated(stream, out, made, force=force, spark_options=spark_options, progress=progress)
    return Ingested(trace, Rejects(), ())
