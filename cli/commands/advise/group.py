"""`adapt advise`: advice from a few numbers, before any plan is built."""

import typer

from adapt.cli.commands.advise.keys import keys
from adapt.cli.commands.advise.workers import workers
from adapt.cli.options.groups import grouped
from adapt.cli.terminal.help import Command, Group

app = typer.Typer(cls=Group, help="Advise on parallelism, key groups and salts.", no_args_is_help=True)

for command in (keys, workers):
    app.command(cls=Command)(grouped(command))
