"""The `adapt` command: gathers the groups and turns errors into exit codes."""

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from adapt.cli.commands.advise import advise
from adapt.cli.commands.check import check
from adapt.cli.commands.demo import demo
from adapt.cli.commands.ingest import ingest
from adapt.cli.commands.lint import lint
from adapt.cli.commands.partition import group as partition
from adapt.cli.commands.replay import group as replay
from adapt.cli.commands.report import report
from adapt.cli.failures import INTERRUPTED, explain, explain_interrupt
from adapt.cli.options.groups import grouped
from adapt.cli.terminal.command_line import typed
from adapt.cli.terminal.help import Command, Group
from adapt.cli.terminal.output import ReaderGone, Verbosity, set_verbosity, written_out

ORDER = ("ingest", "lint", "advise", "partition", "replay", "report", "check", "demo")
"""In the order of the work."""

SETTINGS = ("-q", "--quiet", "-v", "--verbose", "--debug")
"""May stand anywhere in the command line, since they mean the same to every command."""


class InOrder(Group):
    """Lists commands in the order of the work, not groups after single commands."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names for help."""
        return sorted(super().list_commands(ctx), key=ORDER.index)


app = typer.Typer(
    cls=InOrder,
    help="Answers from your own trace: how to partition, rebalance, scale and shed a keyed, stateful stream.",
    epilog="First steps: `adapt demo`; then `adapt ingest --help`, to read a stream of your own.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (ingest, lint, advise, report, check, demo):
    app.command(cls=Command)(grouped(command))
app.add_typer(partition.app, name="partition")
app.add_typer(replay.app, name="replay")


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
    """Settings of every command."""
    set_verbosity(Verbosity.QUIET if quiet else Verbosity.VERBOSE if verbose else Verbosity.NORMAL)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))


def run(arguments: list[str]) -> int:
    """Run the command line in this process; the exit code, one of `EXIT_CODES`."""
    try:
        with typed(arguments):
            code = int(app(args=settings_first(arguments), prog_name="adapt", standalone_mode=False) or 0)
        with written_out():  # what is still held back
            pass
    except ReaderGone:
        return 0
    except SystemExit as left:  # typer's answer to a closed pipe under a help page
        return 0 if isinstance(left.__context__, BrokenPipeError) else int(left.code or 0)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except Exception as error:
        with typed(arguments):
            return explain(error, debug="--debug" in arguments)
    return explain_interrupt() if code == INTERRUPTED else code


def settings_first(arguments: Sequence[str]) -> list[str]:
    """The arguments with those that set every command's behaviour before its name, where the parser wants them."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    leading = [each for each in arguments[:end] if each in SETTINGS]
    return [*leading, *(each for each in arguments[:end] if each not in SETTINGS), *arguments[end:]]
