"""`adapt demo`: ingest, compare, replay and report real data."""

import contextlib
import io
import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import typer

from adapt.cli.options.groups import setting
from adapt.cli.terminal.command_line import exit_code_of, typed
from adapt.cli.terminal.output import Verbosity, narrate, show, top, verbosity, verdict_of
from adapt.core.table import Table

CHANNELS = 8
PERIOD = "7d"


def demo(
    context: typer.Context,
    out: Path = setting(Path("adapt-demo"), "Folder for the results.", "DIR", "--out", "-o"),
) -> None:
    """Ingest, compare, replay and report a year of real flights.

    Each step is a command that you can type yourself; the last one writes an HTML page.

    Example: adapt demo
    """
    from adapt.core.verdict.compared import at_channels
    from adapt.traces.demonstration import COST, COST_UNIT, KEY, TIME, write_flights
    from adapt.traces.store.answers import found_in
    from adapt.traces.store.comparisons import read_comparison
    from adapt.traces.store.disk import disk_failures
    from adapt.traces.store.runs import read_run
    from adapt.traces.store.trace import open_trace, overview, top_keys_table

    step = partial(_step, context.find_root().command)
    with disk_failures(out):
        out.mkdir(parents=True, exist_ok=True)
    source, trace, plans, run, page = (out / f"flights.{kind}" for kind in ("csv", "trace", "plans", "run", "html"))
    write_flights(source)
    columns = ("--key", KEY, "--time", TIME, "--cost", COST, "--cost-unit", COST_UNIT)

    step(
        1,
        "Ingest a year of flights out of New York: the key is the destination, and each mile flown costs 1 us.",
        ["ingest", source, *columns, "--force", "-o", trace],
    )
    made = open_trace(trace)
    _result([overview(made), top(top_keys_table(made), 5)])

    step(
        2,
        f"Compare the partitioners on 1 to {CHANNELS} workers. For {CHANNELS}, next to the best possible imbalance:",
        ["partition", "compare", trace, "--channels", f"1:{CHANNELS}", "--force", "-o", plans],
    )
    stored = read_comparison(plans)
    answer = found_in(stored.manifest.summary, str(plans))
    _result([at_channels(stored.table, CHANNELS)], [] if answer is None else [verdict_of(answer.lead)])

    step(
        3,
        f"Replay the year: after each week, rebuild the plan for {CHANNELS} workers from the keys of that week.",
        ["replay", "repartition", trace, "--channels", CHANNELS, "--period", PERIOD, "--force", "-o", run],
    )
    _result([read_run(run).summary])

    step(
        4,
        "Report everything on one page, with charts.",
        ["report", trace, plans, run, "--html", page, "--force"],
    )
    print(f"\nThe report is {page}: open it in a browser.")


def _step(program: Any, number: int, what: str, arguments: Sequence[object]) -> None:
    """Narrate a step and its command, and run it with its own output hidden."""
    words = [str(word) for word in arguments]
    narrate(f"{'' if number == 1 else chr(10)}{number}. {what}\n   $ {shlex.join(['adapt', *words])}")
    loudness = {Verbosity.QUIET: ["-q"], Verbosity.VERBOSE: ["-v"]}.get(verbosity(), [])
    with typed(words), contextlib.redirect_stdout(io.StringIO()):
        code = exit_code_of(program.main([*loudness, *words], prog_name="adapt", standalone_mode=False))
    if code:  # an interrupt
        raise typer.Exit(code)


def _result(tables: Sequence[Table], lead: Sequence[Sequence[str]] = ()) -> None:
    """Show the result of a step."""
    print()
    show(tables, lead=lead)
