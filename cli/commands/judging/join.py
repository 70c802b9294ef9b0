"""`adapt verdict --join-with`: a join of two inputs in Spark."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from adapt.cli.options.channels import check_channels
from adapt.cli.options.source import RawOptions
from adapt.cli.options.spark import RunnerOptions
from adapt.cli.terminal.output import Format, show, verdict_of
from adapt.cli.terminal.stages import stages
from adapt.core.errors import UsageError
from adapt.core.joins.adaptive import PARTITIONS, Adaptive
from adapt.core.joins.answer import JoinVerdict
from adapt.core.joins.loads import join_of
from adapt.core.joins.remedies import Judged
from adapt.traces.counting.join_sides import SideOptions, side_of
from adapt.traces.ingest.rejects import MaxRejects
from adapt.traces.sources.frames import Query, is_frame

NOT_OF_JOINS = ("current", "max_migration", "max_pins", "mergeable", "keys", "all", "force", "out")
"""Options without effect on a join, besides those of columns."""


def join_verdict(
    source: Sequence[Any],
    key: str,
    raw: RawOptions,
    channels: int | None,
    max_imbalance: float,
    spark: RunnerOptions,
    format: Format,
) -> JoinVerdict:
    """Count both inputs by key, and compare remedies."""
    session, other = spark.options(), cast(Any, raw.join_with)  # a frame comes in a list
    text = session.conf.get(PARTITIONS, "200")
    if channels is None and not text.isdecimal():
        raise UsageError(f"--spark-conf {PARTITIONS} must be a whole number (got {text!r})")
    partitions, settings = channels or int(text), Adaptive.from_conf(session.conf)
    check_channels(partitions)
    others: list[Any] = [*other] if isinstance(other, list) else [other]
    if isinstance(source[0], Query) and not is_frame(others[0]):
        others = [Query(others[0])]
    mine = SideOptions("--key", key, raw.source_format, raw.count, MaxRejects.parse(raw.max_rejects), session)
    theirs = replace(mine, option="--right-key", key=raw.right_key) if raw.right_key else mine
    with stages() as progress:
        left, right = side_of(source, mine, progress), side_of(others, theirs, progress)
    if left.name == right.name:
        left, right = replace(left, name=f"left {left.name}"), replace(right, name=f"right {right.name}")
    judged = Judged(join_of(left, right), partitions, max_imbalance, settings)
    found = JoinVerdict(judged, is_default=channels is None and PARTITIONS not in session.conf)
    show(found.displayed(), format, found.as_data(), lead=[verdict_of(found.said)], code=found.pasted)
    return found
