"""Memory of a run, shared by all workers by address.

Arrays of a run, shared with the workers by address.

Binding of workers to operators, by scheme, and buffer sizes.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.ordered.chain.bound import BoundChain, BoundOperator
from adapt.core.ordered.chain.columns import Words
from adapt.core.ordered.chain.mixing import FOLD
from adapt.core.ordered.chain.names import MOST_CHUNK, OperatorKind, Parallelism, Reorder, WorkQueue
from adapt.core.ordered.chain.own import OwnFunction
from adapt.core.ordered.engine.kernel import layout
from adapt.core.ordered.engine.kernel.layout import GOES_ON, HEADER, LINE, OPERATOR, PARTITION, TALLY, TIMED
from adapt.core.ordered.engine.kernel.running import chunk_form
from adapt.core.ordered.engine.kernel.worker import release_unsent, take_kept
from adapt.core.ordered.engine.reference import (
    Egress,
    Marks,
    OperatorTally,
    WorkersRun,
    counts_without_passed,
    failure_of,
    function_words,
    release_blocks,
)
from adapt.core.ordered.engine.settings import MOST_SLOTS, RunSettings
from adapt.core.ordered.functions.function import NO_MEMORY, ROUTES, Function
from adapt.core.ordered.functions.own import function_of

STATIC = (Parallelism.REPLICATED, Parallelism.PIPELINE)
"""Schemes in which each worker is bound to its operators."""


def degrees_of(operators: Sequence[BoundOperator], settings: RunSettings) -> tuple[int, ...]:
    """Most workers on each operator: its replicas, if it has any.

    By its kind, never more than the workers or its partitions.
    """
    given = settings.degrees or (settings.workers,)
    if settings.parallelism is Parallelism.PIPELINE:
        given = (1,)
    if len(given) == 1:
        given *= len(operators)
    if len(given) != len(operators):
        raise UsageError(
            f"degrees of parallelism must be one for all operators or one for each of {len(operators)} (got "
            f"{len(given)}: {','.join(map(str, given))})"
        )
    return tuple(min(degree, settings.workers, _most(bound)) for degree, bound in zip(given, operators, strict=True))


def _most(bound: BoundOperator) -> int:
    """Workers that an operator of its kind can have."""
    match bound.operator.kind:
        case OperatorKind.STATELESS:
            return np.iinfo(np.int64).max
        case OperatorKind.PARTITIONED:
            return bound.partitions
        case OperatorKind.STATEFUL:
            return 1


def workers_used(chain: BoundChain, settings: RunSettings) -> int:
    """Number of workers that the scheme has replicas for.

    All, if they are not bound.
    """
    if settings.parallelism not in STATIC:
        return settings.workers
    return min(settings.workers, sum(degrees_of(chain.operators, settings)))


def replicas_of_workers(chain: BoundChain, settings: RunSettings) -> NDArray[np.int64]:
    """Replicas by worker and operator, -1 for none; shape (workers, operators).

    Replicas are numbered along the chain, and number n is bound to worker n modulo the workers.
    """
    degrees, bound_to = degrees_of(chain.operators, settings), np.arange(settings.workers)
    firsts = np.cumsum([0, *degrees[:-1]])
    places = [(bound_to - first) % settings.workers for first in firsts]
    return np.array([np.where(each < degree, each, -1) for each, degree in zip(places, degrees, strict=True)]).T


def barred(chain: BoundChain, settings: RunSettings) -> NDArray[np.int64]:
    """Operators that each worker may not enter, as bits."""
    if settings.parallelism not in STATIC:
        return np.zeros(settings.workers, np.int64)
    bits = np.left_shift(1, np.arange(len(chain.operators), dtype=np.int64))
    return np.asarray((replicas_of_workers(chain, settings) < 0) @ bits, np.int64)


class Sizes(NamedTuple):
    """Sizes of an operator in tuples, powers of two."""

    queue: int  # capacity of its work queue
    ring: int  # size of its ring buffer


def sizes_of(chain: BoundChain, settings: RunSettings, most: Sequence[int | None]) -> list[Sizes]:
    """Sizes by operator.

    With `claim` and `lock` those of the settings: a full work queue stops the sender (backpressure), and no worker
    holds a tuple that waits for room. With `retry` workers wait while they hold outputs. If all of them waited, nobody
    would process the tuple that makes room, in two cases:

    - The next work queue is full, so that nothing is sent. Therefore workers skip an operator while the next one has
      its configured number of tuples, and the next work queue also has room for all outputs of the tuples that may be
      claimed. These are as many as a work queue is configured to hold.
    - That tuple is in a partition that no worker owns, with partitioned work queues, or its replica's worker is at
      another operator. A hybrid one is claimed in serial order, so that a worker is processing it.

    Where the second case can happen, or outputs are too many for such a queue, the ring buffer has room for all tuples
    that may be claimed, so that no worker waits. Each smaller power of two can hang.

    Args:
        most: Outputs per tuple for which an operator has room; None if it may have more.

    Source: ordered streams, section 3.2, which only says "blocked".
    """
    capacity, operators = settings.queue_capacity, chain.operators
    if settings.reorder is not Reorder.RETRY:
        return [Sizes(capacity, settings.ring_buffer)] * len(operators)
    sizes, queue = [], capacity
    for bound, after, outputs in zip(operators, (*operators[1:], None), most, strict=True):
        keeps_sending, room = True, capacity
        if after is not None:
            # Of each punctuation, an operator processes one copy by partition, and the last one goes on.
            punctuations = min(len(chain.punctuations), capacity // bound.partitions + 1)
            room += capacity * (outputs or 0) + punctuations * after.partitions
            keeps_sending = outputs is not None and room <= MOST_SLOTS
        skips = bound.operator.kind is OperatorKind.PARTITIONED and settings.work_queue is not WorkQueue.HYBRID
        skips = skips or settings.parallelism is Parallelism.REPLICATED
        sizes.append(Sizes(queue, max(settings.ring_buffer, capacity if skips or not keeps_sending else 0)))
        queue = 1 << (room - 1).bit_length() if keeps_sending else capacity
    return sizes


MOST_BYTES = 1 << 34


class Storage:
    """Arrays of a run, at most 16 GiB.

    Pages take memory only once a worker touches them.
    """

    def __init__(self, settings: RunSettings) -> None:
        """Start without arrays; errors name the settings."""
        self._settings, self._arrays, self._bytes = settings, list[Words](), 0

    def zeros(self, words: int) -> Words:
        """Zeroed words on their own cache lines."""
        self._count(words)
        whole = np.zeros(words + 2 * LINE // 8, np.int64)
        first = -whole.ctypes.data % LINE // 8
        self._arrays.append(whole)
        return whole[first : first + words]

    def records(self, count: int, kind: np.dtype[np.void]) -> NDArray[np.void]:
        """Zeroed records on their own cache lines."""
        return self.zeros(count * kind.itemsize // 8).view(kind)

    def room(self, words: int) -> int:
        """Address of uninitialized words."""
        self._count(words)
        return self.keep(np.empty(words, np.int64))

    def keep(self, array: Words) -> int:
        """Address of an array, which is kept alive."""
        self._arrays.append(array)
        return int(array.ctypes.data)

    def _count(self, words: int) -> None:
        self._bytes += 8 * words
        if self._bytes > MOST_BYTES:
            raise UsageError(
                f"ring buffers of {self._settings.ring_buffer} and work queues of {self._settings.queue_capacity} "
                f"tuples "
                f"for each operator and partition need more than {MOST_BYTES >> 30} GiB; make them smaller"
            )


_UNMEASURED_NS = 100

LANES = 8
"""Lanes for each worker, so that few workers wait for the lane of a hot partition."""

_PATIENCE = 2000


class Memory:
    """Records and tuples of a run, and the results read from them.

    Attributes:
        header: The record of the run.
        operators: The records of the operators.
        settings: Those of the run, with as many workers as its scheme uses.
        storage: The arrays that hold them.
        is_paced: Whether workers take in rows at their arrival times.
    """

    def __init__(
        self,
        chain: BoundChain,
        settings: RunSettings,
        pace: int,
        keep: int,
        modeled: Sequence[float] | None = None,
        *,
        waits: bool = False,
        arrivals_ns: Words | None = None,
    ) -> None:
        """Lay out a run.

        Args:
            pace: Steps of busy work in 1024 ns.
            keep: How many output tuples to keep.
            waits: Whether the kept tuples are taken out during the run (`take_kept`), and workers wait for room.
            modeled: Outputs per tuple by operator in a model, which writes its own fields; None for threads.
            arrivals_ns: When each tuple arrives, ascending, from the start on; None if all are there at the start.
        """
        chain = chain.by_workers(settings.workers)
        degrees = degrees_of(chain.operators, settings)
        settings = replace(settings, workers=workers_used(chain, settings))
        self._chain, self.settings, self._modeled = chain, settings, modeled
        self.storage, self._room, self._counts = Storage(settings), 0, 0
        self._copies = modeled is not None and not runs_functions(chain)
        self._by_tuple = modeled is not None and not settings.adapts and not settings.chunk
        timed = -(-len(chain.tuples) // settings.mark_every) if settings.mark_every else 0
        self._timed = self.storage.records(timed, TIMED)
        self._kept = self.storage.zeros(keep * (self._sizes(chain.operators[-1])[1] - 1))
        self._tallies = self.storage.records(settings.workers * len(chain.operators), TALLY)
        self._headers = self.storage.records(1, HEADER)
        self.header = self._headers[0]
        self.operators = self.storage.records(len(chain.operators), OPERATOR)
        self._partitions = [
            self.storage.records(max(bound.partitions, degree), PARTITION)
            for bound, degree in zip(chain.operators, degrees, strict=True)
        ]
        self._functions: list[Function] = [] if self._copies else [function_of(bound) for bound in chain.operators]
        most, bounded = self._outputs()
        sizes = sizes_of(chain, settings, bounded)
        for bound, size, outputs, degree in zip(chain.operators, sizes, most, degrees, strict=True):
            self._lay_out(bound, size, outputs, degree)
            if not self._copies:
                function, record = self._functions[bound.number], self.operators[bound.number]
                record["function"] = chunk_form(function.compiled).address
                record["closing"] = 0 if function.closing is None else function.closing.address
                words = function_words(function, self._sizes(bound)[1], pace, outputs)
                record["words_at"], record["routes_at"] = self.storage.keep(words), words[ROUTES]
        self._write_header(keep)
        self.is_paced = arrivals_ns is not None and modeled is None
        if arrivals_ns is not None:
            if len(arrivals_ns) != len(chain.tuples):
                given = f"each of {len(chain.tuples)} tuples a time (got {len(arrivals_ns)} times)"
                raise UsageError(f"arrivals_ns must give {given}")
            self.header["arrivals_at"] = self.storage.keep(np.ascontiguousarray(arrivals_ns, np.int64))
        self.header["waits"] = waits
        if waits:
            self.header["kept_mask"] = keep - 1

    @property
    def address(self) -> int:
        """Address of the header."""
        return int(self._headers.ctypes.data)

    @property
    def ended(self) -> int:
        """Why the run ended."""
        return int(self.header["stop"])

    def failure(self) -> Exception:
        """Why an operator's function failed."""
        at = int(self.header["fault_operator"])
        is_memory = bool(self.header["fault"] == NO_MEMORY)
        return failure_of(self._chain, self._chain.operators[at], self._functions[at], is_memory=is_memory)

    def take_kept(self) -> Words:
        """The tuples that left since the last call; others get their room."""
        words = self._sizes(self._chain.operators[-1])[1] - 1
        room = len(self._kept) // words
        taken = np.empty((room, words), np.int64)
        return taken[: take_kept(self.address, taken.ctypes.data, room, words)]

    def release(self) -> None:
        """Give back the blocks of memory that functions took."""
        release_unsent(self.address)
        for function in self._functions:
            release_blocks(function)

    def end(self, why: int) -> None:
        """Stop all workers."""
        self.header["stop"] = why

    def end_if_running(self, why: int) -> None:
        """Stop all workers, unless the run has ended."""
        if self.header["stop"] == GOES_ON:
            self.end(why)

    def run(self, elapsed_s: float) -> WorkersRun:
        """The measurements of a run of `elapsed_s` seconds."""
        egress = Egress(int(self.header["egress_tuples"]), int(self.header["egress_hash"].view(np.uint64)))
        tallies = [self._tally(bound) for bound in self._chain.operators]
        counts = counts_without_passed(
            self._chain, [each.inputs for each in tallies], [each.outputs for each in tallies]
        )
        for at, (bound, inputs, outputs) in enumerate(zip(self._chain.operators, *counts, strict=True)):
            alone = bound.operator.kind is OperatorKind.STATEFUL  # without a key, it has one partition
            loads = np.array([inputs]) if alone else tallies[at].partition_loads
            tallies[at] = replace(tallies[at], inputs=inputs, outputs=outputs, partition_loads=loads)
        marks = Marks(*(self._timed[name].copy() for name in ("fed", "entered", "left")))
        if self.is_paced:
            marks = replace(marks, lag=self._timed["lag"].copy())
        elif self._modeled is not None:
            marks = replace(marks, served=self._timed["served"].copy(), worker=self._timed["worker"].copy())
        kept = self._kept.reshape(-1, self._sizes(self._chain.operators[-1])[1] - 1)
        kept = kept[: 0 if self.header["waits"] else egress.tuples]
        return WorkersRun(egress, elapsed_s, tuple(tallies), marks, kept.copy(), self._served())

    def _served(self) -> NDArray[np.int64]:
        """Tuples by worker and operator, without punctuations."""
        return np.array(self._tallies["done"] - self._tallies["bare_done"]).reshape(self.settings.workers, -1)

    def stuck(self) -> str:
        """Counts of a stalled run by operator: arrived, claimed, sent."""
        names = [bound.operator.name for bound in self._chain.operators]
        records = self.operators[["tail", "head", "next"]].tolist()
        return ", ".join(f"{name!r} {at}" for name, at in zip(names, records, strict=True))

    def _tally(self, bound: BoundOperator) -> OperatorTally:
        """What all workers counted of an operator."""
        by_worker = self._tallies.reshape(self.settings.workers, -1)[:, bound.number]
        total = {name: int(by_worker[name].sum()) for name in TALLY.names or () if name != "in_use"}
        return OperatorTally(
            name=bound.operator.name,
            inputs=total["done"] - total["bare_done"],
            outputs=total["made"] - total["bare_made"],
            **{
                name: total[name]
                for name in (
                    "busy_ns",
                    "delegated",
                    "retries",
                    "blocked",
                    "overlaps",
                    "disorders",
                    "waited_ns",
                    "slices",
                )
            },
            fullest=int(by_worker["fullest"].max()),
            in_use=by_worker["in_use"].sum(axis=0),
            partition_loads=np.array(self._partitions[bound.number]["load"][: bound.partitions]),
            ring_buffer=int(self.operators[bound.number]["ring_mask"]) + 1,
        )

    def _sizes(self, bound: BoundOperator) -> tuple[int, int]:
        """The words of an operator's inputs and outputs. In a model of built-in functions, tuples pass unchanged."""
        if self._copies:
            return len(self._chain.fields) + 1, len(self._chain.fields) + 1
        return len(bound.fields) + 1, len(bound.gives) + 1

    def _outputs(self) -> tuple[list[int], list[int | None]]:
        """Outputs per tuple that operators have room for; and the same, but None where there may be more."""
        if self._copies and self._modeled is not None:
            most = [max(ceil(selectivity), 1) for selectivity in self._modeled]
            return most, [*most]
        most = [max(each.most, 1) for each in self._functions]
        return most, [None if each.unbounded else one for each, one in zip(self._functions, most, strict=True)]

    def _lay_out(self, bound: BoundOperator, size: Sizes, most: int, degree: int) -> None:
        """Fill an operator's record and what it points to.

        With room for `most` outputs per tuple and `degree` workers.
        """
        settings, kind, (queue, ring) = self.settings, bound.operator.kind, size
        in_words, out_words = self._sizes(bound)
        record = self.operators[bound.number]
        record["most_outputs"], record["in_words"], record["out_words"] = most, in_words, out_words
        record["most_workers"] = degree
        record["number"], record["keeps_state"] = bound.number, kind is not OperatorKind.STATELESS
        record["queue_at"], record["queue_mask"] = self.storage.room(queue * in_words), queue - 1
        record["ring_mask"] = ring - 1
        record["slots_at"] = self.storage.zeros(ring).ctypes.data
        record["here"] = self.operators.ctypes.data + OPERATOR.itemsize * bound.number
        # The outputs of a tuple, and a punctuation behind them.
        slot_words = (most + (len(self._chain.punctuations) > 0)) * out_words
        record["outputs_at"], record["slot_output_words"] = (
            self.storage.room(ring * slot_words),
            slot_words,
        )
        record["guessed_ns"] = _guessed_ns(bound)
        record["guessed_outputs"] = int(min(bound.operator.selectivity, most) * 2**20)
        record["partitions_at"], record["partitions"] = self._partitions[bound.number].ctypes.data, bound.partitions
        is_split = settings.parallelism is Parallelism.REPLICATED and degree > 1
        if is_split:  # a queue for each replica
            record["work_queue"], record["replicas"], record["key_at"] = layout.PARTITIONED, degree, -1
            record["master_at"] = self.storage.room(queue)
            record["partition_queues_at"] = self.storage.room(queue * degree)
        if kind is OperatorKind.PARTITIONED:
            record["key_at"] = self._key_at(bound)
            if bound.partition_of is not None:
                record["partition_of_at"] = self.storage.keep(np.ascontiguousarray(bound.partition_of, np.int64))
        if kind is OperatorKind.PARTITIONED and not is_split:
            record["work_queue"] = getattr(layout, settings.work_queue.name)
            record["master_at"] = self.storage.room(queue)
            by_lane = self._modeled is None or not (settings.chunk or self._by_tuple)
            lanes = lanes_of(bound, settings, by_lane=by_lane)
            if lanes == 1 and by_lane:  # no two workers meet: in serial order, as without partitions
                record["work_queue"] = layout.SHARED_QUEUE
            else:
                record["lanes"] = lanes - 1 if lanes < bound.partitions else -1
                record["partition_queues_at"] = self.storage.room(queue * lanes)
                self._counts = max(self._counts, bound.partitions + MOST_CHUNK)
        self._room = max(self._room, slot_words)

    def _key_at(self, bound: BoundOperator) -> int:
        """The word that holds the key; -1 in a model whose key is made in the chain."""
        if not self._copies:
            return bound.key_at
        return -1 if bound.partition_of is None else self._chain.fields.index(bound.fields[bound.key_at])

    def _write_header(self, keep: int) -> None:
        settings, header = self.settings, self.header
        header["operators_at"], header["operators"] = self.operators.ctypes.data, len(self._chain.operators)
        header["workers"], header["rows"] = settings.workers, len(self._chain.tuples)
        header["ingress_at"] = self.storage.keep(np.ascontiguousarray(self._chain.tuples))
        header["tallies_at"], header["reorder"] = self._tallies.ctypes.data, getattr(layout, settings.reorder.name)
        header["chunk"] = settings.chunk or self._by_tuple
        header["queue"], header["heuristic"] = settings.queue_capacity, getattr(layout, settings.heuristic.name)
        header["slice_ns"] = int(settings.slice_us * 1e3) or 1
        header["window_ns"] = int(settings.ct_window_ms * 1e6) or 1
        header["qst_size"], header["mark_every"] = int(settings.qst_limit) or 1, settings.mark_every
        header["lp_minimum"] = settings.lp_minimum
        header["marks_at"], header["checked"] = self._timed.ctypes.data, settings.checked
        header["patience"], header["batch"] = _PATIENCE, settings.batch
        header["barred_at"] = self.storage.keep(barred(self._chain, settings))
        if settings.parallelism in STATIC:
            replicas = replicas_of_workers(self._chain, settings)
            self._tallies["cursor"] = np.maximum(replicas, 0).ravel()
        header["room_words"], header["scratch_words"] = self._room, self._room + self._counts + LINE // 8
        header["scratch_at"] = self.storage.zeros(settings.workers * int(header["scratch_words"])).ctypes.data
        header["kept_at"], header["keep"], header["kept_mask"] = self._kept.ctypes.data, keep, np.iinfo(np.int64).max
        punctuations = np.append(self._chain.punctuations, [np.iinfo(np.int64).max] * 2)
        header["punctuation_row"] = punctuations[0]
        header["punctuation_rows_at"] = self.storage.keep(punctuations) + 8
        header["egress_hash"] = np.uint64(FOLD).view(np.int64)


def runs_functions(chain: BoundChain) -> bool:
    """Whether a model runs the functions of a chain.

    If one is the user's own, or in a graph, or the chain says so; otherwise it moves copies of tuples.
    """
    return chain.runs or chain.graph is not None or has_own(chain)


def has_own(chain: BoundChain) -> bool:
    """Whether a function is the user's own."""
    return any(isinstance(bound.operator.function, OwnFunction) for bound in chain.operators)


def lanes_of(bound: BoundOperator, settings: RunSettings, *, by_lane: bool = True) -> int:
    """Lanes of an operator.

    These are its partitions, or fewer if workers split chunks of many tuples by lane: threads, and a model whose chunks
    adapt to the cost of tuples.
    """
    if not by_lane or settings.work_queue is not WorkQueue.HYBRID:
        return bound.partitions
    if settings.workers == 1 or settings.parallelism in STATIC:
        return 1
    if settings.chunk == 1 or settings.reorder is Reorder.RETRY:
        return bound.partitions
    return min(bound.partitions, LANES << (settings.workers - 1).bit_length())


def _guessed_ns(bound: BoundOperator) -> int:
    """Estimated cost of a tuple before any is measured; at least 1."""
    cost = bound.operator.cost
    return _UNMEASURED_NS if isinstance(cost, str) else max(round(cost * 1000), _UNMEASURED_NS)
