"""Costs measured on a stage of processes."""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from adapt.core.costs.profile import StateCosts
from adapt.core.stage.movement.controller import Moved
from adapt.core.stage.records.arrays import Records
from reality.processes.messages import Installed

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
        polled_s: When the driver began to wait, having sent its orders.
        moves: Finished moves.
    """

    start_s: float
    sent: list[tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]] = field(default_factory=list)
    done: list[tuple[int, Records]] = field(default_factory=list)
    installed: list[Installed] = field(default_factory=list)
    polled_s: list[float] = field(default_factory=list)
    moves: list[Moved] = field(default_factory=list)


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


def measured_state(recorded: Recorded) -> StateCosts:
    """Costs of a byte of state, and of a move besides."""
    rounds: dict[float, list[Moved]] = {}
    for moved in recorded.moves:
        rounds.setdefault(moved.times_s["decided"], []).append(moved)
    alone = {batch[0].times_s["extracted"] for batch in rounds.values() if len(batch) == 1}
    of_bytes = _of_bytes([one for one in recorded.installed if one.extracted_s in alone])
    return replace(of_bytes, **_of_moves(list(rounds.items()), np.array(recorded.polled_s)), between_rows=True)


def _of_moves(rounds: list[tuple[float, list[Moved]]], polled_s: NDArray[np.float64]) -> dict[str, float]:
    """What a move takes besides its state.

    Only moves without state that were ordered together count. The driver orders them one after the other before it
    waits; what it does for one move alone is subtracted. The donor extracts all of them between two rows. The receiver
    may take rows meanwhile, so its usual time between two counts.
    """
    batches = [(decided_s, batch) for decided_s, batch in rounds if len(batch) > 1]
    alone = [decided_s for decided_s, batch in rounds if len(batch) == 1]
    if len(alone) < _LEAST_MOVES or sum(len(batch) for _, batch in batches) < _LEAST_MOVES:
        return {}

    def sent_after_s(decided_s: float) -> float:
        return float(polled_s[np.searchsorted(polled_s, decided_s)] - decided_s)

    one_s = float(np.median([sent_after_s(decided_s) for decided_s in alone]))
    order_s = [(sent_after_s(decided_s) - one_s) / (len(batch) - 1) for decided_s, batch in batches]
    ends_s = {step: [np.sort([one.times_s[step] for one in batch]) for _, batch in batches] for step in _STEPS}
    return {
        "order_move_s": max(0.0, float(np.median(order_s))),
        "serialize_move_s": float(np.median([np.diff(each).mean() for each in ends_s["extracted"]])),
        "install_move_s": float(np.median(np.concatenate([np.diff(each) for each in ends_s["installed"]]))),
    }


def _of_bytes(installed: list[Installed]) -> StateCosts:
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

_STEPS = ("extracted", "installed")
