"""The promises of the program, the tests that check them, and the page that says when they last did.

`promises.toml` lists them. A test says how many cases of which promise it has checked by the fixture `promise`; a
listed test that does not counts as one case, or as its random examples. At the end of a soak run of whole files, the
page has new numbers for each promise all of whose tests ran and passed. After a change of the list:
python -m tests.trust.promises
"""

import os
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "promises.md"
HEAD = """# What is promised, and how it is checked

`make soak` writes the last two columns; `make test` checks a part of the cases.

| promise | how it is tested | cases | last run |
|---|---|---:|---|
"""
NEVER = ("", "")


@dataclass(frozen=True, slots=True)
class Promise:
    """A promise, in the words of the docs."""

    text: str
    how: str
    tests: tuple[str, ...]  # files below `tests`, or functions of them: "trust/test_models.py::test_ring"

    def has(self, node: str) -> bool:
        """Whether a test, by its id, is one of those that check this."""
        return any(_within(node, each) for each in self.tests)


def _within(node: str, listed: str) -> bool:
    return bool(re.match(rf"tests/{re.escape(listed)}(?=::|\[|@|$)", node))


def promises(listed: Path = HERE / "promises.toml") -> dict[str, Promise]:
    """The list, by the name of each promise."""
    read = tomllib.loads(listed.read_text())
    return {name: Promise(each["promise"], each["how"], tuple(each["tests"])) for name, each in read.items()}


def rows_of(page: str) -> dict[str, tuple[str, str]]:
    """Cases and date of each promise, by its text, as a page has them."""
    rows = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in page.splitlines() if line[:2] == "| "]
    return {text: (cases, date) for text, _, cases, date in rows[1:]}


def page_of(found: dict[str, tuple[str, str]]) -> str:
    """The page with the given cases and dates."""
    rows = [(each.text, each.how, *found.get(each.text, NEVER)) for each in promises().values()]
    return HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows)


class Checked:
    """What a test says of a promise."""

    def __init__(self, name: str, item: pytest.Item) -> None:
        self._name, self._item = name, item

    def checked(self, cases: int) -> None:
        """The test has checked so many cases, all of them right."""
        assert cases > 0, f"no case of {self._name} was checked"
        self._item.user_properties.append(("promise", (self._name, int(cases))))


class Keeper:
    """Collects what tests say, also from other processes, and writes the page after a soak run."""

    def __init__(self, page: Path = PAGE) -> None:
        self._page, self._known = page, promises()
        self._cases: dict[str, int] = defaultdict(int)
        self._ran: dict[str, set[str]] = defaultdict(set)
        self._failed = set[str]()

    @pytest.fixture
    def promise(self, request: pytest.FixtureRequest) -> Iterator[Callable[[str], Checked]]:
        """Says how many cases of a promise this test has checked: `promise("writers").checked(105)`."""

        def named(name: str) -> Checked:
            assert self._known[name].has(request.node.nodeid), f"promises.toml does not list this test under {name}"
            return Checked(name, request.node)

        return named

    def pytest_runtest_makereport(self, item: pytest.Item) -> None:
        """Random examples of a property are cases."""
        examples = re.findall(r"(\d+) passing", getattr(item, "hypothesis_statistics", ""))
        if examples and not any(kind == "examples" for kind, _ in item.user_properties):
            item.user_properties.append(("examples", sum(map(int, examples))))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test that fails, or is skipped, proves nothing."""
        for name, each in self._known.items():
            if not each.has(report.nodeid):
                continue
            if report.outcome != "passed":
                self._failed.add(name)
            elif report.when == "call":
                said = [value[1] for kind, value in report.user_properties if kind == "promise" and value[0] == name]
                drawn = [value for kind, value in report.user_properties if kind == "examples"]
                self._cases[name] += sum(said) or sum(drawn) or 1
                self._ran[name] |= {listed for listed in each.tests if _within(report.nodeid, listed)}

    def kept(self) -> dict[str, int]:
        """Cases of each promise all of whose tests ran and passed."""
        complete = [name for name, each in self._known.items() if self._ran[name] == {*each.tests}]
        return {name: self._cases[name] for name in complete if name not in self._failed}

    def write(self, today: str) -> None:
        """Write the page: what was kept anew, the rest as it was."""
        found = rows_of(self._page.read_text()) if self._page.exists() else {}
        found |= {self._known[name].text: (f"{cases:,}", today) for name, cases in self.kept().items()}
        self._page.write_text(page_of(found))

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Only in the process that all reports reach, and where each file was run whole."""
        config = session.config
        partial = any(config.getoption(name, None) for name in ("keyword", "markexpr", "deselect", "lf", "maxfail"))
        named = any("::" in each for each in config.args)
        if (
            os.environ.get("ADAPT_SOAK")
            and exitstatus in (0, 1)
            and not (hasattr(config, "workerinput") or partial or named)
        ):
            self.write(datetime.now(UTC).date().isoformat())


if __name__ == "__main__":
    Keeper().write("")
