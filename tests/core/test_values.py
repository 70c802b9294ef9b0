import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.table import Column, Kind
from adapt.core.values import human, plain, visible

cells = st.none() | st.booleans() | st.integers() | st.floats() | st.text()


@pytest.mark.parametrize(
    ("cell", "kind", "shown"),
    [
        (None, Kind.COUNT, "–"),
        (float("nan"), Kind.RATIO, "–"),
        (float("inf"), Kind.RATIO, "–"),
        (True, Kind.TEXT, "yes"),
        (1234567, Kind.TEXT, "1234567"),
        (1234567, Kind.COUNT, "1\u202f234\u202f567"),
        (1.5, Kind.RATIO, "1.500"),
        (0.123456, Kind.SHARE, "12.35%"),
        (0.00001234, Kind.SHARE, "0.0012%"),
        (0, Kind.SHARE, "0.00%"),
        (512, Kind.BYTES, "512\u202fB"),
        (1536, Kind.BYTES, "1.5\u202fKiB"),
        (0.0015, Kind.SECONDS, "1.5\u202fms"),
        (59.99, Kind.SECONDS, "1\u202fmin"),
        (3661, Kind.SECONDS, "1\u202fh 1\u202fmin"),
        (0, Kind.TIME, "1970-01-01T00:00:00Z"),
        (1_500_000, Kind.TIME, "1970-01-01T00:00:01.500000Z"),
        (10**400, Kind.NUMBER, str(10**400)),
    ],
)
def test_each_kind_reads_as_people_write_it(cell, kind, shown):
    assert human(cell, Column("c", kind)) == shown


@given(cells, st.sampled_from(Kind))
def test_every_cell_of_every_kind_can_be_shown_on_one_line(cell, kind):
    shown = human(cell, Column("c", kind))
    assert visible(shown) == shown
    shown.encode()


@given(cells)
def test_a_plain_cell_is_the_cell_unless_it_is_not_finite(cell):
    assert plain(cell) is cell or (plain(cell) is None and isinstance(cell, float))


def test_what_acts_is_escaped_and_what_shows_stays():
    assert visible("a\x1b[31m\u202e\ud800\n") == "a\\x1b[31m\\u202e\\ud800\\x0a"
    assert visible("日本 é مفتاح 😀") == "日本 é مفتاح 😀"


@given(st.text(st.characters()))
def test_visible_text_is_encodable_and_escaping_it_again_changes_nothing(text):
    assert visible(visible(text)) == visible(text)
    assert not any(ord(character) < 0x20 for character in visible(text))
    visible(text).encode()
