"""The report page in a real browser: drawn, readable at every width, and asking nobody for anything."""

import math
import re
import shutil
from itertools import pairwise

import pytest

from adapt.core.charts.over_time import imbalance_per_period, migration_per_period, rate_over_time
from adapt.core.lint.finding import Finding, Severity
from adapt.core.report.first_screen import FirstScreen, Number, Tone
from adapt.core.report.key_charts import channel_loads, rank_frequency, top_keys
from adapt.core.report.page import Page, Section, render_page
from adapt.core.report.scheme_charts import comparison
from adapt.core.stage.charts import stage_charts
from adapt.core.table import Column, Kind, Table
from tests.core.stage.stage_series import stage_tables

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


FIRST = FirstScreen(
    Tone.ACT,
    "Pin 3 keys",
    "8 workers, keys placed by kafka, limit 1.2",
    (
        Number("Imbalance today", "1.630", "busiest / mean load; 6 later windows, median", Tone.BAD),
        Number("Imbalance after", "1.020", "same rows; best possible: 1.000", Tone.GOOD),
        Number("State to move", "12.3 %", "of all state: 3 keys"),
    ),
    "Imbalance 1.020 in the median later window, within the limit of 1.2.",
    f"adapt partition export '{'web' * 90}.plan' --to kafka",
)


def many(kind, names):
    return [Column(name, kind) for name in names.split()]


def trace_sections():
    time = Column("time", Kind.TIME)
    rates = [(at * HOUR // 6, round(500 + 400 * math.sin(at / 23)), at % 50) for at in range(1_000)]
    rate = Table.from_rows("Rate over time", [time, *many(Kind.COUNT, "rows peak")], rates)
    ranks = Table.from_rows(
        "Ranks", [Column("rank", Kind.COUNT), Column("share", Kind.SHARE)], [(at, 0.1 / at) for at in range(1, 900)]
    )
    keys = [*HOSTILE, *(f"user-{at}" for at in range(20))]
    top = Table.from_rows(
        "Heaviest keys",
        [Column("key"), Column("count", Kind.COUNT), Column("share", Kind.SHARE)],
        [(key, 9_000 - at, 0.1 / (at + 1)) for at, key in enumerate(keys)],
    )
    overview = Table.from_rows(
        "Trace", [Column("what"), Column("value")], [("rows", "1 336 776"), ("heaviest key", HOSTILE[0])]
    )
    heading, findings = f"Verdict: {FIRST.status}", [Finding("drift", each, *HOSTILE[:3]) for each in Severity]
    yield Section(heading, ["Fixable by pinning."], [], [overview], first=FIRST, findings=findings)
    yield Section("The stream", [], [rate_over_time(rate), rank_frequency(ranks), top_keys(top)], [top])


def plan_sections():
    ratios = "imbalance best_possible r_s r_c r_n r_best r_best_pinned b m b(1+m)"
    columns = [
        *(Column("scheme"), Column("construction"), Column("channels", Kind.COUNT)),
        *many(Kind.RATIO, ratios),
        *many(Kind.COUNT, "keys_moved pinned_keys"),
        *(Column("state_moved", Kind.BYTES), Column("build_s", Kind.SECONDS)),
    ]
    schemes = [("uniform", None, 0.9), ("hybrid", "scan", 0.2), ("hybrid", "level", 0.05)]
    rows = [
        (scheme, construction, n, 1 + far * n / 9, 1.0, *[1.2] * 6, far * n, 1.0, 900, 100, 12_345_678, 0.01)
        for scheme, construction, far in schemes
        for n in range(1, 9)
    ]
    compared = Table.from_rows("Comparison", columns, rows)
    names = [Column("period", Kind.COUNT), Column("start", Kind.TIME), *many(Kind.RATIO, "imbalance best_possible")]
    periods = Table.from_rows(
        "Periods",
        [*names, Column("state_moved", Kind.BYTES)],
        [(at, at * HOUR, 1.2 + at % 5 / 10, 1.1, at * 100_000) for at in range(48)],
    )
    loads = Table.from_rows(
        "Loads", [Column("channel", Kind.COUNT), Column("load", Kind.SHARE)], [(at, 0.1) for at in range(8)]
    )
    yield Section("Schemes", [], comparison(compared), [compared])
    yield Section("Over time", [], [imbalance_per_period(periods), migration_per_period(periods)], [periods])
    yield Section("Channels", [], [channel_loads(loads)], [loads])


def stage_sections():
    intervals, workers, moves = stage_tables(seconds=300, workers=40, queue=1, on_disk=3, moves=30)
    yield Section("A stage", [], stage_charts(intervals, workers, moves), [intervals, workers, moves])


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


def watched(browser, path, **how):
    """The page, with what it complained of and what it asked for; charts are drawn where script is on."""
    page = browser.new_page(**how)
    page.complaints, page.asked = [], []
    page.on("console", lambda message: page.complaints.append(message.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("dialog", lambda dialog: (page.complaints.append(dialog.message), dialog.dismiss()))

    def refuse(route):
        page.asked.append(route.request.url)
        route.abort()

    page.route(lambda url: not url.startswith(("file:", "data:")), refuse)
    page.goto(path.as_uri())
    if how.get("java_script_enabled", True):
        for figure in page.locator("figure").all():
            figure.scroll_into_view_if_needed()
        assert page.complaints == []
        page.locator("figure:not([data-drawn]) .still").first.wait_for(state="detached", timeout=60_000)
    return page


WAYS = {
    "400-light": {"viewport": {"width": 400, "height": 900}, "color_scheme": "light"},
    "400-dark-no-script": {
        "viewport": {"width": 400, "height": 900},
        "color_scheme": "dark",
        "java_script_enabled": False,
    },
    "1600-light-no-script": {
        "viewport": {"width": 1600, "height": 900},
        "color_scheme": "light",
        "java_script_enabled": False,
    },
    "1600-dark": {"viewport": {"width": 1600, "height": 900}, "color_scheme": "dark"},
}


@pytest.fixture(params=WAYS, scope="module")
def opened(request, browser, page_file):
    """The page at a width, in a colour scheme, with script and without."""
    page = watched(browser, page_file, **WAYS[request.param])
    page.has_script = WAYS[request.param].get("java_script_enabled", True)
    yield page
    page.close()


def test_it_complains_of_nothing_and_asks_nobody(opened):
    assert opened.complaints == []
    assert opened.asked == []
    assert (
        opened.evaluate("performance.getEntriesByType('resource').filter(e => !e.name.startsWith('data:')).length") == 0
    )


def test_every_chart_is_drawn_with_marks(opened):
    """Once: anew where script is on, and for the page's width where it is not."""
    assert opened.locator("figure").count() == 16
    sizes = opened.evaluate(
        """[...document.querySelectorAll('figure')].map(figure =>
            [...figure.querySelectorAll('svg')].filter(svg => svg.getBoundingClientRect().width > 0).map(svg => {
                const marks = [...svg.querySelectorAll('.marks path, .marks line, .marks rect, .role-mark path')];
                const boxes = marks.map(mark => mark.getBoundingClientRect());
                return [svg.getBoundingClientRect().width, boxes.filter(b => b.width + b.height > 1).length];
            }))"""
    )
    for drawn in sizes:
        assert len(drawn) == 1
        width, marks = drawn[0]
        assert width > 250
        assert marks > 0


def test_nothing_is_wider_than_the_page(opened):
    assert opened.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_the_first_screen_shows_status_numbers_and_command(opened):
    first = opened.locator(".first")
    assert first.get_by_role("heading", name="Pin 3 keys").is_visible()
    assert [first.locator(".value").nth(at).inner_text() for at in range(3)] == ["1.630", "1.020", "12.3\u00a0%"]
    edges = opened.evaluate(
        """(() => { const right = e => e.getBoundingClientRect().right;
            const frame = document.querySelector('.first');
            return [right(frame), ...[...frame.querySelectorAll('.value, code, .badge, button')].map(right)]; })()"""
    )
    assert max(edges) == edges[0]
    assert first.get_by_role("button", name="Copy the command").count() == opened.has_script
    assert first.locator("details").count() == len(Severity)


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
            return [...document.querySelectorAll(
                'p, td, th, h1, h2, h3, a, summary, dt, dd, b, small, code, .badge, svg text')].map(element => {
                const style = getComputedStyle(element);
                const ink = element.tagName === 'text' ? style.fill : style.color;
                return contrast(light(ink), light(ground(element)));
            });
        })()"""
    )
    assert min(contrasts) >= 4.5


def test_hostile_keys_are_read_as_they_are(opened):
    assert opened.locator("img, iframe").count() == 0
    assert opened.locator("script").count() == (4 if opened.has_script else 3)
    assert opened.get_by_text("</script><script>alert(1)</script>", exact=True).count() > 0


def bars_table(keys):
    columns = [Column("key"), Column("share", Kind.SHARE)]
    return Table.from_rows("Heaviest keys", columns, [(key, 0.4 / (at + 1)) for at, key in enumerate(keys)])


@pytest.fixture(scope="module")
def small_page(browser, tmp_path_factory):
    """Two series over time, and bars of keys, with script."""
    path = tmp_path_factory.mktemp("small") / "small.html"
    charts = [stage_charts(*stage_tables(seconds=100, moves=5))[0], top_keys(bars_table(["first", *HOSTILE[:3]]))]
    path.write_text(render_page(Page("small", [Section("Charts", [], charts)])), encoding="utf-8")
    page = watched(browser, path, viewport={"width": 1000, "height": 1200})
    yield page
    page.close()


@pytest.fixture
def small(small_page):
    """The small page as it was when it was opened."""
    small_page.mouse.move(0, 0)
    for area in small_page.locator(".area").all():
        area.press("0")
    for switch in small_page.locator(".legend [aria-pressed=false]").all():
        switch.click()
    yield small_page
    assert small_page.complaints == []
    assert small_page.asked == []


def settled(page):
    """After the drawing that the last act asked for."""
    page.locator(".live[aria-busy]").first.wait_for(state="detached")
    return page


def ticks_of(page, figure):
    """What stands along the horizontal axis."""
    return settled(page).locator(f"#{figure} .live .role-axis-label text").all_text_contents()


def test_what_is_nearest_to_the_pointer_is_told(small):
    area = small.locator("#c1 .area").bounding_box()
    small.mouse.move(area["x"] + area["width"] / 2, area["y"] + area["height"] / 2)
    told = small.locator("#c1 .tip").inner_text()
    assert re.fullmatch(r"(static|load), \d+ s: throughput \d+", told)
    second = int(re.search(r", (\d+) s", told)[1])
    assert 30 < second < 70
    height = int(re.search(r"\d+$", told)[0])
    assert height == 100 + second - 1 + told.startswith("load")
    small.mouse.move(0, 0)
    assert small.locator("#c1 .tip").is_hidden()


def test_arrows_walk_along_a_series_and_from_one_to_another(small):
    area, told = small.locator("#c1 .area"), small.locator("#c1 .tip")
    area.focus()
    small.keyboard.press("Home")
    assert told.inner_text() == "static, 1 s: throughput 100"
    small.keyboard.press("ArrowRight")
    assert told.inner_text() == "static, 2 s: throughput 101"
    small.keyboard.press("ArrowDown")
    assert told.inner_text() == "load, 2 s: throughput 102"
    assert small.locator("#c1 [aria-live]").inner_text() == "load, 2 s: throughput 102"
    small.keyboard.press("ArrowUp")
    small.keyboard.press("ArrowLeft")
    assert told.inner_text() == "static, 1 s: throughput 100"


def test_series_are_switched_off_and_on(small):
    lines = small.locator("#c1 .live .role-mark path[fill=none], #c1 .live .mark-line path")
    before = lines.count()
    switch = small.locator("#c1").get_by_role("button", name="load")
    switch.click()
    assert switch.get_attribute("aria-pressed") == "false"
    assert settled(small).locator("#c1 .live .mark-line path").count() < before
    small.locator("#c1").get_by_role("button", name="static").click()
    assert small.locator("#c1").get_by_role("button", name="static").get_attribute("aria-pressed") == "true", "the last"
    switch.click()
    settled(small)
    assert lines.count() == before


def test_a_stretch_is_dragged_open_and_all_shown_again(small):
    whole = ticks_of(small, "c1")
    area = small.locator("#c1 .area").bounding_box()
    middle = area["y"] + area["height"] / 2
    small.mouse.move(area["x"] + 0.4 * area["width"], middle)
    small.mouse.down()
    small.mouse.move(area["x"] + 0.6 * area["width"], middle, steps=3)
    small.mouse.up()
    part = ticks_of(small, "c1")
    assert part != whole
    small.locator("#c1 .area").press("Home")
    assert int(re.search(r", (\d+) s", small.locator("#c1 .tip").inner_text())[1]) > 25
    small.locator("#c1").get_by_role("button", name="Show all again").click()
    assert ticks_of(small, "c1") == whole


def test_a_reader_that_hears_the_page_is_told_what_is_where(small):
    tree = small.locator("body").aria_snapshot()
    assert tree.index('link "Skip to the content"') < tree.index("banner") < tree.index('navigation "Contents"')
    assert 'heading "small" [level=1]' in tree
    assert 'heading "Throughput" [level=3]' in tree
    assert 'group "Throughput"' in tree
    assert 'button "load" [pressed]' in tree
    levels = [int(level) for level in re.findall(r"\[level=(\d)\]", tree)]
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_everything_is_reached_by_tab_and_seen_to_be(small):
    small.locator(".skip").focus()
    reached = []
    for _ in range(12):
        small.keyboard.press("Tab")
        reached.append(
            small.evaluate(
                "(e => [e.className || e.tagName, getComputedStyle(e).outlineStyle != 'none'])(document.activeElement)"
            )
        )
    assert small.locator(".skip").evaluate("e => e.tabIndex") == 0
    assert "area" in [name for name, _ in reached]
    assert [name for name, is_seen in reached if not is_seen and name != "BODY"] == []
