"""`adapt lab`: checks of your own policies."""

import typer

from adapt.cli.commands.lab.check import check
from adapt.cli.options.groups import grouped
from adapt.cli.terminal.help import Command, Group

app = typer.Typer(cls=Group, help="Check a policy of your own before you replay it.", no_args_is_help=True)

app.command(cls=Command)(grouped(check))


@app.callback()
def lab() -> None:
    """Check a policy of your own before you replay it."""
