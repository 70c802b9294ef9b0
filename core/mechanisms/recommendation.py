"""Recommendation for a stream from the outcomes of its scenarios."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from adapt.core.mechanisms.scenarios import BASELINE, Scenario, Static
from adapt.core.phrases import percent
from adapt.core.stage.engine.series import Interval
from adapt.core.stage.input.offered_load import OwnRate
from adapt.core.stage.outcome import CALM, CHEAP, SHED, late_by
from adapt.core.table import Cell
from adapt.core.values import duration, size

GROWTH = 0.005
"""How much longer rows may wait in the second half of a stream, over its length."""

PRECISE = 0.01
"""Relative precision of the rate found."""

_STEP = 1.5
_WIDEST = 64.0


@dataclass(frozen=True, slots=True)
class Sustained:
    """The sustainable speed-up of a scenario."""

    # the highest sustained speed-up, up to about 64 times the first one tried; None if not even a 64th of that is
    # sustained
    speedup: float | None
    probes: int  # number of speed-ups tried


def is_sustained(intervals: Sequence[Interval], last_s: float) -> bool:
    """Whether lag stays bounded.

    Rows must wait no longer in the second half of the input than in the first.

    The tolerance is 0.5% of the input's length. If a steady stream is too fast by a fraction e, its lag grows by e per
    second, so the rate found is at most 1% too high. A mechanism that needs time to act may fall behind at
    first, but not forever. A scenario that sheds sustains a rate if it drops at most 1% of the rows.

    Args:
        intervals: Measurements of the stage at least until the last row arrived.
        last_s: When the last row arrived.
    """
    due = [one for one in intervals if one.start_s < last_s]
    first = [_longest_wait_s(one) for one in due if one.end_s <= last_s / 2]
    second = [_longest_wait_s(one) for one in due if one.end_s > last_s / 2]
    shed = sum(one.shed for one in due)
    done = sum(one.processed for one in due)
    grows = max(second, default=0.0) - max(first, default=0.0) > GROWTH * last_s
    return not grows and shed <= SHED * (shed + done)


def _longest_wait_s(one: Interval) -> float:
    """The longest latency of a row, or wait before a worker took it, if longer."""
    return max(one.total.max_s, one.waited_s)


def largest_sustained(sustains: Callable[[float], bool], start: float) -> Sustained:
    """Find the highest sustained speed-up, within 1%.

    If a speed-up is sustained, lower ones are assumed to be sustained too.

    Args:
        sustains: Whether a speed-up is sustained.
        start: The first speed-up to try, above 0.
    """
    probes = 1
    low = high = start
    if sustains(start):
        while high <= _WIDEST * start:
            low, high = high, high * _STEP
            probes += 1
            if not sustains(high):
                break
        else:
            return Sustained(high, probes)
    else:
        while low >= start / _WIDEST:
            low, high = low / _STEP, low
            probes += 1
            if sustains(low):
                break
        else:
            return Sustained(None, probes)
    while high / low > 1 + PRECISE:
        probes += 1
        middle = (low * high) ** 0.5
        low, high = (middle, high) if sustains(middle) else (low, middle)
    return Sustained(low, probes)


@dataclass(frozen=True, slots=True)
class Frame:
    """Stream and stage that the compared scenarios share."""

    rows: int
    channels: int  # N
    pool: int  # the maximum number of workers
    speedup: float  # trace seconds per second of the stage
    offered: float  # load of the busiest channel of static-uniform over its capacity
    work: float  # average number of workers that the rows keep busy
    last_s: float  # when the last row arrives
    top_share: float  # share of the rows of the hottest key, lower bound
    own: OwnRate | None = None  # what the stream needs at its own rate; None if it has none

    @property
    def peak(self) -> float:
        """Workers kept busy in the busiest hundredth; 0 if unknown."""
        return 0.0 if self.own is None else self.own.peak * self.speedup

    @property
    def need(self) -> str:
        """The need at the stream's own rate, if it has one."""
        whose = f"the busiest of {self.channels} workers of {BASELINE}"
        return "" if self.own is None else self.own.sentence(self.speedup, self.offered, whose)


@dataclass(frozen=True, slots=True)
class Advice:
    """A recommendation."""

    scenario: str | None  # the recommended scenario; None if none helps
    sentence: str  # the action, then its evidence


def advice_of(records: Sequence[Mapping[str, Cell]], scenarios: Mapping[str, Scenario], frame: Frame) -> Advice:
    """Recommend a scenario for a stream.

    Of the scenarios that keep up, the cheapest ones; of these the fastest, or a simpler one that is about as fast. A
    scenario keeps up if it finishes with the stream, drops at most 1% of the rows, and has a low p99. One that drops
    rows is recommended only where none that drops nothing keeps up, and with what it loses.

    Args:
        records: Outcomes, `BASELINE` first.
    """
    uniform = records[0]
    keep_up = [record for record in records if keeps_up(record, frame)]
    if uniform in keep_up:
        return _nothing_to_do(uniform, keep_up)
    if keep_up:
        taken = _best(_lossless(keep_up) or keep_up, scenarios, cost_first=True)
        return Advice(
            str(taken["scenario"]),
            f"Use {taken['scenario']}: {_p99(taken)} instead of {_p99(uniform, short=True)} with static-uniform,"
            f" {_costs(taken, uniform)}{_effort(taken)}{_unless(taken, keep_up)}.",
        )
    return _none(records, scenarios, frame)


def point_of(record: Mapping[str, Cell]) -> tuple[float, float, float]:
    """Cost, latency and drop rate; less is better."""
    p99 = record["latency_p99"]
    return (real(record["worker_time"]), float("inf") if p99 is None else real(p99), real(record["drop_rate"]))


def is_dominated(one: tuple[float, ...], others: Iterable[tuple[float, ...]]) -> bool:
    """Whether another point is nowhere worse and differs."""
    return any(all(a <= b for a, b in zip(other, one, strict=True)) and other != one for other in others)


def _nothing_to_do(uniform: Mapping[str, Cell], keep_up: Sequence[Mapping[str, Cell]]) -> Advice:
    cheaper = min(_lossless(keep_up), key=lambda record: (real(record["worker_time"]), real(record["latency_p99"])))
    sentence = f"Nothing to do: static-uniform keeps up, {_p99(uniform)}"
    if real(cheaper["worker_time"]) * CHEAP < real(uniform["worker_time"]):
        sentence += (
            f"; {cheaper['scenario']} would only save worker time ({_hours(cheaper, short=True)} instead of"
            f" {_hours(uniform, short=True)}, p99 {_p99(cheaper, short=True)})"
        )
    else:
        sentence += _unless(uniform, _lossless(keep_up))
    return Advice(BASELINE, f"{sentence}.")


def _none(records: Sequence[Mapping[str, Cell]], scenarios: Mapping[str, Scenario], frame: Frame) -> Advice:
    """No scenario keeps up: the closest without drops, without splitting keys, and with drops."""
    uniform = records[0]
    of_one = frame.top_share * frame.work
    if of_one > 1:
        why = f"the hottest key alone needs {of_one:.2f} workers"
    elif frame.work > frame.channels:
        why = f"the rows need {frame.work:.1f} workers on average, more in bursts, and there are {frame.channels}"
    elif frame.peak > frame.channels:
        why = (
            f"the rows need {frame.peak:.1f} workers in the busiest hundredth of the stream and {frame.work:.1f} on"
            f" average, and there are {frame.channels}"
        )
    else:
        why = f"rows come in bursts, though they keep only {frame.work:.1f} workers busy on average"
    lossless = _lossless(records)
    whole = [record for record in lossless if scenarios[str(record["scenario"])].split is None]
    closest = _best(lossless, scenarios, cost_first=False)
    helps = real(closest["latency_p99"]) * CALM < real(uniform["latency_p99"])
    if helps:
        sentence = (
            f"Use {closest['scenario']}: {_p99(closest)} instead of {_p99(uniform, short=True)} with static-uniform,"
            f" {_costs(closest, uniform)}{_effort(closest)}"
        )
        without = _best(whole, scenarios, cost_first=False)
        if closest not in whole and without is not uniform:
            sentence += (
                f"; without splitting keys, the best is {without['scenario']} ({_p99(without)}, {_hours(without)})"
            )
    else:
        sentence = f"No scenario helps: none is faster than static-uniform, {_p99(uniform)}"
    lossy = [record for record in records if record not in lossless]
    if lossy := [record for record in lossy if real(record["latency_p99"]) * CALM < real(closest["latency_p99"])]:
        least = min(lossy, key=_loss)
        drops = f"{least['scenario']} drops {_dropped(least)} of them, {_p99(least)}{_sends(least)}"
        sentence += f"; if rows may be dropped, {drops}"
    return Advice(
        str(closest["scenario"]) if helps else None, f"{sentence}; no scenario keeps up with all rows: {why}."
    )


def ranking(
    records: Sequence[Mapping[str, Cell]], scenarios: Mapping[str, Scenario], frame: Frame
) -> list[Mapping[str, Cell]]:
    """Records from the best to the worst, by the rule."""
    groups: dict[tuple[bool, bool], list[Mapping[str, Cell]]] = {}
    for record in records:
        groups.setdefault((not keeps_up(record, frame), bool(real(record["drop_rate"]))), []).append(record)
    ranked = []
    for (is_late, _), left in sorted(groups.items()):
        while left:
            ranked.append(_best(left, scenarios, cost_first=not is_late))
            left.remove(ranked[-1])
    return ranked


def keeps_up(record: Mapping[str, Cell], frame: Frame) -> bool:
    """Whether a scenario finishes in time with few drops and low p99."""
    return lateness(record, frame.last_s) <= 1 and real(record["drop_rate"]) <= SHED


def lateness(record: Mapping[str, Cell], last_s: float) -> float:
    """`late_by` of a scenario, which keeps up until 1."""
    drain_s, p99_s = (None if record[name] is None else real(record[name]) for name in ("drain", "latency_p99"))
    return late_by(drain_s, p99_s, last_s)


def _lossless(records: Sequence[Mapping[str, Cell]]) -> list[Mapping[str, Cell]]:
    """Those that drop no row; what drops rows is cheaper and faster for that alone."""
    return [record for record in records if not real(record["drop_rate"])]


def _best(
    records: Sequence[Mapping[str, Cell]], scenarios: Mapping[str, Scenario], *, cost_first: bool
) -> Mapping[str, Cell]:
    """The simplest of the cheapest and, among these, fastest scenarios, or the other way round."""
    by = (("worker_time", CHEAP), ("latency_p99", CALM))
    left = list(records)
    for name, ratio in by if cost_first else reversed(by):
        least = min(real(record[name]) for record in left)
        left = [record for record in left if real(record[name]) <= ratio * least]
    return min(left, key=lambda record: (_effort_of(scenarios[str(record["scenario"])]), real(record["latency_p99"])))


def _effort_of(scenario: Scenario) -> int:
    """Effort of a scenario: placement, migration, scaling, split keys, drops."""
    return (
        (scenario.plan is not Static.UNIFORM)
        + 2 * scenario.rebuilds
        + 3 * (scenario.flux is not None)
        + 4 * (scenario.elastic is not None)
        + 5 * (scenario.split is not None)
        + 10 * (scenario.sheds or scenario.drops is not None)
    )


def _unless(taken: Mapping[str, Cell], keep_up: Sequence[Mapping[str, Cell]]) -> str:
    """A much faster scenario and its cost, if there is one."""
    fastest = min(keep_up, key=lambda record: (real(record["latency_p99"]), real(record["worker_time"])))
    if real(fastest["latency_p99"]) * 2 > real(taken["latency_p99"]):
        return ""
    loss = f" and {_dropped(fastest)} of the rows dropped" if real(fastest["drop_rate"]) else ""
    return f"; {fastest['scenario']} is faster, {_p99(fastest)} for {_hours(fastest)}{loss}"


def _effort(record: Mapping[str, Cell]) -> str:
    """Drops, rescales, state moved and merge messages of a scenario."""
    moved, restarts, merges = (record[name] for name in ("state_moved_bytes", "rescales", "merge_tuples"))
    effort = [f"it drops {_dropped(record)} of the rows{_sends(record)}"] if real(record["drop_rate"]) else []
    if restarts:
        moves = f" and moves {size(real(moved))} of state" if real(moved) else ""
        effort.append(f"it rescales or rebuilds {'once' if restarts == 1 else f'{restarts:,} times'}{moves}")
    if merges:
        effort.append(f"it needs a mergeable aggregate and adds {merges:,} merge messages")
    return f"; {'; '.join(effort)}" if effort else ""


def _loss(record: Mapping[str, Cell]) -> tuple[float, ...]:
    """Order of scenarios that drop rows, the best first: fewer drops, then p99, then messages."""
    return (round(real(record["drop_rate"]), 3), real(record["latency_p99"]), real(record["messages"]))


def _dropped(record: Mapping[str, Cell]) -> str:
    rate = real(record["drop_rate"])
    return percent(rate) if rate >= 0.001 else f"less than {percent(0.001)}"


def _sends(record: Mapping[str, Cell]) -> str:
    """Messages to plan drops, if any."""
    messages = record["messages"]
    return f", planned by {messages:,} messages" if messages else ""


def _p99(record: Mapping[str, Cell], short: bool = False) -> str:
    p99 = record["latency_p99"]
    if p99 is None:
        return "no row processed"
    return duration(real(p99)) if short else f"p99 {duration(real(p99))}"


def _costs(record: Mapping[str, Cell], uniform: Mapping[str, Cell]) -> str:
    return f"for {_hours(record)} instead of {_hours(uniform, short=True)}"


def _hours(record: Mapping[str, Cell], short: bool = False) -> str:
    return duration(real(record["worker_time"])) + ("" if short else " of worker time")


def real(cell: Cell) -> float:
    """The number in a cell; 0 if it has none."""
    return float(cell) if isinstance(cell, int | float) else 0.0
