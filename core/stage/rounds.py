"""The controller at work: collect, decide, move, and again.

Source: Flux, section 5.3.
"""

from collections.abc import Callable
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
        living: Callable[[], list[int]] | None = None,
    ) -> None:
        """The first round begins now.

        Args:
            stage: What is adapted.
            movement: Carries out moves on it.
            controller: Decides.
            idle_clock_s: A consumer without input sleeps in multiples of this and counts them as waiting; 0, it knows
                exactly how long it has waited.
            spilling: What keeps memory, if it is limited.
            living: The sites that the controller knows to live, in order; all if not given. A policy is told of these
                alone, by their rank, and moves that cannot start are left out of its round.
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
        self._living = living
        self._asked = list(range(n))
        self._round = 0
        self._collecting = False
        self._collect(None)

    def interrupt(self) -> None:
        """A site is dead: it will not report, and partitions have changed hands. If reports are awaited, begin anew."""
        if self._collecting:
            self._collect(self.rounds[-1] if self.rounds else None)

    def _collect(self, previous: Round | None) -> None:
        collection_s = self._controller.collection_s(previous)
        self._round += 1
        self._collecting = True
        self._stage.after(self._message_s, partial(self._begin, self._round, collection_s))

    def _begin(self, number: int, collection_s: float) -> None:
        if number != self._round:
            return
        if self._living is not None:
            self._asked = self._living()
        self._missing = len(self._asked)
        for site in self._asked:
            self._stage.when_read(site, partial(self._reset, number, site, collection_s))

    def _reset(self, number: int, site: int, collection_s: float) -> None:
        """A consumer begins to collect."""
        if number != self._round:
            return
        own = self._owners() == site
        self._began_s[site] = self._stage.now_s
        self._idle_before[site] = self._stage.idle_s()[site]
        self._processed_before[own] = self._stage.arrays["partition"]["processed"][own]
        report = partial(self._report, number, site, collection_s)
        self._stage.after(collection_s, lambda: self._stage.when_read(site, report))

    def _report(self, number: int, site: int, collection_s: float) -> None:
        """A consumer sends what it has collected."""
        if number != self._round:
            return
        own = self._owners() == site
        self._collected_s[site] = self._stage.now_s - self._began_s[site]
        idle = self._stage.idle_s()[site] - self._idle_before[site]
        if self._idle_clock_s > 0:
            idle = min(np.ceil(idle / self._idle_clock_s) * self._idle_clock_s, self._collected_s[site])
        self._idle_s[site] = idle
        self._processed[own] = self._stage.arrays["partition"]["processed"][own] - self._processed_before[own]
        self._missing -= 1
        if self._missing == 0:
            self._stage.after(self._message_s, partial(self._decide, number, collection_s))

    def _decide(self, number: int, collection_s: float) -> None:
        if number != self._round:
            return
        self._collecting = False
        moves = tuple(self._controller.plan(self._observation())) if len(self._asked) > 1 else ()
        if self._living is not None:
            named = (Move(one.partition, self._asked[one.donor], self._asked[one.receiver]) for one in moves)
            moves = tuple(move for move in named if self._movement.may_start(move))
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
        limits = np.full(n, np.inf) if self._spilling is None else self._spilling.limits
        return Observation(
            collected_s=self._collected_s[self._asked],
            idle_s=self._idle_s[self._asked],
            processed=self._processed.copy(),
            owners=self._ranks_of_owners(),
            state_bytes=self._sizes,
            on_disk=self._stage.arrays["partition"]["on_disk"] != 0,
            available_bytes=limits[self._asked],
        )

    def _ranks_of_owners(self) -> NDArray[np.int32]:
        """Among the sites that were asked; a partition on its way from a dead site counts for where it goes."""
        owners = self._owners().copy()
        if self._living is not None:
            for partition in np.flatnonzero(~np.isin(owners, self._asked)):
                receiver = self._movement.receiver_of(int(partition))
                owners[partition] = receiver if receiver in self._asked else self._asked[0]
        ranks = np.zeros(self._stage.settings.sites, np.int32)
        ranks[self._asked] = np.arange(len(self._asked))
        return np.asarray(ranks[owners])
