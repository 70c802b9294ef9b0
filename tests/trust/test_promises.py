"""The page of promises lists those of the list, and only a run that proves a promise changes its row."""

import re
from types import SimpleNamespace

import pytest

from tests.trust.promises import HERE, PAGE, Keeper, page_of, promises, rows_of

LISTED = promises()


def test_the_page_has_the_promises_of_the_list():
    """After a change of the list: python -m tests.trust.promises."""
    page = PAGE.read_text()
    assert page == page_of(rows_of(page))
    for cases, date in rows_of(page).values():
        assert (cases, date) == ("", "") or re.fullmatch(r"[1-9][\d,]* 20\d\d-[01]\d-[0-3]\d", f"{cases} {date}")


@pytest.mark.parametrize("name", LISTED)
def test_the_listed_tests_exist(name):
    for listed in LISTED[name].tests:
        path, _, function = listed.partition("::")
        source = (HERE.parent / path).read_text()
        assert not function or f"\ndef {function}(" in source, listed


def report(name, outcome="passed", when="call", **more):
    properties = [("promise", (of, cases)) for of, cases in more.items()]
    return SimpleNamespace(nodeid=f"tests/{name}[1]", outcome=outcome, when=when, user_properties=properties)


def test_only_what_ran_whole_and_passed_has_a_new_row(tmp_path):
    page = tmp_path / "page.md"
    keeper = Keeper(page)
    keeper._known = {name: LISTED[name] for name in ("shedding", "relations", "kill", "expressions")}
    one, other = LISTED["shedding"].tests
    for each in (
        *(report(f"{one}::test_a", shedding=40), report(f"{other}::test_b"), report(f"{other}::test_b", shedding=1000)),
        *(report("journeys/test_relations.py::test_a"), report("journeys/test_relations.py::test_b", "failed")),
        *(report("journeys/test_kill.py::test_a"), report("journeys/test_kill.py::test_b", "skipped", "setup")),
        report("journeys/test_kill_more.py::test_a", "failed"),
    ):
        keeper.pytest_runtest_logreport(each)
    assert keeper.kept() == {"shedding": 1041}
    page.write_text(page_of({LISTED["kill"].text: ("7", "2026-01-02"), LISTED["shedding"].text: ("1", "2026-01-02")}))
    keeper.write("2026-03-04")
    rows = rows_of(page.read_text())
    assert rows[LISTED["shedding"].text] == ("1,041", "2026-03-04")
    assert rows[LISTED["kill"].text] == ("7", "2026-01-02")
    assert {*rows.values()} == {("1,041", "2026-03-04"), ("7", "2026-01-02"), ("", "")}
