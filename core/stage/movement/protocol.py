"""Movement protocol: partitions move while their tuples keep arriving.

Source: Flux, section 5.2."""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import BadInput
from adapt.core.stage.conditions.settings import of_workers
from adapt.core.stage.engine.queues import Action, Agenda, Job
from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.movement.controller import Course, Move, Moved, PartitionState, States
from adapt.core.stage.movement.spilling import Spilling
from adapt.core.stage.records.arrays import NONE

_NEARLY = 1e-6
"""Remaining bits that count as rounding errors."""


class StateNetwork:
    """State transfers in progress, one at a time per worker.

    A flow gets min(flow limit of its sender, total / flows). Source: Flux, section 5.4.
    """

    def __init__(
        self, agenda: Agenda, now: Callable[[], float], flow_limits: Sequence[float], total_limit: float
    ) -> None:
        """An idle network; limits in bits/s, those of flows by sending worker."""
        self._agenda = agenda
        self._now = now
        self._flow_limits = flow_limits
        self._total_limit = total_limit
        self._waiting: dict[int, deque[tuple[float, Action]]] = {}
        self._left: dict[int, float] = {}
        self._settled_s = 0.0
        self._version = 0
        self.bits_sent = 0.0

    @property
    def rates(self) -> dict[int, float]:
        """Current bandwidth of the flow of each sending worker, in bits/s."""
        return {donor: min(self._flow_limits[donor], self._total_limit / len(self._left)) for donor in self._left}

    def send(self, donor: int, bits: float, arrived: Action) -> None:
        """Queue a transfer at a worker."""
        self._settle()
        queue = self._waiting.setdefault(donor, deque())
        queue.append((bits, arrived))
        if len(queue) == 1:
            self._left[donor] = bits
        self._look_ahead()

    def stop(self, donor: int) -> None:
        """Cancel all transfers of a worker."""
        self._settle()
        self._waiting.pop(donor, None)
        self._left.pop(donor, None)
        self._look_ahead()

    def _settle(self) -> None:
        """Account for what was sent since the last call."""
        lasted_s = self._now() - self._settled_s
        for donor, rate in self.rates.items():
            self._left[donor] -= rate * lasted_s
            self.bits_sent += rate * lasted_s
        self._settled_s = self._now()

    def _look_ahead(self) -> None:
        """Schedule the end of the next transfer."""
        self._version += 1
        version = self._version
        if self._left:
            rates = self.rates
            soonest = min(max(0.0, left) / rates[donor] for donor, left in self._left.items())
            self._agenda.at(self._now() + soonest, lambda: self._finish(version))

    def _finish(self, version: int) -> None:
        if version != self._version:
            return
        rates = self.rates
        least_s = min(left / rates[donor] for donor, left in self._left.items())
        self._settle()
        now = self._now()
        # late in a long run, a rounding remainder may take less time than the clock resolves
        done = [
            donor
            for donor, left in self._left.items()
            if left <= _NEARLY or left <= least_s * rates[donor] * 1e-9 or now + left / rates[donor] == now
        ]
        actions = []
        for donor in sorted(done):
            queue = self._waiting[donor]
            actions.append(queue.popleft()[1])
            if queue:
                self._left[donor] = queue[0][0]
            else:
                del self._left[donor]
        self._look_ahead()
        for action in actions:
            action()


class Movement:
    """Executes moves on a stage.

    1. The controller orders the move from donor and receiver, which then waits for the state. 2. The donor asks all
    producers to pause the partition; each buffers its tuples from then on and sends an acknowledgement after what it
    has sent. 3. The donor keeps processing. When it has read all acknowledgements, no tuple of the partition is in
    flight. 4. It extracts the state and sends it, one partition after another. 5. The receiver installs it and notifies
    producers and controller. 6. Producers send to the receiver. Every message takes the latency of a packet.

    The donor keeps the sent state until the restart. If the receiver crashes before, the donor reinstalls the state and
    continues; if the donor crashes after the receiver has everything, the receiver continues. A copy takes the same
    steps, but the donor keeps state and partition.

    A move to the worker with the standby replica is a promotion: owner and replica change places once no tuple is in
    flight, and no state is sent. What the replica was sent and has not processed, it processes first.
    """

    def __init__(self, stage: Stage, spilling: Spilling | None = None, network: StateNetwork | None = None) -> None:
        """Start without moves.

        Args:
            spilling: Memory limits, if any.
            network: Shared network for state; None, its own.
        """
        self._stage = stage
        self._spilling = spilling
        limits = stage.settings.network
        self.network = network or StateNetwork(
            *(stage.agenda, lambda: stage.now_s),
            of_workers("bandwidths for state", limits.flow_bits_per_s, stage.settings.workers).tolist(),
            limits.state_bits_per_s,
        )
        self.states = States(stage.arrays)
        self._message_s = limits.latency_s
        self._fixed = stage.settings.costs.fixed
        self.log: list[Moved] = []
        self.copied: list[Moved] = []
        """Copies for standby replicas, which are not logged as moves."""
        self.on_the_wire: dict[int, PartitionState] = {}
        self._courses: dict[int, Course] = {}
        self._moving: set[int] = set()
        self._donating: set[int] = set()
        self.on_change: Action = lambda: None
        """Called when a donor may give again, or a move has ended."""
        self.on_moved: Callable[[Move], None] = lambda _: None
        """Called with a move when producers start to send to the receiver."""
        self.awaits_replica: Callable[[int], bool] = lambda _: False
        """Whether a partition without a replica gets one before it moves."""

    @property
    def moving(self) -> int:
        """Number of moves in progress."""
        return len(self._moving)

    def start(self, moves: Sequence[Move], done: Action, copies: bool = False) -> None:
        """Start moves in parallel; those of one donor in sequence.

        Args:
            done: Called when the controller knows that all have finished or were aborted by a crash.
            copies: Whether to create standby replicas, so that donors stay owners.
        """
        self._check(moves)
        waiting = len(moves)

        def one_done() -> None:
            nonlocal waiting
            waiting -= 1
            if waiting == 0:
                done()

        by_donor: dict[int, list[Course]] = {}
        by_receiver: dict[int, list[Course]] = {}
        dead = self._stage.dead
        for move in moves:
            promotes = not copies and self._twin(move.partition) == move.receiver
            moved = Moved(move, 0 if promotes else self._state_bytes(move.partition))
            course = Course(moved, one_done, copies, move.donor in dead, move.receiver in dead, promotes=promotes)
            self._courses[move.partition] = course
            self._note(course, "decided")
            (self.copied if copies else self.log).append(moved)
            by_donor.setdefault(move.donor, []).append(course)
            by_receiver.setdefault(move.receiver, []).append(course)
        ordering_s = self._fixed.order_s * len(moves)
        for receiver, batch in by_receiver.items():
            self._tell(receiver, partial(self._expect, batch), ordering_s)
        for donor, batch in by_donor.items():
            self._donating.add(donor)
            self._tell(donor, partial(self._ask_to_pause, donor, batch), ordering_s)

    def resize(self, state_tuples: NDArray[np.int64]) -> None:
        """Change the fixed state of each partition, in tuples; shape (partitions,)."""
        if self._stage.settings.growth is None:
            self._stage.arrays["state"]["bytes"] = state_tuples * self._stage.settings.costs.tuple_bytes

    def moves(self, partition: int) -> bool:
        """Whether a partition is moving."""
        return partition in self._moving

    def may_start(self, move: Move, copies: bool = False) -> bool:
        """Whether a move can start now.

        Its partition must not be moving, and its donor not pausing producers. A partition that is to have a standby
        replica needs it before it moves.
        """
        if move.partition in self._moving or move.donor in self._donating:
            return False
        return copies or self._twin(move.partition) != NONE or not self.awaits_replica(move.partition)

    def course_of(self, partition: int) -> Course | None:
        """The move or copy of a partition in progress, if any."""
        return self._courses.get(partition)

    def receiver_of(self, partition: int) -> int | None:
        """The receiver of a partition with a dead donor; else None."""
        course = self.course_of(partition)
        return course.moved.move.receiver if course is not None and course.buried else None

    def state_survives(self, partition: int) -> bool:
        """Whether the state of a partition survives on some worker."""
        course = self.course_of(partition)
        if course is not None:
            return course.state_survives
        return int(self._stage.arrays["partition"]["owner"][partition]) not in self._stage.dead

    def crashed(self, worker: int) -> None:
        """Record a crash that is not yet detected."""
        self.network.stop(worker)
        self._donating.discard(worker)
        for course in self._courses.values():
            course.donor_lost |= course.moved.move.donor == worker
            course.receiver_lost |= course.moved.move.receiver == worker

    def bury(self, worker: int) -> list[int]:
        """Handle a detected crash: abort moves, or continue without the worker.

        Returns:
            Partitions lost because both donor and receiver are dead.
        """
        orphans = []
        self._donating.discard(worker)
        for partition, course in list(self._courses.items()):
            move = course.moved.move
            if worker not in (move.donor, move.receiver):
                continue
            if course.donor_lost and course.state_survives:
                course.buried = True
            elif course.donor_lost:
                if course.buried:
                    orphans.append(partition)
                self._end(course)
            else:
                self._return(course)
        return orphans

    def groups_with_state(self, partition: int) -> list[int]:
        """Groups of a partition whose state is needed later."""
        if self._stage.settings.window == 0:
            seen = self._stage.arrays["partition"]["processed"][partition] > 0
            return self.states.groups_of(partition).tolist() if seen else []
        state = self.on_the_wire.get(partition) or self.states.copy(partition)
        found: list[int] = self.states.groups_of(partition)[state.needed].tolist()
        return found

    def forget(self, partition: int) -> None:
        """Forget the move of a partition that restarts elsewhere."""
        self._moving.discard(partition)
        self.on_the_wire.pop(partition, None)

    def _check(self, moves: Sequence[Move]) -> None:
        owners = self._stage.arrays["partition"]["owner"]
        if not moves:
            raise BadInput("start needs at least one move")
        seen: set[int] = set()
        for move in moves:
            if move.partition in self._moving | seen:
                raise BadInput(f"partition {move.partition} is already moving; wait until it has arrived")
            if owners[move.partition] != move.donor or not 0 <= move.receiver < self._stage.settings.workers:
                raise BadInput(
                    f"partition {move.partition} cannot move from worker {move.donor} to {move.receiver}: its owner is"
                    f" worker {owners[move.partition]} of {self._stage.settings.workers}"
                )
            if move.donor == move.receiver or move.donor in self._donating:
                raise BadInput(
                    f"worker {move.donor} cannot move partition {move.partition} to itself, or while it moves others"
                )
            seen.add(move.partition)
        self._moving |= seen

    def _tell(self, worker: int, action: Action, later_s: float = 0.0) -> None:
        self._stage.after(later_s + self._message_s, lambda: self._read(worker, action))

    def _read(self, worker: int, action: Action) -> None:
        """Let a worker read an order: at once, or after the row in service."""
        if not self._fixed.between_rows:
            self._stage.when_read(worker, action)
        elif worker not in self._stage.dead:
            self._stage.do(worker, Job(0.0, 0.0, action))

    def _ask_to_pause(self, donor: int, batch: list[Course]) -> None:
        if batch[0].donor_lost:
            return
        self._stage.announce_pause(donor)
        self._stage.after(self._message_s, lambda: self._pause(donor, batch))

    def _pause(self, donor: int, batch: list[Course]) -> None:
        if batch[0].donor_lost:
            return
        going_on = [course for course in batch if not course.over]
        for course in going_on:
            self._note(course, "paused")
        partitions = [course.moved.move.partition for course in going_on]
        self._stage.pause(donor, partitions, lambda: self._quiesced(donor, going_on))

    def _quiesced(self, donor: int, batch: list[Course]) -> None:
        self._donating.discard(donor)
        for course in batch:
            if course.over:
                continue
            self._note(course, "quiesced")
            if not course.promotes:
                course.moved.state_bytes = self._state_bytes(course.moved.move.partition)
            if self._spilling is None:
                job = self._extraction(course, partial(self._extract, course))
                extract = partial(self._stage.do, donor, job)
                if self._fixed.between_rows:  # the controller orders it, once it has heard of the last row
                    self._stage.after(self._message_s, partial(self._tell, donor, extract))
                else:
                    extract()
            else:
                self._spilling.give(donor, course.moved.move.partition, partial(self._give, course))
        self.on_change()

    def _give(self, course: Course, through: Action) -> None:
        """Extract a partition on a worker with a memory limit."""
        spilling, move = self._spilling, course.moved.move
        assert spilling is not None

        def extract() -> None:
            if not course.over:
                self._extract(course)
                if not course.copies:
                    spilling.left(move.donor, move.partition)
            through()

        self._stage.do(move.donor, self._extraction(course, extract))

    def _extraction(self, course: Course, done: Action) -> Job:
        """The job to extract a state; a promotion extracts none."""
        costs, moved = self._stage.settings.costs, course.moved
        fixed_s = 0.0 if course.promotes else self._fixed.extract_s
        return Job(0.0, fixed_s + costs.marshal_s * (moved.state_bytes // costs.tuple_bytes), done)

    def _installation(self, moved: Moved, done: Action) -> Job:
        """The job to install a state."""
        costs = self._stage.settings.costs
        tuple_s = costs.marshal_s if costs.install_s is None else costs.install_s
        return Job(0.0, self._fixed.install_s + tuple_s * (moved.state_bytes // costs.tuple_bytes), done)

    def _state_bytes(self, partition: int) -> int:
        """Current state size of a partition."""
        return int(self._stage.state_bytes()[partition])

    def _extract(self, course: Course) -> None:
        if course.over:
            return
        moved = course.moved
        partition = moved.move.partition
        in_flight = int(self._stage.arrays["partition"]["in_flight"][partition])
        assert in_flight == 0, f"partition {partition} is extracted with {in_flight} tuples in flight"
        self._note(course, "extracted")
        if course.promotes:
            self._tell(moved.move.receiver, lambda: self._agree(course))
            return
        self.on_the_wire[partition] = (self.states.copy if course.copies else self.states.take)(partition)
        if course.is_expected:
            self._send(course)

    def _expect(self, batch: list[Course]) -> None:
        """Let a receiver wait for states; a promotion sends none.

        Those that their donors have ready are sent.
        """
        for course in batch:
            course.is_expected = True
            if "extracted" in course.moved.times_s and not (course.promotes or course.over or course.donor_lost):
                self._send(course)

    def _send(self, course: Course) -> None:
        moved = course.moved
        self.network.send(moved.move.donor, moved.state_bytes * 8.0, lambda: self._receive(course))

    def _receive(self, course: Course) -> None:
        if course.over or course.receiver_lost:
            return
        self._note(course, "received")
        receiver = course.moved.move.receiver
        job = self._installation(course.moved, lambda: self._install(course))
        self._stage.when_read(receiver, lambda: self._stage.do(receiver, job))

    def _agree(self, course: Course) -> None:
        """The replica learns that it becomes the owner."""
        if not course.over:
            self._note(course, "received")
            self._note(course, "installed")
            self._stage.after(self._message_s, lambda: self._restart(course))

    def _install(self, course: Course) -> None:
        if course.over:
            return
        self._note(course, "installed")
        partition = course.moved.move.partition
        self.states.put(partition, self.on_the_wire[partition], twin=course.copies)
        if self._spilling is not None and not course.copies:
            self._spilling.arrived(course.moved.move.receiver, partition)
        self._stage.after(self._message_s, lambda: self._restart(course))

    def _restart(self, course: Course) -> None:
        if course.over or course.receiver_lost:
            return
        self._note(course, "restarted")
        move = course.moved.move
        self.forget(move.partition)
        if course.promotes:
            self._change_places(move)
        if not course.copies:
            self._stage.restart(move.partition, move.receiver)
            self.on_moved(move)
        elif course.buried:
            self.states.put(move.partition, self.states.take(move.partition, twin=True))
            self._stage.restart(move.partition, move.receiver)
            if self._spilling is not None:
                self._spilling.arrived(move.receiver, move.partition)
        else:
            self._stage.arrays["pair"]["twin"][move.partition] = move.receiver
            self._stage.restart(move.partition, move.donor)
            if self._spilling is not None:
                self._spilling.grown(move.receiver)
        self._end(course)

    def _change_places(self, move: Move) -> None:
        """Make the replica the owner, and the owner the replica."""
        one, states, arrays = move.partition, self.states, self._stage.arrays
        owned, replica = states.copy(one), states.copy(one, twin=True)
        states.put(one, replica)
        states.put(one, owned, twin=True)
        arrays["pair"]["twin"][one] = move.donor
        arrays["partition"]["in_flight"][one] = self.pending(one)
        if self._spilling is not None:
            self._spilling.arrived(move.receiver, one)
            self._spilling.grown(move.donor)

    def pending(self, partition: int) -> int:
        """Tuples of a partition forwarded to its replica, not yet processed."""
        return int(self._stage.arrays["kept"]["pending"][partition :: self._stage.settings.partitions].sum())

    def _twin(self, partition: int) -> int:
        """The worker with the replica of a partition; `NONE` without one."""
        return int(self._stage.arrays["pair"]["twin"][partition]) if self._stage.standby else NONE

    def _return(self, course: Course) -> None:
        """Abort a move whose receiver is dead; the donor continues with the state it kept."""
        donor, partition = course.moved.move.donor, course.moved.move.partition
        extracted = "extracted" in course.moved.times_s
        course.over = True
        del self._courses[partition]

        def go_on() -> None:
            if extracted and not course.copies:
                if not course.promotes:
                    self.states.put(partition, self.on_the_wire[partition])
                if self._spilling is not None:
                    self._spilling.arrived(donor, partition)
            self.forget(partition)
            if self._stage.arrays["partition"]["stalled"][partition]:
                self._stage.restart(partition, donor)
            self.on_change()

        if extracted and not course.copies and not course.promotes:
            self._stage.when_read(donor, lambda: self._stage.do(donor, self._installation(course.moved, go_on)))
        else:
            go_on()
        course.done()

    def _end(self, course: Course) -> None:
        course.over = True
        del self._courses[course.moved.move.partition]
        self._moving.discard(course.moved.move.partition)
        course.done()
        self.on_change()

    def _note(self, course: Course, step: str) -> None:
        course.moved.times_s[step] = self._stage.now_s
