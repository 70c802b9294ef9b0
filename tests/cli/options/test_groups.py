"""Option groups: a command sees dataclasses, the command line sees options."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import pytest
import typer
from typer.testing import CliRunner

from adapt.cli.options.groups import grouped, option


@dataclass(frozen=True, slots=True)
class Where:
    """A group without groups."""

    host: Annotated[str, typer.Option("--host", help="Host.")] = "localhost"
    ports: Annotated[list[int] | None, typer.Option("--port", help="Ports; repeatable.")] = None


@dataclass(frozen=True, slots=True)
class Trip:
    """A group in a group."""

    where: Where
    speed: Annotated[float, typer.Option("--speed", help="Speed.")] = 1.5


@dataclass(frozen=True, slots=True)
class Pace:
    """A group with a heading of its own."""

    PANEL: ClassVar[str] = "How fast"

    top_speed: Annotated[float, option("Top speed.", "X")] = 2.0
    rest: Annotated[bool, option("Rest.", None, "--rest", panel="Breaks")] = False


@pytest.fixture
def program() -> typer.Typer:
    app = typer.Typer()

    @app.command()
    @grouped
    def go(name: Annotated[str, typer.Argument(help="Who.")], trip: Trip, loud: bool = False) -> None:
        """Go there."""
        print(name, trip.where.host, trip.where.ports, trip.speed, loud)

    return app


def test_defaults_are_those_of_the_fields(program: typer.Typer) -> None:
    assert CliRunner().invoke(program, ["ann"]).output == "ann localhost None 1.5 False\n"


def test_options_of_nested_groups_reach_the_command(program: typer.Typer) -> None:
    line = ["ann", "--host", "b", "--port", "1", "--port", "2", "--speed", "3", "--loud"]
    assert CliRunner().invoke(program, line).output == "ann b [1, 2] 3.0 True\n"


def test_help_lists_every_option_once(program: typer.Typer) -> None:
    told = CliRunner().invoke(program, ["--help"]).output
    assert all(told.count(f"--{name} ") == 1 for name in ("host", "port", "speed"))


def test_a_value_of_another_type_is_refused_by_the_option(program: typer.Typer) -> None:
    refused = CliRunner().invoke(program, ["ann", "--speed", "fast"])
    assert refused.exit_code == 2
    assert "--speed" in refused.output


def test_an_option_is_named_as_its_field_and_stands_under_the_heading_of_its_group() -> None:
    @grouped
    def go(pace: Pace) -> None:
        """Go there."""

    app = typer.Typer()
    app.command()(go)
    speed, rest = typer.main.get_command(app).params[:2]
    assert (speed.opts, speed.rich_help_panel) == (["--top-speed"], "How fast")
    assert (rest.opts, rest.secondary_opts, rest.rich_help_panel) == (["--rest"], [], "Breaks")
