"""The `adapt` command: gathers the groups and turns errors into exit codes."""

import sys
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any

import typer

from adapt.cli.commands.advise import group as advise
from adapt.cli.commands.calibrate import group as calibrate
from adapt.cli.commands.check import check
from adapt.cli.commands.clean import clean
from adapt.cli.commands.cluster import group as cluster
from adapt.cli.commands.demo import demo
from adapt.cli.commands.generate import generate
from adapt.cli.commands.ingest import ingest
from adapt.cli.commands.lint import lint
from adapt.cli.commands.partition import group as partition
from adapt.cli.commands.replay import group as replay
from adapt.cli.commands.report import report
from adapt.cli.commands.verdict import verdict
from adapt.cli.failures import INTERRUPTED, explain, explain_interrupt
from adapt.cli.options.groups import grouped
from adapt.cli.pandas_later import keep_pandas_for_later
from adapt.cli.terminal.command_line import exit_code_of, typed
from adapt.cli.terminal.help import Command, Group
from adapt.cli.terminal.output import ReaderGone, Verbosity, open_closed_streams, set_verbosity, written_out
from adapt.core.errors import EnvironmentFailure
from adapt.core.units.process_limits import require_limits
from adapt.traces.locations.storage_options import read_options, use_options

PANELS = {
    "Commands": ("verdict", "ingest", "partition", "replay", "report"),
    "More commands": ("lint", "advise", "check", "calibrate", "demo", "generate", "clean", "cluster"),
}
"""The commands by panel of the help."""

SETTINGS = ("-q", "--quiet", "-v", "--verbose", "--debug")
"""Settings of every command, accepted anywhere in the command line."""

VALUED = "--storage-option"
"""Another one, with a value."""


_PANEL_OF = {name: panel for panel, names in PANELS.items() for name in names}


class InOrder(Group):
    """Lists commands by panel, the main ones first."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The command names."""
        return sorted(super().list_commands(ctx), key=list(_PANEL_OF).index)

    def get_params(self, ctx: Any) -> list[Any]:
        """The options that a page shows.

        docs/command-line.md has completion, and errors of the program name `--debug` themselves.
        """
        params = super().get_params(ctx)
        for each in params:
            setattr(each, "hidden", each.name in ("install_completion", "show_completion", "_debug"))  # noqa: B010
        return params


app = typer.Typer(
    cls=InOrder,
    help="Decide from your own trace how to partition, rebalance, scale and shed load.",
    epilog="Start with `adapt demo`, then try `adapt verdict` on your own stream.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (verdict, ingest, lint, report, check, demo, generate, clean):
    app.command(cls=Command, rich_help_panel=_PANEL_OF[command.__name__])(grouped(command))
for name, group in {
    "partition": partition.app,
    "replay": replay.app,
    "advise": advise.app,
    "calibrate": calibrate.app,
    "cluster": cluster.app,
}.items():
    app.add_typer(group, name=name, rich_help_panel=_PANEL_OF[name])


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        with written_out():
            sys.stdout.write(f"adapt {version('adapt-streams')}\n")
        raise typer.Exit


@app.callback()
def settings(
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print results and errors only.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print more detail on stderr.")] = False,
    storage_option: Annotated[
        list[str] | None,
        typer.Option(
            "--storage-option",
            metavar="K=V",
            help="Option of object stores, such as region=eu-west-1.",
        ),
    ] = None,
    _debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    _version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Settings of every command."""
    use_options(read_options(storage_option or ()))
    set_verbosity(Verbosity.QUIET if quiet else Verbosity.VERBOSE if verbose else Verbosity.NORMAL)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command line and exit with its code."""
    keep_pandas_for_later()
    is_closed = sys.stdout is None
    open_closed_streams()
    if is_closed:
        sys.exit(explain(EnvironmentFailure("stdout is closed; redirect it to a file or to /dev/null"), debug=False))
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))


def run(arguments: list[str]) -> int:
    """Run a command line in this process and return its exit code."""
    try:
        require_limits("adapt", address_gb=2, files=64)
        with typed(arguments):
            code = exit_code_of(
                command_tree()(args=settings_first(arguments), prog_name="adapt", standalone_mode=False)
            )
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


@cache
def command_tree() -> Any:
    """All commands, built once: that takes longer than most refusals."""
    return typer.main.get_command(app)


def settings_first(arguments: Sequence[str]) -> list[str]:
    """The arguments, with `SETTINGS` and `VALUED` moved before the command name.

    The parser accepts them only there.
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    leading: list[str] = []
    others: list[str] = []
    for at, each in enumerate(arguments[:end]):
        is_setting = each in SETTINGS or each.partition("=")[0] == VALUED or (at and arguments[at - 1] == VALUED)
        (leading if is_setting else others).append(each)
    return [*leading, *others, *arguments[end:]]
