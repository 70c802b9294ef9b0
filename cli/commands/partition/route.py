"""`adapt partition route`: route keys to channels."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from adapt.cli.options.artefacts import PlanPath
from adapt.cli.terminal.output import written_out
from adapt.core.errors import BadInput, UsageError


def route(
    plan: PlanPath,
    keys: Annotated[
        Path | None, typer.Argument(metavar="KEYS", help="A file with one key per line (default: standard input).")
    ] = None,
) -> None:
    """Print the channel of each key.

    Reads one key per line and prints key, tab, channel. Integer keys are decimal, binary keys hex.

    Example: adapt partition route web.plan keys.txt
    """
    from adapt.traces.routing import routed_lines
    from adapt.traces.store.plans import read_plan

    read = read_plan(plan)
    partitioner = read.partitioner()
    if keys is None or str(keys) == "-":
        if sys.stdin is None:
            raise UsageError("standard input is closed; give KEYS, a file with one key per line")
        lines, name = sys.stdin.buffer, "standard input"
    else:
        try:
            lines, name = keys.open("rb"), str(keys)
        except OSError as error:
            raise BadInput(f"{keys}: cannot be read: {error.strerror}") from error
    sys.stdout.flush()
    with lines:
        for routed in routed_lines(lines, partitioner, read.key_type, name):
            with written_out():
                sys.stdout.buffer.write(routed)
