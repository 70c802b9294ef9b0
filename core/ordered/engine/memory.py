"""The memory of a run by workers: laid out once, then shared by address."""

from itertools import pairwise
from math import ceil

import numpy as np

from adapt.core.errors import UsageError
from adapt.core.ordered.chain.bound import BoundChain, BoundOperator, Words
from adapt.core.ordered.chain.mixing import FOLD
from adapt.core.ordered.chain.names import Heuristic, OperatorKind, Reorder, Worklist
from adapt.core.ordered.engine import kernel as k
from adapt.core.ordered.engine.contention import Modelled
from adapt.core.ordered.engine.outcome import Marks, OperatorTally
from adapt.core.ordered.engine.serial import Egress
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.functions.function import MOST, OWN, PACE, STATE, STRIDE, Function
from adapt.core.ordered.functions.registry import function_of

MOST_BYTES = 1 << 34
_LINE = 64
_REORDERS = {Reorder.CLAIM: k.CLAIM, Reorder.RETRY: k.RETRY, Reorder.LOCK: k.LOCK}
_HEURISTICS = {
    Heuristic.CT: k.CT,
    Heuristic.LP: k.LP,
    Heuristic.ET: k.ET,
    Heuristic.QST: k.QST,
    Heuristic.CT_LITERAL: k.CT_LITERAL,
}
_WORKLISTS = {
    Worklist.HYBRID: k.HYBRID,
    Worklist.PARTITIONED: k.PARTITIONED,
    Worklist.SHARED: k.LOCKED_TOO_LATE,
}
_UNMEASURED_NS = 100
_PATIENCE = 2000


class Memory:
    """All words of a run. Those of arrays that no worker touches are never backed by the machine's memory."""

    def __init__(
        self, chain: BoundChain, settings: RunSettings, pace: int, keep: int, model: Modelled | None = None
    ) -> None:
        """The first state of a run.

        Args:
            chain: What is run.
            settings: How.
            pace: Steps of work that take 1024 ns.
            keep: How many tuples of the egress are kept.
            model: What a model knows beside that; None for a run on threads.

        Raises:
            UsageError: it would be above 16 GiB, or would hang (see `queues`).
        """
        self._chain, self._settings, self._arrays = chain, settings, list[Words]()
        self._bytes = self._scratch = 0
        self._model = model
        self._blocks: list[tuple[int, int, int]] = []
        timed = -(-len(chain.tuples) // settings.mark_every) if settings.mark_every else 0
        self._marks = self._zeros(k.MARK_WORDS * timed)
        self._kept = self._zeros(keep * (self._sizes(chain.operators[-1])[1] - 1))
        self._tallies = self._zeros(settings.workers * len(chain.operators) * k.TALLY_WORDS)
        self._header = self._zeros(k.HEADER_WORDS)
        self._records = self._zeros(len(chain.operators) * k.OPERATOR_WORDS)
        self._parts = [self._zeros(bound.partitions * k.PART_WORDS) for bound in chain.operators]
        sizes = queues(chain, settings)
        for bound, queue in zip(chain.operators, sizes, strict=True):
            if model is None:
                function = function_of(bound.operator)
                most = max(function.most(bound), 1)
                self._lay_out(bound, queue, most)
                record = self._record(bound)
                record[k.FUNCTION] = function.compiled.address
                record[k.CLOSING] = 0 if function.closing is None else function.closing.address
                record[k.WORDS] = self._function_words(bound, function, pace, most)
            else:
                self._lay_out(bound, queue, max(ceil(model.selectivities[bound.number]), 1))
        self._write_header(keep)
        if model is not None:
            self._write_model(model)

    @property
    def address(self) -> int:
        """Of the header."""
        return int(self._header.ctypes.data)

    @property
    def ended(self) -> int:
        """Why the run ended."""
        return int(self._header[k.STOP])

    @property
    def at_fault(self) -> str:
        """The name of the operator whose function failed."""
        return self._chain.operators[int(self._header[k.AT_FAULT])].operator.name

    @property
    def fault(self) -> int:
        """What it gave."""
        return int(self._header[k.FAULT])

    def release(self) -> None:
        """Give back the blocks of memory that functions took."""
        for blocks in self._blocks:
            k.release_all(*blocks)

    def end(self, why: int) -> None:
        """Have all workers leave."""
        self._header[k.STOP] = why

    @property
    def model_clock_ns(self) -> int:
        """The clock of the model."""
        return int(self._header[k.NOW_NS])

    @property
    def events(self) -> int:
        """Events of the model."""
        return int(self._header[k.EVENTS])

    def egress(self) -> Egress:
        """What left."""
        return Egress(int(self._header[k.EGRESS_TUPLES]), int(self._header[k.EGRESS_HASH].view(np.uint64)))

    def kept(self) -> Words:
        """The first tuples that left."""
        rows = self._kept.reshape(-1, self._sizes(self._chain.operators[-1])[1] - 1)
        return rows[: self.egress().tuples].copy()

    def marks(self) -> Marks:
        """The timed tuples."""
        marks = self._marks.reshape(-1, k.MARK_WORDS).T.copy()
        return Marks(marks[k.MARK_FED], marks[k.MARK_ENTERED], marks[k.MARK_LEFT])

    def stuck(self) -> str:
        """Where tuples are when nothing moves: by operator, those that came, were claimed, were sent."""
        records = self._records.reshape(-1, k.OPERATOR_WORDS)[:, [k.TAIL, k.HEAD, k.NEXT]].tolist()
        names = [bound.operator.name for bound in self._chain.operators]
        return ", ".join(f"{name!r} {tuple(at)}" for name, at in zip(names, records, strict=True))

    def tally(self, bound: BoundOperator) -> OperatorTally:
        """What all workers counted of an operator."""
        by_worker = self._tallies.reshape(self._settings.workers, -1, k.TALLY_WORDS)[:, bound.number]
        total = by_worker.sum(axis=0)
        part = self._parts[bound.number].reshape(-1, k.PART_WORDS)
        return OperatorTally(
            name=bound.operator.name,
            inputs=int(total[k.DONE] - total[k.BARE_DONE]),
            outputs=int(total[k.MADE] - total[k.BARE_MADE]),
            busy_ns=int(total[k.BUSY_NS]),
            delegated=int(total[k.DELEGATED]),
            retries=int(total[k.RETRIES]),
            blocked=int(total[k.BLOCKED]),
            overlaps=int(total[k.OVERLAPS]),
            disorders=int(total[k.DISORDERS]),
            fullest=int(by_worker[:, k.FULLEST].max()),
            in_use=total[k.FILLED :].copy(),
            partition_loads=part[:, k.LOAD].copy(),
        )

    def _record(self, bound: BoundOperator) -> Words:
        return self._records[k.OPERATOR_WORDS * bound.number :][: k.OPERATOR_WORDS]

    def _sizes(self, bound: BoundOperator) -> tuple[int, int]:
        """The words of an operator's inputs and outputs. In a model, tuples stay as they came."""
        if self._model is not None:
            return len(self._chain.fields) + 1, len(self._chain.fields) + 1
        return len(bound.fields) + 1, len(bound.gives) + 1

    def _lay_out(self, bound: BoundOperator, queue: int, most: int) -> None:
        """One operator's record, and what it points to; there is room for so many outputs of a tuple."""
        settings, kind = self._settings, bound.operator.kind
        in_words, out_words = self._sizes(bound)
        record = self._record(bound)
        record[k.MOST], record[k.IN_WORDS], record[k.OUT_WORDS] = most, in_words, out_words
        record[k.MOST_WORKERS] = _most_workers(bound, settings)
        record[k.NUMBER], record[k.STATE_KEPT] = bound.number, kind is not OperatorKind.STATELESS
        record[k.QUEUE], record[k.QUEUE_MASK] = self._room(queue * in_words), queue - 1
        record[k.RING_MASK] = settings.ring - 1
        record[k.SLOTS] = self._zeros(settings.ring * k.SLOT_WORDS).ctypes.data
        self._blocks.append((int(record[k.SLOTS]) + 8 * k.BLOCK, k.SLOT_WORDS, settings.ring))
        # The outputs of a tuple, and a punctuation behind them.
        slot_words = (most + (len(self._chain.punctuations) > 0)) * out_words
        record[k.OUTPUTS], record[k.SLOT_OUTPUT_WORDS] = self._room(settings.ring * slot_words), slot_words
        record[k.ENOUGH] = settings.queue
        record[k.GUESSED_NS] = _guessed_ns(bound)
        record[k.GUESSED_OUTPUTS] = int(min(bound.operator.selectivity, most) * 2**20)
        record[k.PARTS], record[k.PARTITIONS] = self._parts[bound.number].ctypes.data, bound.partitions
        if kind is OperatorKind.PARTITIONED:
            record[k.WORKLIST] = _WORKLISTS[settings.worklist]
            record[k.KEY_AT] = self._key_at(bound)
            if bound.partition_of is not None:
                record[k.PARTITION_OF] = self._kept_alive(np.ascontiguousarray(bound.partition_of, np.int64))
            if settings.worklist is not Worklist.SHARED:
                record[k.MASTER] = self._room(queue)
                record[k.PARTITION_QUEUES] = self._room(queue * bound.partitions)
        self._scratch = max(self._scratch, settings.batch * slot_words)

    def _key_at(self, bound: BoundOperator) -> int:
        """Where the key stands; -1 in a model where it would come into being in the chain."""
        if self._model is None:
            return bound.key_at
        return -1 if bound.partition_of is None else self._chain.fields.index(bound.fields[bound.key_at])

    def _function_words(self, bound: BoundOperator, function: Function, pace: int, most: int) -> int:
        words = np.array([0] * OWN + [word % 2**64 for word in function.words(bound)], np.uint64).view(np.int64)
        words[STATE] = self._kept_alive(function.state(bound))
        words[STRIDE], words[PACE], words[MOST] = 8 * self._sizes(bound)[1], pace, most
        for blocks in function.blocks(bound):
            self._blocks.append((int(words[STATE]) + 8 * blocks.first, blocks.step, blocks.count))
        return self._kept_alive(words)

    def _write_header(self, keep: int) -> None:
        settings, header = self._settings, self._header
        header[k.OPERATORS], header[k.CHAIN] = self._records.ctypes.data, len(self._chain.operators)
        header[k.WORKERS], header[k.ROWS] = settings.workers, len(self._chain.tuples)
        header[k.INGRESS] = self._kept_alive(np.ascontiguousarray(self._chain.tuples))
        header[k.TALLIES], header[k.REORDER] = self._tallies.ctypes.data, _REORDERS[settings.reorder]
        header[k.BATCH], header[k.RING] = settings.batch, settings.ring
        header[k.QUEUE_TUPLES], header[k.HEURISTIC] = settings.queue, _HEURISTICS[settings.heuristic]
        header[k.SLICE_NS], header[k.WINDOW_NS] = int(settings.slice_us * 1e3) or 1, int(settings.window_ms * 1e6) or 1
        header[k.QUEUE_SIZE], header[k.MARK_EVERY] = int(settings.queue_size) or 1, settings.mark_every
        header[k.MARKS], header[k.CHECKED] = self._marks.ctypes.data, settings.checked
        header[k.PATIENCE] = _PATIENCE
        header[k.SCRATCH_WORDS] = self._scratch + _LINE // 8
        header[k.SCRATCH] = self._room(settings.workers * int(header[k.SCRATCH_WORDS]))
        header[k.KEPT], header[k.KEEP] = self._kept.ctypes.data, keep
        punctuations = np.append(self._chain.punctuations, [np.iinfo(np.int64).max] * 2)
        header[k.PUNCTUATION_ROW] = punctuations[0]
        header[k.PUNCTUATION_ROWS] = self._kept_alive(punctuations) + 8
        header[k.EGRESS_HASH] = np.uint64(FOLD).view(np.int64)

    def _write_model(self, model: Modelled) -> None:
        header, settings, contention = self._header, self._settings, model.contention
        header[k.SEED], header[k.JITTER] = model.seed, int(contention.jitter * 2**20)
        header[k.CROWDING_NS] = round(contention.crowding_us * 1000)
        header[k.SEND_NS], header[k.OUTPUT_NS] = round(contention.send_us * 1000), round(contention.output_us * 1000)
        header[k.HAND_OVER_NS] = round(contention.hand_over_us * 1000)
        header[k.GAP_NS] = round(model.gap_us * 1000)
        workers = self._zeros(settings.workers * k.MODELLED_WORDS).reshape(-1, k.MODELLED_WORDS)
        dues = self._zeros(settings.workers)
        workers[:, k.STATE] = k.ASKS
        workers[:, k.DUE] = dues.ctypes.data + 8 * np.arange(settings.workers)
        header[k.DUES] = dues.ctypes.data
        header[k.MODELLED] = workers.ctypes.data
        for bound, cost_us, selectivity in zip(self._chain.operators, model.costs_us, model.selectivities, strict=True):
            record = self._record(bound)
            whole = int(selectivity)
            share = min(int((selectivity - whole) * 2**64), 2**64 - 1)
            record[k.COST_AT] = -1 if cost_us is not None else self._chain.fields.index(bound.fields[bound.cost_at])
            record[k.COST_NS] = round((cost_us or 0.0) * 1000)
            record[k.WHOLE], record[k.SHARE] = whole, np.uint64(share).view(np.int64)
            record[k.LOCK_QUEUE] = self._zeros(settings.workers).ctypes.data

    def _zeros(self, words: int) -> Words:
        """Words on lines of their own, all zero."""
        self._count(words)
        whole = np.zeros(words + 2 * _LINE // 8, np.int64)
        first = -whole.ctypes.data % _LINE // 8
        self._arrays.append(whole)
        return whole[first : first + words]

    def _room(self, words: int) -> int:
        """The address of words that are written before they are read."""
        self._count(words)
        room = np.empty(words, np.int64)
        self._arrays.append(room)
        return int(room.ctypes.data)

    def _kept_alive(self, array: Words) -> int:
        self._arrays.append(array)
        return int(array.ctypes.data)

    def _count(self, words: int) -> None:
        self._bytes += 8 * words
        if self._bytes > MOST_BYTES:
            raise UsageError(
                f"a run with rings of {self._settings.ring} and queues of {self._settings.queue} tuples for each "
                f"operator and partition would take above {MOST_BYTES >> 30} GiB; make them smaller"
            )


def queues(chain: BoundChain, settings: RunSettings) -> list[int]:
    """Tuples that the worklist of each operator holds, a power of two.

    With `claim` and `lock` that is what the settings say: who sends stops at a full worklist. A worker that retries
    holds its outputs until they are sent, so nothing may stop sending; workers then leave an operator alone while the
    next has as many tuples as the settings say, and each worklist has room for all that those already claimed can add.

    Raises:
        UsageError: workers would retry for ever: where there can be any number of outputs; and with partitioned
            worklists, where all may hold outputs that wait for a tuple of a partition in which nobody works, unless the
            ring has room for all that waits.

    Source: ordered streams, section 3.2, which only says "blocked".
    """
    sizes, operators, punctuated = [settings.queue], chain.operators, len(chain.punctuations) > 0
    if settings.reorder is not Reorder.RETRY:
        return sizes * len(operators)
    for bound, after in pairwise(operators):
        function = function_of(bound.operator)
        if function.unbounded:
            raise UsageError(
                f"operator {bound.operator.name!r} runs {bound.operator.function}, which gives any number of outputs "
                f"at once; with reorder {Reorder.RETRY} a worklist must have room for all of them; take reorder "
                f"{Reorder.CLAIM} or {Reorder.LOCK}"
            )
        most = max(function.most(bound), 1) + (after.partitions if punctuated else 0)
        sizes.append(1 << (settings.queue + sizes[-1] * most - 1).bit_length())
    for bound, size in zip(operators, sizes, strict=True):
        if (
            bound.operator.kind is OperatorKind.PARTITIONED
            and settings.worklist is Worklist.PARTITIONED
            and settings.ring < size
        ):
            raise UsageError(
                f"operator {bound.operator.name!r} would hang: with reorder {Reorder.RETRY} and worklist "
                f"{Worklist.PARTITIONED}, all workers can wait for room in the ring of {settings.ring} while the tuple "
                f"that would make it waits in a partition of nobody; take reorder {Reorder.CLAIM}, worklist "
                f"{Worklist.HYBRID}, or a ring of {size}"
            )
    return sizes


def _most_workers(bound: BoundOperator, settings: RunSettings) -> int:
    match bound.operator.kind:
        case OperatorKind.STATELESS:
            return settings.workers
        case OperatorKind.PARTITIONED:
            return min(settings.workers, bound.partitions)
        case OperatorKind.STATEFUL:
            return 1


def _guessed_ns(bound: BoundOperator) -> int:
    """What a tuple is taken to cost before any was measured, at least 1."""
    cost = bound.operator.cost
    return _UNMEASURED_NS if isinstance(cost, str) else max(round(cost * 1000), _UNMEASURED_NS)
