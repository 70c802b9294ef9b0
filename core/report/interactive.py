"""Interactive charts of a page: Vega, our script, chart specs."""

import gzip
import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from adapt.core.charts.axes import INK, config
from adapt.core.charts.chart import Chart
from adapt.core.report.svg import NARROW, WIDE, chart_renderer, safe

BUNDLED = "window.vegaEmbed = vegaEmbed;"
"""The last statement of the library."""


@dataclass(frozen=True, slots=True)
class Live:
    """Scripts and specs of a page, safe inside elements and attributes."""

    script: str  # our own script
    library: str  # Vega with Vega-Lite and Vega-Embed: gzip, then base64; empty without charts
    charts: str  # JSON document of chart specs by id and their configurations: gzip, then base64
    allowed: str  # content-Security-Policy sources for exactly these scripts


@dataclass(frozen=True, slots=True)
class Library:
    """Vega with Vega-Lite and Vega-Embed, as one script."""

    packed: str  # gzip, then base64
    digest: str  # SHA-256 of the script, in base64


def live(charts: Mapping[str, Chart], library: Callable[[], Library]) -> Live:
    """Scripts and specs for charts, by the id of their figure; deterministic.

    Text in a spec is escaped as in a drawing. Specs run without `eval`: Vega interprets their expressions.
    """
    script = _script()
    if not charts:
        return Live(script, "", "", f"'sha256-{_digest(script)}'")
    vega = library()
    # The drawing has a description of each mark, which the page's script reads aloud.
    looks = {name: {**config(width), "aria": False} for name, width in (("wide", WIDE), ("narrow", NARROW))}
    document = {"looks": looks, "charts": {name: _compact(chart) for name, chart in charts.items()}}
    text = json.dumps(safe(document), separators=(",", ":"), allow_nan=False).replace(INK, "currentColor")
    allowed = f"'sha256-{_digest(script)}' 'sha256-{vega.digest}'"
    return Live(script, vega.packed, _packed(text), allowed)


def _compact(chart: Chart) -> Mapping[str, Any]:
    return {name: part for name, part in chart.spec.items() if name != "$schema"}


@cache
def bundled() -> Library:
    """The library, bundled anew, which takes about a second; once per process."""
    script = chart_renderer().javascript_bundle(BUNDLED)
    return Library(_packed(script), _digest(script))


@cache
def _script() -> str:
    return (files("adapt.core.report") / "page.js").read_text(encoding="utf-8")


def _packed(text: str) -> str:
    return b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def _digest(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode()
