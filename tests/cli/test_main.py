"""The command line as a whole: help, order, names, settings, exit codes of usage."""

import re
import shlex
import sys

import pytest

from adapt.cli.main import main
from adapt.cli.terminal import help as help_pages

COMMANDS = {
    "ingest": ["ingest"],
    "count": ["partition", "count"],
    "build": ["partition", "build"],
    "compare": ["partition", "compare"],
    "route": ["partition", "route"],
    "diff": ["partition", "diff"],
    "repartition": ["replay", "repartition"],
    "elastic": ["replay", "elastic"],
    "report": ["report"],
    "demo": ["demo"],
}
every_command = pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)


def section(page, title):
    """The lines under a heading of a help page."""
    _, _, rest = page.partition(f"{title}:\n")
    return rest.split("\n\n")[0].splitlines()


def test_help_lists_the_commands_in_the_order_of_the_work_a_line_each(adapt, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    page = adapt.done("--help").out
    listed = section(page, "Commands")
    assert [line.split()[0] for line in listed] == ["verdict", "ingest", "partition", "replay", "report"]
    more = [line.split()[0] for line in section(page, "More commands")]
    assert more == ["lint", "advise", "check", "calibrate", "demo", "generate", "clean", "cluster"]


@pytest.mark.parametrize("columns", [80])
@every_command
def test_help_fits_the_terminal_and_is_not_cut(adapt, monkeypatch, command, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    page = adapt.done(*command, "--help").out
    assert max(map(len, page.splitlines())) <= columns
    assert "..." not in re.sub(r"\b[A-Z|.csv\]]+\.\.\.", "", page)  # arguments that are typed several times
    assert "…" not in page
    assert "<" not in page


@every_command
def test_help_has_one_example_of_its_own_command_on_one_line(adapt, command):
    (example,) = section(adapt.done(*command, "--help").out, "Example")
    assert shlex.split(example)[: 1 + len(command)] == ["adapt", *command]


@pytest.mark.parametrize("group", [[], ["partition"], ["replay"]], ids=["adapt", "partition", "replay"])
def test_a_group_without_a_command_shows_its_help_and_is_wrong_usage(adapt, group):
    said = adapt(*group)
    assert (said.code, said.out) == (2, "")
    assert "Commands:" in said.err
    assert said.err == adapt.done(*group, "--help").out


def test_headings_are_bold_only_where_that_is_wanted(monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert help_pages._heading("Usage") == "\x1b[1mUsage:\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert help_pages._heading("Usage") == "Usage:"


def test_the_version_is_printed(adapt):
    assert adapt.done("--version").out.startswith("adapt ")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("ingset x", "did you mean 'ingest'"),
        ("report --fromat json x", "--format"),
        ("report", "missing argument 'ARTEFACT...'"),
        ("partition build x --channels 2 --sigma much", "--sigma must be a number (got 'much')"),
        ("partition build x --channels 2 --scheme hybird", "did you mean 'hybrid'"),
        ("partition build x --channels -3", "--channels must be from 1 to 1,000,000 (got -3)"),
        ("partition compare x --channels many", "8, 1:10 or 1,2,4,8"),
        ("partition build x --channels 2 --tolerance 1.2,1.2", "1.2,1.2"),
        ("partition build x --channels 2 --resources LLX", "LLX"),
        ("ingest y --key k --max-rejects some -o x.trace", "some"),
        ("replay repartition x", "either --channels N or --schedule"),
        ("replay replan x --channels 2", "no such command: replan; write adapt replay repartition --live"),
        ("replay repartition x --alpha 1.2", "no such option: --alpha; write --tolerance"),
    ],
)
def test_wrong_usage_is_one_line_that_says_how_it_is_right(adapt, tmp_path, monkeypatch, line, told):
    monkeypatch.chdir(tmp_path)
    assert told in adapt.refused(2, *shlex.split(line)).replace("Did you", "did you")
    assert list(tmp_path.iterdir()) == []


def test_main_leaves_with_the_exit_code(monkeypatch):
    with pytest.raises(SystemExit) as left:
        main(["nonsense"])
    assert left.value.code == 2
    monkeypatch.setattr(sys, "argv", ["adapt", "--version"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 0
