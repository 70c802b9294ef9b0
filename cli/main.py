"""The `adapt` command: gathers the groups and turns errors into exit codes."""

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from adapt.cli import demo, ingest, partition, replay, report
from adapt.cli.failures import explain
from adapt.cli.output import Verbosity, set_verbosity

ORDER = ("ingest", "partition", "replay", "report", "demo")
"""In the order of the work."""


class InOrder(TyperGroup):
    """Lists commands in the order of the work, not groups after single commands."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names for help."""
        return sorted(super().list_commands(ctx), key=ORDER.index)


app = typer.Typer(
    cls=InOrder,
    help="Answers from your own trace: how to partition, rebalance, scale and shed a keyed, stateful stream.",
    epilog="First steps: adapt demo, or adapt ingest access.log --format clf --key host -o web.trace",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(name="ingest")(ingest.ingest)
app.add_typer(partition.app, name="partition")
app.add_typer(replay.app, name="replay")
app.command(name="report")(report.report)
app.command(name="demo")(demo.demo)


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"adapt {version('adapt-streams')}")
        raise typer.Exit


@app.callback()
def settings(
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but results and errors.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say more on stderr.")] = False,
    _debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")] = False,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Settings of every command; they come before its name."""
    set_verbosity(Verbosity.QUIET if quiet else Verbosity.VERBOSE if verbose else Verbosity.NORMAL)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with the exit code of design section 2."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    code = run(given)
    sys.stdout.flush()
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run the command line in this process; the exit code.

    0 done, 1 a limit failed, 2 wrong usage, 3 bad input, 4 environment, 5 a bug, 130 interrupted.
    """
    try:
        code = app(args=arguments, prog_name="adapt", standalone_mode=False)
        return int(code or 0)
    except BrokenPipeError:  # the reader of our output has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (KeyboardInterrupt, typer.Abort):
        print("adapt: interrupted; nothing unfinished was left behind", file=sys.stderr)
        return 130
    except Exception as error:
        return explain(error, debug="--debug" in arguments)
