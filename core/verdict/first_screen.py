"""A verdict on one screen: action, evidence, hot keys, next command."""

from collections.abc import Sequence
from enum import StrEnum
from glob import has_magic
from shlex import quote

import numpy as np

from adapt.core.engines.names import SCHEMES_BY_NAME, Engine, Target
from adapt.core.lint.finding import Finding, Severity
from adapt.core.out_of_sample.outcome import LEVEL
from adapt.core.phrases import percent
from adapt.core.table import Table
from adapt.core.values import duration
from adapt.core.verdict.answer import Answer
from adapt.core.verdict.hot_keys import keys_said, keys_table
from adapt.core.verdict.remedies import Way, remedies_table, unified_sentence
from adapt.core.verdict.verdict import Verdict
from adapt.core.verdict.verdict_class import VerdictClass

TOUCHING = frozenset(
    {
        "drift",
        "turnover",
        "source-order",
        "granularity",
        "clocks",
        "few-rows",
        "short-span",
        "record-sample",
        "schema-ids",
    }
)
"""Lint rules whose findings make a verdict less certain."""

_MOST_KEYS = 3
_MOST_FINDINGS = 2


class Status(StrEnum):
    """What a verdict asks for, in a word."""

    FINE = "fine"
    """Nothing to do."""
    ACT = "act"
    """The imbalance is above the limit, and something helps."""
    UNCERTAIN = "uncertain"
    """Nobody can tell yet."""


def status_of(verdict: Verdict | None) -> Status:
    """The status of a verdict; fine without load."""
    if verdict is None or verdict.verdict_class is VerdictClass.BALANCED:
        return Status.FINE
    return Status.UNCERTAIN if verdict.verdict_class is VerdictClass.UNKNOWN else Status.ACT


def first_lines(answer: Answer, findings: Sequence[Finding]) -> list[str]:
    """Headline, cost, confidence, and what lint found that touches the verdict."""
    verdict = answer.verdict
    if verdict is None:
        return answer.lead
    is_uneven = verdict.verdict_class is not VerdictClass.BALANCED
    audit = answer.audit
    is_mixed = audit is not None and len(audit.producers) > 1
    first = [audit.sentence, unified_sentence(verdict.remedies)] if audit is not None and is_mixed else []
    return [
        verdict.headline,
        *filter(None, first),
        *([] if verdict.pins_nothing else [f"{_cost(verdict)}{keys_said(verdict.moved_keys, verdict.keys_of_plan)}"]),
        *(verdict.sentences[:1] if verdict.few_rows is not None or verdict.busy_keys < verdict.channels else []),
        *([] if (split := verdict.if_mergeable) is None else [split]),
        *verdict.by_another_key,
        *([] if verdict.busiest is None or not is_uneven else [verdict.busiest.sentence]),
        _sure(verdict),
        *(each for each in answer.caveats if each not in first),
        *(f"Less certain: {finding.evidence}" for finding in touching(findings)[:_MOST_FINDINGS]),
    ]


def touching(findings: Sequence[Finding]) -> list[Finding]:
    """The findings that make a verdict less certain."""
    return [finding for finding in findings if finding.id in TOUCHING and finding.severity is not Severity.NOTE]


def first_tables(answer: Answer, note: str, *, every: bool = False) -> list[Table]:
    """The remedies, and where nothing is to be done the hottest keys.

    Args:
        every: Whether remedies that nobody judged are shown, and the keys of the plan.
    """
    verdict = answer.verdict
    if verdict is None:
        return [hot_keys_table(answer, note)]
    if every and verdict.moved_keys:
        return [evidence_table(verdict, every=True), keys_table(verdict.moved_keys, verdict.keys_of_plan, note)]
    if verdict.verdict_class is VerdictClass.BALANCED or verdict.few_rows is not None or every:
        return [evidence_table(verdict, every=every), hot_keys_table(answer, note)]
    return [evidence_table(verdict, note)]


def evidence_table(verdict: Verdict, note: str = "", *, every: bool = False) -> Table:
    """The remedies."""
    tested = verdict.out_of_sample
    later = None if tested is None else float(np.median(tested.floors))
    names_key = every or verdict.verdict_class is VerdictClass.ANOTHER_KEY
    shown = [each for each in verdict.remedies if names_key or each.key or each.way is not Way.KEY]
    return remedies_table(shown, 0 if tested is None else len(tested.rows), (verdict.best_possible, later), note)


def hot_keys_table(answer: Answer, note: str) -> Table:
    """The hottest keys with bounds on their counts."""
    table = answer.hot_keys.table()
    kept = ("key", "count_low", "count_high", "share")
    columns = [column for column in table.columns if column.name in kept]
    rows = [[row[name] for name in kept] for row in table.records()[:_MOST_KEYS]]
    return Table.from_rows("Hot keys", columns, rows, note)


def next_command(verdict: Verdict | None, trace: str, plan: str, channels: int, read: str = "") -> str:
    """The next command to type; a glob of traces in quotes.

    Args:
        read: Options by which counts were read.
    """
    stem = (
        (plan if has_magic(trace) or "," in trace else trace).removesuffix(".recommended.plan").removesuffix(".trace")
    )
    trace = quote(trace)
    match None if verdict is None else verdict.verdict_class:
        case _ if verdict is not None and not verdict.pins_nothing:
            to = _target(verdict)
            return f"adapt partition export {plan} --to {to} -o {stem}.{to}"
        case VerdictClass.SPLITTING if verdict is not None and not verdict.mergeable:
            return f"adapt verdict {trace}{read}{engine_option(verdict)} --channels {channels} --mergeable"
        case VerdictClass.ANOTHER_KEY if verdict is not None and (command := _which_key(verdict, trace)):
            return command
        case VerdictClass.SPLITTING | VerdictClass.ANOTHER_KEY | VerdictClass.PINNING:
            engine = engine_option(verdict) if verdict is not None and verdict.engine in list(Engine) else ""
            return f"adapt advise salts {trace}{engine} --parallelism {channels}"
        case VerdictClass.UNKNOWN:
            return f"adapt lint {trace}"
        case _:
            return f"adapt report {trace} --html {stem}.html"


def _which_key(verdict: Verdict, trace: str) -> str:
    """The command that judges other keys; empty for counts, which have no other columns."""
    command = next((each.command for each in verdict.remedies if each.way is Way.KEY), "")
    is_trace = trace.strip("'").endswith(".trace")
    return command or (which_key_command(verdict, trace) if is_trace else "")


def which_key_command(verdict: Verdict, source: str) -> str:
    """The command that judges the columns of a source, as typed."""
    engine = engine_option(verdict) if verdict.engine in list(Engine) else ""
    return f"adapt advise which-key {source}{engine} --channels {verdict.channels}"


def engine_option(verdict: Verdict) -> str:
    """The option for the judged engine.

    Empty for a plan, and for the partitions of a topic.
    """
    return f" --engine {verdict.engine}" if verdict.engine in SCHEMES_BY_NAME else ""


def _target(verdict: Verdict) -> Target:
    """What a plan is exported to; where keys are split, or a job has savepoints, other keys that lie as planned."""
    target = Engine(verdict.engine).target if verdict.engine in list(Engine) else Target.PLAN
    return Target.REKEY if verdict.splits_of_plan or target is Target.FLINK else target


def _cost(verdict: Verdict) -> str:
    moves = f"It moves {percent(verdict.state_to_move or 0.0)} of the state"
    tested = verdict.out_of_sample
    if tested is not None and verdict.verdict_class is VerdictClass.REBUILDING:
        every = duration(tested.window_us / 1e6)
        return f"{moves}, and {percent(tested.plan.state_to_move)} in each rebuild, every {every}."
    return f"{moves}."


def _sure(verdict: Verdict) -> str:
    """How certain the verdict is, and when it flips."""
    tested, sampled = verdict.out_of_sample, "" if verdict.sampled is None else f" {verdict.sampled.sentence}"
    if tested is None:
        return f"In-sample only: rows are too few for windows, or have no times. Change is not tested.{sampled}"
    low, high = tested.next_window
    span = f", about {duration(tested.window_us / 1e6)}" if tested.window_us else ""
    return (
        f"Next window ({tested.rows[-1]:,} rows{span}): imbalance {low:.3f} to {high:.3f} at {percent(LEVEL)}"
        f" confidence.{sampled}"
    )
