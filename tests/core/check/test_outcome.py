"""What became of limits, written down."""

from unittest.mock import ANY
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from adapt.cli.terminal.formats import markdown_text
from adapt.core.check.check_limits import judge
from adapt.core.check.facts import Facts, fact_of
from adapt.core.check.limit import Selector, parse_limit
from adapt.core.check.outcome import junit_xml, verdict_table
from adapt.core.metrics import ROWS, Of

HOSTILE = 'a|b<c>&"\x1b[31m\x00\ud800\u202e`*_\n'


def plan(imbalance, name="x.plan", scheme="hybrid"):
    return Facts(name, Of.PLAN, "hash", {ROWS: [fact_of({"scheme": scheme, "imbalance": imbalance}, ["scheme"])]})


def verdict(*texts, facts=None):
    artefacts = [facts or plan(1.3)]
    return judge([parse_limit(text) for text in texts], artefacts), artefacts


def test_junit_has_a_case_for_each_limit_and_a_failure_for_each_that_fails():
    found, _ = verdict("imbalance<=1.2", "imbalance<=1.4")
    suites = ET.fromstring(junit_xml(found))
    (suite,) = suites
    assert (suites.tag, suite.tag) == ("testsuites", "testsuite")
    for each in (suites, suite):
        assert (each.get("tests"), each.get("failures"), each.get("errors")) == ("2", "1", "0")
    failing, holding = suite
    assert (failing.get("classname"), failing.get("name")) == ("x.plan", "imbalance<=1.2")
    assert failing.find("failure").get("message") == "imbalance is 1.300; the limit is <=1.2"
    assert holding.find("failure") is None


@given(st.text() | st.just(HOSTILE), st.text(max_size=5) | st.just(HOSTILE))
def test_hostile_names_leave_xml_and_markdown_whole(name, scheme):
    text = f"imbalance[{Selector('scheme', scheme)}]<=1.2"
    found, _ = verdict(text, facts=plan(1.3, name, scheme))
    (suite,) = ET.fromstring(junit_xml(found))
    assert len(suite) == 1
    assert rendered(found) == [["result", "limit", "value", "artefact"], ["FAILS", *[ANY] * 3]]


def rendered(found):
    """The cells of the one table as which code hosts show the outcome, row by row."""
    page = MarkdownIt("commonmark").enable("table").render(markdown_text([verdict_table(found)]))
    table = ET.fromstring("<page>" + page.replace("<br>", "<br/>") + "</page>").findall("table")
    assert len(table) == 1
    return [["".join(cell.itertext()) for cell in row] for row in table[0].iter("tr")]
