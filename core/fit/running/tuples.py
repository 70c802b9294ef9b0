"""The tuple simulator: random drops, and queues at nodes and links."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.errors import BadInput
from adapt.core.fit.network.names import OperatorKind
from adapt.core.fit.network.network import Operator, Window
from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.running.fluid import LATE, Offered, Tick, scales, true_use
from adapt.core.fit.running.passing import (
    ARC,
    NONE,
    READ,
    SERVER,
    WAITING,
    Books,
    Withdrawal,
    advance,
    spoiled_of,
    withdrawn_worth,
)
from adapt.core.fit.running.window_drop import LivingWindows
from adapt.core.histogram import BINS
from adapt.core.random_bits import substream
from adapt.core.stage.conditions.shed_factor import Overload

_MOST_AT_ONCE = 10_000_000
"""Limit of results of one tuple; more do not fit in memory."""


_FEW = 50
"""Service times that a result may be late, where ticks are short."""


class Tuples:
    """Simulates single tuples; operators are deterministic, drops random.

    Nodes and links serve in order of arrival, at the speed of their capacity. An operator emits a tuple whenever its
    selectivity, summed over its input, reaches another whole number; aggregates emit evenly in the same way, not at the
    ends of windows. Where windows are dropped, tuples have positions among them; see `LivingWindows`. A join matches a
    tuple with the latest tuples of its other side, up to the window. A result more than `LATE` ticks after its row
    does not count in the score.
    """

    def __init__(
        self,
        wiring: Wiring,
        seed: int = 0,
        cost_scale: float = 1.0,
        overload: Overload | None = None,
        windows: LivingWindows | None = None,
        highest: Wiring | None = None,
    ) -> None:
        """An empty network.

        Args:
            seed: Random seed; networks with the same wiring and seed make the same draws.
            cost_scale: Actual costs of operators / declared costs.
            overload: Load shedding at full queues; None: queues are unbounded.
            windows: Windows kept or dropped whole, of the same seed, with tallies where queues are bounded to withdraw
                them; None: random tuples are dropped everywhere.
            highest: The network with the highest selectivities to follow; None: they do not change.
        """
        self._wiring, self._scales = wiring, scales(wiring)
        self._cost_scale = cost_scale
        self._seconds = true_use(wiring, cost_scale) / wiring.limits[:, None]
        self.windows, self.refuses = windows, overload is not None
        self._credits, self._offered = np.zeros(wiring.inputs), np.zeros(wiring.inputs)
        self._burst = largest_burst(highest or wiring, self._scales)
        withdraws = windows if overload and windows and len(windows.tally) else None
        self._withdrawal = (
            None if withdraws is None else Withdrawal(withdraws.begun, withdraws.tally, *spoiled_of(wiring, withdraws))
        )
        self._withdrawn_worth = withdrawn_worth(wiring, withdraws)
        self._books = Books(
            first_arc=np.searchsorted(wiring.source, np.arange(len(wiring.network.sources) + 1)).astype(np.int64),
            arcs=arc_records(wiring, self._seconds, seed, windows),
            servers=np.full(len(wiring.limits), np.array((np.inf, 0, 0, NONE, NONE, 0, 0), SERVER)),
            pool=np.zeros(0, WAITING),
            free=np.full(2, NONE, np.int64),
            drop_curve=np.zeros(0) if overload is None else overload.factor.table(overload.capacity_tuples),
            shed_seeds=np.array([substream(seed, len(wiring.arcs) + at) for at in range(len(wiring.limits))]),
            lived=np.zeros((0, 1), np.int32),
            bins=np.zeros(BINS, np.int64),
            read=np.zeros(1, READ),
        )

    def follow(self, wiring: Wiring) -> None:
        """Change costs and selectivities, from the next tick on.

        A tuple in service is finished at the old cost.
        """
        if wiring is not self._wiring:
            self._wiring, self._seconds = wiring, true_use(wiring, self._cost_scale) / wiring.limits[:, None]
            change_values(self._books.arcs, wiring, self._seconds)

    def run(self, offered: Offered, keeps: Floats) -> Tick:
        """Simulate a tick."""
        arcs, servers, read = self._books.arcs, self._books.servers, self._books.read
        counted = ("offered", "dropped", "queue_drops", "served", "late", "work", "withdrawn")
        for name in counted:
            arcs[name] = 0
        arcs["keep"] = keeps
        if self.windows is not None:
            self._offered += np.bincount(offered.inputs, minlength=self._wiring.inputs) * self._scales
            self.windows.begin(offered.end_us, keeps, self._offered)
            self._books = self._books._replace(lived=self.windows.lived)
            if self._withdrawal is not None:
                self._withdrawal = self._withdrawal._replace(tally=self.windows.tally)
        servers["busy"] = 0.0
        read[:] = 0
        read["late"] = max(LATE * offered.tick_s, _FEW * _service_s(self._wiring, self._seconds))
        at_us = np.ascontiguousarray(offered.at_us, np.int64)
        inputs = np.ascontiguousarray(offered.inputs, np.int64)
        nodes = len(self._wiring.network.nodes)
        row = 0
        while True:
            row = advance(
                self._books,
                at_us,
                inputs,
                row,
                offered.end_us,
                self._scales,
                self._credits,
                nodes,
                self._burst,
                self._withdrawal,
            )
            if row < 0:
                break
            self._enlarge()
        count = int(read["count"][0])
        counts = {
            name: arcs[name].astype(np.float64)
            for name in ("offered", "dropped", "queue_drops", "withdrawn", "served", "queued")
        }
        worth = (counts["served"] - arcs["late"]) @ self._wiring.worth - counts["withdrawn"] @ self._withdrawn_worth
        return Tick(
            **counts,
            busy_s=servers["busy"].copy(),
            work_s=arcs["work"].copy(),
            score=float(worth / offered.tick_s),
            latency_s=float(read["latency"][0]) / count if count else None,
            latency_max_s=float(read["longest"][0]) if count else None,
            wait_s=self._seconds @ counts["queued"],
        )

    def latencies(self) -> NDArray[np.int64]:
        """Counted from the start."""
        return self._books.bins

    def _enlarge(self) -> None:
        """Double the pool, with room for one burst."""
        old, free = len(self._books.pool), self._books.free
        more = max(old, 2 * self._burst, 1024)
        pool = np.zeros(old + more, WAITING)
        pool[:old] = self._books.pool
        pool["after"][old:] = np.arange(old + 1, old + more + 1)
        pool["after"][-1] = free[0]
        self._books = self._books._replace(pool=pool)
        free[0], free[1] = old, max(free[1], 0) + more


def _service_s(wiring: Wiring, seconds: Floats) -> float:
    """Time from input to output without queues, on the longest way."""
    reached = np.zeros(len(wiring.network.sources))
    for source, target, takes in zip(wiring.source, wiring.target, seconds.sum(axis=0), strict=True):
        if target >= 0:
            reached[target] = max(reached[target], reached[source] + takes)
    return float(reached.max())


def arc_records(wiring: Wiring, seconds: Floats, seed: int, windows: LivingWindows | None) -> NDArray[Any]:
    """One record per arc, shape (arcs,).

    Args:
        seconds: Work of a tuple on each arc at each node, then link; shape (resources, arcs).
        seed: Random seed of the drops.
        windows: Windows kept or dropped whole; None: random tuples are dropped everywhere.
    """
    nodes = len(wiring.network.nodes)
    arcs = np.zeros(len(wiring.arcs), ARC)
    arcs["source"], arcs["target"] = wiring.source, wiring.target
    arcs["node"] = arcs["link"] = arcs["other"] = NONE
    arcs["fate"] = arcs["given"] = NONE
    names = [node.name for node in wiring.network.nodes]
    port = {(arc.target, arc.port): at for at, arc in enumerate(wiring.arcs)}
    for at, arc in enumerate(wiring.arcs):
        record = arcs[at]
        record["draws"] = substream(seed, at)
        if arc.port < 0:
            continue
        operator = wiring.network.sources[wiring.target[at]]
        assert isinstance(operator, Operator)
        record["node"] = names.index(operator.node)
        links = np.flatnonzero(wiring.use[nodes:, at])
        if len(links):
            record["link"], record["on_link"] = nodes + links[0], seconds[nodes + links[0], at]
        if operator.kind is OperatorKind.JOIN and operator.join_windows is not None:
            record["other"] = port[operator.name, 1 - arc.port]
            record["window"] = operator.join_windows[1 - arc.port]
    change_values(arcs, wiring, seconds)
    if windows is not None:
        arcs["fate"], arcs["given"], arcs["nested"] = windows.fate, windows.given, windows.nested
        arcs["size"], arcs["slide"] = _lengths(windows.windows)
        arcs["own_size"], arcs["own_slide"] = _lengths(windows.own)
        arcs["counts"] = [window is not None and not window.timed for window in windows.own]
        arcs["numbered"] = windows.numbered
    return arcs


def change_values(arcs: NDArray[Any], wiring: Wiring, seconds: Floats) -> None:
    """Change the costs and selectivities in the records of arcs.

    Args:
        seconds: As of `arc_records`.
    """
    inner = np.flatnonzero(wiring.target >= 0)
    arcs["on_node"][inner] = seconds[arcs["node"][inner], inner]
    arcs["gain"] = wiring.gain
    for at in inner:
        operator = wiring.network.sources[wiring.target[at]]
        assert isinstance(operator, Operator)
        if operator.kind is OperatorKind.JOIN:
            arcs["gain"][at] = operator.selectivity


def largest_burst(wiring: Wiring, scale: Floats) -> int:
    """Maximum tuples queued by one row, or by one piece of work."""
    fan_out = np.bincount(wiring.source, minlength=len(wiring.network.sources))
    given = np.zeros(len(wiring.network.sources))
    given[: wiring.inputs] = scale
    inner = wiring.target >= 0
    np.maximum.at(given, wiring.target[inner], wiring.gain[inner])
    at_once = (np.floor(given) + 2) * fan_out
    most = int(np.argmax(at_once))
    if at_once[most] > _MOST_AT_ONCE:
        raise BadInput(
            f"{wiring.network.sources[most].name!r} emits {given[most]:,.0f} tuples for one, too many to simulate; "
            "reduce its scale, selectivity or window, or use flow fluid"
        )
    return int(at_once[most])


def _lengths(windows: Sequence[Window | None]) -> tuple[list[int], list[int]]:
    """Size and slide of each window; 0 without one."""
    return [window.size if window else 0 for window in windows], [window.slide if window else 0 for window in windows]
