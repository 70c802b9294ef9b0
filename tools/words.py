"""Plain words: banned phrases in sentences of the program and the docs, and long first lines of docstrings.

python -m tools.words [ROOT]    # lists the findings of a tree, with counts by folder
"""

import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tools.house import PARTS, ROOT

MOST_WORDS = 12
"""In the first line of a public docstring."""

_ODD = r"number|integer|value|multiplier|multiple|factor|count|seed|power|prime|bit"
_LATE = r"row|tuple|event|record|message|arrival|data"
_NO = r"longer|more|less|fewer|better|worse|fuller|emptier|matter|such|\w+er than"

BANNED = {
    "so long": r"so long",
    "of late": rf"of late\b(?! (?:{_LATE}))",  # a share of late rows is one of rows
    "leave away": r"lea(?:ve|ves|ving|ft) (?:\S+ ){0,3}away",
    "left out": r"left out|lea(?:ve|ves|ving) (?:[^\s.;:]+ ){1,4}out\b",
    "stand, for exist": r"(?:stands?|stood)\b(?! ?for)(?!-)",  # a stand-in, and what a metavar stands for
    "come to rest": r"c[oa]mes? to rest",
    "tells, told": r"(?<!`)(?:tells|told)\b(?! you| binary| string|:)",
    "odd": rf"odd(?:ly|ities)?\b(?! (?:{_ODD}))",
    "mend": r"mend(?:s|ed|ing)?",
    "whole or not at all": r"whole or (?:not at all|absent)",
    "appear whole": r"appears? whole",
    "hindsight": r"hindsight",
    "what is what": r"what is what",
    "what it is": r"what (?:it is|they are)(?= *[.,;:)]|$)",
    "is none, for invalid": r"(?<!there )(?:is|are) (?-i:none)\b(?! of)",
    "is no, for is not a": rf"(?<!there )(?:is|are) no (?!(?:{_NO})\b)[a-z]+",
    "coin": r"coins?",
    "chance, for random": r"(?:by|of all|own) chance",
    "heavy key": r"heav(?:y|ier|iest) keys?",
    "cure": r"cure[sd]?",
    "one by one, for pinned": r"(?:keys|them|maps?|mapped|plac(?:e|es|ed|ing)) one by one",
    "so many": r"so many",
    "charge": r"charg(?:e|es|ed|ing)",
    "beside": r"beside",
    "site": r"sites?\b(?!-)",
    "parts of a key": r"parts? of (?:(?:a|the|its|split) )*keys?",
    "hold up, hold down": r"hold[- _](?:up|down)",
    "British spelling": r"\w*(?:behaviour|colour|favour|neighbour|analyse|centre|modell)\w*"
    r"|\w*(?:util|minim|maxim|optim|normal|serial|recogn|summar|initial|random|synchron)is(?:e|es|ed|ing|ation|ations)",
}
"""Each phrase with the regular expression of what it is banned as."""

_BANNED = {name: re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE) for name, pattern in BANNED.items()}
_ALL = re.compile("|".join(each.pattern for each in _BANNED.values()), re.IGNORECASE)

EXCEPTIONS = {
    ("core/ordered/chain/mixing.py", "odd"): "an odd number",
    ("core/ordered/functions/work.py", "odd"): "an odd number",
    ("docs/glossary.md", "site"): "the papers' word, next to ours",
    ("docs/theory.md", "site"): "the papers' word, next to ours",
}
"""Where a phrase is allowed, and why: by file and phrase."""

_FENCED = re.compile(r"^```(\w*)\n(?s:.*?)^```", re.MULTILINE)
_CODE = re.compile(r"``.+?``|`[^`]*`|https?://\S+|\]\([^)]*\)|<!--(?s:.*?)-->")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A text for users or developers, with its place."""

    path: str
    line: int
    text: str
    name: str = ""
    """Of the module, class or function whose docstring it is; empty for other texts."""

    is_public: bool = False

    @property
    def folder(self) -> str:
        """The top folder: `core/elastic`, `cli/options`, `docs`."""
        parts = self.path.split("/")
        return "/".join(parts[: 2 if parts[0] in PARTS and len(parts) > 2 else 1]) if len(parts) > 1 else "."

    @property
    def place(self) -> str:
        """The file and its line."""
        return f"{self.path}:{self.line}"


def pages(root: Path = ROOT) -> list[str]:
    """Pages for readers, but for those made from help texts, which are read in the program."""
    found = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]
    return [str(page.relative_to(root)) for page in found if page.name != "reference.md"]


def schemas(root: Path = ROOT) -> list[str]:
    """Schemas of what commands print."""
    return [str(path.relative_to(root)) for path in sorted((root / "docs" / "schemas").glob("*.json"))]


@cache
def sentences(root: Path = ROOT) -> tuple[Sentence, ...]:
    """All docstrings, string literals with a space, paragraphs of pages, and descriptions of schemas."""
    found: list[Sentence] = []
    for part in PARTS:
        for path in sorted((root / part).rglob("*.py")):
            found += _of_module(str(path.relative_to(root)), ast.parse(path.read_text()))
    for page in pages(root):
        found += _of_page(page, (root / page).read_text())
    for schema in schemas(root):
        found += [Sentence(schema, 1, each) for each in _described(json.loads((root / schema).read_text()))]
    return tuple(found)


def _of_module(path: str, tree: ast.Module) -> Iterator[Sentence]:
    """The docstrings and the literals with a space of a module; a broken line is one literal."""
    documents: set[int] = set()
    for defined, name, is_public in _defined(tree, True):
        if isinstance(defined.body[0], ast.Expr) and (document := ast.get_docstring(defined)):
            documents.add(id(defined.body[0].value))
            yield Sentence(path, defined.body[0].lineno, document, name, is_public)
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(one.value) if isinstance(one, ast.Constant) else "{}" for one in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not {id(node)} & (documents | parts):
            text = node.value
        else:
            continue
        if " " in text.strip():
            yield Sentence(path, node.lineno, text)


_Defined = ast.Module | ast.ClassDef | ast.FunctionDef


def _defined(node: _Defined, is_public: bool, name: str = "<module>") -> Iterator[tuple[_Defined, str, bool]]:
    """A module, its classes and functions, whether each is public; what is inside a function is not."""
    yield node, name, is_public
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.ClassDef | ast.FunctionDef) and each is not node:
            inside = is_public and not isinstance(node, ast.FunctionDef)
            yield from _defined(each, inside and not each.name.startswith("_"), each.name)


def _of_page(path: str, text: str) -> Iterator[Sentence]:
    """The paragraphs of a page without code; blocks of plain text are what the program prints."""
    blank = _FENCED.sub(lambda block: block[0] if block[1] == "text" else "\n" * block[0].count("\n"), text)
    bare = _CODE.sub(lambda code: " " + "\n" * code[0].count("\n"), blank)
    line = 1
    for paragraph in bare.split("\n\n"):
        if paragraph.strip():
            yield Sentence(path, line + len(paragraph) - len(paragraph.lstrip("\n")), paragraph.strip("\n"))
        line += paragraph.count("\n") + 2


def _described(part: object) -> Iterator[str]:
    """The titles and descriptions of a schema."""
    if isinstance(part, dict):
        for name, each in part.items():
            if name in ("title", "description") and isinstance(each, str):
                yield each
            yield from _described(each)
    elif isinstance(part, list):
        for each in part:
            yield from _described(each)


def banned(sentence: Sentence) -> list[str]:
    """What a sentence has of the banned phrases: place, phrase, and the words around it."""
    flat = " ".join(sentence.text.split())
    if not _ALL.search(flat):
        return []
    found = []
    for name, pattern in _BANNED.items():
        for hit in pattern.finditer(flat):
            if (sentence.path, name) not in EXCEPTIONS:
                before = sentence.text[: _start(sentence.text, hit.start())].count("\n")
                around = flat[max(0, hit.start() - 40) : hit.end() + 30]
                found.append(f"{sentence.path}:{sentence.line + before}: {name}: ...{around}...")
    return found


def _start(text: str, flat_at: int) -> int:
    """The place in a text of a place in the same text with single spaces."""
    seen = -1
    for word in re.finditer(r"\S+", text):
        seen += len(word[0]) + 1
        if seen > flat_at:
            return word.start()
    return len(text)


def long_first_line(sentence: Sentence) -> bool:
    """Whether it is a public docstring whose first line has more words than a name for a concept needs."""
    return sentence.is_public and len(sentence.text.split("\n")[0].split()) > MOST_WORDS


def main() -> None:
    """Print the findings of a tree, with their counts by folder and by phrase."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    hits = [(each.folder, hit) for each in sentences(root) for hit in banned(each)]
    long = [each for each in sentences(root) if long_first_line(each)]
    print(*(hit for _, hit in hits), sep="\n")
    print(*(f"{each.place}: {each.name}: {each.text.splitlines()[0]}" for each in long), sep="\n")
    print("banned phrases:", len(hits), Counter(folder for folder, _ in hits).most_common())
    print(Counter(hit.split(": ")[1] for _, hit in hits).most_common())
    print("long first lines:", len(long), Counter(each.folder for each in long).most_common())


if __name__ == "__main__":
    main()
