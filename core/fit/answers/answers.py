"""Answers of aggregates during a replay, with and without drops."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.fit.answers.accuracy import Accuracy, WindowShares, accuracy_of
from adapt.core.fit.answers.held_rows import HeldRows
from adapt.core.fit.answers.sample import Live, Sample
from adapt.core.fit.network.computed import Computed
from adapt.core.fit.network.network import Network
from adapt.core.fit.network.wiring import Indices, Wiring
from adapt.core.fit.running.living_windows import LivingWindows
from adapt.core.fit.running.tick import Offered
from adapt.core.fit.running.tuples import Tuples
from adapt.core.fit.running.window_drop import shares_through

_UNLIMITED = 1e300
"""Capacity at which no tuple waits."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A function of an aggregate, and its errors under a planner."""

    operator: str
    computed: Computed
    accuracy: Accuracy


class Answers:
    """Samples of all aggregates that compute, by planner.

    A further run without drops or queues gives the true answers.
    """

    def __init__(
        self, wiring: Wiring, planners: Sequence[Tuples], seed: int, numbers: Sequence[str], groups: Sequence[str]
    ) -> None:
        """No rows yet.

        Args:
            planners: The simulators of the planners.
            seed: Theirs, so that filters pass the same rows in every run.
            numbers: The first columns of `Offered.values`.
            groups: Those after them.
        """
        self._operators = [operator for operator in wiring.network.operators if operator.computes]
        whole = Tuples(Wiring.from_network(_unlimited(wiring.network)), seed)
        self._wiring, self._runs, self._rows = wiring, (*planners, whole), HeldRows()
        self._samples = [[Sample(operator, numbers, groups) for operator in self._operators] for _ in self._runs]
        targets = [wiring.network.sources.index(operator) for operator in self._operators]
        self._arcs = [int(np.flatnonzero(wiring.target == target)[0]) for target in targets]
        self._all = np.ones(len(wiring.arcs))

    def add(self, offered: Offered) -> None:
        """Take the tick that all planners have just run."""
        self._rows.add(offered)
        self._runs[-1].run(offered, self._all)
        for run, samples in zip(self._runs, self._samples, strict=True):
            reached = run.reached
            at_us, values = self._rows.of(reached["row"])
            for number, sample in enumerate(samples):
                of_it = reached["answer"] == number
                if of_it.any():
                    live = None if run.windows is None else _live(run.windows, self._arcs[number])
                    sample.add(at_us[of_it], values[of_it], reached["weight"][of_it], live)
        self._rows.forget(min((run.oldest for run in self._runs if run.oldest is not None), default=None))

    def of(self, planner: int, keeps: Floats, tick_us: int) -> tuple[Answer, ...]:
        """Every function of every aggregate, of one planner.

        Args:
            planner: Its number.
            keeps: Its shares, shape (ticks, arcs).
        """
        run = self._runs[planner]
        for number, sample in enumerate(self._samples[planner]):
            if run.windows is not None and run.refuses:
                sample.keep(_live(run.windows, self._arcs[number]))
        return tuple(
            Answer(
                operator.name, computed, accuracy_of(computed, kept, whole, self._shares(planner, at, keeps, tick_us))
            )
            for at, (operator, kept, whole) in enumerate(
                zip(self._operators, self._samples[planner], self._samples[-1], strict=True)
            )
            for computed in operator.computes
        )

    def _shares(self, planner: int, number: int, keeps: Floats, tick_us: int) -> WindowShares | None:
        """The shares of an aggregate's windows, where windows are dropped."""
        run = self._runs[planner]
        windows = run.windows
        if windows is None:
            return None
        own = self._operators[number].window
        assert own is not None
        of_tick = shares_through(self._wiring, windows.behind, keeps)[:, self._arcs[number]]

        def of(starts: Indices) -> Floats:
            return np.asarray(of_tick[np.minimum(starts * own.slide // tick_us, len(keeps) - 1)])

        return WindowShares(of, windows.batch, run.refuses)


def _live(windows: LivingWindows, arc: int) -> Live:
    return partial(_alive, windows.lived[windows.given[arc]])


def _alive(lived: NDArray[np.int32], windows: Indices) -> NDArray[np.bool_]:
    return np.asarray(lived[windows + 1] > lived[windows])


def _unlimited(network: Network) -> Network:
    """The same network, in which nothing waits."""
    nodes = tuple(replace(node, capacity=_UNLIMITED) for node in network.nodes)
    return replace(network, nodes=nodes, links=tuple(replace(link, bytes_per_s=_UNLIMITED) for link in network.links))
