"""Plain words: no banned phrase, the glossary's terms, short help, short first lines, no misspelling."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from spellchecker import SpellChecker

from adapt.cli.main import command_tree
from adapt.cli.terminal.help import help_page
from tests.docs.pages import GUIDES, text_of
from tools.words import PARTS, ROOT, Sentence, banned, long_first_line, pages, schemas, sentences

TERMS = (
    *("worker", "channel", "partition", "key group", "plan", "pinned key", "split key", "imbalance", "hot key"),
    *("best possible imbalance", "top-key share", "migration", "state moved", "migration factor", "rescale"),
    *(
        "scale out",
        "scale in",
        "scale-out delay",
        "cooldown",
        "backpressure",
        "load shedding",
        "drop rate",
        "drop plan",
    ),
    *("selectivity", "watermark", "punctuation", "event time", "lateness", "savepoint", "checkpoint", "restore"),
    *("bootstrap", "out-of-sample", "in-sample", "confidence interval", "window", "reorder buffer", "ring buffer"),
    *("work queue", "compare-and-swap", "work stealing", "random seed", "service time", "arrival rate", "utilization"),
    *("throughput", "tail latency", "p99", "deduplicate", "sample", "anonymize", "shift clock", "written atomically"),
    *(
        "overwrite",
        "skew",
        "salted key",
        "heavy hitter",
        "autoscaling",
        "hysteresis",
        "credits",
        "virtual node",
        "shard",
    ),
)
"""Terms of the glossary, and the words of other systems by which people search for them."""

MOST_LETTERS, MOST_LINES = 100, 30
"""Of the first sentence of an option's help, and of a help page at 80 columns."""

UNITS = re.compile(
    r"\d(?:ns|us|ms|s|m|h|d|B|kB|MB|GB|kbps|Mbps)(?!\w)|%|\brows/s\b|\butilization\b"
    r"|\b(?:bit|byte|channel|core|count|counter|exponent|factor|file|group|key|line|multiple|number|page|partition|percentage"
    r"|period|plan|probability|process|rank|ratio|replica|row|scenario|second|seed|session|share|stream|tick|time|tuple"
    r"|window|worker)(?:s|es)?\b",
    re.IGNORECASE,
)
"""A unit, or the things that are counted."""

FOLDERS = (
    *PARTS,
    *(f"{part}/{path.name}" for part in PARTS for path in sorted((ROOT / part).iterdir()) if path.is_dir()),
)

COMMON = SpellChecker(language="en")
OWN = frozenset((Path(__file__).parent / "words.txt").read_text().split())
"""Words of the field, names of systems and people, in lower case."""

_WORD = re.compile(r"(?<![\w.@/#&-])[A-Za-z]+(?:['’][a-z]+)?(?:-[A-Za-z]+(?:['’][a-z]+)?)*(?![\w@/]|\.[a-z])")


def commands(command: Any, context: Any) -> Iterator[tuple[Any, Any]]:
    """A command and those below it, each with its context."""
    yield command, context
    for name, each in getattr(command, "commands", {}).items():
        yield from commands(each, typer.Context(each, context, info_name=name))


@cache
def all_commands() -> dict[str, tuple[Any, Any]]:
    """Every command by the words that call it."""
    root = command_tree()
    found = commands(root, typer.Context(root, info_name="adapt"))
    return {context.command_path: (command, context) for command, context in found}


every_command = pytest.mark.parametrize("path", all_commands())
every_folder = pytest.mark.parametrize("folder", FOLDERS)


def of_folder(folder: str) -> list[Sentence]:
    """The sentences of a folder."""
    return [each for each in sentences() if each.folder == folder]


def options(path: str) -> list[Any]:
    """The options of a command."""
    return [each for each in all_commands()[path][0].params if each.param_type_name == "option"]


def takes_quantity(option: Any) -> bool:
    """Whether a value is a number, or an example of one."""
    kinds = str(getattr(getattr(option, "type_descriptor", None), "annotation", ""))
    return not option.is_flag and bool(re.search(r"\bint\b|\bfloat\b", kinds) or re.search(r"\d", option.metavar or ""))


def spelled(text: str) -> Iterator[str]:
    """The words of a text, but for abbreviations and names in mixed case."""
    for found in _WORD.findall(text):
        for word in found.split("-"):
            plain = re.sub(r"['’]s?$", "", word)
            if len(plain) > 2 and plain[1:].islower():
                yield plain.lower()


@every_folder
def test_no_sentence_of_the_program_has_a_banned_phrase(folder):
    assert [hit for each in of_folder(folder) for hit in banned(each)] == []


@pytest.mark.parametrize("page", [*pages(), *schemas()])
def test_no_page_has_a_banned_phrase(page):
    assert [hit for each in sentences() if each.path == page for hit in banned(each)] == []


def test_a_banned_phrase_is_found_and_plain_words_are_not():
    odd = Sentence("core/x.py", 7, "The first line.\n\nWhat is\ntold of rows.")
    assert banned(odd) == ["core/x.py:10: tells, told: ...The first line. What is told of rows...."]
    plain = (
        "If there is none, None; `told: x`; the share of late rows; odd numbers; a stand-in; is no longer; tells you;"
        " stands for"
    )
    assert banned(Sentence("core/x.py", 1, plain)) == []


@pytest.mark.parametrize("term", TERMS)
def test_a_search_of_the_docs_finds_each_term(term):
    pattern = re.compile(rf"\b{re.escape(term)}".replace(r"\ ", r"[\s-]+"), re.IGNORECASE)
    assert any(pattern.search(text_of(page)) for page in GUIDES)


@every_command
def test_the_help_of_every_option_is_a_short_sentence(path):
    wrong = []
    for option in options(path):
        first = re.split(r"(?<=[.?]) (?=[A-Z])", option.help or "")[0]
        is_sentence = first[:1].isupper() and (option.help or "").endswith(".")
        if not is_sentence or len(first) > MOST_LETTERS:
            wrong.append((option.opts[0], len(first), option.help))
    assert wrong == []


@every_command
def test_every_option_that_takes_a_quantity_names_its_unit(path):
    quantities = [option for option in options(path) if takes_quantity(option)]
    assert [
        (option.opts[0], option.metavar, option.help)
        for option in quantities
        if not UNITS.search(f"{option.metavar or ''} {option.help or ''}")
    ] == []


@every_command
def test_help_fits_a_screen(path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    page = help_page(*all_commands()[path])
    assert len(page.splitlines()) <= MOST_LINES, page


@every_folder
def test_the_first_line_of_a_public_docstring_names_a_concept(folder):
    long = [each for each in of_folder(folder) if long_first_line(each)]
    assert [f"{each.place}: {each.name}: {each.text.splitlines()[0]}" for each in long] == []


@pytest.mark.parametrize("page", pages())
def test_no_page_has_a_misspelled_word(page):
    places = {word: each.place for each in sentences() if each.path == page for word in spelled(each.text)}
    unknown = COMMON.unknown(places.keys() - OWN)
    assert sorted(f"{places[word]}: {word}" for word in unknown) == []


def test_the_list_of_own_words_is_sorted_and_needed():
    lines = (Path(__file__).parent / "words.txt").read_text().split("\n")[:-1]
    assert lines == sorted(set(lines))
    assert [word for word in lines if not COMMON.unknown([word])] == []
