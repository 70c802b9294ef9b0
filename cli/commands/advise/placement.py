"""`adapt advise placement`: operators placed and load shed together."""

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from adapt.cli.options.amounts import amount_of
from adapt.cli.options.groups import setting, short_help
from adapt.cli.options.result import ForceOption
from adapt.cli.terminal.output import Format, FormatOption, narrate, narrate_written, show
from adapt.cli.terminal.stages import stages

if TYPE_CHECKING:
    from adapt.core.fit.placement.placement import Placement


@short_help("rates", "max_inputs", "fixed", "loss", "tries", "out")
def placement(
    network: Annotated[Path, typer.Argument(metavar="NETWORK.toml", help="Query network file.")],
    *,
    rates: Path | None = setting(
        None,
        "Rates to place for, tuples/s: a CSV with a column for each input, of which eight rows are used. Default: the"
        " rates of the network file.",
        "FILE.csv",
    ),
    max_inputs: int | None = setting(
        None, "Largest number of inputs of a fragment, planned separately: it needs no larger table.", "N", min=1
    ),
    fixed: list[str] | None = setting(None, "Operator that stays on its node; repeatable.", "OPERATOR", "--fixed"),
    loss: str = setting("1%", "Share of the score given up for less traffic between nodes.", "PERCENT"),
    tries: int = setting(10_000, "Number of placements to try.", "N", min=0),
    seed: int = setting(0, "Random seed."),
    out: Path | None = setting(None, "Network file to write, with the new nodes.", "NETWORK.toml", "--out", "-o"),
    force: ForceOption = False,
    format: FormatOption = Format.TABLE,
) -> "Placement":
    """Place the operators of a query network on its nodes.

    Chooses placement and load shedding together: the highest score with the best drop plan, then the least traffic
    between nodes. Nodes send to each other in no circle. Counts all traffic, of tuples and of a coordinator's messages.
    Does not start Java.

    Example: adapt advise placement shop.toml --max-inputs 4 -o placed.toml
    """
    from adapt.core.check.amount import percent_of
    from adapt.traces.replay.fit import open_network
    from adapt.traces.replay.placement import PlacementOptions, place_network

    given_up = amount_of("--loss", loss, percent_of)
    options = PlacementOptions(rates, max_inputs, fixed or (), given_up, tries, seed)
    begun = perf_counter()
    with stages() as progress:
        found = place_network(open_network(network), options, out, force=force, progress=progress)
    narrate(f"placed in {perf_counter() - begun:.1f} s, {found.found.tried:,} placements tried")
    if out is not None:
        narrate_written(out)
    show(found.displayed(), format, found.as_data(), lead=[found.said])
    return found
