"""Initial records of arcs, nodes and links for the tuple simulator."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.errors import BadInput
from adapt.core.fit.network.names import OperatorKind
from adapt.core.fit.network.network import Operator, Window
from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.running.window_drop import LivingWindows
from adapt.core.random_bits import substream

NONE = -1
"""No tuple, arc or server: the end of a list."""

_MOST_AT_ONCE = 10_000_000
"""Limit of results of one tuple; more do not fit in memory."""

WAITING = np.dtype(
    [
        ("born", np.int64),  # arrival of its row, in microseconds
        ("at", np.int64),  # position among windows: likewise, or a number of tuples
        ("arc", np.int32),
        ("after", np.int32),  # the next tuple in the queue, or the next free slot
    ]
)
"""A tuple in a queue."""

SERVER = np.dtype(
    [
        ("done", np.float64),  # end of the current work, in seconds; inf when idle
        ("since", np.float64),  # start of the current work, or of the tick
        ("busy", np.float64),
        ("head", np.int32),
        ("tail", np.int32),
        ("length", np.int64),  # tuples, including the current one
        ("taken", np.int64),  # tuples that arrived, including dropped ones
    ],
    align=True,
)
"""A node or a link."""

ARC = np.dtype(
    [
        ("source", np.int32),
        ("target", np.int32),  # an operator; -1 at an output
        ("node", np.int32),
        ("link", np.int32),  # that it crosses first; -1: none
        ("other", np.int32),  # the arc of a join's other side
        ("window", np.float64),  # tuples of that side that a join keeps
        ("gain", np.float64),  # of a join, per pair
        ("on_node", np.float64),  # seconds of work
        ("on_link", np.float64),
        ("keep", np.float64),
        ("draws", np.uint64),  # the seed of its random drops
        ("size", np.int64),  # of windows kept or dropped whole, in microseconds or tuples
        ("slide", np.int64),  # 0: none; random tuples are dropped
        ("own_size", np.int64),  # of its target's windows, if an aggregate
        ("own_slide", np.int64),
        ("fate", np.int32),  # row of windows kept on this arc
        ("given", np.int32),  # row of windows that the aggregate opens; -1: none
        ("counts", np.bool_),  # whether these count tuples
        ("numbered", np.bool_),  # whether a tuple's position is its number on the arc
        ("nested", np.bool_),  # whether further aggregates are downstream of its target
        ("credit", np.float64),  # fraction of a tuple not emitted yet
        ("came", np.int64),  # since the start
        ("worked", np.int64),
        ("offered", np.int64),  # in the tick
        ("dropped", np.int64),
        ("queue_drops", np.int64),
        ("served", np.int64),
        ("late", np.int64),  # read at an output later than counts; see `READ`
        ("queued", np.int64),
        ("withdrawn", np.float64),  # results of its target, of windows that lost a tuple to a full queue
        ("work", np.float64),  # CPU seconds at its node, in the tick
    ],
    align=True,
)

READ = np.dtype(
    [
        ("late", np.float64),  # latency of a result above which it does not count
        ("latency", np.float64),
        ("longest", np.float64),
        ("count", np.int64),
    ]
)


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
    arcs["gain"] = wiring.gain
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
        record["on_node"] = seconds[record["node"], at]
        links = np.flatnonzero(wiring.use[nodes:, at])
        if len(links):
            record["link"], record["on_link"] = nodes + links[0], seconds[nodes + links[0], at]
        if operator.kind is OperatorKind.JOIN and operator.join_windows is not None:
            record["other"] = port[operator.name, 1 - arc.port]
            record["window"], record["gain"] = operator.join_windows[1 - arc.port], operator.selectivity
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


def server_records(servers: int) -> NDArray[Any]:
    """Idle nodes, then links; shape (servers,)."""
    records = np.zeros(servers, SERVER)
    records["done"], records["head"], records["tail"] = np.inf, NONE, NONE
    return records


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
