"""Commands of the README and of docs/ are run as they stand, in a folder that holds nothing but what they read.

Of some pages always, on real inputs cut to some thousand rows; of all pages under the soak profile, on whole inputs, or
with ADAPT_DOCS=1 on cut ones. What a command has made for one page is taken for the next one that says the same.
"""

import json
import os
import re
import shutil
from hashlib import sha256
from pathlib import Path

import pytest

from tests.docs.inputs import MAKERS, put
from tests.docs.pages import GUIDES, Command, blocks, commands, text_of
from tests.tiers import SOAK

WHOLE = SOAK
CUT = bool(os.environ.get("ADAPT_DOCS"))
"""Run all pages, but on cut inputs: a rehearsal of what the soak does."""

MOST = None if WHOLE else 3_000
GENERATED = 20_000
"""Rows that are generated at most, but for the soak profile."""

TOLD_ELSEWHERE = {"docs/reference.md", "docs/topic.md", "docs/locations.md"}
"""Run in tests/journeys: the examples of the help pages, and what needs a broker or a store."""

ALWAYS = {"README.md", "docs/deploy.md"}
"""Run in every test run; the commands of other pages are parsed there (test_pages), and run in the soak."""

PAGES = [page for page in ("README.md", *GUIDES) if page not in TOLD_ELSEWHERE and "```sh" in text_of(page)]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """Where inputs, and what was made of them, wait for the next page."""
    return tmp_path_factory.mktemp("shelf")


def typed(command: Command) -> list[str]:
    """The words of a command after `adapt`; unless in the soak with fewer rows to generate, and cases to compare."""
    words = command.words[1:]
    if WHOLE:
        return words
    if words[0] == "generate":
        at = words.index("--rows") + 1 if "--rows" in words else 0
        asked = int(words[at]) if at else GENERATED
        others = words[: at - 1] + words[at + 1 :] if at else words
        return [*others, "--rows", str(min(asked, GENERATED))]
    if words[:2] == ["replay", "compare"]:
        words = [word for word in words if word != "--sustainable"]
        return words if "--scenario" in words else [*words, "--scenario", "static-hybrid", "--scenario", "shed"]
    return words


def out_of(words: list[str]) -> Path | None:
    """What a command writes."""
    return next((Path(words[at + 1]) for at, word in enumerate(words) if word in ("-o", "--out", "--html")), None)


def bring(name: str, shelf: Path, folder: Path, find) -> None:
    """An input from the shelf, made where it is not there yet."""
    kept = shelf / "inputs"
    if not (kept / name).exists():
        put(name, kept, find, MOST)
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).symlink_to(kept / name)


class Kept:
    """What commands of earlier pages made, for the same command with the same inputs."""

    def __init__(self, shelf: Path) -> None:
        self._shelf = shelf
        self._made: dict[str, str] = {}

    def key(self, words: list[str]) -> str:
        """Tells a command from every other, and from the same one over what others have made."""
        before = [self._made.get(word, "") for word in words]
        return sha256(json.dumps([words, before]).encode()).hexdigest()

    def __call__(self, adapt, command: Command) -> None:
        """Run one command, or take what it made before; it is to end as the page says."""
        words = typed(command)
        out, key = out_of(words), self.key(words)
        kept = self._shelf / key
        if out is not None and kept.exists():
            _copy(kept, out)
        else:
            said = adapt(*words)
            assert said.code == command.code, f"{command.line}\n{said.err}{said.out}"
            assert out is None or out.exists()
            if out is not None:
                _copy(out, kept)
        if out is not None:
            self._made[str(out)] = key


def _copy(source: Path, target: Path) -> None:
    (shutil.copytree if source.is_dir() else shutil.copy)(source, target)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("page", [page for page in PAGES if WHOLE or CUT or page in ALWAYS])
def test_every_command_of_the_page_runs(adapt, real_traces, shelf, tmp_path, monkeypatch, page):
    monkeypatch.chdir(tmp_path)
    found = blocks(page)
    run = [command for block in found if block.is_run for command in commands(block)]
    assert run, "the page has no command that is run"
    lines = " ".join(command.line for command in run)
    for name in MAKERS:
        if re.search(rf"(?<![\w./]){re.escape(name)}(?![\w.])", lines):
            bring(name, shelf, tmp_path, real_traces)
    for block in found:
        if block.file:
            Path(block.file).parent.mkdir(parents=True, exist_ok=True)
            Path(block.file).write_text(block.text)
    kept = Kept(shelf)
    for command in run:
        kept(adapt, command)
