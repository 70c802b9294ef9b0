"""`adapt partition count`: the keys of a trace and its skew."""

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from adapt.cli.options.artefacts import TracePath
from adapt.cli.options.channels import check_channels
from adapt.cli.options.counting import WeightOption
from adapt.cli.options.groups import setting, short_help
from adapt.cli.options.loads import Loads
from adapt.cli.options.placement import EngineOption
from adapt.cli.options.result import Output
from adapt.cli.options.spark import RunnerOptions
from adapt.cli.terminal.command_line import command_line
from adapt.cli.terminal.narration import narrate_keys
from adapt.cli.terminal.output import Format, for_people, narrate_written, show, verdict_of
from adapt.cli.terminal.stages import stages
from adapt.core.counting.names import CountMethod
from adapt.core.engines.names import AnyScheme
from adapt.core.units.row_or_time_span import Length

if TYPE_CHECKING:
    from adapt.traces.counting.survey import Survey, Surveyed
    from adapt.traces.store.trace import Trace

COUNT_PANEL = "Counting"


class Over(StrEnum):
    """What counts are split by."""

    TIME = "time"
    STREAM = "stream"


@dataclass(frozen=True, slots=True)
class SurveyOptions:
    """What to count, and how."""

    weight: WeightOption = None
    keys: list[str] | None = setting(None, "Also show the count of this key; repeatable.", "KEY", "--key")
    measure: list[str] | None = setting(
        None, "Also sum count, cost or bytes per key, to build plans by; repeatable.", "COLUMN"
    )
    over: Over | None = setting(None, "Also show hot keys over time, or count each stream.")
    channels: int = setting(10, "Largest number of workers that the counts must support.", "N")
    method: CountMethod = setting(
        CountMethod.LOSSY,
        "Counting method: lossy (exact while keys are few), exact, or lossy over a sliding window.",
        panel=COUNT_PANEL,
    )
    epsilon: float | None = setting(
        None,
        "Largest undercount, as a share of the total (default: small enough for --channels).",
        "SHARE",
        panel=COUNT_PANEL,
    )
    window: str | None = setting(
        None,
        "Length of the sliding window; auto derives it from the number of distinct keys.",
        "1h|1000rows|auto",
        panel=COUNT_PANEL,
    )
    step: str | None = setting(
        None, "Step of --over time (default: 1/48 of the trace).", "1h|1000rows", panel=COUNT_PANEL
    )

    def survey(self, trace: "Trace", loads: Loads, engine: AnyScheme | None) -> "Survey":
        """What to measure of the trace."""
        from adapt.traces.counting.count import Counting
        from adapt.traces.counting.survey import Survey

        check_channels(self.channels)
        how = Counting(
            self.method if self.window is None else CountMethod.LOSSY,
            self.epsilon,
            self.channels,
            loads.weighed(),
            loads.max_pins,
            weight=self.weight,
        )
        if self.window is not None:
            how = replace(how.over_window(trace, self.window), method=self.method)
        return Survey(
            how,
            keys=tuple(self.keys or ()),
            over_time=self.over is Over.TIME,
            by_stream=self.over is Over.STREAM,
            step=None if self.step is None else Length.parse(self.step, "step"),
            measure=tuple(dict.fromkeys(name.strip() for each in self.measure or () for name in each.split(","))),
            engine=engine,
            max_imbalance=loads.max_imbalance,
        )


@short_help("out", "keys", "over", "channels", "engine", "method", "window", "all", "format", "force", "help")
def count(
    trace: TracePath,
    out: Path | None = setting(None, "Output: the counted keys.", "FREQ", "--out", "-o"),
    *,
    options: SurveyOptions,
    engine: EngineOption = None,  # type: ignore[assignment] # nothing is judged
    loads: Loads,
    output: Output,
    spark: RunnerOptions,
) -> "Surveyed":
    """Count the keys of a trace; with --engine, judge its skew.

    Exactly up to 2 million keys, else by lossy counting in bounded memory, with bounds for each count.

    Example: adapt partition count web.trace -o web.freq
    """
    from adapt.traces.counting.survey import survey
    from adapt.traces.store.atomic import check_folder_free
    from adapt.traces.store.frequencies import write_frequencies
    from adapt.traces.store.manifest import Provenance
    from adapt.traces.store.trace import open_trace

    if out is not None:
        check_folder_free(out, force=output.force)
    opened = open_trace(trace)
    asked = options.survey(opened, loads, engine)
    narrate_keys(trace, engine)
    with stages() as progress:
        found = survey(opened, asked, spark_options=spark.options(), progress=progress)
    if out is not None:
        of_trace = {name: each for name, each in opened.manifest.summary.items() if name in ("columns", "key_columns")}
        parameters = {**asked.counting.parameters(found.frequencies), "of_trace": of_trace}
        made = Provenance(command_line(), parameters, [opened.as_input], runner=found.runner.value)
        write_frequencies(
            found.frequencies, out, made, answer=found.answer, force=output.force, all_keys=found.all_keys
        )
        narrate_written(out)
    tables = [for_people(table, output.format) for table in (found.tables() if output.whole else found.first_tables())]
    lead = [] if found.answer is None else [verdict_of(found.answer.lead)]
    show(tables, output.format, found.as_data() if output.format is Format.JSON else None, lead=lead)
    return found
