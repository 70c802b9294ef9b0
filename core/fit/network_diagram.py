"""A diagram of a query network, with the load of each node."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapt.core.charts.chart import Chart, Records, chart
from adapt.core.charts.points import is_real
from adapt.core.charts.theme import INK, PALETTE
from adapt.core.fit.network.network import Network
from adapt.core.fit.network.wiring import Wiring
from adapt.core.labels import label
from adapt.core.table import Cell, Column, Kind, Table
from adapt.core.values import human

MAX_DRAWN = 60
"""Elements beyond which a diagram would be illegible."""

_BOX, _TALL = 0.4, 0.33
"""The half-width and half-height of a box, in columns and rows."""

_HEAD = 0.75
"""Rows that the name of a node takes."""

_GAP = 0.3
"""Rows between bands."""

_ROW_PIXELS = 40
_COLORS = {"input": PALETTE[2], "operator": PALETTE[0], "output": PALETTE[3]}


def network_charts(network: Network, nodes: Table) -> tuple[Chart, ...]:
    """The diagram of a network; empty if it is too large.

    Args:
        nodes: Its nodes and links with their `load` and `price`.
    """
    if len(network.sources) + len(network.outputs) > MAX_DRAWN:
        return ()
    layout = _Layout.from_network(network)
    shares = dict(zip(nodes.values("node"), nodes.values("load"), strict=True))
    prices = zip(nodes.values("node"), nodes.values("price"), strict=True)
    tight = {str(node) for node, price in prices if is_real(price) and float(price) > 0}
    points = [
        point
        for node, span in layout.bands.items()
        for point in _band(node, shares[node], span, layout.last, node in tight)
    ]
    wiring = Wiring.from_network(network)
    links = [at for at, name in enumerate(wiring.resources) if at >= len(network.nodes) and name in tight]
    full = (wiring.use[links] > 0).sum(axis=0)
    points += [
        {**_arrow(layout, arc.source, arc.target, arc.port), "part": "tight arrow" if full[at] else "arrow"}
        for at, arc in enumerate(wiring.arcs)
    ]
    points += [_box(kind, name, at) for (kind, name), at in layout.places.items()]
    sentence = (
        "Each band is a node with its operators. The bar at its top is the node's load: half of the width is the"
        " capacity, and overload has another color. Tuples flow from the inputs on the left to the outputs on the"
        " right. Bottlenecks, nodes and links of which more would raise the score, have an outline of that color."
    )
    body = {"height": round(layout.height * _ROW_PIXELS), "layer": _layers(layout)}
    return (chart("The network", body, points, sentence, nodes),)


@dataclass(frozen=True, slots=True)
class _Layout:
    """Positions of all elements, in columns 0 to `last` and rows 0 to `height`."""

    # column and row of inputs, operators and outputs, by kind and name
    places: Mapping[tuple[str, str], tuple[float, float]]
    bands: Mapping[str, tuple[float, float]]  # first and last row of each node with operators
    last: int
    height: float

    @classmethod
    def from_network(cls, network: Network) -> "_Layout":
        """Operators in columns by distance from the inputs, in one band per node."""
        depth = {entering.name: 0 for entering in network.inputs}
        for operator in network.operators:
            depth[operator.name] = 1 + max(depth[name] for name in operator.inputs)
        last = 1 + max(depth.values())
        row: dict[str, float] = {}
        bands = {}
        top = 0.0
        for node in dict.fromkeys(operator.node for operator in network.operators):
            filled: dict[int, int] = {}
            for operator in network.operators:
                if operator.node == node:
                    at = depth[operator.name]
                    row[operator.name] = top + _HEAD + filled.get(at, 0) + 0.5
                    filled[at] = filled.get(at, 0) + 1
            bands[node] = (top, top + _HEAD + max(filled.values()))
            top = bands[node][1] + _GAP
        readers = {
            entering.name: [row[operator.name] for operator in network.operators if entering.name in operator.inputs]
            for entering in network.inputs
        }
        entering_at = _spread({name: sum(rows) / len(rows) if rows else top for name, rows in readers.items()})
        row |= entering_at
        leaving_at = _spread({output.name: row[output.source] for output in network.outputs})
        places = {
            **{("input", name): (0.0, at) for name, at in entering_at.items()},
            **{("operator", each.name): (float(depth[each.name]), row[each.name]) for each in network.operators},
            **{("output", name): (float(last), at) for name, at in leaving_at.items()},
        }
        return cls(places, bands, last, max([top - _GAP, *(at + 0.5 for _, at in places.values())]))

    def of_source(self, name: str) -> tuple[float, float]:
        """Position of an input or operator."""
        return self.places.get(("input", name)) or self.places["operator", name]


def _spread(wanted: Mapping[str, float]) -> dict[str, float]:
    """Rows near the wanted ones, at least one row apart."""
    placed: dict[str, float] = {}
    free = 0.5
    for name in sorted(wanted, key=lambda name: wanted[name]):
        placed[name] = max(wanted[name], free)
        free = placed[name] + 1
    return placed


def _band(node: str, share: Cell, span: tuple[float, float], last: int, tight: bool) -> Records:
    """A node's band, labeled with its name and load, with the load as a bar."""
    left, right = 0.5, last - 0.5
    top, bottom = span
    load = float(share) if is_real(share) else 0.0
    middle = (left + right) / 2  # full load, so that twice as much is visible
    named = f"{label(node)}, load {human(share, Column('load', Kind.SHARE))}{', bottleneck' if tight else ''}"
    band: dict[str, Any] = {"part": "band", "x": left, "x2": right, "y": top, "y2": bottom, "name": named}
    bars = [{"part": "load", "x": left, "x2": left + (middle - left) * min(load, 1.0), "y": top, "y2": top + 0.1}]
    if load > 1:
        bars.append(
            {"part": "over", "x": middle, "x2": middle + (right - middle) * min(load - 1, 1.0)}
            | {"y": top, "y2": top + 0.1}
        )
    return [band, *bars, *([{**band, "part": "tight"}] if tight else [])]


def _arrow(layout: _Layout, source: str, target: str, port: int) -> dict[str, Any]:
    x, y = layout.of_source(source)
    to_x, to_y = layout.places["output" if port < 0 else "operator", target]
    return {"part": "arrow", "x": x + _BOX, "y": y, "x2": to_x - _BOX, "y2": to_y}


def _box(kind: str, name: str, at: tuple[float, float]) -> dict[str, Any]:
    x, y = at
    ends = {"x": x - _BOX, "x2": x + _BOX, "y": y - _TALL, "y2": y + _TALL}
    return {"part": kind, "name": label(name), "middle": x, "center": y, **ends}


def _layers(layout: _Layout) -> Sequence[Mapping[str, Any]]:
    across, down = _axis("x", -_BOX - 0.02, layout.last + _BOX + 0.02), _axis("y", 0, layout.height)
    down["scale"]["reverse"] = True
    ends = {"x": across, "x2": {"field": "x2"}, "y": down, "y2": {"field": "y2"}}

    def layer(parts: Sequence[str], mark: Mapping[str, Any], encoding: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"transform": [{"filter": {"field": "part", "oneOf": parts}}], "mark": mark, "encoding": encoding}

    limit = 2 * _BOX / (layout.last + 2 * _BOX)
    text = {"type": "text", "color": INK, "baseline": "middle", "aria": False}
    named = {"text": {"field": "name"}}
    middle = {"x": {**across, "field": "middle"}, "y": {**down, "field": "center"}, **named}
    return (
        layer(["band"], {"type": "rect", "color": INK, "opacity": 0.08, "aria": False}, ends),
        layer(["load"], {"type": "rect", "color": PALETTE[0], "aria": False}, ends),
        layer(["over"], {"type": "rect", "color": PALETTE[1], "aria": False}, ends),
        layer(
            ["tight"], {"type": "rect", "filled": False, "stroke": PALETTE[1], "strokeWidth": 2, "aria": False}, ends
        ),
        layer(["arrow"], {"type": "rule", "color": INK, "opacity": 0.55, "aria": False}, ends),
        layer(["tight arrow"], {"type": "rule", "color": PALETTE[1], "strokeWidth": 2, "aria": False}, ends),
        *(
            layer([kind], {"type": "rect", "color": color, "fillOpacity": 0.22, "stroke": color, "aria": False}, ends)
            for kind, color in _COLORS.items()
        ),
        layer(list(_COLORS), {**text, "fontSize": 10.5, "limit": {"expr": f"width * {limit:.4f} - 4"}}, middle),
        layer(
            ["band"], {**text, "align": "left", "dx": 5, "dy": 17, "fontSize": 11.5}, {"x": across, "y": down, **named}
        ),
    )


def _axis(field: str, low: float, high: float) -> dict[str, Any]:
    scale: dict[str, Any] = {"domain": [low, high], "nice": False, "zero": False}
    return {"field": field, "type": "quantitative", "axis": None, "scale": scale}
