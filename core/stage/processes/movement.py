"""Movement protocol between processes."""

from functools import partial

from adapt.core.stage.movement.course import Course
from adapt.core.stage.movement.protocol import Movement
from adapt.core.stage.processes.stage import ProcessStage
from adapt.core.stage.processes.workers import Installed, Order


class ProcessMovement(Movement):
    """Executes moves on a stage of processes."""

    def __init__(self, stage: ProcessStage) -> None:
        """Start without moves."""
        super().__init__(stage)
        self._processes = stage
        stage.on_installed = self._installed
        stage.is_moving = lambda: self.moving > 0

    def _quiesced(self, donor: int, batch: list[Course]) -> None:
        """No row of the partitions is in flight to the donor; nor to their replicas, once these are even."""
        self._donating.discard(donor)
        for course in batch:
            if not course.over:
                self._note(course, "quiesced")
                self._processes.when_even(course.moved.move.partition, partial(self._give_away, course))
        self.on_change()

    def _give_away(self, course: Course) -> None:
        """Let the donor send the state, or change places with the replica."""
        move = course.moved.move
        if course.over or not self._processes.dead.isdisjoint((move.donor, move.receiver)):
            return
        if course.promotes:
            self._note(course, "extracted")
            self._agree(course)
        else:
            seat = self._processes.seat(move.receiver)
            self.on_the_wire[move.partition] = self.states.copy(move.partition)
            self._processes.order(move.donor, Order.GIVE, move.partition, seat, int(course.copies))

    def _installed(self, receiver: int, installed: Installed) -> None:
        """The receiver has the state."""
        course = self._courses.get(installed.partition)
        if course is None or course.over or course.moved.move.receiver != receiver:
            return
        moved = course.moved
        moved.state_bytes = installed.state_bytes
        moved.times_s["extracted"] = installed.extracted_s
        moved.times_s["received"] = installed.received_s
        moved.times_s["installed"] = installed.installed_s
        self._restart(course)

    def _restart(self, course: Course) -> None:
        """Let producers send to the receiver; the donor drops the state that it kept."""
        move, ended = course.moved.move, course.over or course.receiver_lost
        super()._restart(course)
        if not (ended or course.copies or course.promotes):
            self._processes.order(move.donor, Order.DROP, move.partition)

    def _return(self, course: Course) -> None:
        """Abort a move whose receiver is dead; the donor goes on with the state that it kept."""
        move = course.moved.move
        if move.partition in self.on_the_wire and not course.copies:
            self._processes.order(move.donor, Order.KEEP, move.partition)
        super()._return(course)
