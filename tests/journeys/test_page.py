"""The report page in a real browser: drawn, readable at every width, and asking nobody for anything."""

import math
import shutil

import pytest

from adapt.core.report.charts import (
    channel_loads,
    comparison,
    imbalance_per_period,
    migration_per_period,
    rank_frequency,
    rate_over_time,
    stage_charts,
    top_keys,
)
from adapt.core.report.page import Page, Section, render_page
from adapt.core.table import Column, Kind, Table
from tests.core.report.stage_series import stage_tables

CHROMIUM = shutil.which("chromium")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HOUR = 3_600_000_000
HOSTILE = [
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "&lt;",
    "\u202ertl",
    "a" * 65_536,
    "nul\x00",
    "\ud800",
]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed, so no page can be opened")


def many(kind, names):
    return [Column(name, kind) for name in names.split()]


def trace_sections():
    time = Column("time", Kind.TIME)
    rates = [(at * HOUR // 6, round(500 + 400 * math.sin(at / 23)), at % 50) for at in range(1_000)]
    rate = Table.of("Rate over time", [time, *many(Kind.COUNT, "rows peak")], rates)
    ranks = Table.of(
        "Ranks", [Column("rank", Kind.COUNT), Column("share", Kind.SHARE)], [(at, 0.1 / at) for at in range(1, 900)]
    )
    keys = [*HOSTILE, *(f"user-{at}" for at in range(20))]
    top = Table.of(
        "Heaviest keys",
        [Column("key"), Column("count", Kind.COUNT), Column("share", Kind.SHARE)],
        [(key, 9_000 - at, 0.1 / (at + 1)) for at, key in enumerate(keys)],
    )
    overview = Table.of(
        "Trace", [Column("what"), Column("value")], [("rows", "1 336 776"), ("heaviest key", HOSTILE[0])]
    )
    yield Section("Verdict", ["Fixable by placement: 1.63 today, 1.02 at best."], tables=[overview])
    yield Section("The stream", [], [rate_over_time(rate), rank_frequency(ranks), top_keys(top)], [top])


def plan_sections():
    ratios = "imbalance imbalance_floor r_s r_c r_n r_floor r_floor_pair b m b(1+m)"
    columns = [
        *(Column("scheme"), Column("construction"), Column("channels", Kind.COUNT)),
        *many(Kind.RATIO, ratios),
        *many(Kind.COUNT, "migrated_keys explicit_keys"),
        *(Column("migrated_state", Kind.BYTES), Column("build_s", Kind.SECONDS)),
    ]
    schemes = [("uniform", None, 0.9), ("hybrid", "scan", 0.2), ("hybrid", "level", 0.05)]
    rows = [
        (scheme, construction, n, 1 + far * n / 9, 1.0, *[1.2] * 6, far * n, 1.0, 900, 100, 12_345_678, 0.01)
        for scheme, construction, far in schemes
        for n in range(1, 9)
    ]
    compared = Table.of("Comparison", columns, rows)
    names = [Column("period", Kind.COUNT), Column("start", Kind.TIME), *many(Kind.RATIO, "imbalance imbalance_floor")]
    periods = Table.of(
        "Periods",
        [*names, Column("migrated_state", Kind.BYTES)],
        [(at, at * HOUR, 1.2 + at % 5 / 10, 1.1, at * 100_000) for at in range(48)],
    )
    loads = Table.of(
        "Loads", [Column("channel", Kind.COUNT), Column("load", Kind.SHARE)], [(at, 0.1) for at in range(8)]
    )
    yield Section("Schemes", [], comparison(compared), [compared])
    yield Section("Over time", [], [imbalance_per_period(periods), migration_per_period(periods)], [periods])
    yield Section("Channels", [], [channel_loads(loads)], [loads])


def stage_sections():
    intervals, sites, moves = stage_tables(seconds=300, sites=40, queue=1, on_disk=3, moves=30)
    yield Section("A stage", [], stage_charts(intervals, sites, moves), [intervals, sites, moves])


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    made = [{"command": "adapt report web.trace --html web.html", "inputs": [{"path": "a.log", "sha256": "3f" * 32}]}]
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(
        render_page(Page("web.trace", [*trace_sections(), *plan_sections(), *stage_sections()], made)), encoding="utf-8"
    )
    return path


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture(params=[(400, "light"), (400, "dark"), (1600, "light"), (1600, "dark")], ids=lambda p: f"{p[0]}-{p[1]}")
def opened(request, browser, page_file):
    """The page at a width and in a colour scheme, with what it complained of and what it asked for."""
    width, scheme = request.param
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.complaints, page.asked = [], []
    page.on("console", lambda message: page.complaints.append(message.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("dialog", lambda dialog: (page.complaints.append(dialog.message), dialog.dismiss()))

    def refuse(route):
        page.asked.append(route.request.url)
        route.abort()

    page.route(lambda url: not url.startswith(("file:", "data:")), refuse)
    page.goto(page_file.as_uri())
    yield page
    page.close()


def test_it_complains_of_nothing_and_asks_nobody(opened):
    assert opened.complaints == []
    assert opened.asked == []
    assert (
        opened.evaluate("performance.getEntriesByType('resource').filter(e => !e.name.startsWith('data:')).length") == 0
    )


def test_every_chart_is_drawn_with_marks(opened):
    assert opened.locator("figure").count() == 15
    sizes = opened.evaluate(
        """[...document.querySelectorAll('figure')].map(figure =>
            [...figure.querySelectorAll('svg')].filter(svg => svg.getBoundingClientRect().width > 0).map(svg => {
                const marks = [...svg.querySelectorAll('.marks path, .marks line, .marks rect')];
                const boxes = marks.map(mark => mark.getBoundingClientRect());
                return [svg.getBoundingClientRect().width, boxes.filter(b => b.width + b.height > 1).length];
            }))"""
    )
    for drawn in sizes:
        assert len(drawn) == 1, "each figure shows one of its two drawings"
        width, marks = drawn[0]
        assert width > 250
        assert marks > 0


def test_nothing_is_wider_than_the_page(opened):
    assert opened.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_chart_text_stays_large_enough_and_inside(opened):
    texts = opened.evaluate(
        """[...document.querySelectorAll('svg text')].filter(t => t.getBoundingClientRect().width > 0).map(t => {
            const box = t.getBoundingClientRect(), svg = t.ownerSVGElement, frame = svg.closest('figure');
            const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
            const inside = frame.getBoundingClientRect();
            const isInside = box.left >= inside.left && box.right <= inside.right;
            return [parseFloat(t.getAttribute('font-size')) * scale, isInside];
        })"""
    )
    assert min(size for size, _ in texts) >= 9.5
    assert all(inside for _, inside in texts)


def test_text_stands_out_from_its_ground(opened):
    """Contrast of at least 4.5, for the page's words and for the words in charts."""
    contrasts = opened.evaluate(
        """(() => {
            const light = rgb => rgb.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255)
                .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
                .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
            const ground = element => {
                for (let at = element; at; at = at.parentElement) {
                    const colour = getComputedStyle(at).backgroundColor;
                    if (colour !== 'rgba(0, 0, 0, 0)') return colour;
                }
                return 'rgb(255, 255, 255)';
            };
            const contrast = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            return [...document.querySelectorAll('p, td, th, h1, h2, h3, a, summary, svg text')].map(element => {
                const style = getComputedStyle(element);
                const ink = element.tagName === 'text' ? style.fill : style.color;
                return contrast(light(ink), light(ground(element)));
            });
        })()"""
    )
    assert min(contrasts) >= 4.5


def test_hostile_keys_are_read_as_they_are(opened):
    assert opened.locator("script, img, iframe").count() == 0
    assert opened.get_by_text("</script><script>alert(1)</script>", exact=True).count() > 0


def test_contents_lead_to_every_section(opened):
    opened.get_by_role("link", name="How this was made").click()
    assert opened.evaluate("document.querySelector('#made').getBoundingClientRect().top < window.innerHeight")
    assert opened.locator("nav li").count() == opened.locator("main > section").count()
