"""Options of `adapt generate`: the rows of a synthetic trace."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from adapt.cli.options.amounts import seconds
from adapt.cli.options.groups import setting
from adapt.core.errors import UsageError
from adapt.core.stream import KeyType
from adapt.core.units.amounts import bytes_of, micros_of
from adapt.traces.generators.names import GeneratorName

if TYPE_CHECKING:
    from adapt.core.synthetic.cascade import Cascade
    from adapt.core.synthetic.popularity import Drift
    from adapt.core.synthetic.rates import Bursts, Diurnal, Lags
    from adapt.core.synthetic.variation import Variation
    from adapt.traces.generators.write import NamedStream

_PARAMETER = {"keys": "domain", "rate": "rate_per_s"}
"""How a generator calls an option's parameter, where the names differ."""

_VARYING = ("diurnal", "bursts", "streams", "drift", "key_life", "cost", "bytes_", "bias")
"""Options that make a `Variation`."""

RATE_PANEL, POPULARITY_PANEL = "Rate", "Popularity"


@dataclass(frozen=True, slots=True)
class DayOptions:
    """Daily cycle of the rate."""

    OPTION: ClassVar[str] = "--diurnal"
    HEAD: ClassVar[str] = "swing"
    PANEL: ClassVar[str] = RATE_PANEL
    swing: float | None = setting(None, "Daily swing of the rate, from 0 to 1, as a share of its average.", "SHARE")
    day: str | None = setting(None, "Length of the cycle, which begins at its trough (default: 24h).", "24h")

    def made(self) -> "Diurnal | None":
        """The cycle; None if not given."""
        from adapt.core.synthetic.rates import Diurnal

        return None if _is_off(self) else Diurnal(_head(self), seconds("--diurnal day", self.day or "24h"))


@dataclass(frozen=True, slots=True)
class BurstOptions:
    """Bursts of the rate."""

    OPTION: ClassVar[str] = "--bursts"
    HEAD: ClassVar[str] = "factor"
    PANEL: ClassVar[str] = RATE_PANEL
    factor: float | None = setting(
        None, "Rate during bursts, in multiples of the rate between them (Markov-modulated).", "X"
    )
    every: str | None = setting(None, "Mean pause between bursts (default: 10m).", "10m")
    length: str | None = setting(None, "Mean length of a burst (default: 1m).", "1m")

    def made(self) -> "Bursts | None":
        """The bursts; None if not given."""
        from adapt.core.synthetic.rates import Bursts

        if _is_off(self):
            return None
        return Bursts(
            _head(self), seconds("--bursts every", self.every or "10m"), seconds("--bursts length", self.length or "1m")
        )


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """Streams of the rows."""

    OPTION: ClassVar[str] = "--streams"
    HEAD: ClassVar[str] = "streams"
    PANEL: ClassVar[str] = RATE_PANEL
    streams: int = setting(1, "Split the rows into this many streams: s1, s2 and so on.", "N")
    lag: str = setting("0", "How far the rate of each stream lags behind that of the stream before it.", "5m")

    def made(self) -> "Lags":
        """The streams."""
        from adapt.core.synthetic.rates import Lags

        return Lags(self.streams, seconds("--streams lag", self.lag))


@dataclass(frozen=True, slots=True)
class DriftOptions:
    """Change of the ranks of hot keys."""

    OPTION: ClassVar[str] = "--drift"
    HEAD: ClassVar[str] = "interval"
    PANEL: ClassVar[str] = POPULARITY_PANEL
    interval: str | None = setting(None, "Interval at which hot keys change ranks.", "1h")
    share: float | None = setting(
        None, "Share of the 4,096 hottest ranks that change at each drift (default: 0.1).", "SHARE"
    )

    def made(self) -> "Drift | None":
        """The drift; None if not given."""
        from adapt.core.synthetic.popularity import Drift

        return (
            None if _is_off(self) else Drift(seconds("--drift", _head(self)), 0.1 if self.share is None else self.share)
        )


@dataclass(frozen=True, slots=True)
class CascadeOptions:
    """Self-similar bursts."""

    OPTION: ClassVar[str] = "--bias"
    HEAD: ClassVar[str] = "bias"
    PANEL: ClassVar[str] = RATE_PANEL
    bias: float | None = setting(
        None,
        "Self-similar bursts: share of the rows in one half of any span (b-model). Default: none; packets 0.65.",
        "SHARE",
    )
    finest: str | None = setting(None, "Shortest span that is halved no further (default: 10ms).", "10ms")

    def made(self) -> "Cascade":
        """The bursts."""
        from adapt.core.synthetic.cascade import Cascade

        bias = Cascade().bias if self.bias is None else self.bias
        return Cascade(bias, seconds("--bias finest", self.finest or "10ms"))


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorOptions:
    """What the rows look like.

    An option that is not given keeps the generator's default.
    """

    rows: int = setting(1_000_000, "Rows to generate.", "ROWS")
    keys: int | None = setting(
        None,
        "Number of distinct keys (default: 1000000; packets 10000, calls and clicks 20000, sales 3000 items).",
        "KEYS",
    )
    exponent: float | None = setting(
        None, "Zipf exponent of the keys; 0 is uniform (default: 1; calls and clicks 0.8).", "Z"
    )
    rate: float | None = setting(
        None, "Average rate in rows per second (default: 1000; calls 5, clicks 0.05, sales 0.5).", "ROWS/S"
    )
    start: str = setting("2026-01-01T00:00:00Z", "Time of the first row, ISO 8601.", "TIME")
    key_type: KeyType = setting(KeyType.STRING, "Type of the keys.", "string|int64")
    cost: str = setting(
        "",
        "Distribution of a row's cost, such as exponential(100us). Others: constant(5us), uniform(1us, 9us),"
        " lognormal(100us, 0.5), pareto(10us, 1.5).",
        "DISTRIBUTION",
    )
    bytes_: str = setting(
        "", "Distribution of a row's size, such as uniform(100B, 2kB); as for --cost.", "DISTRIBUTION", "--bytes"
    )
    seed: int = setting(0, "Random seed.", "N")
    streams: StreamOptions
    diurnal: DayOptions
    bursts: BurstOptions
    bias: CascadeOptions
    drift: DriftOptions
    key_life: str | None = setting(
        None, "Lifetime of a key, after which a new key takes its rank.", "2d", panel=POPULARITY_PANEL
    )

    def stream(self, name: GeneratorName) -> "NamedStream":
        """The synthetic stream."""
        from adapt.traces.generators.registry import GENERATORS

        options = ((field.name, getattr(self, field.name)) for field in fields(self))
        given = {
            parameter: value
            for parameter, value in options
            if value not in (None, "") and not (is_dataclass(value) and _is_off(value))
        }
        for parameter in given:
            takers = [str(each) for each in GENERATORS if _takes(GENERATORS[each], parameter)]
            if name not in takers:
                raise UsageError(f"{name} does not take {_typed(parameter)}, an option of {', '.join(takers)}")
        own = {
            _PARAMETER.get(parameter, parameter): given[parameter] for parameter in given if parameter not in _VARYING
        }
        return GENERATORS[name](**own, **self._varying(given))

    def _varying(self, given: Mapping[str, Any]) -> "dict[str, Variation]":
        """The variation that the options describe, as an argument of the generator."""
        from adapt.core.synthetic.distribution import Distribution
        from adapt.core.synthetic.popularity import KeyLife
        from adapt.core.synthetic.variation import Variation

        if not given.keys() & {*_VARYING}:
            return {}
        return {
            "variation": Variation(
                self.diurnal.made(),
                self.bursts.made(),
                self.streams.made(),
                self.drift.made(),
                None if self.key_life is None else KeyLife(seconds("--key-life", self.key_life)),
                Distribution.parse("--cost", self.cost, micros_of) if self.cost else None,
                Distribution.parse("--bytes", self.bytes_, bytes_of) if self.bytes_ else None,
                self.bias.made() if "bias" in given else None,
            )
        }


def _is_off(group: Any) -> bool:
    """Whether an option was not given."""
    return bool(group == type(group)())


def _head(group: Any) -> Any:
    """The value before the keys of an option."""
    value = getattr(group, group.HEAD)
    if value is None:
        raise UsageError(f"{group.OPTION} needs its {group.HEAD} before its keys")
    return value


def _takes(generator: Callable[..., "NamedStream"], parameter: str) -> bool:
    """Whether a generator takes an option."""
    taken = inspect.signature(generator).parameters
    return ("variation" if parameter in _VARYING else _PARAMETER.get(parameter, parameter)) in taken


def _typed(parameter: str) -> str:
    """How an option is typed."""
    return f"--{parameter.rstrip('_').replace('_', '-')}"
