"""`adapt demo`: the whole story on real data, each step a command that could be typed."""

import contextlib
import io
import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import typer

from adapt.cli.options.groups import setting
from adapt.cli.terminal.command_line import typed
from adapt.cli.terminal.output import Verbosity, narrate, show, top, verbosity, verdict_of
from adapt.core.table import Table

CHANNELS = 8
PERIOD = "7d"
TITLE = "A year of flights out of New York"


def demo(
    context: typer.Context,
    out: Path = setting(Path("adapt-demo"), "A folder for what the demonstration makes.", "DIR", "--out", "-o"),
) -> None:
    """Ingest, compare, replay and report a year of real flights.

    Every step is a command that can be typed; the last one names the page it wrote.

    Example: adapt demo
    """
    from adapt.core.verdict.compared import at_channels
    from adapt.traces.demonstration import COST, KEY, TIME, put_flights
    from adapt.traces.store.answers import found_in
    from adapt.traces.store.comparisons import read_comparison
    from adapt.traces.store.disk import disk_failures
    from adapt.traces.store.runs import read_run
    from adapt.traces.store.trace import open_trace
    from adapt.traces.store.trace_tables import overview, top_keys_table

    step = partial(_step, context.find_root().command)
    with disk_failures(out):
        out.mkdir(parents=True, exist_ok=True)
    source, trace, plans, run, page = (out / f"flights.{kind}" for kind in ("csv.zip", "trace", "plans", "run", "html"))
    put_flights(source)

    step(
        1,
        f"{TITLE} becomes a trace: the key is the destination, the cost the miles flown.",
        ["ingest", source, "--key", KEY, "--time", TIME, "--cost", COST, "--force", "-o", trace],
    )
    made = open_trace(trace)
    _result([overview(made), top(top_keys_table(made), 5)])

    step(
        2,
        f"Every scheme places those keys on 1 to {CHANNELS} channels. The last count, beside the best possible:",
        ["partition", "compare", trace, "--channels", f"1:{CHANNELS}", "--force", "-o", plans],
    )
    stored = read_comparison(plans)
    answer = found_in(stored.manifest.summary, str(plans))
    _result([at_channels(stored.table, CHANNELS)], [] if answer is None else [verdict_of(answer.lead)])

    step(
        3,
        f"The year again, week by week: after each week the plan for {CHANNELS} channels is built anew from its keys.",
        ["replay", "repartition", trace, "--channels", CHANNELS, "--period", PERIOD, "--force", "-o", run],
    )
    _result([read_run(run).summary])

    step(
        4,
        "All of it on one page, with charts.",
        ["report", trace, plans, run, "--title", TITLE, "--html", page, "--force"],
    )
    print(f"\nThe report is {page}: open it in a browser.")


def _step(program: Any, number: int, what: str, arguments: Sequence[object]) -> None:
    """Say what a step does and how it would be typed, and run it; its own output is left for the page."""
    words = [str(word) for word in arguments]
    narrate(f"{'' if number == 1 else chr(10)}{number}. {what}\n   $ {shlex.join(['adapt', *words])}")
    loudness = {Verbosity.QUIET: ["-q"], Verbosity.VERBOSE: ["-v"]}.get(verbosity(), [])
    with typed(words), contextlib.redirect_stdout(io.StringIO()):
        code = program.main([*loudness, *words], prog_name="adapt", standalone_mode=False)
    if code:  # an interrupt
        raise typer.Exit(code)


def _result(tables: Sequence[Table], lead: Sequence[Sequence[str]] = ()) -> None:
    """What a step made, set apart from what was said of it."""
    print()
    show(tables, lead=lead)
