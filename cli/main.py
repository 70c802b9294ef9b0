"""The `adapt` command: gathers the groups and turns errors into exit codes."""

import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer

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
"""The commands by panel of the help: modules of `adapt.cli.commands`."""

GROUPS = ("partition", "replay", "advise", "calibrate", "cluster")
"""Those that have commands of their own, in the module `group`."""

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

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command, loaded when it is asked for."""
        found = super().get_command(ctx, cmd_name)
        return _built(cmd_name).commands[cmd_name] if found is None and cmd_name in _PANEL_OF else found

    def get_params(self, ctx: Any) -> list[Any]:
        """The options that a page shows.

        docs/command-line.md has completion, and errors of the program name `--debug` themselves.
        """
        params = super().get_params(ctx)
        for each in params:
            setattr(each, "hidden", each.name in ("install_completion", "show_completion", "_debug"))  # noqa: B010
        return params


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        with written_out():
            sys.stdout.write(f"adapt {version('adapt-streams')}\n")
        raise typer.Exit


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
                _tree_for(settings_first(arguments))(
                    args=settings_first(arguments), prog_name="adapt", standalone_mode=False
                )
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


def command_tree(*names: str) -> Any:
    """The commands of these names or, without names, all of them."""
    app = typer.Typer(
        cls=InOrder,
        help="Decide from your own trace how to partition, rebalance, scale and shed load.",
        epilog="Start with `adapt demo`, then try `adapt verdict` on your own stream.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(settings)
    for name in names or _PANEL_OF:
        module, panel = f"adapt.cli.commands.{name}", _PANEL_OF[name]
        if name in GROUPS:
            app.add_typer(import_module(f"{module}.group").app, name=name, rich_help_panel=panel)
        else:
            app.command(cls=Command, rich_help_panel=panel)(grouped(getattr(import_module(module), name)))
    return typer.main.get_command(app)


def _tree_for(arguments: Sequence[str]) -> Any:
    """The command that the first word names; all if it names none."""
    follows = zip(["", *arguments], arguments, strict=False)
    first = next((each for before, each in follows if not each.startswith("-") and before != VALUED), "")
    return _built(*({first} & _PANEL_OF.keys()))


_built = cache(command_tree)
"""Each once: to load all commands takes longer than most refusals."""


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
