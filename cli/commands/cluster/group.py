"""`adapt cluster`: what executors have, and the packages that they need."""

import typer

from adapt.cli.commands.cluster.check import check
from adapt.cli.commands.cluster.pack import pack
from adapt.cli.options.groups import grouped
from adapt.cli.terminal.help import Command, Group

app = typer.Typer(cls=Group, help="Check the executors of a cluster, and pack what they need.", no_args_is_help=True)

for command in (check, pack):
    app.command(cls=Command)(grouped(command))
