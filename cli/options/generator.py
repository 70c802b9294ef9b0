"""Options of `adapt ingest` on synthetic traces: which generator, and what it makes."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from adapt.cli.options.source import MappingOptions
from adapt.core.errors import UsageError
from adapt.core.stream import KeyType
from adapt.core.units.amounts import seconds_of
from adapt.traces.generators.names import GeneratorName

if TYPE_CHECKING:
    from adapt.core.synthetic.variation import Variation
    from adapt.traces.generators.generate import NamedStream

GENERATE_PANEL = "Synthetic traces"

OF_VARIATION = (
    *("diurnal", "day", "bursts", "burst_every", "burst_for", "streams", "lag"),
    *("drift", "drift_share", "key_life", "cost", "bytes_"),
)
"""Parameters that make a `Variation`."""


@dataclass(frozen=True, slots=True)
class GeneratorOptions:
    """What a synthetic trace has."""

    generate: Annotated[
        GeneratorName | None,
        typer.Option(
            "--generate", help="Make a synthetic trace instead of reading one.", rich_help_panel=GENERATE_PANEL
        ),
    ] = None
    rows: Annotated[int, typer.Option("--rows", metavar="N", help="Rows to make.", rich_help_panel=GENERATE_PANEL)] = (
        1_000_000
    )
    domain: Annotated[
        int,
        typer.Option(
            "--domain",
            metavar="N",
            help="Distinct keys to draw from; users of clicks (20000 if left out), items of sales (3000).",
            rich_help_panel=GENERATE_PANEL,
        ),
    ] = 1_000_000
    exponent: Annotated[
        float,
        typer.Option(
            "--exponent",
            metavar="Z",
            help="Zipf's z: 0 is uniform; 0.8 for clicks if left out.",
            rich_help_panel=GENERATE_PANEL,
        ),
    ] = 1.0
    hot: Annotated[
        float,
        typer.Option(
            "--hot",
            metavar="SHARE",
            help="Of self-similar keys, the share that has all rows but this share.",
            rich_help_panel=GENERATE_PANEL,
        ),
    ] = 0.2
    rate: Annotated[
        float,
        typer.Option(
            "--rate",
            metavar="R",
            help="Rows a second; 0.05 for clicks if left out, 0.5 for sales.",
            rich_help_panel=GENERATE_PANEL,
        ),
    ] = 1000.0
    start: Annotated[
        str,
        typer.Option(
            "--start", metavar="TIME", help="Time of the first row, ISO 8601, UTC.", rich_help_panel=GENERATE_PANEL
        ),
    ] = "2026-01-01T00:00:00"
    key_type: Annotated[
        KeyType, typer.Option("--key-type", help="Type of the keys: string or int64.", rich_help_panel=GENERATE_PANEL)
    ] = KeyType.STRING
    diurnal: Annotated[
        float,
        typer.Option(
            "--diurnal",
            metavar="SWING",
            help="The rate swings by this share of its average, 0 to 1, over every day.",
            rich_help_panel=GENERATE_PANEL,
        ),
    ] = 0.0
    day: Annotated[
        str,
        typer.Option(
            "--day",
            metavar="LENGTH",
            help="How long such a day is; its trough is its start.",
            rich_help_panel=GENERATE_PANEL,
        ),
    ] = "24h"
    bursts: Annotated[
        float,
        typer.Option(
            "--bursts",
            metavar="FACTOR",
            help="Bursts with so many times the rate between them (Markov-modulated).",
            rich_help_panel=GENERATE_PANEL,
        ),
    ] = 1.0
    burst_every: Annotated[
        str,
        typer.Option(
            "--burst-every", metavar="LENGTH", help="Mean pause between bursts.", rich_help_panel=GENERATE_PANEL
        ),
    ] = "10m"
    burst_for: Annotated[
        str,
        typer.Option("--burst-for", metavar="LENGTH", help="Mean length of a burst.", rich_help_panel=GENERATE_PANEL),
    ] = "1m"
    streams: Annotated[
        int,
        typer.Option(
            "--streams",
            metavar="N",
            help="Part the rows into streams s1, s2 and so on.",
            rich_help_panel=GENERATE_PANEL,
        ),
    ] = 1
    lag: Annotated[
        str,
        typer.Option(
            "--lag",
            metavar="LENGTH",
            help="By how much the ups and downs of each stream follow those of the one before.",
            rich_help_panel=GENERATE_PANEL,
        ),
    ] = "0"
    drift: Annotated[
        str,
        typer.Option(
            "--drift",
            metavar="LENGTH",
            help="After each such time heavy keys change their ranks.",
            rich_help_panel=GENERATE_PANEL,
        ),
    ] = "0"
    drift_share: Annotated[
        float,
        typer.Option(
            "--drift-share",
            metavar="SHARE",
            help="How many of the 4,096 heaviest ranks then do.",
            rich_help_panel=GENERATE_PANEL,
        ),
    ] = 0.1
    key_life: Annotated[
        str,
        typer.Option(
            "--key-life",
            metavar="LENGTH",
            help="How long a key lives before a fresh one takes its rank.",
            rich_help_panel=GENERATE_PANEL,
        ),
    ] = "0"
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of all chance.", rich_help_panel=GENERATE_PANEL)] = 0

    def stream(self, name: GeneratorName, carried: MappingOptions, typed: Mapping[str, str]) -> "NamedStream":
        """The synthetic stream; what was not typed is left to the generator, which has its own idea of it.

        Args:
            name: The generator.
            carried: The cost and size that rows carry.
            typed: The options that were typed, by their parameter.

        Raises:
            UsageError: the generator does not take one, or one is out of its range.
        """
        from adapt.traces.generators.registry import GENERATORS

        taken = inspect.signature(GENERATORS[name]).parameters
        for parameter, option in typed.items():
            known = {"rate": "rate_per_s"}.get(parameter, parameter)
            if known not in taken and not ("variation" in taken and parameter in OF_VARIATION):
                raise UsageError(f"--generate {name} takes no {option}; leave it out")
        given = {parameter: getattr(self, parameter) for parameter in typed if parameter in taken}
        given |= {"rows": self.rows} | ({"rate_per_s": self.rate} if "rate" in typed else {})
        if "variation" in taken:
            given["variation"] = self._variation(carried, typed)
        return GENERATORS[name](**given)

    def _variation(self, carried: MappingOptions, typed: Mapping[str, str]) -> "Variation":
        """What varies in the stream."""
        from adapt.core.synthetic.distribution import Distribution
        from adapt.core.synthetic.popularity import Drift, KeyLife
        from adapt.core.synthetic.rates import Bursts, Diurnal, Lags
        from adapt.core.synthetic.variation import Variation

        belongs = (("day", "diurnal"), ("burst_every", "bursts"), ("burst_for", "bursts"), ("drift_share", "drift"))
        for parameter, to in belongs:
            if parameter in typed and to not in typed:
                raise UsageError(f"{typed[parameter]} goes with --{to.replace('_', '-')}, which was not given")
        bursts = (self.bursts, seconds_of(self.burst_every), seconds_of(self.burst_for))
        return Variation(
            Diurnal(self.diurnal, seconds_of(self.day)) if "diurnal" in typed else None,
            Bursts(*bursts) if "bursts" in typed else None,
            Lags(self.streams, seconds_of(self.lag)),
            Drift(seconds_of(self.drift), self.drift_share) if "drift" in typed else None,
            KeyLife(seconds_of(self.key_life)) if "key_life" in typed else None,
            Distribution.parse("--cost", carried.cost) if carried.cost else None,
            Distribution.parse("--bytes", carried.bytes_) if carried.bytes_ else None,
        )
