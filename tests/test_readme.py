"""README, CONTRIBUTING and CHANGELOG agree with the program."""

import re
import shlex
from pathlib import Path

import pytest
import typer

from adapt.cli.main import app, run, settings_first

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")


def code_lines(text):
    """The lines of code blocks, fenced or indented, in order; a broken line is put together again."""
    blocks = re.findall(r"^```[a-z]*\n((?s:.*?))^```|^    (\S.*)$", text, re.MULTILINE)
    joined = "\n".join(fenced or indented for fenced, indented in blocks).replace("\\\n", " ")
    return [line.strip().removeprefix("$ ") for line in joined.splitlines()]


def command_lines():
    lines = [line for page in PAGES for line in code_lines((ROOT / page).read_text())]
    return sorted({line for line in lines if line.startswith("adapt ")})


def parsed(arguments):
    """Parse a command line without running it; the parser's complaint if it has one."""
    command = typer.main.get_command(app)
    context = command.make_context("adapt", settings_first(arguments))
    while hasattr(command, "resolve_command"):
        rest = [*getattr(context, "_protected_args", []), *context.args]
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)
    return context


@pytest.mark.parametrize("page", PAGES)
def test_the_page_is_there(page):
    assert (ROOT / page).read_text().startswith("# ")


@pytest.mark.parametrize("line", command_lines())
def test_every_command_line_parses(line):
    assert parsed(shlex.split(line, comments=True)[1:]).params


def test_there_are_command_lines_of_every_command():
    named = {" ".join(line.split()[:3]) for line in command_lines()}
    for command in (
        "ingest",
        "partition compare",
        "replay repartition",
        "replay flux",
        "replay elastic",
        "replay compare",
        "replay fit",
        "replay ordered",
        "report",
    ):
        assert any(line.startswith(f"adapt {command}") for line in named), command


def test_a_wrong_line_would_be_noticed():
    for wrong in ("ingest x --kee k -o y", "partition biuld x --channels 2", "partition build x --channels many"):
        assert run(shlex.split(wrong)) == 2
        with pytest.raises(Exception, match=r"--kee|biuld|whole|integer"):
            parsed(shlex.split(wrong))


def test_the_first_commands_are_the_demo_and_the_tests():
    commands = [line for line in code_lines((ROOT / "README.md").read_text()) if line.startswith(("make ", "adapt "))]
    assert [line.split("#")[0].strip() for line in commands[:2]] == ["make demo", "make test"]


@pytest.mark.parametrize("page", PAGES)
def test_relative_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", (ROOT / page).read_text()):
        if not re.match(r"[a-z]+:", target):
            assert (ROOT / target.partition("#")[0]).exists(), f"{page}: {target}"


def test_targets_of_make_that_are_named_exist():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        named = set(re.findall(r"`make ([a-z]+)`", (ROOT / page).read_text()))
        assert named <= targets, f"{page}: {named - targets}"
