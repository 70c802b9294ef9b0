"""What makes charts of a page answer to pointer and keys where script is on: Vega, our own script, the specs."""

import gzip
import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from adapt.core.charts.chart import Chart
from adapt.core.charts.theme import INK, config
from adapt.core.report.svg import NARROW, WIDE, safe

_BUNDLED = "window.vegaEmbed = vegaEmbed;"


@dataclass(frozen=True, slots=True)
class Live:
    """What a page holds besides its drawings; nothing in it can end a script element or an attribute.

    Attributes:
        script: Our own script, run as it stands.
        library: Vega with Vega-Lite and Vega-Embed: gzip, then base64; nothing where there is no chart.
        charts: A JSON document with the charts' specs by id, and how they look: gzip, then base64.
        allowed: The Content-Security-Policy's sources for these scripts and no other.
    """

    script: str
    library: str
    charts: str
    allowed: str


def live(charts: Mapping[str, Chart]) -> Live:
    """Everything that makes charts, each under the id of its figure, answer; the same charts give the same text.

    Texts in a spec are escaped as in a drawing, and specs run without `eval`: Vega interprets their expressions.
    """
    script = _script()
    if not charts:
        return Live(script, "", "", f"'sha256-{_digest(script)}'")
    library, library_hash = _library()
    # What is said of each mark stands in the drawing, and is said again by the page's script.
    looks = {name: {**config(width), "aria": False} for name, width in (("wide", WIDE), ("narrow", NARROW))}
    held = {"looks": looks, "charts": {name: _compact(chart) for name, chart in charts.items()}}
    text = json.dumps(safe(held), separators=(",", ":"), allow_nan=False).replace(INK, "currentColor")
    allowed = f"'sha256-{_digest(script)}' 'sha256-{library_hash}'"
    return Live(script, library, _packed(text), allowed)


def _compact(chart: Chart) -> Mapping[str, Any]:
    return {name: part for name, part in chart.spec.items() if name != "$schema"}


@cache
def _library() -> tuple[str, str]:
    """The library packed, and its hash; bundling takes about two seconds, once a process."""
    import vl_convert

    bundle = vl_convert.javascript_bundle(_BUNDLED)
    return _packed(bundle), _digest(bundle)


@cache
def _script() -> str:
    return (files("adapt.core.report") / "page.js").read_text(encoding="utf-8")


def _packed(text: str) -> str:
    return b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def _digest(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode()
