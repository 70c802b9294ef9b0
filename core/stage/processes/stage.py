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
from adapt.core.stage.engine.event_queue import Action
from adapt.core.stage.engine.jobs import Job
from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.processes.kernel import commit_pending, finish, load_kernels, produce, unsent
from adapt.core.stage.processes.records import KEPT, SENT
from adapt.core.stage.processes.workers import Answer, Installed, Message, Order, Report, States, Workers
from adapt.core.stage.records import codes


class ProcessStage(Stage):
    """A running stage, and the interface through which controllers change it."""

    def __init__(
        self,
        settings: StageSettings,
        source: Source | Made,
        journal: int = 0,
        standby: bool = False,
        *,
        launch: Callable[[StageSettings], Workers],
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
        self._even: list[tuple[int, Action]] = []
        self._emptied: set[int] = set()
        self._states: dict[int, NDArray[np.void]] = {}
        self._idle_s: NDArray[np.float64] = np.zeros(n)
        self._idle_at_s = 0.0
        self.on_installed: Callable[[int, Installed], None] = lambda *_: None
        """Called when a worker has installed a partition."""
        self.is_moving: Callable[[], bool] = lambda: False
        """Whether a partition is on its way."""
        super().__init__(replace(settings, network=network), source, journal, standby)
        self.arrays["worker"]["doing"] = codes.IDLE
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
            self.answer(codes.ROWS_WANTED, codes.NONE)
            next_row_s = produce(self.arrays.worlds, now_s)
        self._send()
        if self.agenda.next_s <= now_s:
            self.agenda.take()()
        else:
            self._hear(self.workers.poll(min(until_s, self.agenda.next_s, next_row_s)))

    def when_read(self, worker: int, action: Action) -> None:
        """Run an action when the process of a live worker reads."""
        if worker not in self.dead:
            self._ask(worker, Order.ASK, action)

    def order(self, worker: int, order: Order, *arguments: int) -> None:
        """Order something from a worker; a dead one does nothing."""
        if worker not in self.dead:
            self.workers.order(worker, order, *arguments)

    def do(self, worker: int, job: Job) -> None:
        """Run the action of a job, after earlier orders."""
        self.when_read(worker, job.done)

    def when_even(self, partition: int, action: Action) -> None:
        """Run an action once a replica is even with its owner."""
        self._even.append((partition, action))
        self.settle()

    def pending(self, partition: int) -> NDArray[np.int32]:
        """Rows of each producer that the replica lacks; a view."""
        return np.asarray(self.arrays["kept"]["pending"][partition :: self.settings.partitions])

    def commit_pending(self, partition: int) -> None:
        """Commit the rows that a lost replica lacked."""
        commit_pending(self.arrays.worlds, partition, self._totals)

    def seat(self, worker: int) -> int:
        """Number of the process of a worker, new after a restart."""
        return worker + self.settings.workers * self._lives[worker]

    def crash(self, worker: int) -> None:
        """Kill a worker; what it sent to others is processed first."""
        seat = self.seat(worker)
        self.dead.add(worker)
        self._hear(self.workers.kill(worker))
        self._asked = {one: asked for one, asked in self._asked.items() if asked[0] != worker}
        record = self.arrays["worker"][worker]
        record["doing"], record["since"] = codes.FREE, self.now_s
        super().crash(worker)
        living = [one for one in range(self.settings.workers) if one not in self.dead]
        missing = len(living)

        def drained() -> None:
            nonlocal missing
            missing -= 1

        for other in living:
            self._ask(other, Order.DRAIN, drained, seat)
        while missing:
            self._hear(self.workers.poll(np.inf))

    def revive(self, worker: int) -> None:
        """Start a new process for a dead worker."""
        self.workers.revive(worker, self.seat(worker))
        super().revive(worker)
        self.arrays["worker"]["doing"][worker] = codes.IDLE
        self.arrays["worker"]["since"][worker] = self.now_s

    def clear_connections(self, worker: int) -> None:
        """Clear the connections to a worker, and the queues for them."""
        n = self.settings.workers
        self._sent[worker * n : (worker + 1) * n] = 0
        super().clear_connections(worker)

    def lose_state(self, partition: int) -> None:
        """Empty the state of a partition; its next owner begins without."""
        self._totals[self.settings.partition_of == partition] = 0
        self._emptied.add(partition)
        super().lose_state(partition)

    def restart(self, partition: int, owner: int) -> None:
        """Let all producers send a paused partition's tuples to its owner."""
        if partition in self._emptied:
            self._emptied.discard(partition)
            self.order(owner, Order.RESET, partition)  # a new process has no state
        super().restart(partition, owner)

    def idle_s(self) -> NDArray[np.float64]:
        """Idle or dead seconds of each consumer, shape (workers,)."""
        since_s, self._idle_at_s = self.now_s - self._idle_at_s, self.now_s
        self._idle_s = np.clip(super().idle_s(), self._idle_s, self._idle_s + since_s)
        return self._idle_s.copy()

    def keys_checked(self) -> int | None:
        """Compare the state in all processes with the committed rows.

        Returns:
            The number of keys; None unless all rows are done, since those under way would be in the state.

        Raises:
            RuntimeError: A row is missing, doubled or out of order in the state of a key.
        """
        if not self.drained:
            return None
        while self.is_moving():
            self._advance(np.inf)
        self._states.clear()
        living = [worker for worker in range(self.settings.workers) if worker not in self.dead]
        for worker in living:
            self.workers.order(worker, Order.STATES)
        while len(self._states) < len(living):
            self._hear(self.workers.poll(np.inf))
        owners = self.arrays["partition"]["owner"]
        self._compare({worker: owners == worker for worker in living}, "worker")
        if self.standby:
            twins = self.arrays["pair"]["twin"]
            self._compare({worker: twins == worker for worker in living}, "replica on worker")
        return int(np.count_nonzero(self._totals["count"]))

    @property
    def drained(self) -> bool:
        """Whether all tuples are accounted for, those of dead workers too."""
        return super().drained and not self.arrays["connection"]["count"].any()

    def close(self) -> None:
        """End all processes."""
        self.workers.close()

    def _compare(self, partitions: dict[int, NDArray[np.bool_]], holder: str) -> None:
        """Compare the keys of these partitions, shape (partitions,), at each worker."""
        partition_of = self.settings.partition_of
        for worker, own in partitions.items():
            states = self._states[worker]
            states = states[own[states["partition"]]]
            held = np.zeros_like(self._totals)
            held[states["group"]] = states
            wanted = np.where(own[partition_of], self._totals, np.zeros(1, KEPT))
            wrong = np.flatnonzero(np.any([held[one] != wanted[one] for one in ("count", "sum", "digest")], axis=0))
            if len(wrong):
                key = int(wrong[0])
                raise RuntimeError(
                    f"{holder} {worker}: the state of {len(wrong)} keys is wrong; key {key} of partition"
                    f" {partition_of[key]} has {held['count'][key]} rows instead of {wanted['count'][key]}"
                )

    def _ask(self, worker: int, order: Order, action: Action, *arguments: int) -> None:
        self._questions += 1
        self._asked[self._questions] = worker, action
        self.workers.order(worker, order, self._questions, *arguments)

    def _send(self) -> None:
        """Send what producers have placed in the connections."""
        n, workers = self.settings.workers, self.arrays["worker"]
        counts = self.arrays["connection"]["count"]
        if not (counts > self._sent).any():
            return
        seats = np.array([codes.NONE if one in self.dead else self.seat(one) for one in range(n)], np.int32)
        for worker in range(n):
            if worker in self.dead:
                continue
            rows = unsent(self.arrays.worlds, worker, seats, self._sent, self._room)
            if rows:
                self.workers.rows(worker, self._room[:rows])
                if workers["doing"][worker] == codes.IDLE:
                    workers["idle"][worker] += self.now_s - workers["since"][worker]
                    workers["doing"][worker], workers["since"][worker] = codes.SERVING, self.now_s

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
        self.settle()

    def _finish(self, worker: int, report: Report) -> None:
        """Account for processed rows."""
        wrong = finish(self.arrays.worlds, worker, report.rows, self._sent, self._totals)
        if wrong >= 0:
            raise RuntimeError(f"worker {worker} reported row {report.rows[wrong]} out of order")
        self._note_idle(worker, report.at_s, report.idle_s)
        record = self.arrays["worker"][worker]
        if record["quiesced"]:
            record["quiesced"] = 0
            self.answer(codes.QUIESCED, worker)

    def _note_idle(self, worker: int, at_s: float, idle_s: float) -> None:
        record, n = self.arrays["worker"][worker], self.settings.workers
        record["idle"], record["since"] = idle_s, at_s
        busy = self.arrays["connection"]["count"][worker * n : (worker + 1) * n].any()
        record["doing"] = codes.SERVING if busy else codes.IDLE

    def settle(self) -> None:
        """Run what waits for replicas that are even with their owners."""
        even = [(one, action) for one, action in self._even if not self.pending(one).any()]
        if even:
            self._even = [waiting for waiting in self._even if waiting not in even]
            for _, action in even:
                action()


def _nothing() -> None:
    """The action of a question that a crash has made void."""
