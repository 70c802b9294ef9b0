"""Settings of a run, and costs of contention in the model."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import NoReturn

from adapt.core.errors import UsageError
from adapt.core.ordered.chain.names import MOST_CHUNK, Heuristic, Parallelism, Reorder, WorkQueue
from adapt.core.units.amounts import seconds_of
from adapt.core.units.settings import Range, SettingError, Unit, knob, settings

MOST_WORKERS = 256
MOST_SLOTS = 1 << 22

_SPAN = Range(above=0, below=1e9)


def _chunk_of(text: str) -> int | None:
    if text != "auto" and not text.isdecimal():
        raise UsageError(f"must be auto or a number of tuples (got {text!r})")
    return None if text == "auto" else int(text)


def _degrees_of(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"takes a number or a list such as 1,4,1 (got {text!r})") from None


@settings()
class RunSettings:
    """Settings of a run by workers.

    Source: ordered streams, sections 3 to 6 and 8.3; the paper gives no sizes.
    """

    workers: int = knob("Number of workers.", default=1, range=Range(1, at_most=MOST_WORKERS))
    reorder: Reorder = knob(
        "Reorder buffer: how outputs are put back in order. With claim (lock-free), a worker reserves room in the ring"
        " buffer before it starts; with retry (lock-free, as in the paper), it retries until there is room, in a ring"
        " buffer that is made larger where it could hang; lock uses one lock per operator.",
        default=Reorder.CLAIM,
    )
    work_queue: WorkQueue = knob(
        "How workers share the tuples of a partitioned operator. With hybrid, a master queue hands out tuples, and "
        "those"
        " of a busy partition are delegated to its worker; with partitioned, a worker owns the queue of a partition"
        " while it processes it.",
        default=WorkQueue.HYBRID,
        unless="parallelism replicated",
    )
    heuristic: Heuristic = knob(
        "Scheduling heuristic: which operator a worker takes next.", default=Heuristic.CT, typed="heuristic"
    )
    ring_buffer: int = knob(
        "Reorder buffer per operator, in tuples; a power of two.", "TUPLES", default=4096, typed="runtime ring-buffer"
    )
    queue_capacity: int = knob(
        "Rows in each operator's work queue; a power of two.", "TUPLES", default=4096, typed="runtime queue-capacity"
    )
    # None to adapt it to their cost, so that a chunk takes no longer than a slice
    chunk: int | None = knob(
        "Most tuples that a worker claims at once, 1 to 1024. With auto, a chunk takes no longer than a slice. A worker"
        " never waits for a chunk to fill. The model takes auto as 1 unless rows arrive at a rate.",
        "N|auto",
        default=None,
        unit=Unit(_chunk_of, none="auto"),
        typed="runtime chunk",
        range=Range(1, at_most=MOST_CHUNK),
    )
    slice_us: float = knob(
        "How long a worker stays with an operator; with chunk auto at least 5us.",
        "100us",
        default=100.0,
        unit=Unit(lambda text: round(seconds_of(text) * 1e6, 9), lambda us: f"{us:g}us"),
        typed="runtime slice",
        range=_SPAN,
    )
    # at its end, half of the data behind the estimated costs and selectivities is forgotten
    ct_window_ms: float = knob(
        "Window in which worker time is counted.",
        "20ms",
        default=20.0,
        unit=Unit(lambda text: round(seconds_of(text) * 1e6, 9) / 1000, lambda ms: f"{ms:g}ms"),
        typed="heuristic window",
        range=_SPAN,
        of=(Heuristic.CT, Heuristic.CT_LITERAL),
    )
    qst_limit: float = knob(
        "Total of all queues to aim for, C.",
        "TUPLES",
        default=500,
        typed="heuristic limit",
        range=_SPAN,
        of=(Heuristic.QST,),
    )
    lp_minimum: int = knob(
        "Tuples in its work queue from which on an operator is considered.",
        "TUPLES",
        default=1,
        typed="heuristic minimum",
        of=(Heuristic.LP,),
    )
    mark_every: int = knob(  # 0 for never
        "Measure the latency of one row in N. Default: about 10,000 rows in total.",
        "N",
        default=0,
        typed="runtime mark-every",
        range=Range(0),
    )
    # whether a model without a chunk adapts it to their cost, as threads do, and holds outputs until the end of a
    # chunk; else it claims tuples one by one
    adapts: bool = False
    # whether operators check that only one worker is inside a partition and that its tuples arrive in order
    checked: bool = False
    parallelism: Parallelism = knob(
        "Which workers enter which operator, and when. With dynamic, any, as the heuristic says; with replicated, each"
        " replica of an operator has its own worker, and tuples are split statically over the replicas; with"
        " micro-batch, all workers run a batch through one operator before the next one starts; with pipeline, each"
        " operator has one worker.",
        default=Parallelism.DYNAMIC,
        typed="parallelism",
    )
    degrees: tuple[int, ...] = knob(
        "Replicas of every operator, or a list with one number for each. Default: as many as workers. Stateful"
        " operators always have one, and partitioned ones at most one for each partition.",
        "4|1,4,1",
        default=(),
        unit=Unit(_degrees_of),
        typed="parallelism degree",
        of=(Parallelism.REPLICATED,),
    )
    batch: int = knob(  # 0 with another parallelism
        "Most rows of a batch. It takes what has arrived. Default: 1000.",
        "ROWS",
        default=0,
        typed="parallelism batch",
        of=(Parallelism.MICRO_BATCH,),
    )

    def __post_init__(self) -> None:
        for name, size in (("ring_buffer", self.ring_buffer), ("queue_capacity", self.queue_capacity)):
            if not 1 <= size <= MOST_SLOTS or size & (size - 1):
                near = min(1 << max(size - 1, 0).bit_length(), MOST_SLOTS)
                self._refuse(f"{{{name}}} must be a power of two, at most {MOST_SLOTS} (got {size}); try {near}")
        if not 1 <= self.lp_minimum <= self.queue_capacity:
            self._refuse(
                f"{{lp_minimum}} must be from 1 to the work queue's {self.queue_capacity} tuples"
                f" (got {self.lp_minimum})"
            )
        self._check_scheme()

    def _refuse(self, text: str) -> NoReturn:
        raise SettingError(RunSettings, text)

    def _check_scheme(self) -> None:
        how, batched = self.parallelism, self.parallelism is Parallelism.MICRO_BATCH
        if batched and not 1 <= self.batch <= self.queue_capacity:
            self._refuse(
                f"{{batch}} must be from 1 to the work queue's {self.queue_capacity} tuples (got {self.batch})"
            )
        if batched and self.heuristic is not Heuristic.CT:
            self._refuse(
                f"{{heuristic}} {self.heuristic} has no effect with {{parallelism}} {how}, where operators take turns;"
                " omit it"
            )
        if self.batch and not batched:
            self._refuse(f"{{batch}} needs {{parallelism}} {Parallelism.MICRO_BATCH} (got {how}); omit it")
        if self.degrees and how is not Parallelism.REPLICATED:
            self._refuse(f"{{degrees}} needs {{parallelism}} {Parallelism.REPLICATED} (got {how}); omit it")
        if any(degree < 1 for degree in self.degrees):
            self._refuse(f"{{degrees}} must be at least 1 (got {','.join(map(str, self.degrees))})")
        if how is Parallelism.REPLICATED and self.work_queue is not WorkQueue.HYBRID:
            self._refuse(
                f"{{work_queue}} {self.work_queue} has no effect with {{parallelism}} {how}, where each replica has its"
                " own queue; omit it"
            )


@dataclass(frozen=True, slots=True)
class Contention:
    """Time of contention and scheduling in the model; 0 for none."""

    # share of a tuple's cost, 0 to 1, that is drawn from an exponential distribution with the same mean
    jitter: float = 0.0
    # added to a tuple's cost by each other worker on its operator, since cache lines move between cores (kappa)
    contention_us: float = 0.0
    send_us: float = 0.0  # to send a batch, in the section that one worker at a time may enter (d)
    output_us: float = 0.0  # to send one output in that section (e)
    lock_handover_us: float = 0.0  # from a lock's release until the next waiting worker holds it (h); with `lock` only
    # for a worker to ask the scheduler for an operator, enter it, and leave it after its slice (section 6)
    query_us: float = 0.0
    query_operator_us: float = 0.0  # added to that by each operator of the chain
    query_contention_us: float = 0.0  # added to that by each other worker that has work

    def __post_init__(self) -> None:
        if not 0 <= self.jitter <= 1:
            raise UsageError(f"jitter must be between 0 and 1 (got {self.jitter:g})")
        for field in fields(self):
            value = getattr(self, field.name)
            if not (math.isfinite(value) and 0 <= value <= 1e6):
                raise UsageError(f"{field.name} must be between 0 and 1e6 (got {value:g})")


_QUERIES_US: Mapping[Heuristic, tuple[float, float]] = {
    Heuristic.CT: (0.093, 0.0025),
    Heuristic.LP: (0.092, 0.0013),
    Heuristic.ET: (0.088, 0.0039),
    Heuristic.QST: (0.09, 0.0039),
    Heuristic.CT_LITERAL: (0.092, 0.0022),
}
"""Time of a query, and what each operator of the chain adds, measured on a machine with two cores,
where the other worker added nothing."""


def assumed_contention(heuristic: Heuristic = Heuristic.CT) -> Contention:
    """What was measured on a machine with two cores.

    A tuple of one worker took 0.045 us of CPU, and one that two workers contend for 0.196 us. Each further worker is
    assumed to add as much as the second.

    Source: ordered streams, measured for this program.
    """
    query_us, operator_us = _QUERIES_US[heuristic]
    return Contention(
        contention_us=0.15,
        send_us=0.05,
        lock_handover_us=0.15,
        query_us=query_us,
        query_operator_us=operator_us,
    )
