"""The pages of the documentation as tests read them: their blocks, what is written above them, their links."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
GUIDES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md"))
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", *GUIDES)

_BLOCK = re.compile(r"(?:^<!-- (?P<mark>[^>]*) -->\n)?^```(?P<kind>[a-z]*)\n(?P<text>(?s:.*?))^```", re.MULTILINE)
_EXITS = re.compile(r"\s+# exits (\d+)$")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: `sh`, `toml`, ...; its text; and the mark above it.

    `<!-- file: NAME -->` says that the block is what stands in that file; `<!-- not run: REASON -->` that no test can
    run it.
    """

    kind: str
    text: str
    mark: str

    @property
    def file(self) -> str:
        """The name of the file that it is, or nothing."""
        return self.mark.removeprefix("file: ") if self.mark.startswith("file: ") else ""

    @property
    def is_run(self) -> bool:
        """Whether it holds commands to run."""
        return self.kind == "sh" and not self.mark.startswith("not run: ")


@dataclass(frozen=True, slots=True)
class Command:
    """A command line of a page, and the exit code that the page says it has."""

    line: str
    code: int

    @property
    def words(self) -> list[str]:
        """As a shell takes it apart."""
        return shlex.split(self.line)


def text_of(page: str) -> str:
    """A page, by its path in the tree."""
    return (ROOT / page).read_text()


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return [Block(found["kind"], found["text"], found["mark"] or "") for found in _BLOCK.finditer(text_of(page))]


def commands(block: Block) -> list[Command]:
    """The command lines of a block; a broken line is put together again."""
    lines = (line.strip() for line in block.text.replace("\\\n", " ").splitlines())
    made = []
    for line in lines:
        if line and not line.startswith("#"):
            exits = _EXITS.search(line)
            made.append(Command(_EXITS.sub("", line), int(exits[1]) if exits else 0))
    return made


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    bare = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    found: dict[str, int] = {}
    made = set()
    for heading in re.findall(r"^#+ (.*)$", bare, re.MULTILINE):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")
        made.add(anchor if anchor not in found else f"{anchor}-{found[anchor]}")
        found[anchor] = found.get(anchor, 0) + 1
    return made


def links(page: str) -> list[str]:
    """The targets of the links of a page, of pictures too."""
    return re.findall(r"\]\(([^)\s]+)\)", text_of(page))
