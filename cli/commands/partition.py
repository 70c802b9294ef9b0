"""`adapt partition`: count keys, build plans, compare them, route by them, export them."""

import typer

from adapt.cli.commands.partition_build import build
from adapt.cli.commands.partition_compare import compare
from adapt.cli.commands.partition_count import count
from adapt.cli.commands.partition_diff import diff
from adapt.cli.commands.partition_evaluate import evaluate
from adapt.cli.commands.partition_export import export
from adapt.cli.commands.partition_route import route
from adapt.cli.commands.partition_tolerance import tolerance
from adapt.cli.options.groups import grouped
from adapt.cli.terminal.help import Command, Group

app = typer.Typer(cls=Group, help="Count keys, build plans, compare them, route by them.", no_args_is_help=True)

for command in (count, build, compare, tolerance, route, diff, evaluate, export):
    app.command(cls=Command)(grouped(command))
