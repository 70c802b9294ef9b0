"""Interactive charts of a page: Vega, our script, chart specs."""

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
    """Scripts and specs of a page, safe inside elements and attributes.

    Attributes:
        script: Our own script.
        library: Vega with Vega-Lite and Vega-Embed: gzip, then base64; empty without charts.
        charts: JSON document of chart specs by id and their configurations: gzip, then base64.
        allowed: Content-Security-Policy sources for exactly these scripts.
    """

    script: str
    library: str
    charts: str
    allowed: str


def live(charts: Mapping[str, Chart]) -> Live:
    """Scripts and specs for charts, by the id of their figure; deterministic.

    Text in a spec is escaped as in a drawing. Specs run without `eval`: Vega interprets their expressions.
    """
    script = _script()
    if not charts:
        return Live(script, "", "", f"'sha256-{_digest(script)}'")
    library, library_hash = _library()
    # The drawing has a description of each mark, which the page's script reads aloud.
    looks = {name: {**config(width), "aria": False} for name, width in (("wide", WIDE), ("narrow", NARROW))}
    document = {"looks": looks, "charts": {name: _compact(chart) for name, chart in charts.items()}}
    text = json.dumps(safe(document), separators=(",", ":"), allow_nan=False).replace(INK, "currentColor")
    allowed = f"'sha256-{_digest(script)}' 'sha256-{library_hash}'"
    return Live(script, library, _packed(text), allowed)


def _compact(chart: Chart) -> Mapping[str, Any]:
    return {name: part for name, part in chart.spec.items() if name != "$schema"}


@cache
def _library() -> tuple[str, str]:
    """The packed library and its hash; bundling takes about two seconds, once per process."""
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
