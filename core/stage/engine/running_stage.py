"""A running stage: the compiled engine and its scheduled actions."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from adapt.core.stage.conditions.arrivals import Drawn, Feed, Made, Rows, Source
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.engine.initial_arrays import chain, prepare
from adapt.core.stage.engine.kernel.advance import advance
from adapt.core.stage.engine.kernel.orders import halt, pause, refill, restart, resume, schedule, start, wake
from adapt.core.stage.engine.queues import Action, Agenda, Census, Job, Jobs, queues_of
from adapt.core.stage.engine.recent_rows import RecentRows, enlarge_spill
from adapt.core.stage.records.arrays import (
    BACKLOG_DONE,
    BLOCKED,
    DEAD,
    FREE,
    GROWN,
    IDLE,
    IN_JOB,
    JOB_DONE,
    NONE,
    QUIESCED,
    REACHED,
    ROWS_WANTED,
    SERVING,
    SPILL_FULL,
    Arrays,
)


class Stage:
    """A running stage, and the interface through which controllers change it."""

    def __init__(
        self,
        settings: StageSettings,
        source: Source | Made,
        journal: int = 0,
        standby: bool = False,
        agenda: Agenda | None = None,
        from_s: float = 0.0,
    ) -> None:
        """A stage at time 0; settings, source and journal as in `simulate`.

        Args:
            standby: Whether partitions can have standby replicas.
            agenda: Shared event queue; None, its own.
            from_s: When its source begins, and `begin` is called; 0, now.
        """
        self.settings = settings
        self.agenda = Agenda() if agenda is None else agenda
        self.arrays: Arrays = prepare(settings, source, journal, standby)
        self.standby = standby
        self.dead: set[int] = set()
        self.interrupted: set[int] = set()
        """Dead workers whose tuple in service is still kept by its producer."""
        self.lost = 0
        """Tuples lost in crashes."""
        self.kept_alone: dict[int, int] = {}
        """Tuples that only producers have, by partition: its owner and its replica are dead, the owner unnoticed."""
        self._lives = [0] * settings.workers
        growth = settings.growth
        self.recent: RecentRows | None = None
        """Rows of a join or window, or with sizes of their own."""
        if growth is not None and growth.is_ranked:
            self.recent = RecentRows(growth, settings.join, self.arrays, self.interrupted)
        self._measured: tuple[float, ...] = ()
        self._source = source
        self._ended = False
        logs = settings.owners[settings.partition_of] if settings.queueing.has_logs else None
        groups = len(settings.partition_of)
        self.feed = Feed(source, settings.workers, groups, logs) if isinstance(source, Rows) else None
        self._jobs = Jobs(self.arrays, settings.workers)
        self.queues = queues_of(self)
        self._quiesced: dict[int, Action] = {}
        self._pausing: dict[int, list[Action]] = {}
        self.on_backlog_done: Callable[[int], None]
        """Set by `Spilling`; called with the worker when the spilled input of a partition is processed."""
        self.on_grown: Callable[[int], None] = lambda _: None
        """Called with a worker whose state has grown by more than its room."""
        self.on_rows_wanted: Action = lambda: None
        """Called before more rows are read, which overwrites those already pulled."""
        self._answers: dict[int, Callable[[int], None]] = {
            ROWS_WANTED: self._serve_producers,
            QUIESCED: lambda worker: self._quiesced.pop(worker)(),
            JOB_DONE: self._jobs.finish,
            BACKLOG_DONE: lambda worker: self.on_backlog_done(worker),
            SPILL_FULL: lambda _: enlarge_spill(self.arrays),
            GROWN: lambda worker: self.on_grown(worker),
        }
        if from_s > 0:
            self.arrays["state"]["bytes"] = 0
            self.arrays.world["drawn"] = 0
            self.arrays.world["horizon"] = from_s if self.feed is not None else np.inf
        self.queues.begin()
        start(self.arrays.worlds)

    @property
    def now_s(self) -> float:
        """Current simulated time."""
        return self.arrays.now_s

    def after(self, delay_s: float, action: Action) -> None:
        """Run an action after a delay."""
        self.agenda.at(self.now_s + delay_s, action)

    def run(self, until_s: float) -> None:
        """Simulate until a time, including the actions scheduled for it."""
        while True:
            until = min(self.agenda.next_s, until_s)
            why, which = advance(self.arrays.worlds, until)
            if why != REACHED:
                self.answer(why, which)
            elif self.agenda.next_s <= until_s:
                self.agenda.take()()
            else:
                return

    def answer(self, why: int, worker: int) -> None:
        """Handle a return code of the compiled engine, except `REACHED`."""
        self._answers[why](worker)

    def begin(self) -> None:
        """Begin a stage whose source began later than the simulation."""
        if self.settings.growth is None:
            self.arrays["state"]["bytes"] = self.settings.state_sizes() * self.settings.costs.tuple_bytes
        if isinstance(self._source, Drawn):
            self.arrays.world["drawn"] = 1
            start(self.arrays.worlds)

    def end_input(self) -> None:
        """End the source; what producers have read is still processed."""
        self._ended = True
        self.arrays.world["drawn"] = 0
        self.arrays.world["horizon"] = np.inf
        if self.feed is not None:
            self.feed.end(self.arrays["producer"])

    def free_state(self) -> None:
        """Free the state of all partitions."""
        for partition in range(self.settings.partitions):
            self.lose_state(partition)
        self.arrays["state"]["bytes"] = 0

    def do(self, worker: int, job: Job) -> None:
        """Queue a job at a consumer, ahead of further tuples."""
        self._jobs.add(worker, job)

    def when_read(self, worker: int, action: Action) -> None:
        """Run an action now, or after the current job of a consumer.

        It does not wait for the tuple in service. A dead consumer reads nothing.
        """
        if worker not in self.dead:
            self._jobs.when_read(worker, action)

    def pause(self, worker: int, partitions: list[int], quiesced: Action) -> None:
        """Pause partitions: producers buffer their tuples and acknowledge.

        Args:
            worker: The owner. Its previous pause must have been acknowledged.
            partitions: Partitions to pause.
            quiesced: Called when the worker has read all acknowledgements and processed the tuples ahead of them.
        """
        for partition in partitions:
            pause(self.arrays.worlds, partition)
        n = self.settings.workers
        connections = self.arrays["connection"][worker * n : (worker + 1) * n]
        connections["ack"] = connections["count"]
        missing = int(np.count_nonzero(connections["count"]))
        if self.standby:
            line = self.arrays["line"][worker]
            line["ack"] = line["count"]
            missing += int(line["count"] > 0)
        self.arrays["worker"]["acks"][worker] = missing
        earliest = self.now_s + self.settings.network.latency_s
        self._pausing.setdefault(worker, [])
        life = self._lives[worker]

        def settle() -> None:
            if life != self._lives[worker]:
                return
            waiting = self._pausing.pop(worker)
            quiesced()
            for action in waiting:
                action()

        if missing == 0:
            self.agenda.at(earliest, settle)
        else:
            self._quiesced[worker] = lambda: self.agenda.at(max(earliest, self.now_s), settle)

    def announce_pause(self, worker: int) -> None:
        """Announce that a worker is about to request a pause."""
        self._pausing[worker] = []

    def settled(self, worker: int) -> bool:
        """Whether a worker neither waits for acknowledgements nor will soon."""
        return worker not in self._pausing

    def when_settled(self, worker: int, action: Action) -> None:
        """Run an action after an unsettled worker has its acknowledgements."""
        self._pausing[worker].append(action)

    def process_backlog(self, worker: int, partition: int) -> None:
        """Let a consumer process the spilled input of a partition next."""
        self.arrays["worker"]["backlog"][worker] = partition
        wake(self.arrays.worlds, worker)

    def groups_on_their_way(self, worker: int) -> list[int]:
        """Group of each tuple in the connections to a worker."""
        n, credits = self.settings.workers, self.settings.network.connection_tuples
        connections = self.arrays["connection"][worker * n : (worker + 1) * n]
        places = self.arrays["queued"][worker * n * credits : (worker + 1) * n * credits].reshape(n, credits)
        passed = (np.arange(credits) - connections["first"][:, None]) % credits
        found: list[int] = places["group"][passed < connections["count"][:, None]].tolist()
        return found

    def clear_connections(self, worker: int) -> None:
        """Clear the connections to a worker, and the queues for them."""
        n = self.settings.workers
        connections = self.arrays["connection"][worker * n : (worker + 1) * n]
        connections["first"] = connections["count"] = connections["owed"] = connections["ack"] = 0
        connections["turn"] = NONE

    def restart(self, partition: int, owner: int) -> None:
        """Let all producers send a paused partition's tuples to its owner."""
        restart(self.arrays.worlds, partition, owner)

    def crash(self, worker: int) -> None:
        """Crash a worker: drop its jobs and halt its inputs.

        The tuple in service is lost, unless its producer keeps it.
        """
        record = self.arrays["worker"][worker]
        lasted = self.now_s - record["since"]
        doing = int(record["doing"])
        if doing in (IDLE, BLOCKED):
            record["idle"] += lasted
        elif doing in (SERVING, IN_JOB):
            record["busy"] += lasted
        if doing == SERVING and not record["mirrored"]:
            if self.standby:
                self.interrupted.add(worker)
            else:
                self.lost += 1
        record["doing"], record["since"], record["backlog"], record["debt"] = DEAD, self.now_s, NONE, 0.0
        record["job"] = record["acks"] = record["quiesced"] = record["mirrored"] = record["refused"] = 0
        record["held"] = record["held_first"] = 0
        schedule(self.arrays.worlds, worker, np.inf)
        self.dead.add(worker)
        self._lives[worker] += 1
        self._jobs.forget(worker)
        self._quiesced.pop(worker, None)
        self._pausing.pop(worker, None)
        for producer in self.hosted(worker):
            halt(self.arrays.worlds, producer)

    def forget_jobs(self, worker: int) -> None:
        """Drop the jobs that a dead worker was given since its crash."""
        self.arrays["worker"]["job"][worker] = 0
        self._jobs.forget(worker)

    def revive(self, worker: int) -> None:
        """Restart a dead worker."""
        record = self.arrays["worker"][worker]
        record["idle"] += self.now_s - record["since"]
        record["doing"] = FREE
        self.dead.discard(worker)
        schedule(self.arrays.worlds, worker, self.now_s)

    def drop_pools(self, producers: list[int]) -> list[int]:
        """Drop buffers of producers without a log; returns the lost groups."""
        if not isinstance(self._source, Made):
            return []
        world, flows, pooled = self.arrays.world, self.arrays["flow"], self.arrays["pooled"]
        partitions, places = int(world["partitions"]), int(world["places"])
        lost: list[int] = []
        for producer in producers:
            own = flows[producer * partitions : (producer + 1) * partitions]
            held = pooled[producer * places : (producer + 1) * places]
            for place in own["head"].tolist():
                while place != NONE:
                    lost.append(int(held["group"][place]))
                    place = int(held["link"][place])
            own["head"] = own["tail"] = NONE
            held["link"] = chain(places)
            self.arrays["producer"]["free"][producer] = self.arrays["producer"]["held"][producer] = 0
        self.lost += len(lost)
        return lost

    def hosted(self, worker: int) -> list[int]:
        """Producers whose input a worker reads; for `NONE`, halted producers."""
        found: list[int] = np.flatnonzero(self.arrays["producer"]["host"] == worker).tolist()
        return found

    def read_at(self, producer: int, worker: int) -> None:
        """Assign the input of a producer to a worker."""
        record = self.arrays["producer"][producer]
        if record["host"] == NONE:
            resume(self.arrays.worlds, producer, worker)
        else:
            record["host"] = worker

    def idle_s(self) -> NDArray[np.float64]:
        """Seconds in which each consumer was idle, blocked or dead, shape (workers,)."""
        workers = self.arrays["worker"]
        doing = workers["doing"]
        waiting = (doing == IDLE) | (doing == BLOCKED) | (doing == DEAD)
        return np.asarray(workers["idle"] + np.where(waiting, self.now_s - workers["since"], 0.0))

    def state_bytes(self) -> NDArray[np.int64]:
        """Current state of each partition, shape (partitions,).

        Source: Flux, section 6.1, getPartitionInfo.
        """
        if self.recent is not None:
            done = self.arrays.world["processed"], self.arrays.world["mirrored"], self.lost, self.shed
            measured = (self.now_s, *map(float, done))
            if measured != self._measured:
                self._measured = measured
                self.recent.expire()
        return np.asarray(self.arrays["state"]["bytes"])

    def lose_state(self, partition: int) -> None:
        """Empty the state of a partition, unless its size is fixed."""
        if self.recent is not None:
            self.recent.lose(partition)
        if self.settings.growth is not None:
            self.arrays["live"]["rows"][self.arrays["group"]["partition"] == partition] = 0
            self.arrays["state"]["bytes"][partition] = 0

    @property
    def in_use(self) -> NDArray[np.bool_]:
        """All partitions but free parts, shape (partitions,)."""
        ring = self.arrays["ring"]["following"]
        return ring != NONE if len(ring) else np.ones(self.settings.partitions, np.bool_)

    def arrived(self) -> int:
        """Number of rows of the stream that have arrived."""
        assert self.feed is not None
        return self.feed.arrived(self.now_s, self.arrays["row"], self.arrays["producer"])

    @property
    def shed(self) -> int:
        """Tuples dropped by load shedding."""
        return int(self.arrays["worker"]["shed"].sum())

    @property
    def answers(self) -> int | None:
        """Matches of the processed tuples; None without a join."""
        return None if self.settings.join is None else int(self.arrays.world["answers"])

    @property
    def drained(self) -> bool:
        """Whether all tuples of an ended source are processed, lost or shed."""
        if not self._ended and (self.feed is None or not self.feed.ended):
            return False
        producers = self.arrays["producer"]
        pulled = bool((producers["row"] == producers["rows_end"]).all())
        done = int(self.arrays.world["processed"]) + self.lost + self.shed
        return pulled and int(producers["generated"].sum()) == done

    def census(self) -> Census:
        """Number of tuples in each place."""
        workers = self.arrays["worker"]
        return Census(
            generated=int(self.arrays["producer"]["generated"].sum()),
            processed=int(self.arrays.world["processed"]),
            at_consumers=int(np.count_nonzero((workers["doing"] == SERVING) & (workers["mirrored"] == 0)))
            + len(self.interrupted),
            in_connections=int(self.arrays["connection"]["count"].sum()),
            in_pools=int(self.arrays["producer"]["held"].sum()) + sum(self.kept_alone.values()),
            spilled=int(self.arrays["partition"]["spilled"].sum()),
            at_twins=int(self.arrays["line"]["count"].sum()),
            lost=self.lost,
            shed=self.shed,
        )

    def _serve_producers(self, _: int) -> None:
        self.queues.answer()
        if (self.arrays["producer"]["hungry"] == 1).any():
            self.read_ahead()
        refill(self.arrays.worlds)

    def read_ahead(self) -> None:
        """Read more rows of the stream."""
        assert self.feed is not None
        self.on_rows_wanted()
        self.arrays.put("row", self.feed.more(self.arrays["row"], self.arrays["producer"]))
        if self.recent is not None and self.feed.last_read is not None:
            self.recent.read(self.feed.last_read)
        self.arrays.world["horizon"] = self.feed.horizon
