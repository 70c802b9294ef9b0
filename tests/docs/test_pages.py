"""The pages agree with the program and with each other: command lines parse, links lead somewhere."""

import re
import shlex

import pytest

from adapt.cli.main import command_tree, settings_first
from tests.docs.pages import GUIDES, PAGES, ROOT, anchors, blocks, commands, links, text_of

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
    lines = [line for line in code_lines(text_of("README.md")) if line.startswith(("make ", "adapt "))]
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
