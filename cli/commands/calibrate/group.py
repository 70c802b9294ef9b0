"""`adapt calibrate`: measure a cost profile for `--costs`."""

import typer

from adapt.cli.commands.calibrate.flink import flink
from adapt.cli.commands.calibrate.spark import spark
from adapt.cli.options.groups import grouped
from adapt.cli.terminal.help import Command, Group

app = typer.Typer(cls=Group, help="Measure the costs of your job, for every replay.", no_args_is_help=True)

for command in (flink, spark):
    app.command(cls=Command)(grouped(command))
