"""What there is to do for a stream, in a sentence, by what scenarios came to on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adapt.core.mechanisms.scenarios import BASELINE, Scenario, Static
from adapt.core.mechanisms.sustainable import SHED
from adapt.core.table import Cell
from adapt.core.values import duration, size

LATE = 0.01
"""Of the length of the stream: who needs so much longer at its end, or lets 1% of the rows wait so long, is behind."""

CHEAP = 1.05
"""Up to this ratio of worker time, one scenario costs what another does."""

CALM = 1.25
"""Up to this ratio of latencies, one scenario is as fast as another."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What scenarios are compared on.

    Attributes:
        rows: Of the stream.
        channels: N.
        pool: All workers there are.
        speedup: Trace seconds in a second of the stage.
        offered: Work of the busiest channel of static uniform over what it can do.
        work: Workers that all rows keep busy on average.
        last_s: When the last row is due.
        heaviest: The share of the rows that the heaviest key has at least.
    """

    rows: int
    channels: int
    pool: int
    speedup: float
    offered: float
    work: float
    last_s: float
    heaviest: float


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do.

    Attributes:
        scenario: The one to take; None, none helps.
        sentence: Why, with numbers.
    """

    scenario: str | None
    sentence: str


def advice_of(records: Sequence[Mapping[str, Cell]], scenarios: Mapping[str, Scenario], frame: Frame) -> Advice:
    """What to do for a stream.

    Of the scenarios that keep up, those that cost about what the cheapest does; of these the fastest, or a simpler one
    that is about as fast. To keep up is to be done with the rows when they end, to drop next to none, and to let next
    to none wait for long.

    Args:
        records: Outcomes, that of `BASELINE` first.
    """
    uniform = records[0]
    keep_up = [record for record in records if _keeps_up(record, frame)]
    if uniform in keep_up:
        return _nothing_to_do(uniform, keep_up)
    if keep_up:
        taken = _best(keep_up, scenarios, cost_first=True)
        return Advice(
            str(taken["scenario"]),
            f"Take {taken['scenario']}: {_p99(taken)} instead of {_p99(uniform, short=True)} with static-uniform,"
            f" {_costs(taken, uniform)}{_effort(taken)}{_unless(taken, keep_up)}.",
        )
    return _none(records, scenarios, frame)


def point_of(record: Mapping[str, Cell]) -> tuple[float, float, float]:
    """Cost, latency and loss; less is better."""
    p99 = record["p99"]
    return (real(record["worker_time"]), float("inf") if p99 is None else real(p99), real(record["shed"]))


def _nothing_to_do(uniform: Mapping[str, Cell], keep_up: Sequence[Mapping[str, Cell]]) -> Advice:
    cheaper = min(keep_up, key=lambda record: (real(record["worker_time"]), real(record["p99"])))
    sentence = f"Leave keys where their hash has them: static-uniform keeps up, {_p99(uniform)}"
    if real(cheaper["worker_time"]) * CHEAP < real(uniform["worker_time"]):
        sentence += (
            f"; only workers are to be saved, with {cheaper['scenario']} ({_hours(cheaper)} instead of"
            f" {_hours(uniform)}, {_p99(cheaper, short=True)})"
        )
    return Advice(BASELINE, f"{sentence}.")


def _none(records: Sequence[Mapping[str, Cell]], scenarios: Mapping[str, Scenario], frame: Frame) -> Advice:
    """Nothing keeps up: what comes closest without loss, what does with keys in one piece, and what loss buys."""
    uniform = records[0]
    of_one = frame.heaviest * frame.work
    if of_one > 1:
        why = f"the heaviest key alone has {of_one:.2f} times the work that a worker can do"
    elif frame.work > frame.channels:
        why = f"all rows have the work of {frame.work:.1f} workers, and bursts more, for {frame.channels} channels"
    else:
        why = f"rows come in bursts, though all together keep only {frame.work:.1f} workers busy on average"
    sentence = f"No scenario keeps up with all rows all the time: {why}"
    lossless = [record for record in records if real(record["shed"]) <= SHED]
    whole = [record for record in lossless if scenarios[str(record["scenario"])].split is None]
    closest = _best(lossless, scenarios, cost_first=False)
    helps = real(closest["p99"]) * CALM < real(uniform["p99"])
    if helps:
        sentence += (
            f"; {closest['scenario']} comes closest, {_p99(closest)} instead of {_p99(uniform, short=True)},"
            f" {_costs(closest, uniform)}{_effort(closest)}"
        )
        without = _best(whole, scenarios, cost_first=False)
        if closest not in whole and without is not uniform:
            sentence += (
                f"; of those that keep keys whole, {without['scenario']} does ({_p99(without, short=True)},"
                f" {_hours(without)})"
            )
    else:
        sentence += f"; and nothing is faster than static-uniform, {_p99(uniform)}"
    lossy = [record for record in records if record not in lossless]
    if lossy := [record for record in lossy if real(record["p99"]) * CALM < real(closest["p99"])]:
        least = min(lossy, key=lambda record: (round(real(record["shed"]), 3), real(record["p99"])))
        sentence += (
            f"; where rows may be lost, {least['scenario']} drops {real(least['shed']):.1%} of them and {_p99(least)}"
        )
    return Advice(str(closest["scenario"]) if helps else None, f"{sentence}.")


def _keeps_up(record: Mapping[str, Cell], frame: Frame) -> bool:
    times = record["late"], record["p99"]
    in_time = all(time is not None and real(time) <= LATE * frame.last_s for time in times)
    return in_time and real(record["shed"]) <= SHED


def _best(
    records: Sequence[Mapping[str, Cell]], scenarios: Mapping[str, Scenario], *, cost_first: bool
) -> Mapping[str, Cell]:
    """The simplest of those that cost about the least and of these are about the fastest, or the other way round."""
    by = (("worker_time", CHEAP), ("p99", CALM))
    left = list(records)
    for name, ratio in by if cost_first else reversed(by):
        least = min(real(record[name]) for record in left)
        left = [record for record in left if real(record[name]) <= ratio * least]
    return min(left, key=lambda record: (_effort_of(scenarios[str(record["scenario"])]), real(record["p99"])))


def _effort_of(scenario: Scenario) -> int:
    """What has to be built to have it: other placements, moves, workers that come and go, keys in parts, loss."""
    return (
        (scenario.plan is not Static.UNIFORM)
        + 2 * scenario.rebuilds
        + 3 * (scenario.flux is not None)
        + 4 * (scenario.elastic is not None)
        + 5 * (scenario.split is not None)
        + 10 * scenario.sheds
    )


def _unless(taken: Mapping[str, Cell], keep_up: Sequence[Mapping[str, Cell]]) -> str:
    """What much lower latency would cost."""
    fastest = min(keep_up, key=lambda record: (real(record["p99"]), real(record["worker_time"])))
    if real(fastest["p99"]) * 2 > real(taken["p99"]):
        return ""
    return f"; {fastest['scenario']} is faster, {_p99(fastest, short=True)} for {_hours(fastest)}"


def _effort(record: Mapping[str, Cell]) -> str:
    """What it took."""
    moved, restarts, merges = (record[name] for name in ("moved", "restarts", "merge_tuples"))
    told = []
    if restarts:
        times = "once" if restarts == 1 else f"{restarts:,} times"
        told.append(f"it changes placement or workers {times} and moves {size(real(moved))} of state")
    if merges:
        told.append(f"its parts of keys take {merges:,} tuples to merge, which the function must allow")
    return f"; {' and '.join(told)}" if told else ""


def _p99(record: Mapping[str, Cell], short: bool = False) -> str:
    p99 = record["p99"]
    if p99 is None:
        return "no row done"
    return duration(real(p99)) if short else f"99% of the rows done take at most {duration(real(p99))}"


def _costs(record: Mapping[str, Cell], uniform: Mapping[str, Cell]) -> str:
    return f"for {_hours(record)} instead of {_hours(uniform, short=True)}"


def _hours(record: Mapping[str, Cell], short: bool = False) -> str:
    return duration(real(record["worker_time"])) + ("" if short else " of worker time")


def real(cell: Cell) -> float:
    """A number; 0 where there is none."""
    return float(cell) if isinstance(cell, int | float) else 0.0
