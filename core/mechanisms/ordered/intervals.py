"""Measurement intervals of the ordered runtime, from the times of its rows."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.ordered.chain.bound import Words
from adapt.core.ordered.engine.outcome import Marks
from adapt.core.stage.engine.series import Interval, Latencies


def intervals_of(marks: Marks, workers: int, ends_s: NDArray[np.float64]) -> list[Interval]:
    """Measurements of each interval, given their ends.

    Rows count as processed when their output leaves.
    """
    starts_s = np.append(0.0, ends_s[:-1])
    edges_ns = np.append(0.0, ends_s * 1e9)
    lasted_ns = np.diff(edges_ns)
    taken = np.sort(marks.entered)  # busy partitions delay rows, so workers do not take them quite in order
    waits = marks.entered - marks.fed
    arrived, entered, left = (np.searchsorted(times, edges_ns, "right") for times in (marks.fed, taken, marks.left))
    waited_s, lags = np.zeros(len(ends_s)), arrived[:-1] - left[:-1]
    at = np.searchsorted(edges_ns[1:], marks.entered, "left")
    within = at < len(ends_s)
    np.maximum.at(waited_s, at[within], waits[within] / 1e9)
    due = np.minimum(np.searchsorted(edges_ns[1:], marks.fed, "left"), len(ends_s) - 1)
    np.maximum.at(lags, due, np.arange(1, len(marks.fed) + 1) - np.searchsorted(marks.left, marks.fed, "left"))
    busy_ns = [_covered(edges_ns, *_work_of(marks, worker)) for worker in range(workers)]
    idle = 1 - np.diff(busy_ns, axis=1).T / lasted_ns[:, None]
    reached = np.maximum.accumulate(marks.entered)
    first = np.maximum(marks.fed, np.append(0, reached[:-1]))
    waited = first < marks.entered
    behind = np.diff(_covered(edges_ns, first[waited], marks.entered[waited])) / lasted_ns
    total_s, operator_s = (marks.left - marks.fed) / 1e9, (marks.left - marks.entered) / 1e9
    nothing = np.zeros(workers, np.int64)
    return [
        Interval(
            start_s=float(starts_s[number]),
            end_s=float(ends_s[number]),
            generated=int(entered[number + 1] - entered[number]),
            processed=int(left[number + 1] - left[number]),
            operator=Latencies.from_seconds(operator_s[left[number] : left[number + 1]]),
            total=Latencies.from_seconds(total_s[left[number] : left[number + 1]]),
            by_worker=np.bincount(marks.worker[left[number] : left[number + 1]], minlength=workers),
            idle=np.clip(idle[number], 0.0, 1.0),
            pools=nothing.astype(np.int32),
            connections=nothing,
            partitions=nothing,
            on_disk=0,
            spilled=0,
            lost=0,
            shed=0,
            living=workers,
            source_queue=int(arrived[number + 1] - entered[number + 1]),
            waited_s=float(waited_s[number]),
            lag=int(lags[number]),
            behind=float(behind[number]),
            state_in_memory=nothing,
            state_on_disk=nothing,
        )
        for number in range(len(ends_s))
    ]


def _work_of(marks: Marks, worker: int) -> tuple[Words, Words]:
    """Start and end of each row that a worker processes, in its order."""
    mine = np.flatnonzero(marks.worker == worker)
    mine = mine[np.argsort(marks.entered[mine], kind="stable")]
    return marks.entered[mine], marks.served[mine]


def _covered(edges: NDArray[np.float64], starts: Words, ends: Words) -> NDArray[np.float64]:
    """Time up to each edge that spans cover, which are ascending and do not overlap."""
    sums = np.append(0, np.cumsum(ends - starts))
    before = np.searchsorted(starts, edges, "left")
    beyond = np.append(ends, 0)[before - 1] - edges  # of the last span before it; without one, 0 - edge
    return np.asarray(sums[before] - np.maximum(beyond, 0.0))
