"""A stage whose consumers are processes.

Producers, buffers, credits and controllers are those of the simulator: the same arrays and kernels in the driver, whose
clock is that of the machine. A row that a producer places in a connection is sent to the worker's process, and what the
process reports takes the place of the simulated consumer.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from adapt.core.stage.conditions.arrivals import Made, Source
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.engine.queues import Action, Job
from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.records.arrays import IDLE, NONE, QUIESCED, ROWS_WANTED, SERVING
from reality.processes.kernel import finish, load_kernels, produce, unsent
from reality.processes.launch import LoopbackWorkers
from reality.processes.messages import Answer, Installed, Message, Order, Report, States
from reality.processes.records import KEPT, SENT


class ProcessStage(Stage):
    """A running stage, and the interface through which controllers change it."""

    def __init__(
        self,
        settings: StageSettings,
        source: Source | Made,
        journal: int = 0,
        *,
        launch: Callable[[StageSettings], LoopbackWorkers],
    ) -> None:
        """Load all kernels, then start the processes and the clock; arguments as in `Stage`.

        Args:
            launch: Starts the processes of a stage.
        """
        n = settings.workers
        network = replace(settings.network, latency_s=0.0, link_bits_per_s=None)  # messages take the time they take
        self._sent = np.zeros(n * n, np.int32)
        self._room = np.zeros(n * settings.network.connection_tuples, SENT)
        self._totals = np.zeros(len(settings.partition_of), KEPT)
        self._questions = 0
        self._asked: dict[int, tuple[int, Action]] = {}
        self._states: dict[int, NDArray[np.void]] = {}
        self._idle_s: NDArray[np.float64] = np.zeros(n)
        self._idle_at_s = 0.0
        self.on_installed: Callable[[int, Installed], None] = lambda *_: None
        """Called when a worker has installed a partition."""
        self.is_moving: Callable[[], bool] = lambda: False
        """Whether a partition is on its way."""
        super().__init__(replace(settings, network=network), source, journal)
        self.arrays["worker"]["doing"] = IDLE
        load_kernels(self.arrays.worlds, self._sent, self._room, self._totals)
        self.workers = launch(settings)

    def run(self, until_s: float) -> None:
        """Run until a time, or until all rows are processed."""
        while self.workers.now_s() < until_s and not self.drained:
            self._advance(until_s)
        self.arrays.world["now"] = self.workers.now_s()

    def _advance(self, until_s: float) -> None:
        """Do what is due, or wait for what comes next."""
        now_s = self.workers.now_s()
        next_row_s = produce(self.arrays.worlds, now_s)
        while self.arrays.world["hungry"]:
            self.answer(ROWS_WANTED, NONE)
            next_row_s = produce(self.arrays.worlds, now_s)
        self._send()
        if self.agenda.next_s <= now_s:
            self.agenda.take()()
        else:
            self._hear(self.workers.poll(min(until_s, self.agenda.next_s, next_row_s)))

    def when_read(self, worker: int, action: Action) -> None:
        """Run an action when the process of a worker reads."""
        self._questions += 1
        self._asked[self._questions] = worker, action
        self.workers.order(worker, Order.ASK, self._questions)

    def do(self, worker: int, job: Job) -> None:
        """Run the action of a job, after earlier orders."""
        self.when_read(worker, job.done)

    def idle_s(self) -> NDArray[np.float64]:
        """Idle seconds of each consumer, shape (workers,)."""
        since_s, self._idle_at_s = self.now_s - self._idle_at_s, self.now_s
        self._idle_s = np.clip(super().idle_s(), self._idle_s, self._idle_s + since_s)
        return self._idle_s.copy()

    def check_keys(self) -> None:
        """Compare the state in all processes with the committed rows, once all are done.

        Raises:
            RuntimeError: A row is missing, doubled or out of order in the state of a key.
        """
        if not self.drained:
            return
        while self.is_moving():
            self._advance(np.inf)
        self._states.clear()
        for worker in range(self.settings.workers):
            self.workers.order(worker, Order.STATES)
        while len(self._states) < self.settings.workers:
            self._hear(self.workers.poll(np.inf))
        owners = self.arrays["partition"]["owner"]
        for worker, states in self._states.items():
            self._compare(worker, states, owners == worker)

    def close(self) -> None:
        """End all processes."""
        self.workers.close()

    def _compare(self, worker: int, states: NDArray[np.void], own: NDArray[np.bool_]) -> None:
        """Compare the keys of a worker's own partitions, shape (partitions,)."""
        partition_of = self.settings.partition_of
        states = states[own[states["partition"]]]
        held = np.zeros_like(self._totals)
        held[states["group"]] = states
        wanted = np.where(own[partition_of], self._totals, np.zeros(1, KEPT))
        wrong = np.flatnonzero(np.any([held[one] != wanted[one] for one in ("count", "sum", "digest")], axis=0))
        if len(wrong):
            key = int(wrong[0])
            raise RuntimeError(
                f"worker {worker}: the state of {len(wrong)} keys is wrong; key {key} of partition"
                f" {partition_of[key]} has {held['count'][key]} rows instead of {wanted['count'][key]}"
            )

    def _send(self) -> None:
        """Send what producers have placed in the connections."""
        n, workers = self.settings.workers, self.arrays["worker"]
        counts = self.arrays["connection"]["count"]
        if not (counts > self._sent).any():
            return
        for worker in range(n):
            rows = unsent(self.arrays.worlds, worker, self._sent, self._room)
            if rows:
                self.workers.rows(worker, self._room[:rows])
                if workers["doing"][worker] == IDLE:
                    workers["idle"][worker] += self.now_s - workers["since"][worker]
                    workers["doing"][worker], workers["since"][worker] = SERVING, self.now_s

    def _hear(self, messages: Sequence[tuple[int, Message]]) -> None:
        self.arrays.world["now"] = self.workers.now_s()
        for worker, message in messages:
            match message:
                case Report():
                    self._finish(worker, message)
                case Answer():
                    self._note_idle(worker, message.at_s, message.idle_s)
                    _, action = self._asked.pop(message.question, (worker, _nothing))
                    action()
                case Installed():
                    self.on_installed(worker, message)
                case States():
                    self._states[worker] = message.keys

    def _finish(self, worker: int, report: Report) -> None:
        """Account for processed rows."""
        wrong = finish(self.arrays.worlds, worker, report.rows, self._sent, self._totals)
        if wrong >= 0:
            raise RuntimeError(f"worker {worker} reported row {report.rows[wrong]} out of order")
        self._note_idle(worker, report.at_s, report.idle_s)
        record = self.arrays["worker"][worker]
        if record["quiesced"]:
            record["quiesced"] = 0
            self.answer(QUIESCED, worker)

    def _note_idle(self, worker: int, at_s: float, idle_s: float) -> None:
        record, n = self.arrays["worker"][worker], self.settings.workers
        record["idle"], record["since"] = idle_s, at_s
        busy = self.arrays["connection"]["count"][worker * n : (worker + 1) * n].any()
        record["doing"] = SERVING if busy else IDLE


def _nothing() -> None:
    """The action of a question that a crash has made void."""
