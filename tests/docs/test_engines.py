"""The committed page of engines is what the program says now."""

from tools.engines import PAGE, engines_page


def test_the_committed_page_is_what_the_program_gives():
    assert PAGE.read_text() == engines_page(), "run: python -m tools.engines"
