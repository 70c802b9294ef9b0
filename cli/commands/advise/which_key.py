"""`adapt advise which-key`: candidate keys judged, one recommended."""

from typing import TYPE_CHECKING, Annotated

import typer

from adapt.cli.options.channels import check_channels
from adapt.cli.options.groups import Several, option, setting
from adapt.cli.options.placement import ENGINE, CurrentSchemeChoice
from adapt.cli.terminal.narration import narrate_guesses
from adapt.cli.terminal.output import Format, FormatOption, show, verdict_of
from adapt.cli.terminal.stages import stages
from adapt.core.engines.names import Engine

if TYPE_CHECKING:
    from adapt.core.advice.which_key import WhichKey


def which_key(
    source: Annotated[
        tuple[str, ...],
        typer.Argument(metavar="SOURCE|TRACE", help="Raw files, a folder or glob; or a trace that keeps columns."),
        Several(str, tuple),
    ],
    *,
    channels: Annotated[int, option("Number of workers.", "N")],
    candidates: str = setting("auto", "Columns, pairs A+B, and columns with salts A#8; auto: every column.", "A,B,..."),
    needs: str = setting("", "Columns that operators group, order or join by.", "A,B,..."),
    engine: CurrentSchemeChoice = setting(Engine.SPARK, "Engine whose hash places the keys.", "NAME", **ENGINE),
    time: str = setting("", "Event time (default: guessed).", "EXPR"),
    format: FormatOption = Format.TABLE,
) -> "WhichKey":
    """Judge candidate keys on later windows and recommend one.

    Rows with equal values of the columns of --needs must share a worker: a candidate meets that if each of their values
    has one value of the candidate. All candidates are judged in one pass.

    Example: adapt advise which-key access.log --candidates host,path --needs path --channels 8
    """
    from adapt.traces.which_key import Question, which_key

    check_channels(channels)
    named = tuple(dict.fromkeys(filter(None, map(str.strip, needs.split(",")))))
    with stages() as progress:
        found = which_key(source, Question(candidates, named, Engine(engine), channels, time), None, progress)
    narrate_guesses(found.guesses)
    show(found.table(), format, found.as_data(), lead=[verdict_of(found.said)])
    return found
