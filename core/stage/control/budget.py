"""Budget for movement: a limit on the state that a controller moves."""

from collections.abc import Sequence

from adapt.core.errors import UsageError
from adapt.core.stage.movement.controller import Controller, Move, Observation, Round


class Budgeted:
    """A controller that moves at most a number of bytes per second.

    A move starts unless the budget is overdrawn, so partitions of any size can move; further moves of the round are
    dropped. What was not used within a second is forgone.
    """

    def __init__(self, controller: Controller, bytes_per_s: float) -> None:
        """Begin without savings.

        Raises:
            UsageError: The budget is not above 0.
        """
        if not bytes_per_s > 0:
            raise UsageError(f"the budget for movement must be above 0 (got {bytes_per_s:g} bytes/s)")
        self._controller = controller
        self._bytes_per_s = bytes_per_s
        self._left = 0.0
        self._at_s = 0.0

    def collection_s(self, previous: Round | None) -> float:
        """Collection time of the controller."""
        return self._controller.collection_s(previous)

    def plan(self, observed: Observation) -> Sequence[Move]:
        """The first moves of the controller that the budget allows."""
        since_s, self._at_s = observed.at_s - self._at_s, observed.at_s
        self._left = min(self._left + self._bytes_per_s * since_s, self._bytes_per_s)
        moves: list[Move] = []
        for move in self._controller.plan(observed):
            if self._left < 0:
                break
            self._left -= int(observed.state_bytes[move.partition])
            moves.append(move)
        return moves
