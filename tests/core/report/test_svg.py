import re
from xml.etree import ElementTree

from adapt.core.report.key_charts import top_keys
from adapt.core.report.svg import render_svg
from adapt.core.table import Column, Kind, Table

HOSTILE = [
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "&lt;",
    "\u202eright to left\u200f",
    "a" * 65_536,
    "nul\x00 bell\x07 \x1b[31m",
    "\ud800",
    "\ufffe",
    "",
    None,
]


def chart_of(keys):
    columns = (Column("key"), Column("share", Kind.SHARE))
    return top_keys(Table.from_rows("Top", columns, [(key, 0.1 - at / 1000) for at, key in enumerate(keys)]))


def test_ids_are_the_callers():
    drawn = render_svg(chart_of(["a", "b"]).spec, prefix="c7")
    assert set(re.findall(r'id="([^"]*)"', drawn)) <= set(re.findall(r'id="(c7-\d+)"', drawn))
    assert set(re.findall(r"url\(#([^)]*)\)", drawn)) <= set(re.findall(r'id="([^"]*)"', drawn))


def test_hostile_keys_are_text_and_nothing_else():
    root = ElementTree.fromstring(render_svg(chart_of(HOSTILE).spec))
    names = {element.tag.split("}")[1] for element in root.iter()}
    assert names <= {"svg", "g", "path", "rect", "line", "text", "tspan", "title", "defs", "clipPath"}
    attributes = {name for element in root.iter() for name in element.attrib}
    assert not any(name.startswith("on") or "href" in name or name == "style" for name in attributes)
    texts = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert "\\ud800" in texts
    assert "nul\\x00 bell\\x07 \\x1b[31m" in texts


def test_ink_follows_the_page_and_the_ground_is_clear():
    drawn = render_svg(chart_of(["a"]).spec)
    assert 'fill="currentColor"' in drawn
    assert "#010203" not in drawn
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")


def test_a_screen_reader_is_told_what_it_is():
    root = ElementTree.fromstring(render_svg(chart_of(["a"]).spec))
    assert root.get("role") == "img"
    assert root.get("aria-label") == "Hot keys"
    assert root[0].tag.endswith("title")
