"""Self-contained HTML page of tables and charts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from adapt.core.charts.chart import Chart
from adapt.core.labels import breakable, headed
from adapt.core.lint.finding import Finding, Severity
from adapt.core.report.first_screen import FirstScreen, Tone
from adapt.core.report.interactive import Library, Live, bundled, live
from adapt.core.report.svg import NARROW, WIDE, render_svg
from adapt.core.report.transposed import upright
from adapt.core.table import Table
from adapt.core.values import elided, is_numeric, shown, visible

if TYPE_CHECKING:
    from jinja2 import Template

MOST_BYTES = 2_000_000
"""Default size limit of a page; tables and then charts are cut, visibly, until it fits."""

MOST_CHARTS = 40
"""Default limit of charts on a page."""

OPEN_ROWS = 16
"""By default, longer tables are folded."""

_MOST_STILL = 6
_WIDEST_WORD = 18
_MOST_UPRIGHT = 40
_LONGEST_CELL = 240
_LONGEST_SENTENCE = 2_000


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a page: heading, paragraphs, charts and tables."""

    heading: str  # heading, also shown in the table of contents
    sentences: Sequence[str] = ()  # paragraphs
    charts: Sequence[Chart] = ()  # charts, side by side
    tables: Sequence[Table] = ()  # tables below the charts
    open_rows: int = OPEN_ROWS  # tables with more rows are folded
    is_part: bool = False  # whether it is a subsection; the table of contents indents it
    first: FirstScreen | None = None  # the verdict at a glance, before anything else; the paragraphs are then folded
    findings: Sequence[Finding] = ()  # lint findings, next to the verdict


@dataclass(frozen=True, slots=True)
class Page:
    """A page: sections in reading order, and provenance."""

    title: str
    sections: Sequence[Section]  # sections; the paragraphs of the first one are emphasized
    # provenance of each artefact: command, versions, inputs with hashes; may be nested
    made: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class _Caps:
    """Limits of a page that must shrink."""

    rows: int
    charts: int
    has_narrow: bool = True
    """Whether charts have a second drawing for narrow pages; otherwise the wide one is scaled down."""
    is_live: bool = True
    sections: int = 400
    made: int = 2_000


def _caps(most_charts: int) -> tuple[_Caps, ...]:
    """Limits to try in turn until the page is small enough."""
    return (
        *(_Caps(rows, most_charts) for rows in (200, 100, 50)),
        *(_Caps(rows, most_charts, has_narrow=False) for rows in (50, 20)),
        *(_Caps(20, charts, has_narrow=False) for charts in (24, 12)),
        *(_Caps(5, charts, has_narrow=False, is_live=False) for charts in (12, 4, 0)),
        *(_Caps(5, 0, False, False, sections, made) for sections, made in ((200, 200), (50, 50), (10, 10), (1, 1))),
    )


def render_page(
    page: Page,
    most_bytes: int = MOST_BYTES,
    most_charts: int = MOST_CHARTS,
    library: Callable[[], Library] = bundled,
) -> str:
    """The page as HTML of at most `most_bytes` in UTF-8; deterministic.

    All text is escaped for HTML; control and direction characters become visible escapes. A table shows its first 200
    rows and the number of the others, and the first `most_charts` charts are drawn. If the page would be too large,
    tables show fewer rows, then charts are omitted from the end, then sections, and the page says so.

    Every chart is a static drawing. With scripts on, Vega redraws it once it scrolls into view, with values under the
    pointer or keys, zoom, and series that can be hidden. Only the page's own two scripts may run: its policy names them
    by hash.

    Args:
        library: Gives Vega, if the page has charts.
    """
    drawings = _Drawings(library)
    template = _template()
    html = ""
    for caps in _caps(most_charts):
        html = template.render(_view(page, caps, drawings))
        if len(html.encode()) <= most_bytes:
            break
    return html


class _Drawings:
    """Cache of drawings across attempts to fit the page."""

    def __init__(self, library: Callable[[], Library]) -> None:
        self._library = library
        self._drawn: dict[tuple[int, int], str] = {}
        self._live: dict[tuple[str, ...], Live] = {}

    def live(self, charts: Mapping[str, Chart]) -> Live:
        """Scripts and specs of these charts."""
        named = tuple(charts)
        if named not in self._live:
            self._live[named] = live(charts, self._library)
        return self._live[named]

    def svg_of(self, number: int, chart: Chart, width: int) -> str:
        """The chart as SVG of that width."""
        if (number, width) not in self._drawn:
            prefix = f"c{number}{'w' if width == WIDE else 'n'}"
            self._drawn[number, width] = render_svg(chart.spec, width, prefix)
        return self._drawn[number, width]


@cache
def _template() -> "Template":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("adapt.core.report", package_path=""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html")


def _view(page: Page, caps: _Caps, drawings: _Drawings) -> dict[str, Any]:
    """Template variables: escaped text, truncated tables, drawn charts."""
    sections, omitted = [], max(0, len(page.sections) - caps.sections)
    answering: dict[str, Chart] = {}
    chart_number = 0
    for number, section in enumerate(page.sections[: caps.sections], start=1):
        charts = []
        for chart in section.charts:
            chart_number += 1
            is_kept = chart_number <= caps.charts
            if is_kept and caps.is_live and not chart.is_empty:
                answering[f"c{chart_number}"] = chart
            charts.append(_chart_view(chart, chart_number, section.tables, caps, drawings if is_kept else None))
        sections.append(
            {
                "id": f"s{number}",
                "heading": _text(section.heading),
                "sentences": [_text(sentence) for sentence in section.sentences],
                "charts": charts,
                "tables": [_table_view(table, caps, section.open_rows) for table in section.tables],
                "is_part": section.is_part,
                "first": None if section.first is None else _texts(asdict(section.first)),
                "findings": [_finding_view(finding) for finding in section.findings],
            }
        )
    made = [
        {"title": _text(str(mapping.get("artefact") or mapping.get("command") or "")), "pairs": pairs}
        for mapping in page.made[: caps.made]
        if (pairs := list(_flat(mapping))[: caps.made])
    ]
    return {
        "title": _text(page.title),
        "sections": sections,
        "sections_omitted": omitted,
        "made": made,
        "live": drawings.live(answering) if caps.is_live else None,
    }


def _finding_view(finding: Finding) -> dict[str, Any]:
    tone = {Severity.SEVERE: Tone.BAD, Severity.WARNING: Tone.ACT, Severity.NOTE: Tone.UNKNOWN}[finding.severity]
    return {"tone": tone, **_texts(asdict(finding))}


def _texts(value: Any) -> Any:
    """The value with all its text escaped."""
    if isinstance(value, Mapping):
        return {name: _texts(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_texts(each) for each in value]
    return _text(value) if isinstance(value, str) else value


def _chart_view(
    chart: Chart, number: int, tables: Sequence[Table], caps: _Caps, drawings: _Drawings | None
) -> dict[str, Any]:
    from markupsafe import Markup

    wide = narrow = ""
    if drawings and not chart.is_empty:
        wide = drawings.svg_of(number, chart, WIDE)
        narrow = drawings.svg_of(number, chart, NARROW) if caps.has_narrow else ""
    return {
        "id": f"c{number}",
        "title": _text(chart.title),
        "sentence": _text(chart.sentence),
        # The only markup not from the template: the drawing, rebuilt from an allowlist of elements.
        "wide": Markup(wide),
        "narrow": Markup(narrow),
        "missing": "No data to draw." if chart.is_empty else "" if wide else "Omitted to keep the page small.",
        "table": None if any(chart.table == table for table in tables) else _table_view(chart.table, caps),
    }


def _table_view(table: Table, caps: _Caps, open_rows: int = OPEN_ROWS) -> dict[str, Any]:
    wide, table = table, upright(table)
    kept = table.rows[: caps.rows if table is wide else max(caps.rows, _MOST_UPRIGHT)]
    rows = [
        [shown(cell, column, _LONGEST_CELL) for cell, column in zip(row, table.columns, strict=True)] for row in kept
    ]
    columns = []
    for at, column in enumerate(table.columns):
        cells = [row[at] for row in rows]
        side = "n" if is_numeric(column.kind) else "s" if _is_short(cells) and at else "t"
        columns.append(
            {
                "pieces": breakable(_text(headed(column))),
                "about": _text(column.about),
                "name": _text(column.name),
                "side": side,
                "least": _least(cells) if side == "t" else 0,
            }
        )
    return {
        "title": _text(table.title),
        "note": _text(table.note),
        "columns": columns,
        "explained": [column for column in columns if column["about"]],
        "rows": rows,
        "sides": [column["side"] for column in columns],
        "count": f"{len(table.rows):,}",
        "more": f"{len(table.rows) - len(kept):,}" if len(table.rows) > len(kept) else "",
        "is_broad": len(columns) > _MOST_STILL,
        "is_long": len(table.rows) > open_rows,
    }


def _is_short(cells: Sequence[str]) -> bool:
    """Whether all cells of a column fit on one line, such as amounts with units."""
    return max(map(len, cells), default=0) <= _WIDEST_WORD


def _least(cells: Sequence[str]) -> int:
    """Minimum width of a column in characters, for its longest word."""
    return min(_WIDEST_WORD, max((len(word) for cell in cells for word in cell.split(" ")), default=0))


def _flat(made: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    """Provenance as pairs of name and value, without empty values; nested names are joined by dots."""
    for name, value in made.items():
        path = f"{prefix}{name}"
        if value is None or value in ("", [], (), {}):
            continue
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}.")
        elif isinstance(value, (list, tuple)) and any(isinstance(item, Mapping) for item in value):
            yield from _flat({str(at): item for at, item in enumerate(value, start=1)}, f"{path}.")
        elif isinstance(value, (list, tuple)):
            yield _text(path), _text(" ".join(map(str, value)))
        else:
            yield _text(path), _text(str(value))


def _text(text: str) -> str:
    return visible(elided(text, _LONGEST_SENTENCE))
