"""First screen of a page: status, numbers, action, next command."""

from dataclasses import dataclass
from enum import StrEnum
from shlex import quote

import numpy as np

from adapt.core.phrases import counted, percent
from adapt.core.table import Cell, Column, Kind
from adapt.core.values import duration, human
from adapt.core.verdict.answer import Answer
from adapt.core.verdict.first_screen import Status, engine_option, next_command, status_of
from adapt.core.verdict.verdict import Verdict
from adapt.core.verdict.verdict_class import VerdictClass


class Tone(StrEnum):
    """Color and sign of a status, or of a number."""

    GOOD = "good"
    ACT = "act"
    BAD = "bad"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Number:
    """A large number, with its name and what it was measured on."""

    name: str
    value: str
    note: str
    tone: Tone = Tone.UNKNOWN


@dataclass(frozen=True, slots=True)
class FirstScreen:
    """What a page shows before its evidence."""

    tone: Tone
    status: str  # the action in a few words; its sign has the color of `tone`
    about: str  # what was judged
    numbers: tuple[Number, ...]  # imbalance today and after, and state to move
    sentence: str  # whether the limit is met
    command: str  # the next command to type


def first_screen(answer: Answer, trace: str, plan: str = "") -> FirstScreen | None:
    """The first screen of a verdict; None without load.

    Args:
        trace: Path of the trace that was judged.
        plan: Path of the plan that the verdict recommends, if it was written.
    """
    verdict = answer.verdict
    if verdict is None:
        return None
    tested = verdict.out_of_sample
    windows = "" if tested is None else f", tested in {counted(len(tested.rows), 'later window')}"
    return FirstScreen(
        _tone(verdict),
        verdict.action,
        f"{counted(verdict.channels, 'worker')}, keys placed by {verdict.engine},"
        f" limit {verdict.max_imbalance:g}{windows}",
        _numbers(verdict),
        f"{verdict.met[0].upper()}{verdict.met[1:]}.",
        _command(verdict, quote(trace), quote(plan) if plan else ""),
    )


def _tone(verdict: Verdict) -> Tone:
    match status_of(verdict):
        case Status.FINE:
            return Tone.GOOD
        case Status.UNCERTAIN:
            return Tone.UNKNOWN
        case Status.ACT:
            return Tone.BAD if verdict.pins_nothing else Tone.ACT


def _numbers(verdict: Verdict) -> tuple[Number, ...]:
    """Imbalance today and after, and state to move."""
    tested, ratio = verdict.out_of_sample, Column("", Kind.RATIO)
    floor = verdict.best_possible if tested is None else float(np.median(tested.floors))
    best = f"best possible: {human(floor, ratio)}"
    before = verdict.imbalance if tested is None else tested.today.median
    on = "all rows (in-sample)" if tested is None else f"{len(tested.rows)} later windows, median"

    def imbalance(name: str, cell: Cell, note: str) -> Number:
        is_within = isinstance(cell, float) and cell <= verdict.max_imbalance
        return Number(name, human(cell, ratio), note, Tone.GOOD if is_within else Tone.BAD)

    today = imbalance("Imbalance today", before, f"busiest / mean load; {on}")
    if verdict.pins_nothing:
        none = Number("State to move", percent(0.0), "nothing moves")
        return today, imbalance("Best possible", floor, f"while keys stay whole; {on}"), none
    moved = f"of all state: {counted(verdict.keys_of_plan, 'key')}"
    if verdict.verdict_class is VerdictClass.REBUILDING and tested is not None:
        moved += f"; then {percent(tested.plan.state_to_move)} every {duration(tested.window_us / 1e6)}"
    return (
        today,
        imbalance(
            "Imbalance after",
            verdict.judged[0],
            f"same rows; {best}",
        ),
        Number("State to move", percent(verdict.state_to_move or 0.0), moved),
    )


def _command(verdict: Verdict, trace: str, plan: str) -> str:
    """The next command; the page is the report, so it is not the next one."""
    judged = f"{trace}{engine_option(verdict)} --channels {verdict.channels}"
    if verdict.verdict_class is VerdictClass.BALANCED:
        return f'adapt check {judged} --limit "imbalance <= {verdict.max_imbalance:g}"'
    if not verdict.pins_nothing and not plan:
        return f"adapt verdict {judged} --max-imbalance {verdict.max_imbalance:g}"
    return next_command(verdict, trace, plan, verdict.channels)
