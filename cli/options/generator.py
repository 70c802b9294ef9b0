"""Options of `adapt generate`: the rows of a synthetic trace."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from adapt.cli.options.amounts import seconds
from adapt.cli.options.groups import setting
from adapt.core.errors import UsageError
from adapt.core.stream import KeyType
from adapt.core.units.amounts import bytes_of, micros_of
from adapt.traces.generators.names import GeneratorName

if TYPE_CHECKING:
    from adapt.core.synthetic.variation import Variation
    from adapt.traces.generators.generate import NamedStream

_PARAMETER = {"keys": "domain", "hot_share": "hot", "rate": "rate_per_s"}
"""How a generator calls an option's parameter, where the names differ."""

_VARYING = (
    *("diurnal", "day_length", "burst_factor", "burst_every", "burst_length", "streams", "stream_lag"),
    *("drift", "drift_share", "key_life", "cost", "bytes_", "bias", "finest"),
)
"""Options that make a `Variation`."""

_NEEDS = {
    "day_length": "diurnal",
    "burst_every": "burst_factor",
    "burst_length": "burst_factor",
    "drift_share": "drift",
}
"""Options that mean nothing without another one."""


@dataclass(frozen=True, slots=True)
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
    hot_share: float | None = setting(
        None, "Hot share of self-similar keys: 0.2 gives 20% of the keys 80% of the rows (default: 0.2).", "SHARE"
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
    streams: int | None = setting(None, "Split the rows into this many streams: s1, s2 and so on.", "N", panel="Rate")
    stream_lag: str | None = setting(
        None, "How far the rate of each stream lags behind that of the stream before it.", "5m", panel="Rate"
    )
    diurnal: float | None = setting(
        None, "Daily swing of the rate, from 0 to 1, as a share of its average.", "SHARE", panel="Rate"
    )
    day_length: str | None = setting(
        None, "Length of the daily cycle, which begins at its trough (default: 24h).", "24h", panel="Rate"
    )
    burst_factor: float | None = setting(
        None, "Rate during bursts, in multiples of the rate between them (Markov-modulated).", "X", panel="Rate"
    )
    burst_every: str | None = setting(None, "Mean pause between bursts (default: 10m).", "10m", panel="Rate")
    burst_length: str | None = setting(None, "Mean length of a burst (default: 1m).", "1m", panel="Rate")
    bias: float | None = setting(
        None,
        "Self-similar bursts: share of the rows in one half of any span (b-model). Default: none; packets 0.65.",
        "SHARE",
        panel="Rate",
    )
    finest: str | None = setting(
        None, "Shortest span of self-similar bursts that is halved no further (default: 10ms).", "10ms", panel="Rate"
    )
    drift: str | None = setting(None, "Interval at which hot keys change ranks.", "1h", panel="Popularity")
    drift_share: float | None = setting(
        None, "Share of the 4,096 hottest ranks that change at each drift (default: 0.1).", "SHARE", panel="Popularity"
    )
    key_life: str | None = setting(
        None, "Lifetime of a key, after which a new key takes its rank.", "2d", panel="Popularity"
    )

    def stream(self, name: GeneratorName) -> "NamedStream":
        """The synthetic stream.

        Raises:
            UsageError: the generator does not take an option, or one is out of range.
        """
        from adapt.traces.generators.registry import GENERATORS

        options = ((field.name, getattr(self, field.name)) for field in fields(self))
        given = {parameter: value for parameter, value in options if value not in (None, "")}
        for parameter in given:
            takers = [str(each) for each in GENERATORS if _takes(GENERATORS[each], parameter)]
            if name not in takers:
                raise UsageError(f"{name} does not take {_typed(parameter)}, an option of {', '.join(takers)}")
        for parameter, other in _NEEDS.items():
            if parameter in given and other not in given:
                raise UsageError(f"{_typed(parameter)} needs {_typed(other)}")
        own = {
            _PARAMETER.get(parameter, parameter): given[parameter] for parameter in given if parameter not in _VARYING
        }
        return GENERATORS[name](**own, **self._varying(given))

    def _varying(self, given: Mapping[str, Any]) -> "dict[str, Variation]":
        """The variation that the options describe, as an argument of the generator."""
        from adapt.core.synthetic.cascade import Cascade
        from adapt.core.synthetic.distribution import Distribution
        from adapt.core.synthetic.popularity import Drift, KeyLife
        from adapt.core.synthetic.rates import Bursts, Diurnal, Lags
        from adapt.core.synthetic.variation import Variation

        if not given.keys() & {*_VARYING}:
            return {}

        def lasting(parameter: str, usual: str) -> float:
            return seconds(_typed(parameter), given.get(parameter, usual))

        return {
            "variation": Variation(
                Diurnal(given["diurnal"], lasting("day_length", "24h")) if "diurnal" in given else None,
                Bursts(given["burst_factor"], lasting("burst_every", "10m"), lasting("burst_length", "1m"))
                if "burst_factor" in given
                else None,
                Lags(given.get("streams", 1), lasting("stream_lag", "0")),
                Drift(lasting("drift", "0"), given.get("drift_share", 0.1)) if "drift" in given else None,
                KeyLife(lasting("key_life", "0")) if "key_life" in given else None,
                Distribution.parse("--cost", self.cost, micros_of) if self.cost else None,
                Distribution.parse("--bytes", self.bytes_, bytes_of) if self.bytes_ else None,
                Cascade(given.get("bias", Cascade().bias), lasting("finest", "10ms"))
                if given.keys() & {"bias", "finest"}
                else None,
            )
        }


def _takes(generator: Callable[..., "NamedStream"], parameter: str) -> bool:
    """Whether a generator takes an option."""
    taken = inspect.signature(generator).parameters
    return ("variation" if parameter in _VARYING else _PARAMETER.get(parameter, parameter)) in taken


def _typed(parameter: str) -> str:
    """How an option is typed."""
    return f"--{parameter.rstrip('_').replace('_', '-')}"
