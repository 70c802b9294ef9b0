"""Costs measured on a stage of processes."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from adapt.core.costs.profile import StateCosts
from adapt.core.stage.processes.workers import Installed
from adapt.core.stage.records.arrays import Records

_USUAL = 0.99
"""Share of the gaps between rows that count as transport; longer ones belong to the row after them."""


@dataclass(slots=True, eq=False)
class Recorded:
    """What the driver of a stage has sent and heard.

    Attributes:
        start_s: Time until all processes were ready.
        sent: Number, cost in seconds and time of sent rows.
        done: Worker and rows of each report.
        installed: Partitions that arrived.
    """

    start_s: float
    sent: list[tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]] = field(default_factory=list)
    done: list[tuple[int, Records]] = field(default_factory=list)
    installed: list[Installed] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredRows:
    """Rows of a stage, in the order of their numbers.

    Attributes:
        numbers: Their numbers.
        service_s: Service time of each, which includes long gaps before it; shape (rows,).
        costs_s: The stated cost of each.
        transport_s: Usual worker time between two rows.
        waited_s: Time from sending to service of rows that found an idle worker.
        rate: Rows per second, from the first that was sent to the last that was done.
    """

    numbers: NDArray[np.int64]
    service_s: NDArray[np.float64]
    costs_s: NDArray[np.float64]
    transport_s: float
    waited_s: NDArray[np.float64]
    rate: float


def measured_rows(recorded: Recorded) -> MeasuredRows:
    """Service times and transport of recorded rows.

    A worker that has the next row already when it ends one takes it after a gap, in which it receives and reports
    rows. The usual gap is the transport. What a gap takes beyond it, such as a moment without the CPU, counts as
    service time of the next row, so that both together are the time that rows keep a worker busy.
    """
    numbers, costs_s, sent_s = (np.concatenate(column) for column in zip(*recorded.sent, strict=True))
    order = np.argsort(numbers, kind="stable")
    numbers, costs_s, sent_s = numbers[order], costs_s[order], sent_s[order]
    service_s, gaps_s, waits_s = np.full(len(numbers), np.nan), np.full(len(numbers), np.nan), []
    for worker in sorted({one for one, _ in recorded.done}):
        done = np.concatenate([rows for one, rows in recorded.done if one == worker])
        places = np.searchsorted(numbers, done["number"])
        service_s[places] = done["done"] - done["taken"]
        before_s = np.append(-np.inf, done["done"][:-1])
        busy = sent_s[places] < np.append(-np.inf, done["taken"][:-1])
        gaps_s[places[busy]] = (done["taken"] - before_s)[busy]
        idle = sent_s[places] > before_s
        waits_s.append((done["taken"] - sent_s[places])[idle])
    gaps = gaps_s[np.isfinite(gaps_s)]
    usual = gaps[gaps <= np.quantile(gaps, _USUAL)] if len(gaps) else np.zeros(1)
    transport_s = float(usual.mean())
    whole = np.isfinite(service_s)
    over_s = np.where(np.isfinite(gaps_s), gaps_s - transport_s, 0.0)
    service_s = np.maximum(service_s + over_s, 1e-9)
    rate = whole.sum() / (max(float(rows["done"].max()) for _, rows in recorded.done) - float(sent_s.min()))
    waited_s = np.concatenate(waits_s)
    return MeasuredRows(numbers[whole], service_s[whole], costs_s[whole], transport_s, waited_s, float(rate))


def measured_state(installed: list[Installed]) -> StateCosts:
    """Costs of a byte of state, from large and small moves.

    The medians of large and of small states are compared, so that what a move costs anyway does not count.
    """
    sizes = np.array([one.state_bytes for one in installed], np.float64)
    if len(sizes) < _LEAST_MOVES or not np.ptp(sizes):
        return StateCosts()
    large = sizes > np.median(sizes) if (sizes > np.median(sizes)).any() else sizes >= sizes.max()
    apart = float(np.median(sizes[large]) - np.median(sizes[~large]))
    times = np.array([(one.began_s, one.extracted_s, one.received_s, one.installed_s) for one in installed])
    steps = np.diff(times, axis=1)
    serialize, transfer, install = (
        max(0.0, float(np.median(step[large]) - np.median(step[~large]))) / apart for step in steps.T
    )
    return StateCosts(None, serialize, None, install, transfer or None)


_LEAST_MOVES = 8
"""Fewest moves from which costs of state are derived."""
