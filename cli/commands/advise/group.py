"""`adapt advise`: advice from a few numbers, before any plan is built."""

import typer

from adapt.cli.commands.advise.salts import salts
from adapt.cli.commands.advise.which_key import which_key
from adapt.cli.commands.advise.workers import workers
from adapt.cli.options.groups import grouped
from adapt.cli.terminal.help import Command, Group

app = typer.Typer(cls=Group, help="Advise on keys, parallelism, key groups and salts.", no_args_is_help=True)

for command in (which_key, salts, workers):
    app.command(cls=Command)(grouped(command))
