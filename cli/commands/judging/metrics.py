"""`adapt verdict METRICS`: units, such as partitions, whose keys nobody counted."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adapt.cli.options.result import Output
from adapt.cli.options.source import RawOptions
from adapt.cli.terminal.narration import narrate_guesses
from adapt.cli.terminal.output import narrate_written, show, verdict_of
from adapt.core.errors import UsageError

if TYPE_CHECKING:
    from adapt.traces.units.judging import Asked, UnitsVerdict
    from adapt.traces.units.samples import Samples


def metrics_of(source: Sequence[Any], raw: RawOptions, labels: str) -> "Samples | None":
    """Samples of metrics by unit; None for rows and counts."""
    from adapt.traces.units.reading import units_of

    named = tuple(each.strip() for each in labels.split(",") if each.strip())
    one = source[0] if len(source) == 1 and isinstance(source[0], str) else ""
    samples = units_of(one, raw.count, named) if one else None
    if samples is None and raw.keys is not None:
        raise UsageError("--keys is for metrics by unit, which the source does not hold; omit it")
    return samples


def metrics_verdict(name: str, samples: "Samples", asked: "Asked", out: Path | None, output: Output) -> "UnitsVerdict":
    """Judge units, and keep their loads as counts."""
    from adapt.traces.units.judging import judge_units

    found = judge_units(name, samples, asked)
    narrate_guesses(found.series.notes)
    if out is not None:
        from adapt.traces.store.atomic import write_whole
        from adapt.traces.store.tables import packed

        write_whole(out, packed(found.series.table()), force=output.force)
        narrate_written(out)
    lead = [verdict_of(found.said)]
    show(found.displayed(every=output.all), output.format, found.as_data(), lead=lead, code=found.code)
    return found
