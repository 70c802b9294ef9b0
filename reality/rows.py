"""Processed rows of a run, and what is measured on them."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adapt.core.costs.profile import CostSource, Profile, Transport
from adapt.core.costs.profile_file import write_profile
from reality.samples import Samples, service_of_samples

Floats: TypeAlias = NDArray[np.float64]
Metrics: TypeAlias = dict[str, float]


@dataclass(frozen=True, slots=True, eq=False)
class Processed:
    """Rows in the order in which they were done; times in seconds of one clock.

    Attributes:
        number: Number of each row in the trace.
        worker: The worker that processed it.
        due_s: When it was to arrive.
        sent_s: When the source sent it.
        taken_s: When a worker took it.
        done_s: When its work was done.
        shown_s: When its result could be read: then, or at the end of its micro-batch.
    """

    number: NDArray[np.int64]
    worker: NDArray[np.int64]
    due_s: Floats
    sent_s: Floats
    taken_s: Floats
    done_s: Floats
    shown_s: Floats

    @classmethod
    def of(cls, records: NDArray[Any]) -> "Processed":
        """Rows from records with these fields."""
        ordered = records[np.argsort(records["done_s"], kind="stable")]
        return cls(**{name: ordered[name] for name in cls.__slots__})

    def last(self) -> "Processed":
        """Each row once: as it was done last, where a restart repeated it."""
        order = np.flatnonzero(np.append(True, np.diff(np.sort(self.number)) > 0))
        last = np.lexsort((self.done_s, self.number))
        ends = np.append(order[1:], len(last)) - 1
        chosen = np.sort(last[ends])
        return Processed(**{name: getattr(self, name)[chosen] for name in self.__slots__})


def rows_per_worker(workers: NDArray[np.int64], count: int) -> Metrics:
    """Rows of each worker."""
    return {f"rows of worker {one}": float(rows) for one, rows in enumerate(np.bincount(workers, minlength=count))}


def throughput(rows: Processed) -> Metrics:
    """Rows per second from the first row until the last is done."""
    return {"throughput": len(rows.number) / float(rows.shown_s.max() - rows.due_s.min())}


def latencies(rows: Processed) -> Metrics:
    """Percentiles of latency, from when a row was due."""
    latency_s = rows.shown_s - rows.due_s
    return {f"p{share}": float(np.percentile(latency_s, share)) for share in (50, 95, 99)}


def rescaled(rows: Processed, asked_s: float) -> Metrics:
    """Downtime and highest latency from when a rescale was asked for.

    The downtime is the longest time in which no row was done.
    """
    done_s = np.sort(rows.done_s)
    after = done_s[np.searchsorted(done_s, asked_s) - 1 :]
    late = rows.done_s > asked_s
    return {"downtime": float(np.diff(after).max()), "peak": float((rows.shown_s - rows.due_s)[late].max())}


def profile(source: CostSource, rows: Processed, costs_s: Floats, until_s: float = np.inf) -> str:
    """Cost profile of the rows done until a time, as the text of its file.

    The time on the way is the median of the rows whose worker was idle when they were sent.
    """
    early = rows.done_s < until_s
    way_s = []
    for worker in np.unique(rows.worker[early]):
        own = early & (rows.worker == worker)
        idle = np.append(True, rows.done_s[own][:-1] < rows.sent_s[own][1:])
        way_s.append((rows.taken_s - rows.sent_s)[own][idle])
    numbers = rows.number[early]
    service, _, _ = service_of_samples(Samples((rows.done_s - rows.taken_s)[early], costs=costs_s[numbers]))
    transport = Transport(row_s=0.0, latency_s=float(np.median(np.concatenate(way_s))))
    return write_profile(Profile(source, f"{len(numbers):,} rows of a run", service=service, transport=transport))
