"""Movement protocol between processes."""

from adapt.core.stage.movement.controller import Course
from adapt.core.stage.movement.protocol import Movement
from reality.processes.messages import Installed, Order
from reality.processes.stage import ProcessStage


class ProcessMovement(Movement):
    """Executes moves on a stage of processes."""

    def __init__(self, stage: ProcessStage) -> None:
        """Start without moves."""
        super().__init__(stage)
        self._workers = stage.workers
        stage.on_installed = self._installed
        stage.is_moving = lambda: self.moving > 0

    def _quiesced(self, donor: int, batch: list[Course]) -> None:
        """No row of the partitions is in flight to the donor."""
        self._donating.discard(donor)
        for course in batch:
            if not course.over:
                self._note(course, "quiesced")
                self._give_away(course)
        self.on_change()

    def _give_away(self, course: Course) -> None:
        """Let the donor send the state."""
        move = course.moved.move
        self.on_the_wire[move.partition] = self.states.copy(move.partition)
        self._workers.order(move.donor, Order.GIVE, move.partition, move.receiver)

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
