"""The best other key, where a key cannot be balanced whole."""

from collections.abc import Sequence
from dataclasses import replace
from shlex import quote
from typing import Any

from adapt.core.engines.names import AnyScheme, Engine
from adapt.core.verdict.first_screen import which_key_command
from adapt.core.verdict.remedies import Way
from adapt.core.verdict.verdict import Verdict
from adapt.traces.locations.location import TOPIC_SCHEME, location
from adapt.traces.series import traces_of
from adapt.traces.spark.progress import Progress
from adapt.traces.spark.session import Spark
from adapt.traces.store.trace import Trace
from adapt.traces.which_key import AUTO, Question, columns_of, judged_beside, of_another_key

AS_WHICH_KEY = {"key", "time", "max_rejects", "keep", "cost", "cost_unit", "bytes_"}
"""Options with which `advise which-key` reads a source as this command does."""


def by_another_key(
    verdict: Verdict,
    trace: Trace,
    source: Sequence[Any],
    engine: AnyScheme,
    time: str,
    spark: Spark,
    progress: Progress,
) -> Verdict:
    """The verdict with the best other key.

    Args:
        source: What the trace was made from; empty if `advise which-key` does not read it alike.
    """
    paths = [each for each in source if isinstance(each, str)]
    if paths and (paths[0].startswith(TOPIC_SCHEME) or all(map(traces_of, map(location, paths)))):
        source, paths = (), []
    is_raw = bool(paths) and len(columns_of(trace)) == 1
    command = which_key_command(verdict, " ".join(map(quote, paths if is_raw else [str(trace.path)])))
    command += f" --time {quote(time)}" if is_raw and time else ""
    judged = None
    if isinstance(engine, Engine):
        question = Question(AUTO, (), engine, verdict.channels, time)
        judged = judged_beside(trace, source, question, spark, progress)
    remedies = []
    for each in verdict.remedies:
        if each.way is Way.KEY:
            each = replace(each, command=command)
            each = each if judged is None else of_another_key(each, judged, verdict.judged[0])
        remedies.append(each)
    return replace(verdict, remedies=tuple(remedies))
