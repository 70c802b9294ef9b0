"""The controller at work: collect, decide, move, and again.

Source: Flux, section 5.3.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from adapt.core.stage.memory import Spilling
from adapt.core.stage.movement import Movement
from adapt.core.stage.moves import Controller, Move, Observation, Round
from adapt.core.stage.stage import Stage


class Rounds:
    """Lets a controller adapt a stage, round after round, from the moment it is made.

    The controller tells all consumers to collect; each reports when the time is over, as soon as it reads its messages;
    the controller decides when it has all reports.
    """

    def __init__(
        self,
        stage: Stage,
        movement: Movement,
        controller: Controller,
        idle_clock_s: float = 0.0,
        spilling: Spilling | None = None,
    ) -> None:
        """The first round begins now.

        Args:
            stage: What is adapted.
            movement: Carries out moves on it.
            controller: Decides.
            idle_clock_s: A consumer without input sleeps in multiples of this and counts them as waiting; 0, it knows
                exactly how long it has waited.
            spilling: What keeps memory, if it is limited.
        """
        self._stage = stage
        self._spilling = spilling
        self._movement = movement
        self._controller = controller
        self._idle_clock_s = idle_clock_s
        self._message_s = stage.settings.network.latency_s
        self._sizes = stage.settings.state_sizes() * stage.settings.costs.tuple_bytes
        self.rounds: list[Round] = []
        n = stage.settings.sites
        self._began_s: NDArray[np.float64] = np.zeros(n)
        self._idle_before: NDArray[np.float64] = np.zeros(n)
        self._processed_before: NDArray[np.int64] = np.zeros(stage.settings.partitions, np.int64)
        self._collected_s: NDArray[np.float64] = np.zeros(n)
        self._idle_s: NDArray[np.float64] = np.zeros(n)
        self._processed: NDArray[np.int64] = np.zeros(stage.settings.partitions, np.int64)
        self._missing = 0
        self._collect(None)

    def _collect(self, previous: Round | None) -> None:
        collection_s = self._controller.collection_s(previous)
        self._missing = self._stage.settings.sites
        self._stage.after(self._message_s, lambda: self._begin(collection_s))

    def _begin(self, collection_s: float) -> None:
        for site in range(self._stage.settings.sites):
            self._stage.when_read(site, partial(self._reset, site, collection_s))

    def _reset(self, site: int, collection_s: float) -> None:
        """A consumer begins to collect."""
        own = self._owners() == site
        self._began_s[site] = self._stage.now_s
        self._idle_before[site] = self._stage.idle_s()[site]
        self._processed_before[own] = self._stage.arrays["partition"]["processed"][own]
        self._stage.after(collection_s, lambda: self._stage.when_read(site, lambda: self._report(site, collection_s)))

    def _report(self, site: int, collection_s: float) -> None:
        """A consumer sends what it has collected."""
        own = self._owners() == site
        self._collected_s[site] = self._stage.now_s - self._began_s[site]
        idle = self._stage.idle_s()[site] - self._idle_before[site]
        if self._idle_clock_s > 0:
            idle = min(np.ceil(idle / self._idle_clock_s) * self._idle_clock_s, self._collected_s[site])
        self._idle_s[site] = idle
        self._processed[own] = self._stage.arrays["partition"]["processed"][own] - self._processed_before[own]
        self._missing -= 1
        if self._missing == 0:
            self._stage.after(self._message_s, lambda: self._decide(collection_s))

    def _decide(self, collection_s: float) -> None:
        moves = tuple(self._controller.plan(self._observation()))
        decided_s = self._stage.now_s
        if moves:
            self._movement.start(moves, lambda: self._over(collection_s, moves, self._stage.now_s - decided_s))
        else:
            self._over(collection_s, (), 0.0)

    def _over(self, collection_s: float, moves: tuple[Move, ...], moving_s: float) -> None:
        self.rounds.append(Round(collection_s, moves, moving_s))
        self._collect(self.rounds[-1])

    def _owners(self) -> NDArray[np.int32]:
        return np.asarray(self._stage.arrays["partition"]["owner"])

    def _observation(self) -> Observation:
        n = self._stage.settings.sites
        return Observation(
            collected_s=self._collected_s.copy(),
            idle_s=self._idle_s.copy(),
            processed=self._processed.copy(),
            owners=self._owners().copy(),
            state_bytes=self._sizes,
            on_disk=self._stage.arrays["partition"]["on_disk"] != 0,
            available_bytes=np.full(n, np.inf) if self._spilling is None else self._spilling.limits.copy(),
        )
