"""Option groups: a command sees dataclasses, the command line sees options."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar

import pytest
import typer
from typer.testing import CliRunner

from adapt.cli.options.groups import grouped, option, setting, short_help
from adapt.cli.terminal.help import Command
from adapt.cli.terminal.usage import usage_sentence
from adapt.core.errors import UsageError


class Surface(StrEnum):
    """What a road is made of."""

    TAR = "tar"
    SAND = "sand"


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


def test_an_option_is_named_as_its_field_and_stands_under_the_heading_of_its_group() -> None:
    @grouped
    def go(pace: Pace) -> None:
        """Go there."""

    app = typer.Typer()
    app.command()(go)
    speed, rest = typer.main.get_command(app).params[:2]
    assert (speed.opts, speed.rich_help_panel) == (["--top-speed"], "How fast")
    assert (rest.opts, rest.secondary_opts, rest.rich_help_panel) == (["--rest"], [], "Breaks")


@dataclass(frozen=True, slots=True)
class Road:
    """A group that is one option, with a head."""

    OPTION: ClassVar[str] = "--road"
    HEAD: ClassVar[str] = "kind"

    kind: Surface = setting(Surface.TAR, "Its surface.")
    width: float = setting(2.5, "Width.", "METRES", min=1)
    tolls: list[str] | None = setting(None, "Toll of a stretch; repeatable.", "KM|KM=TOLL")
    dust: int = setting(0, "Dust.", "GRAMS", of=(Surface.SAND,))
    wet: bool = setting(False, "Whether it rains.")


@pytest.fixture
def road() -> typer.Typer:
    app = typer.Typer()

    @app.command(cls=Command)
    @short_help("road")
    @grouped
    def go(road: Road) -> None:
        """Go there."""
        print(road.kind, road.width, road.tolls, road.dust, road.wet)

    return app


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("", "tar 2.5 None 0 False"),
        ("--road sand", "sand 2.5 None 0 False"),
        ("--road sand:dust=3,width=4", "sand 4.0 None 3 False"),
        ("--road sand --road width=4 --road dust=3", "sand 4.0 None 3 False"),
        ("--road wet,tolls=0,4=1,tolls=9:3=2", "tar 2.5 ['0,4=1', '9:3=2'] 0 True"),
        ("--road sand:wet", "sand 2.5 None 0 True"),
    ],
)
def test_the_fields_of_a_group_are_keys_of_its_option(road: typer.Typer, typed: str, read: str) -> None:
    assert CliRunner().invoke(road, typed.split()).output == f"{read}\n"


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("--road widht=4", "--road has no key 'widht'; did you mean 'width'?"),
        ("--road width=far", "--road width must be a number (got 'far')"),
        ("--road width=0", "--road width must be at least 1 (got '0')"),
        ("--road snow", "--road has no choice 'snow'"),
        ("--road dust=4", "--road dust is for sand; write --road sand:dust=GRAMS"),
        ("--road tar:dust=4", "--road dust is for sand; write --road sand:dust=GRAMS"),
    ],
)
def test_a_key_is_checked_as_an_option_is(road: typer.Typer, typed: str, why: str) -> None:
    refused = CliRunner().invoke(road, typed.split()).exception
    assert isinstance(refused, UsageError)
    assert str(refused).startswith(why)


@pytest.mark.parametrize(
    ("typed", "instead"),
    [
        ("--road-width", "--road width=METRES"),
        ("--dust", "--road sand:dust=GRAMS"),
        ("--tolls", "--road tolls=KM"),
        ("--road-wet", "--road wet"),
    ],
)
def test_an_option_that_is_a_key_now_is_refused_with_its_spelling(road: typer.Typer, typed: str, instead: str) -> None:
    with pytest.raises(Exception, match="No such option") as refused:
        typer.main.get_command(road).main([typed], standalone_mode=False)
    assert usage_sentence(refused.value) == f"no such option: {typed}; write {instead}"


def test_full_help_lists_keys_with_unit_and_default(road: typer.Typer) -> None:
    brief, full = (CliRunner().invoke(road, [option]).output for option in ("--help", "--help-all"))
    assert "width=METRES" not in brief
    assert "Keys of --road:\n  width=METRES" in full
    assert "Width. [default 2.5]" in full
