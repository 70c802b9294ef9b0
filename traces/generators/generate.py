"""A trace generated from a synthetic stream."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from adapt.traces.generators.write import GeneratedStream, write_generated
from adapt.traces.ingest.ingest import Ingested
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.spark.session import Spark
from adapt.traces.store.manifest import Provenance
from adapt.traces.store.rejects import Rejects


class NamedStream(GeneratedStream, Protocol):
    """A synthetic stream that says how it is made."""

    @property
    def seed(self) -> int:
        """Of its random numbers."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The generator's name and all that decides the rows."""


def generate(
    stream: NamedStream,
    out: Path,
    *,
    force: bool = False,
    spark_options: Spark = None,
    command: str = "adapt.traces.generators.generate.generate",
    progress: Progress = silent,
) -> Ingested:
    """Make a trace of a synthetic stream, such as `zipf_stream(rows=1000)`.

    The rows depend on the stream alone, not on how many tasks or machines make them.

    Raises:
        EnvironmentFailure: `out` is taken or cannot be written, or there is no Java.
    """
    made = Provenance(command, stream.parameters, seed=stream.seed)
    trace = write_generated(stream, out, made, force=force, spark_options=spark_options, progress=progress)
    return Ingested(trace, Rejects(), ())
