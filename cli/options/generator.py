"""Options of `adapt ingest` on synthetic traces: which generator, and what it makes."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from adapt.cli.options.groups import setting
from adapt.cli.options.source import MappingOptions
from adapt.core.errors import UsageError
from adapt.core.stream import KeyType
from adapt.core.units.amounts import seconds_of
from adapt.traces.generators.names import GeneratorName

if TYPE_CHECKING:
    from adapt.core.synthetic.variation import Variation
    from adapt.traces.generators.generate import NamedStream


OF_VARIATION = (
    *("diurnal", "day", "bursts", "burst_every", "burst_for", "streams", "lag"),
    *("drift", "drift_share", "key_life", "cost", "bytes_"),
)
"""Parameters that make a `Variation`."""


@dataclass(frozen=True, slots=True)
class GeneratorOptions:
    """What a synthetic trace has."""

    PANEL: ClassVar[str] = "Synthetic traces"
    generate: GeneratorName | None = setting(None, "Make a synthetic trace instead of reading one.")
    rows: int = setting(1_000_000, "Rows to make.", "N")
    domain: int = setting(
        1_000_000, "Distinct keys to draw from; users of clicks (20000 if left out), items of sales (3000).", "N"
    )
    exponent: float = setting(1.0, "Zipf's z: 0 is uniform; 0.8 for clicks if left out.", "Z")
    hot: float = setting(0.2, "Of self-similar keys, the share that has all rows but this share.", "SHARE")
    rate: float = setting(1000.0, "Rows a second; 0.05 for clicks if left out, 0.5 for sales.", "R")
    start: str = setting("2026-01-01T00:00:00", "Time of the first row, ISO 8601, UTC.", "TIME")
    key_type: KeyType = setting(KeyType.STRING, "Type of the keys: string or int64.")
    diurnal: float = setting(0.0, "The rate swings by this share of its average, 0 to 1, over every day.", "SWING")
    day: str = setting("24h", "How long such a day is; its trough is its start.", "LENGTH")
    bursts: float = setting(1.0, "Bursts with so many times the rate between them (Markov-modulated).", "FACTOR")
    burst_every: str = setting("10m", "Mean pause between bursts.", "LENGTH")
    burst_for: str = setting("1m", "Mean length of a burst.", "LENGTH")
    streams: int = setting(1, "Part the rows into streams s1, s2 and so on.", "N")
    lag: str = setting("0", "By how much the ups and downs of each stream follow those of the one before.", "LENGTH")
    drift: str = setting("0", "After each such time heavy keys change their ranks.", "LENGTH")
    drift_share: float = setting(0.1, "How many of the 4,096 heaviest ranks then do.", "SHARE")
    key_life: str = setting("0", "How long a key lives before a fresh one takes its rank.", "LENGTH")
    seed: int = setting(0, "Of all chance.", "N")

    def stream(self, name: GeneratorName, carried: MappingOptions, typed: Mapping[str, str]) -> "NamedStream":
        """The synthetic stream; what was not typed is left to the generator, which has its own idea of it.

        `carried` has the cost and size of rows, `typed` the options that were typed, by their parameter.

        Raises:
            UsageError: the generator does not take one, or one is out of its range.
        """
        from adapt.traces.generators.registry import GENERATORS

        taken = inspect.signature(GENERATORS[name]).parameters
        for parameter, said in typed.items():
            known = {"rate": "rate_per_s"}.get(parameter, parameter)
            if known not in taken and not ("variation" in taken and parameter in OF_VARIATION):
                raise UsageError(f"--generate {name} takes no {said}; leave it out")
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
