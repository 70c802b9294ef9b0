"""`adapt partition count`: the keys of a trace and its skew."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from adapt.cli.options.artefacts import TracePath
from adapt.cli.options.channels import check_channels
from adapt.cli.options.counting import WeightOption
from adapt.cli.options.groups import setting
from adapt.cli.options.loads import Loads
from adapt.cli.options.placement import EngineOption
from adapt.cli.options.result import Output
from adapt.cli.options.spark import Spark
from adapt.cli.terminal.command_line import command_line
from adapt.cli.terminal.output import for_people, narrate_written, show, verdict_of
from adapt.cli.terminal.stages import stages
from adapt.core.counting.names import CountMethod
from adapt.core.engines.names import AnyScheme, Engine
from adapt.core.units.row_or_time_span import Length

if TYPE_CHECKING:
    from adapt.core.counting.sliding import SlidingWindow
    from adapt.traces.counting.survey import Survey

COUNT_PANEL = "How keys are counted"


class Over(StrEnum):
    """What counts may be split by."""

    TIME = "time"
    STREAM = "stream"


@dataclass(frozen=True, slots=True)
class SurveyOptions:
    """What is counted, and how."""

    weight: WeightOption = None
    keys: list[str] | None = setting(None, "Show this key's interval too; repeatable.", "KEY", "--key")
    measure: list[str] | None = setting(
        None, "Add up count, cost or bytes for the listed keys too, to build plans by; repeatable.", "COLUMN"
    )
    over: Over | None = setting(None, "Also show hot keys over time, or count stream by stream.")
    channels: int = setting(10, "The most channels that the counts are to serve.", "N")
    method: CountMethod = setting(CountMethod.LOSSY, "How to count.", panel=COUNT_PANEL)
    epsilon: float | None = setting(
        None,
        "Most that a count may be too low, as a share of the total; 0.1 delta if left out.",
        "E",
        panel=COUNT_PANEL,
    )
    support: float | None = setting(
        None, "List only keys that may have this share; over time, hot from it on.", "S", panel=COUNT_PANEL
    )
    window: str | None = setting(None, "What a sliding counter holds.", "1h|1000rows", panel=COUNT_PANEL)
    counters: int = setting(
        3, "Staggered counters of a sliding window, which holds up to 1/(X-1) more.", "X", panel=COUNT_PANEL
    )
    pane: str | None = setting(None, "Step of time for --over time.", "1h|1000rows", panel=COUNT_PANEL)

    def survey(self, loads: Loads, engine: AnyScheme) -> "Survey":
        """What is asked of a trace.

        Raises:
            UsageError: an option is out of its range, or does not go with another.
        """
        from adapt.traces.counting.count import Counting
        from adapt.traces.counting.survey import Survey

        check_channels(self.channels)
        return Survey(
            Counting(
                self.method,
                self.epsilon,
                self.channels,
                loads.weighed(),
                loads.max_pins,
                self.support,
                self._window(),
                self.weight,
            ),
            keys=tuple(self.keys or ()),
            over_time=self.over is Over.TIME,
            by_stream=self.over is Over.STREAM,
            pane=None if self.pane is None else Length.parse(self.pane, "pane"),
            measure=tuple(dict.fromkeys(name.strip() for each in self.measure or () for name in each.split(","))),
            engine=engine,
            max_imbalance=loads.max_imbalance,
        )

    def _window(self) -> "SlidingWindow | None":
        from adapt.core.counting.sliding import SlidingWindow

        return None if self.window is None else SlidingWindow(Length.parse(self.window, "window"), self.counters)


def count(
    trace: TracePath,
    out: Path | None = setting(None, "Where to keep the counts.", "FREQ", "--out", "-o"),
    *,
    options: SurveyOptions,
    engine: EngineOption = Engine.SPARK,
    loads: Loads,
    output: Output,
    spark: Spark,
) -> None:
    """Count the keys of a trace, and judge its skew.

    Lossy counting keeps the heavy keys, each within an interval, in little memory whatever the trace.

    Example: adapt partition count web.trace -o web.freq
    """
    from adapt.traces.counting.survey import survey
    from adapt.traces.store.atomic import check_folder_free
    from adapt.traces.store.frequencies import write_frequencies
    from adapt.traces.store.manifest import Provenance
    from adapt.traces.store.trace import open_trace

    asked = options.survey(loads, engine)
    if out is not None:
        check_folder_free(out, force=output.force)
    opened = open_trace(trace)
    with stages() as progress:
        found = survey(opened, asked, spark_options=spark.options(), progress=progress)
    if out is not None:
        source = {"name": trace.name, "content_hash": opened.manifest.content_hash}
        made = Provenance(command_line(), asked.counting.parameters(found.frequencies), [source])
        write_frequencies(found.frequencies, out, made, answer=found.answer, force=output.force)
        narrate_written(out)
    tables = [for_people(table, output.format) for table in (found.tables() if output.whole else found.first_tables())]
    show(tables, output.format, found.as_data(), lead=[verdict_of(found.answer.lead)])
