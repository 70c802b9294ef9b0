"""Pages of the docs: links, commands, and what generators and the theory say."""

import re
import shlex
from importlib import import_module
from itertools import chain, pairwise

import pytest

from adapt.cli.main import command_tree, settings_first
from adapt.core.mechanisms.scenarios import SCENARIOS
from adapt.core.metrics import METRICS, Of
from tests.docs.pages import GUIDES, PAGES, ROOT, anchors, blocks, commands, links, text_of
from tools.engines import PAGE, engines_page

MOST_LINES, MOST_PICTURE = 90, 150_000


def code_lines(text):
    """The lines of code blocks, fenced or indented, in order; a broken line is put together again."""
    found = re.findall(r"^```[a-z]*\n((?s:.*?))^```|^    (\S.*)$", text, re.MULTILINE)
    joined = "\n".join(fenced or indented for fenced, indented in found).replace("\\\n", " ")
    return [line.strip().removeprefix("$ ") for line in joined.splitlines()]


def command_lines():
    """Command lines of all pages, but for one that would write to the start-up file of the shell."""
    lines = [line for page in PAGES for line in code_lines(text_of(page))]
    return sorted({line for line in lines if line.startswith("adapt ") and "-completion" not in line})


def parsed(arguments):
    """Parse a command line without running it; the parser's complaint if it has one."""
    command = command_tree()
    context = command.make_context("adapt", settings_first(arguments))
    while hasattr(command, "resolve_command"):
        rest = [*getattr(context, "_protected_args", []), *context.args]
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)
    return context


def leaves(command, path=()):
    """Every command that does something, by the words that call it."""
    named = getattr(command, "commands", None)
    return [leaf for name, each in named.items() for leaf in leaves(each, (*path, name))] if named else [path]


@pytest.mark.parametrize("line", command_lines())
def test_every_command_line_parses(line):
    assert parsed(shlex.split(line, comments=True)[1:]).params


def test_there_are_command_lines_of_every_command():
    typed = [line.split()[1:] for line in command_lines()]
    missing = [path for path in leaves(command_tree()) if not any(t[: len(path)] == [*path] for t in typed)]
    assert missing in ([], [("demo",)])


def test_the_first_commands_are_the_demo_and_the_tests():
    lines = [line for line in code_lines(text_of("README.md")) if line.startswith("make ")]
    assert [line.split("#")[0].strip() for line in lines[:2]] == ["make demo", "make test"]


def test_the_readme_is_short_and_shows_the_page():
    assert len(text_of("README.md").splitlines()) <= MOST_LINES
    (picture,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text_of("README.md"))
    data = (ROOT / picture).read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) <= MOST_PICTURE


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for target in links(page):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = ((ROOT / page).parent / path).resolve() if path else ROOT / page
        assert there.exists(), f"{page}: {target}"
        if anchor:
            assert anchor in anchors(there.read_text()), f"{page}: {target}"


def test_every_page_is_found_from_the_readme():
    found, left = {"README.md"}, ["README.md"]
    while left:
        page = left.pop()
        for target in links(page):
            path = ((ROOT / page).parent / target.partition("#")[0]).resolve()
            name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else ""
            if name in GUIDES and name not in found:
                found.add(name)
                left.append(name)
    assert set(GUIDES) <= found, set(GUIDES) - found


def test_marks_are_known_and_every_block_of_commands_holds_commands():
    for page in GUIDES:
        for block in blocks(page):
            assert re.match(r"(file: \S+|not run: .+|)$", block.mark), f"{page}: {block.mark}"
            if block.is_run:
                assert all(command.line.startswith("adapt ") for command in commands(block)), f"{page}: {block.text}"


def test_targets_of_make_that_are_named_exist():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        named = set(re.findall(r"`make ([a-z]+)`", text_of(page)))
        assert named <= targets, f"{page}: {named - targets}"


def test_the_committed_page_is_what_the_program_gives():
    assert PAGE.read_text() == engines_page(), "run: python -m tools.engines"


PLACED = [name for name, metric in METRICS.items() if Of.PLAN in metric.places and name != "channels"]

EQUATIONS = re.findall(r"^\| ([^|]+) \|[^|]*\| `([\w.]+)` \|$", text_of("docs/theory.md"), re.MULTILINE)
"""Source, and where below `adapt.core` it is computed."""

PAPERS = ("Partitioning", "Flux", "FIT", "ESJ", "Ordered streams")

_CITED = re.compile(
    r"\b(Eq|Algorithm|[Ss]ection|Figure|Table|Definition)s?\.? (\d+(?:\.\d+)*(?:(?:,| to| and) \d+(?:\.\d+)*)*)"
)


@pytest.mark.parametrize("name", PLACED)
def test_every_number_of_a_placement_is_explained(name):
    assert f"`{name}`" in text_of("docs/theory.md")


def test_mechanisms_that_are_advised_exist():
    named = re.findall(r"`((?:static|split|flux|elastic|shed|rebuild)-?[a-z-]*)`", text_of("docs/which.md"))
    assert named
    assert set(named) <= {scenario.name for scenario in SCENARIOS}


def cited(text):
    """What a text cites: each equation, algorithm, section, ... by itself, as in ("eq", "17")."""
    found = {("adaptive", "workload")} if "adaptive workload" in text else set()
    for kind, numbers in _CITED.findall(" ".join(text.split())):
        named = re.findall(r"(to )?(\d+(?:\.\d+)*)", numbers)
        found |= {(kind.lower(), number) for _, number in named}
        for (_, first), (to, last) in pairwise(named):
            if to:
                head, begin = last.rpartition(".")[:2], int(first.rpartition(".")[2])
                found |= {(kind.lower(), "".join(head) + str(at)) for at in range(begin, int(last.split(".")[-1]))}
    return found


def documents_of(path):
    """The docstrings of a name below `adapt.core`, of its class, and of its module."""
    parts = path.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            module = import_module(".".join(("adapt.core", *parts[:length])))
        except ModuleNotFoundError:
            continue
        found = [module]
        for name in parts[length:]:
            found.append(getattr(found[-1], name))
        return [each.__doc__ or "" for each in found]
    raise ModuleNotFoundError(path)


def test_all_papers_have_their_equations():
    assert {paper for source, _ in EQUATIONS for paper in PAPERS if source.startswith(paper)} == set(PAPERS)
    equations = set(chain.from_iterable(cited(source) for source, _ in EQUATIONS if source.startswith("Partitioning")))
    assert {("eq", str(number)) for number in range(1, 23)} - equations == {("eq", "7"), ("eq", "8"), ("eq", "14")}


@pytest.mark.parametrize(("source", "path"), EQUATIONS, ids=[f"{source}: {path}" for source, path in EQUATIONS])
def test_every_equation_is_computed_where_the_page_says(source, path):
    assert cited(source)
    assert cited(source) <= set(chain.from_iterable(map(cited, documents_of(path))))
