"""`adapt generate`: make a synthetic trace."""

from typing import TYPE_CHECKING, Annotated

import typer

from adapt.cli.options.generator import GeneratorOptions
from adapt.cli.options.groups import short_help
from adapt.cli.options.result import TraceOutput
from adapt.cli.options.spark import RunnerOptions
from adapt.cli.terminal.command_line import command_line
from adapt.cli.terminal.stages import stages
from adapt.traces.generators.names import GeneratorName

if TYPE_CHECKING:
    from adapt.traces.ingest.ingest import Ingested


@short_help(*("out", "rows", "keys", "exponent", "rate", "cost", "bytes_", "bursts", "drift", "seed", "help"))
def generate(
    name: Annotated[
        GeneratorName,
        typer.Argument(metavar="NAME", help="Generator: zipf, self-similar, packets, calls, clicks or sales."),
    ],
    output: TraceOutput,
    generator: GeneratorOptions,
    spark: RunnerOptions,
) -> "Ingested":
    """Make a synthetic trace, the same for the same options and seed.

    zipf and self-similar draw independent keys; packets burst at every time scale; calls are between mobile phones,
    some of them cloned; clicks are user sessions in a web shop; sales are lines of shop tickets. A generator refuses
    options that it does not take.

    Example: adapt generate zipf --rows 1000000 --exponent 1.2 -o zipf.trace
    """
    from adapt.traces.generators.write import generate as generate_trace

    options, stream = spark.options(), generator.stream(name)
    with stages() as progress:
        made = generate_trace(
            stream,
            output.out,
            force=output.force,
            spark_options=options,
            command=command_line(),
            progress=progress,
        )
    output.show(made)
    return made
