"""A query network tuple by tuple, with random drops on its arcs and a queue at every node and link."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.compiled import compiled, inlined
from adapt.core.errors import BadInput
from adapt.core.fit.network.names import OperatorKind
from adapt.core.fit.network.network import Operator
from adapt.core.fit.network.wiring import Indices, Wiring
from adapt.core.fit.running.fluid import scales, true_use
from adapt.core.fit.running.living_windows import LivingWindows
from adapt.core.fit.running.tick import Offered, Tick
from adapt.core.histogram import BINS, bin_of
from adapt.core.partitioning.measures.resources import Floats
from adapt.core.random_bits import output, substream, uniform
from adapt.core.stage.conditions.shed_factor import Overload

_NONE = -1
_ALMOST = 1e-9
"""Parts of tuples that add up to so little less than one are one."""

_NO_WINDOWS = np.zeros((0, 1), np.int32)

_MOST_AT_ONCE = 10_000_000
"""Results of one tuple; more do not fit in memory."""

WAITING = np.dtype([("born", np.int64), ("at", np.int64), ("arc", np.int32), ("after", np.int32)])
"""A tuple in a queue: when its row came in microseconds, its place among windows likewise, where it goes, and the next
in the queue or free place."""

SERVER = np.dtype(
    [
        ("done", np.float64),  # when the work at hand is done, in seconds; inf where there is none
        ("since", np.float64),  # when it was begun, or the tick was
        ("busy", np.float64),
        ("head", np.int32),
        ("tail", np.int32),
        ("length", np.int64),  # tuples, the one at hand included
        ("taken", np.int64),  # tuples that came to it, refused ones included
    ],
    align=True,
)
"""A node, or a link."""

ARC = np.dtype(
    [
        ("source", np.int32),
        ("target", np.int32),  # an operator; -1 at an output
        ("node", np.int32),
        ("link", np.int32),  # which it goes over before; -1, none
        ("other", np.int32),  # the arc of a join's other side
        ("window", np.float64),  # tuples that a join keeps of that
        ("gain", np.float64),  # of a join for each of them
        ("on_node", np.float64),  # seconds of work
        ("on_link", np.float64),
        ("keep", np.float64),
        ("draws", np.uint64),  # the seed of its random drops
        ("size", np.int64),  # of windows that live or die, in microseconds
        ("slide", np.int64),  # 0, there are none, and tuples are dropped at random
        ("own_size", np.int64),  # of the windows of the aggregate that it goes to
        ("own_slide", np.int64),
        ("fate", np.int32),  # where it is told which windows live on this arc
        ("given", np.int32),  # and which the aggregate opens; -1, it is told nowhere
        ("nested", np.bool_),  # whether other aggregates behind that one go by where its windows begin
        ("credit", np.float64),  # part of a tuple that is given later
        ("came", np.int64),  # from the start on
        ("worked", np.int64),
        ("offered", np.int64),  # in the tick
        ("dropped", np.int64),
        ("refused", np.int64),
        ("served", np.int64),
        ("queued", np.int64),
    ],
    align=True,
)

READ = np.dtype([("latency", np.float64), ("longest", np.float64), ("count", np.int64)])


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
            wiring: Of the network.
            seed: Random seed; networks of the same wiring and seed draw the same.
            cost_scale: True costs of operators over those that are declared.
            overload: How nodes refuse what comes while their queues are long; None, they do not.
            windows: Those that live or die, of the same seed; None, tuples are dropped at random everywhere.

        Raises:
            BadInput: an operator or input gives too many tuples for one.
        """
        self._wiring, self._scales = wiring, scales(wiring)
        self._seconds = true_use(wiring, cost_scale) / wiring.limits[:, None]
        self._arcs = _arcs(wiring, self._seconds, seed)
        self._windows = windows
        if windows is not None:
            self._arcs["fate"], self._arcs["given"] = windows.fate, windows.given
            self._arcs["size"] = [window.size if window else 0 for window in windows.windows]
            self._arcs["slide"] = [window.slide if window else 0 for window in windows.windows]
            self._arcs["own_size"] = [window.size if window else 0 for window in windows.own]
            self._arcs["own_slide"] = [window.slide if window else 0 for window in windows.own]
            self._arcs["nested"] = windows.nested
        self._servers = np.zeros(len(wiring.limits), SERVER)
        self._servers["done"], self._servers["head"], self._servers["tail"] = np.inf, _NONE, _NONE
        self._nodes = len(wiring.network.nodes)
        self._credits = np.zeros(wiring.inputs)
        self._first_arc = np.searchsorted(wiring.source, np.arange(len(wiring.network.sources) + 1)).astype(np.int64)
        self._burst = _burst(wiring, self._scales)
        self._pool, self._free = np.zeros(0, WAITING), np.full(2, _NONE, np.int64)
        self._bins = np.zeros(BINS, np.int64)
        self._read = np.zeros(1, READ)
        self._parts = np.zeros(0) if overload is None else overload.factor.table(overload.capacity_tuples)
        self._refusals = np.array([substream(seed, len(wiring.arcs) + at) for at in range(len(self._servers))])

    def run(self, offered: Offered, keeps: Floats) -> Tick:
        """Let a tick happen."""
        arcs, servers, read = self._arcs, self._servers, self._read
        for name in ("offered", "dropped", "refused", "served"):
            arcs[name] = 0
        arcs["keep"] = keeps
        if self._windows is not None:
            self._windows.begin(offered.end_us, keeps)
        lived = _NO_WINDOWS if self._windows is None else self._windows.lived
        servers["busy"] = 0.0
        read[:] = 0
        at_us = np.ascontiguousarray(offered.at_us, np.int64)
        inputs = np.ascontiguousarray(offered.inputs, np.int64)
        row = 0
        while True:
            row = _advance(
                at_us,
                inputs,
                row,
                offered.end_us,
                self._scales,
                self._credits,
                self._first_arc,
                arcs,
                servers,
                self._nodes,
                self._pool,
                self._free,
                self._burst,
                self._parts,
                self._refusals,
                lived,
                self._bins,
                read,
            )
            if row < 0:
                break
            self._enlarge()
        count = int(read["count"][0])
        counts = {name: arcs[name].astype(np.float64) for name in ("offered", "dropped", "refused", "served", "queued")}
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
        return self._bins

    def _enlarge(self) -> None:
        """Twice the place for tuples that wait, and enough for what one can make."""
        old = len(self._pool)
        more = max(old, 2 * self._burst, 1024)
        pool = np.zeros(old + more, WAITING)
        pool[:old] = self._pool
        pool["after"][old:] = np.arange(old + 1, old + more + 1)
        pool["after"][-1] = self._free[0]
        self._pool = pool
        self._free[0], self._free[1] = old, max(self._free[1], 0) + more


def _arcs(wiring: Wiring, seconds: Floats, seed: int) -> NDArray[Any]:
    nodes = len(wiring.network.nodes)
    arcs = np.zeros(len(wiring.arcs), ARC)
    arcs["source"], arcs["target"] = wiring.source, wiring.target
    arcs["node"] = arcs["link"] = arcs["other"] = _NONE
    arcs["gain"] = wiring.gain
    arcs["fate"] = arcs["given"] = _NONE
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
        record["on_node"] = seconds[record["node"], at]
        links = np.flatnonzero(wiring.use[nodes:, at])
        if len(links):
            record["link"], record["on_link"] = nodes + links[0], seconds[nodes + links[0], at]
        if operator.kind is OperatorKind.JOIN and operator.join_windows is not None:
            record["other"] = port[operator.name, 1 - arc.port]
            record["window"], record["gain"] = operator.join_windows[1 - arc.port], operator.selectivity
    return arcs


def _burst(wiring: Wiring, scale: Floats) -> int:
    """The most tuples that can come to queues by one row, or by one piece of work."""
    fan_out = np.bincount(wiring.source, minlength=len(wiring.network.sources))
    given = np.zeros(len(wiring.network.sources))
    given[: wiring.inputs] = scale
    inner = wiring.target >= 0
    np.maximum.at(given, wiring.target[inner], wiring.gain[inner])
    at_once = (np.floor(given) + 2) * fan_out
    most = int(np.argmax(at_once))
    if at_once[most] > _MOST_AT_ONCE:
        raise BadInput(
            f"{wiring.network.sources[most].name!r} gives {given[most]:,.0f} tuples for one, too many to follow one by "
            "one; give it a smaller scale, selectivity or window, or let fluid flow"
        )
    return int(at_once[most])


@inlined
def _begin(server: Any, pool: NDArray[Any], arcs: NDArray[Any], link: bool, now: float) -> None:
    """A server turns to the first of its queue, if there is one."""
    server.since = now
    if server.head == _NONE:
        server.done = np.inf
    else:
        arc = arcs[pool[server.head].arc]
        server.done = now + (arc.on_link if link else arc.on_node)


@inlined
def _queue(
    number: int,
    place: int,
    servers: NDArray[Any],
    pool: NDArray[Any],
    arcs: NDArray[Any],
    link: bool,
    now: float,
) -> None:
    """A tuple goes to the end of a queue."""
    server = servers[number]
    pool[place].after = _NONE
    server.length += 1
    if server.head == _NONE:
        server.head = place
        server.tail = place
        _begin(server, pool, arcs, link, now)
    else:
        pool[server.tail].after = place
        server.tail = place


@inlined
def _refused(number: int, servers: NDArray[Any], parts: Floats, refusals: NDArray[np.uint64]) -> Any:
    """Whether a node refuses what comes to it."""
    if len(parts) == 0:
        return False
    server = servers[number]
    server.taken += 1
    part = parts[min(server.length, len(parts) - 1)]
    return part > 0 and uniform(output(refusals[number], np.uint64(server.taken))) < part


@inlined
def _live(row: int, size: int, slide: int, at: int, lived: NDArray[np.int32]) -> Any:
    """How many of the windows that a tuple is in live."""
    return lived[row, at // slide + 1] - lived[row, max((at - size) // slide + 1, 0)]


@inlined
def _release(place: int, pool: NDArray[Any], free: Indices) -> None:
    pool[place].after = free[0]
    free[0] = place
    free[1] += 1


@inlined
def _give(
    source: int,
    count: int,
    born: int,
    at: int,
    now: float,
    first_arc: Indices,
    arcs: NDArray[Any],
    servers: NDArray[Any],
    pool: NDArray[Any],
    free: Indices,
    parts: Floats,
    refusals: NDArray[np.uint64],
    lived: NDArray[np.int32],
    bins: NDArray[np.int64],
    read: NDArray[Any],
) -> None:
    """A source gives tuples to all its consumers."""
    for number in range(first_arc[source], first_arc[source + 1]):
        arc = arcs[number]
        for _ in range(count):
            arc.offered += 1
            arc.came += 1
            if arc.slide > 0:
                dies = _live(arc.fate, arc.size, arc.slide, at, lived) == 0
            else:
                dies = arc.keep < 1.0 and not uniform(output(arc.draws, np.uint64(arc.came - 1))) < arc.keep
            if dies:
                arc.dropped += 1
                continue
            if arc.target == _NONE:
                arc.served += 1
                latency = now - born * 1e-6
                read[0].latency += latency
                read[0].longest = max(read[0].longest, latency)
                read[0].count += 1
                bins[bin_of(latency)] += 1
                continue
            to_link = arc.link != _NONE
            if not to_link and _refused(arc.node, servers, parts, refusals):
                arc.refused += 1
                continue
            place = free[0]
            free[0] = pool[place].after
            free[1] -= 1
            pool[place].born = born
            pool[place].at = at
            pool[place].arc = number
            arc.queued += 1
            _queue(arc.link if to_link else arc.node, place, servers, pool, arcs, to_link, now)


@compiled
def _advance(
    at_us: NDArray[np.int64],
    inputs: Indices,
    row: int,
    end_us: int,
    scale: Floats,
    credits: Floats,
    first_arc: Indices,
    arcs: NDArray[Any],
    servers: NDArray[Any],
    nodes: int,
    pool: NDArray[Any],
    free: Indices,
    burst: int,
    parts: Floats,
    refusals: NDArray[np.uint64],
    lived: NDArray[np.int32],
    bins: NDArray[np.int64],
    read: NDArray[Any],
) -> int:
    """Let everything happen before the end of the tick.

    Returns:
        The next row, where the pool has too little room to go on; -1 at the end.
    """
    end = end_us * 1e-6
    while True:
        if free[1] < burst:
            return row
        soonest = 0
        for number in range(1, len(servers)):
            if servers[number].done < servers[soonest].done:
                soonest = number
        now = servers[soonest].done
        if row < len(at_us) and at_us[row] * 1e-6 <= now:
            source = inputs[row]
            credits[source] += scale[source]
            count = int(credits[source] + _ALMOST)
            credits[source] -= count
            _give(
                source,
                count,
                at_us[row],
                at_us[row],
                at_us[row] * 1e-6,
                first_arc,
                arcs,
                servers,
                pool,
                free,
                parts,
                refusals,
                lived,
                bins,
                read,
            )
            row += 1
            continue
        if now >= end:
            break
        server = servers[soonest]
        server.busy += now - server.since
        place = server.head
        server.head = pool[place].after
        server.length -= 1
        _begin(server, pool, arcs, soonest >= nodes, now)
        number = pool[place].arc
        arc = arcs[number]
        if soonest >= nodes:
            if _refused(arc.node, servers, parts, refusals):
                arc.refused += 1
                arc.queued -= 1
                _release(place, pool, free)
            else:
                _queue(arc.node, place, servers, pool, arcs, False, now)
            continue
        born, at = pool[place].born, pool[place].at
        _release(place, pool, free)
        arc.queued -= 1
        arc.served += 1
        arc.worked += 1
        gain = arc.gain
        if arc.other != _NONE:
            gain *= min(arc.window, np.float64(arcs[arc.other].worked))
        first = last = 0
        if arc.given != _NONE:
            last, first = at // arc.own_slide, max((at - arc.own_size) // arc.own_slide + 1, 0)
            if arc.nested:
                gain /= last - first + 1
            else:
                gain *= _live(arc.given, arc.own_size, arc.own_slide, at, lived) / (last - first + 1)
                first = last
        for window in range(first, last + 1):
            if arc.nested:
                if lived[arc.given, window + 1] == lived[arc.given, window]:
                    continue
                at = window * arc.own_slide
            arc.credit += gain
            count = int(arc.credit + _ALMOST)
            if count > 0:
                arc.credit -= count
                _give(
                    arc.target,
                    count,
                    born,
                    at,
                    now,
                    first_arc,
                    arcs,
                    servers,
                    pool,
                    free,
                    parts,
                    refusals,
                    lived,
                    bins,
                    read,
                )
    for number in range(len(servers)):
        if servers[number].done < np.inf:
            servers[number].busy += end - servers[number].since
            servers[number].since = end
    return -1
