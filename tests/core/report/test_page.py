"""The page: its first screen, its sections, and that it asks nobody."""

import gzip
import json
import re
from base64 import b64decode, b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markupsafe import escape

from adapt.core.lint.finding import Finding, Severity
from adapt.core.out_of_sample.outcome import TODAY, OutOfSample, Track
from adapt.core.out_of_sample.walk_forward import Way
from adapt.core.report.first_screen import Tone, first_screen
from adapt.core.report.key_charts import top_keys
from adapt.core.report.page import MOST_BYTES, Page, Section, render_page
from adapt.core.stream import Weight
from adapt.core.table import Column, Kind, Table
from adapt.core.verdict.answer import Answer
from adapt.core.verdict.hot_keys import HotKeys
from adapt.core.verdict.verdict import Verdict
from adapt.core.verdict.verdict_class import VerdictClass

HOSTILE = [
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg/onload=alert(1)>",
    "</title></style><iframe src=//example.com>",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)",
    "&lt;",
    "\u202eright to left\u200f",
    "a" * 65_536,
    "nul\x00 bell\x07 \x1b[31m",
    "\ud800",
]


class Inventory(HTMLParser):
    """What a page is made of."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data):
        self.text.append(data)


def keys_table(keys):
    columns = (
        Column("key", about="what rows are grouped by"),
        Column("count", Kind.COUNT),
        Column("share", Kind.SHARE),
    )
    return Table.from_rows("Heaviest keys", columns, [(key, 1000 - at, 0.1 / (at + 1)) for at, key in enumerate(keys)])


def page_of(keys):
    table = keys_table(keys)
    sections = [
        Section("Verdict", ["Fixable by placement."]),
        Section("Keys", [f"The heaviest is {keys[0]}."], [top_keys(table)], [table]),
    ]
    return Page("web.trace", sections, [{"command": "adapt report", "inputs": [{"path": keys[0], "sha256": "ab"}]}])


def test_hostile_keys_add_no_element_and_no_attribute():
    tame = Inventory(render_page(page_of([f"key {number}" for number in range(len(HOSTILE))])))
    wild = Inventory(render_page(page_of(HOSTILE)))
    assert set(wild.tags) <= set(tame.tags) | {"path"}
    assert {name for _, name, _ in wild.attributes} == {name for _, name, _ in tame.attributes}
    assert wild.tags.count("td") == tame.tags.count("td")
    assert "</script><script>alert(1)</script>" in "".join(wild.text)


@given(st.lists(st.text(st.characters()), min_size=1, max_size=3))
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_the_keys_the_page_is_made_of_the_same_things(keys):
    table = keys_table(keys)
    html = render_page(Page(keys[0], [Section(keys[0], keys, [], [table])], [{keys[0]: keys}]))
    html.encode()
    tame_keys = ["k"] * len(keys)
    tame = render_page(Page("k", [Section("k", tame_keys, [], [keys_table(tame_keys)])], [{"k": tame_keys}]))
    assert Inventory(html).tags == Inventory(tame).tags


def scripts_of(html):
    """Each script element's attributes and text."""
    return re.findall(r"<script([^>]*)>(.*?)</script>", html, re.DOTALL)


def unpacked(text):
    return gzip.decompress(b64decode(text)).decode()


def test_nothing_is_fetched():
    inventory = Inventory(render_page(page_of(HOSTILE)))
    assert not {"iframe", "img", "object", "embed", "base", "form"} & set(inventory.tags)
    for tag, name, value in inventory.attributes:
        assert not name.startswith("on")
        if name in ("href", "src", "xlink:href", "action"):
            assert value.startswith(("#", "data:,")), (tag, name, value)


def test_only_scripts_that_the_policy_names_run_and_keys_are_in_none_of_them():
    html = render_page(page_of(HOSTILE))
    (charts, held), (_, library), (attributes, own) = scripts_of(html)
    assert charts == ' type="text/plain" id="charts"'
    assert attributes == ""
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1]
    hashes = [b64encode(sha256(text.encode()).digest()).decode() for text in (own, unpacked(library))]
    assert f"script-src 'sha256-{hashes[0]}' 'sha256-{hashes[1]}';" in policy
    assert "unsafe-eval" not in policy
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", held)
    points = json.loads(unpacked(held))["charts"]["c1"]["data"]["values"]
    assert len(points) == len(HOSTILE)
    assert "\\ud800" in {point["k"] for point in points}
    assert own == scripts_of(render_page(page_of(["a"])))[2][1]


def test_a_page_without_charts_has_no_library():
    ((_, own),) = scripts_of(render_page(Page("p", [Section("Keys", (), (), [keys_table(["a"])])])))
    assert own == scripts_of(render_page(page_of(["a"])))[2][1]


def test_ids_are_unique_and_contents_lead_to_them():
    inventory = Inventory(render_page(page_of(["a", "b"])))
    ids = [value for _, name, value in inventory.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert {value[1:] for _, name, value in inventory.attributes if name == "href" and value[0] == "#"} <= set(ids)


def test_long_tables_show_their_start_and_say_how_much_is_missing():
    html = render_page(Page("p", [Section("s", tables=[keys_table([f"key-{number}" for number in range(350)])])]))
    assert "key-199<" in html
    assert "key-200<" not in html
    assert "150 more rows are not shown" in html


@pytest.mark.parametrize(("sections", "rows"), [(20, 5_000), (900, 3)])
def test_no_page_is_larger_than_its_cap(sections, rows):
    table = keys_table(["\u65e5" * 400] * rows)
    chart = top_keys(keys_table(HOSTILE))
    page = Page(
        "big", [Section("s", ["x" * 5_000], [chart][: at < 3], [table]) for at in range(sections)], [{"a": "b" * 9_000}]
    )
    html = render_page(page)
    assert len(html.encode()) <= MOST_BYTES
    assert "more rows" in html or "to keep the page small" in html


def test_an_amount_is_not_parted_from_its_unit():
    marked = [("load", "12.3\u202fms *"), ("static", "4\u202fs")]
    html = render_page(
        Page("p", [Section("s", (), (), [Table.from_rows("Cases", [Column("case"), Column("p99")], marked)])])
    )
    assert '<td class="s">12.3\u202fms *</td>' in html
    assert '<th scope="row" class="t">load</th>' in html
    assert '<caption class="unseen">Cases</caption>' in html


TESTED = OutOfSample(
    6,
    tuple(at * 3_600_000_000 for at in range(3)),
    (100, 100, 100),
    (1.0, 1.1, 1.2),
    {
        TODAY: Track((1.5, 1.6, 1.7), 0.0),
        Way.KEPT.value: Track((1.1, 1.15, 1.3), 0.1234, 3),
        Way.REBUILT.value: Track((1.05, 1.12, 1.2), 0.07, 3),
    },
    (1.05, 1.35),
)
RULES = {VerdictClass.PINNING: Way.KEPT.value, VerdictClass.REBUILDING: Way.REBUILT.value}


def answer_of(verdict_class, tested=TESTED, **others):
    pins = {"keys_to_pin": 3, "state_to_move": 0.1234, "imbalance_after": 1.01} if "pinning" in verdict_class else {}
    tested = tested and replace(tested, recommended=RULES.get(verdict_class, TODAY))
    verdict = Verdict(
        *(verdict_class, 8, "kafka", 1.2, 1.55, 1.0, "hot", 0.08, 900),
        out_of_sample=tested,
        **{**pins, **others},
    )
    return Answer(verdict, HotKeys((), Weight.COUNT, 0.0, 0))


SPLIT = {"keys_to_split": ("hot", "warm"), "number_to_split": 2, "split_share": 0.3}

STATUSES = [
    (VerdictClass.BALANCED, {}, Tone.GOOD, "Nothing to do"),
    (VerdictClass.PINNING, {}, Tone.ACT, "Pin 3 keys"),
    (VerdictClass.SPLITTING, SPLIT, Tone.BAD, "Keep today's placement, unless 2 keys can be split"),
    (VerdictClass.UNKNOWN, {}, Tone.UNKNOWN, "Cannot tell: change nothing yet"),
]


@pytest.mark.parametrize(("verdict_class", "others", "tone", "status"), STATUSES)
def test_the_status_is_a_word_and_a_color(verdict_class, others, tone, status):
    answer = answer_of(verdict_class, **others)
    first = first_screen(answer, "a.trace")
    assert (first.tone, first.status) == (tone, status)
    html = render_page(Page("p", [Section(f"Verdict on a.plans: {status}", ["Evidence."], first=first)]))
    assert f'<div class="first {tone}">' in html
    assert f"<b>{escape(status)}</b>" in html
    assert "<small>Verdict on a.plans</small>" in html


def test_the_numbers_are_those_of_the_verdict():
    answer = answer_of(VerdictClass.PINNING)
    first = first_screen(answer, "a.trace", "a.plan")
    tested = answer.as_data()["verdict"]["out_of_sample"]
    medians = {row["placement"]: row["median_imbalance"] for row in tested["placements"]}
    today, after, moved = first.numbers
    assert (today.value, after.value) == (f"{medians[TODAY]:.3f}", f"{medians[Way.KEPT.value]:.3f}")
    assert (today.tone, after.tone) == (Tone.BAD, Tone.GOOD)
    assert moved.value == f"{100 * answer.as_data()['verdict']['state_to_move']:.3g} %"
    assert "3 later windows" in first.about


def test_without_later_windows_the_numbers_say_that_they_are_in_sample():
    today, after, _ = first_screen(answer_of(VerdictClass.PINNING, None), "a.trace").numbers
    assert (today.value, after.value) == ("1.550", "1.010")
    assert "in-sample" in today.note


@pytest.mark.parametrize(
    ("verdict_class", "plan", "command"),
    [
        (VerdictClass.PINNING, "a b.plan", "adapt partition export 'a b.plan' --to kafka -o a.kafka"),
        (VerdictClass.PINNING, "", "adapt verdict a.trace --engine kafka --channels 8 --max-imbalance 1.2"),
        (VerdictClass.UNKNOWN, "", "adapt lint a.trace"),
        (VerdictClass.BALANCED, "", 'adapt check a.trace --engine kafka --channels 8 --limit "imbalance <= 1.2"'),
    ],
)
def test_the_next_command_fits_the_class(verdict_class, plan, command):
    assert first_screen(answer_of(verdict_class), "a.trace", plan).command == command


def test_findings_have_a_line_each_and_hostile_ones_are_text():
    finding = Finding("drift", Severity.WARNING, "<img src=x>", "A plan may miss.", "Pin few keys.")
    first = first_screen(answer_of(VerdictClass.PINNING), "<b>.trace")
    html = render_page(Page("p", [Section("Verdict", first=first, findings=[finding])]))
    assert '<span class="badge act">warning</span> <b>drift</b>' in html
    assert "&lt;img src=x&gt;" in html
    assert "<img" not in html
    assert "&#39;&lt;b&gt;.trace&#39;" in html
