"""Network for state transfers, with shared bandwidth."""

from collections import deque
from collections.abc import Callable, Sequence

from adapt.core.stage.engine.jobs import Action, Agenda

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
