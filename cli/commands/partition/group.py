"""`adapt partition`: count keys, then build, compare, route and export plans."""

import typer

from adapt.cli.commands.partition.build import build
from adapt.cli.commands.partition.compare import compare
from adapt.cli.commands.partition.count import count
from adapt.cli.commands.partition.diff import diff
from adapt.cli.commands.partition.evaluate import evaluate
from adapt.cli.commands.partition.export import export
from adapt.cli.commands.partition.route import route
from adapt.cli.commands.partition.tolerance import tolerance
from adapt.cli.options.groups import grouped
from adapt.cli.terminal.help import Command, Group

app = typer.Typer(cls=Group, help="Count keys, then build, compare, route and export plans.", no_args_is_help=True)

for command in (count, build, compare, tolerance, route, diff, evaluate, export):
    app.command(cls=Command)(grouped(command))
