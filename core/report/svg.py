"""Render a Vega-Lite chart as an inline SVG in the page's colors."""

import json
import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any
from xml.etree import ElementTree

from adapt.core.charts.axes import FONT, INK, config
from adapt.core.units.process_limits import require_limits
from adapt.core.values import plain, visible

WIDE = 540
NARROW = 330

_NAMESPACE = "http://www.w3.org/2000/svg"
_ELEMENTS = {"svg", "g", "path", "rect", "line", "circle", "text", "tspan", "defs", "clipPath"}
_ATTRIBUTES = {
    *("d", "x", "y", "x1", "x2", "y1", "y2", "r", "width", "height", "transform", "viewBox", "id", "clip-path"),
    *("fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linejoin"),
    *("stroke-linecap", "stroke-miterlimit", "opacity", "text-anchor", "font-size", "font-weight", "font-style"),
}
_DEFAULTS = {("opacity", "1"), ("stroke-width", "1"), ("fill-opacity", "1"), ("stroke-opacity", "1")}
_INVISIBLE = {"", "M0,0h0v0h0Z"}
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}(?:e-?\d+)?")
_REFERENCE = re.compile(r"url\(#([^)]*)\)")


def render_svg(spec: Mapping[str, Any], width: int = WIDE, prefix: str | None = None) -> str:
    """Render a Vega-Lite spec; deterministic.

    The background is transparent, and text, axes and grid have the current text color, so the chart is legible on light
    and dark pages. Ids start with `prefix`, by default a hash of the spec. Control characters in the spec are escaped
    first, since they would crash the renderer.

    Args:
        spec: A single or layered view; its `description` names the chart for screen readers.
        width: Outer width in pixels.
        prefix: Prefix of ids; must be unique within a page.
    """
    checked = safe({**spec, "width": width, "config": config(width)})
    if prefix is None:
        prefix = "v" + sha256(json.dumps(checked, sort_keys=True).encode()).hexdigest()[:10]
    drawn = _rendered(chart_renderer().vegalite_to_svg, checked)
    root = ElementTree.fromstring(drawn)
    _clean(root, _Ids(prefix))
    _name(root, str(checked.get("description", "")))
    return ElementTree.tostring(root, encoding="unicode")


def chart_files(spec: Mapping[str, Any]) -> tuple[str, bytes]:
    """A Vega-Lite spec as SVG and PNG files on white."""
    checked = safe({**spec, "width": WIDE, "config": {**config(WIDE), "background": "white"}})
    drawer = chart_renderer()
    png = _rendered(drawer.vegalite_to_png, checked, scale=2)
    return _rendered(drawer.vegalite_to_svg, checked), png


def _rendered(render: Callable[..., Any], spec: Mapping[str, Any], **more: Any) -> Any:
    """What the library makes of a spec.

    It fails where it cuts a label inside a character beyond U+FFFF, such as an emoji; these are escaped then.
    """
    try:
        return render(spec, allowed_base_urls=[], **more)
    except ValueError:
        text = json.dumps(spec, ensure_ascii=False)
        escaped = re.sub(r"[^\0-\uffff]", lambda found: f"\\\\U{ord(found[0]):08x}", text)
        return render(json.loads(escaped), allowed_base_urls=[], **more)


def chart_renderer() -> Any:
    """The library that draws charts."""
    require_limits("drawing charts", address_gb=72, files=32)
    import vl_convert

    return vl_convert


class _Ids:
    """Renumbers ids in order of appearance, since the renderer's ids depend on the process."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._given: dict[str, str] = {}

    def renamed(self, old: str) -> str:
        return self._given.setdefault(old, f"{self._prefix}-{len(self._given)}")


def safe(value: Any) -> Any:
    """The value with text escaped, and null for numbers not finite."""
    if isinstance(value, Mapping):
        return {visible(str(key)): safe(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [safe(item) for item in value]
    return visible(value) if isinstance(value, str) else plain(value)


def _clean(element: ElementTree.Element, ids: _Ids) -> None:
    """Keep only allowed elements and attributes, with our own ids."""
    element.tag = _local(element)
    label = element.get("aria-label") if element.get("role") == "graphics-symbol" else None
    is_marks = "role-mark" in (element.get("class") or "").split()
    kept = {name: _value(name, value, ids) for name, value in element.attrib.items() if name in _ATTRIBUTES}
    element.attrib.clear()
    element.attrib.update({name: value for name, value in kept.items() if (name, value) not in _DEFAULTS})
    if is_marks:
        element.set("class", "marks")
    for child in list(element):
        if _draws(child):
            _clean(child, ids)
        else:
            element.remove(child)
    if label and element.tag != "g":
        title = ElementTree.Element("title")
        title.text = label
        element.insert(0, title)


def _local(element: ElementTree.Element) -> str:
    return element.tag.removeprefix(f"{{{_NAMESPACE}}}")


def _draws(element: ElementTree.Element) -> bool:
    is_empty = _local(element) == "path" and element.get("d", "") in _INVISIBLE
    return _local(element) in _ELEMENTS and element.get("display") != "none" and not is_empty


def _value(name: str, value: str, ids: _Ids) -> str:
    if name == "id":
        return ids.renamed(value)
    if value == INK:
        return "currentColor"
    value = _REFERENCE.sub(lambda found: f"url(#{ids.renamed(found[1])})", value)
    return _LONG_NUMBER.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), value)


def _name(root: ElementTree.Element, title: str) -> None:
    root.attrib = {
        "xmlns": _NAMESPACE,
        "class": "chart",
        "role": "img",
        "aria-label": title,
        **root.attrib,
        "font-family": FONT,
    }
    named = ElementTree.Element("title")
    named.text = title
    root.insert(0, named)
