"""A query network tuple by tuple, with random drops on its arcs and a queue at every node and link."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.running.arcs import NONE, READ, WAITING, arc_records, largest_burst, server_records
from adapt.core.fit.running.fluid import scales, true_use
from adapt.core.fit.running.living_windows import LivingWindows
from adapt.core.fit.running.passing import advance
from adapt.core.fit.running.servers import Books
from adapt.core.fit.running.tick import Offered, Tick
from adapt.core.histogram import BINS
from adapt.core.random_bits import substream
from adapt.core.stage.conditions.shed_factor import Overload


class Tuples:
    """Tuples one by one: what an operator gives follows from how many it was given; drops are random draws.

    Nodes and links serve in the order of arrival, as fast as their capacity says. An operator gives a tuple whenever
    its selectivity, added up over what it was given, comes to another one; results of aggregates come spread likewise,
    not at the ends of windows. Where windows are dropped, a tuple's place among them is the time of its row, and that
    of an aggregate's result the beginning of its window. A join matches with what its other side has had, up to the
    window.
    """

    def __init__(
        self,
        wiring: Wiring,
        seed: int = 0,
        cost_scale: float = 1.0,
        overload: Overload | None = None,
        windows: LivingWindows | None = None,
    ) -> None:
        """An empty network.

        Args:
            seed: Random seed; networks of the same wiring and seed draw the same.
            cost_scale: True costs of operators over those that are declared.
            overload: How nodes refuse what comes while their queues are long; None, they do not.
            windows: Those that live or die, of the same seed; None, tuples are dropped at random everywhere.

        Raises:
            BadInput: an operator or input gives too many tuples for one.
        """
        self._wiring, self._scales = wiring, scales(wiring)
        self._seconds = true_use(wiring, cost_scale) / wiring.limits[:, None]
        self._windows = windows
        self._credits = np.zeros(wiring.inputs)
        self._burst = largest_burst(wiring, self._scales)
        self._books = Books(
            first_arc=np.searchsorted(wiring.source, np.arange(len(wiring.network.sources) + 1)).astype(np.int64),
            arcs=arc_records(wiring, self._seconds, seed, windows),
            servers=server_records(len(wiring.limits)),
            pool=np.zeros(0, WAITING),
            free=np.full(2, NONE, np.int64),
            drop_curve=np.zeros(0) if overload is None else overload.factor.table(overload.capacity_tuples),
            shed_seeds=np.array([substream(seed, len(wiring.arcs) + at) for at in range(len(wiring.limits))]),
            lived=np.zeros((0, 1), np.int32),
            bins=np.zeros(BINS, np.int64),
            read=np.zeros(1, READ),
        )

    def run(self, offered: Offered, keeps: Floats) -> Tick:
        """Let a tick happen."""
        arcs, servers, read = self._books.arcs, self._books.servers, self._books.read
        counted = ("offered", "dropped", "queue_drops", "served")
        for name in counted:
            arcs[name] = 0
        arcs["keep"] = keeps
        if self._windows is not None:
            self._windows.begin(offered.end_us, keeps)
            self._books = self._books._replace(lived=self._windows.lived)
        servers["busy"] = 0.0
        read[:] = 0
        at_us = np.ascontiguousarray(offered.at_us, np.int64)
        inputs = np.ascontiguousarray(offered.inputs, np.int64)
        nodes = len(self._wiring.network.nodes)
        row = 0
        while True:
            row = advance(
                self._books, at_us, inputs, row, offered.end_us, self._scales, self._credits, nodes, self._burst
            )
            if row < 0:
                break
            self._enlarge()
        count = int(read["count"][0])
        counts = {
            name: arcs[name].astype(np.float64) for name in ("offered", "dropped", "queue_drops", "served", "queued")
        }
        return Tick(
            **counts,
            busy_s=servers["busy"].copy(),
            score=float(counts["served"] @ self._wiring.worth / offered.tick_s),
            latency_s=float(read["latency"][0]) / count if count else None,
            latency_max_s=float(read["longest"][0]) if count else None,
            wait_s=self._seconds @ counts["queued"],
        )

    def latencies(self) -> NDArray[np.int64]:
        """From the start on."""
        return self._books.bins

    def _enlarge(self) -> None:
        """Twice the place for tuples that wait, and enough for what one can make."""
        old, free = len(self._books.pool), self._books.free
        more = max(old, 2 * self._burst, 1024)
        pool = np.zeros(old + more, WAITING)
        pool[:old] = self._books.pool
        pool["after"][old:] = np.arange(old + 1, old + more + 1)
        pool["after"][-1] = free[0]
        self._books = self._books._replace(pool=pool)
        free[0], free[1] = old, max(free[1], 0) + more
