"""Optional features of a synthetic stream: changing rates and keys, costs, sizes."""

from dataclasses import field
from typing import TYPE_CHECKING, Any

from adapt.core.units.amounts import bytes_of, micros_of
from adapt.core.units.settings import ABOVE_0, SECONDS, Range, SettingError, Unit, knob, settings

if TYPE_CHECKING:
    from adapt.core.synthetic.distribution import Distribution as Distribution
else:
    Distribution = Any  # its module loads NumPy

RATE, POPULARITY = "Rate", "Popularity"


@settings("diurnal", head="swing", panel=RATE)
class Diurnal:
    """A rate that follows the sine of the time of day."""

    swing: float = knob(
        "Daily swing of the rate, from 0 to 1, as a share of its average.", "SHARE", range=Range(0, at_most=1)
    )
    period_s: float = knob(
        "Length of the cycle, which begins at its trough.",
        "24h",
        default=86_400.0,
        unit=SECONDS,
        typed="day",
        range=ABOVE_0,
    )


@settings("bursts", head="factor", panel=RATE)
class Bursts:
    """A rate modulated by a two-state Markov chain (MMPP-2).

    Source: Fischer and Meier-Hellstern, The Markov-modulated Poisson process cookbook, Performance Evaluation 18
    (1993), section 2.
    """

    factor: float = knob(
        "Rate during bursts, in multiples of the rate between them (Markov-modulated).", "X", range=Range(above=1)
    )
    every_s: float = knob("Mean pause between bursts.", "10m", default=600.0, unit=SECONDS, range=ABOVE_0)
    for_s: float = knob("Mean length of a burst.", "1m", default=60.0, unit=SECONDS, typed="length", range=ABOVE_0)

    @property
    def quiet(self) -> float:
        """Rate between bursts, as a share of the overall average."""
        in_burst = self.for_s / (self.every_s + self.for_s)
        return 1 / (1 + (self.factor - 1) * in_burst)


@settings("streams", head="streams", panel=RATE)
class Lags:
    """Several streams with the same rate, each lagging behind the one before."""

    streams: int = knob(
        "Split the rows into this many streams: s1, s2 and so on.", "N", default=1, range=Range(1, at_most=1000)
    )
    lag_s: float = knob(
        "How far the rate of each stream lags behind that of the stream before it.",
        "5m",
        default=0.0,
        unit=SECONDS,
        range=Range(0),
    )

    def __post_init__(self) -> None:
        if self.lag_s and self.streams == 1:
            raise SettingError(Lags, "{lag_s} needs {streams} of 2 or more")


@settings("bias", head="bias", panel=RATE)
class Cascade:
    """Rates that burst alike at every scale.

    Of the two halves of any span of time, one, drawn at random, gets this share of its rows.

    Source: Wang, Madhyastha, Chan, Papadimitriou and Faloutsos, Data mining meets performance evaluation: fast
    algorithms for modeling bursty traffic, ICDE 2002.
    """

    bias: float = knob(
        "Self-similar bursts: share of the rows in one half of any span (b-model). Default: none; packets 0.65.",
        "SHARE",
        default=0.65,
        range=Range(0.5, below=1),
    )
    finest_s: float = knob(
        "Shortest span that is halved no further.", "10ms", default=0.01, unit=SECONDS, range=ABOVE_0
    )


@settings("drift", head="every_s", panel=POPULARITY)
class Drift:
    """Keys that change ranks at regular intervals.

    Each time, each of the hottest ranks is drawn with a probability, and its key swaps places with the key of another
    of these ranks, whose logarithm is uniform.
    """

    every_s: float = knob("Interval at which hot keys change ranks.", "1h", unit=SECONDS, range=ABOVE_0)
    share: float = knob(
        "Share of the 4,096 hottest ranks that change at each drift.",
        "SHARE",
        default=0.1,
        range=Range(above=0, at_most=1),
    )


def _distribution(amount: Any) -> Unit:
    """A distribution whose amounts are typed in this way."""

    def read(text: str) -> "Distribution":
        from adapt.core.synthetic.distribution import Distribution

        return Distribution.parse(text, amount)

    return Unit(read)


@settings()
class Variation:
    """Optional features of a synthetic stream; off by default."""

    diurnal: Diurnal | None = None
    bursts: Bursts | None = None
    lags: Lags = field(default_factory=Lags)
    drift: Drift | None = None
    life_s: float | None = knob(
        "Lifetime of a key, after which a new key takes its rank.",
        "2d",
        default=None,
        unit=SECONDS,
        typed="key-life",
        range=ABOVE_0,
        panel=POPULARITY,
    )
    cost: Distribution | None = knob(
        "Distribution of a row's cost, such as exponential(100us). Others: constant(5us), uniform(1us, 9us),"
        " lognormal(100us, 0.5), pareto(10us, 1.5).",
        "DISTRIBUTION",
        default=None,
        unit=_distribution(micros_of),
    )
    bytes_: Distribution | None = knob(
        "Distribution of a row's size, such as uniform(100B, 2kB); as for --cost.",
        "DISTRIBUTION",
        default=None,
        unit=_distribution(bytes_of),
        typed="bytes",
    )
    cascade: Cascade | None = None

    def __post_init__(self) -> None:
        if self.cascade and (self.diurnal or self.bursts or self.lags.lag_s):
            raise SettingError(Variation, "{cascade} cannot be combined with {diurnal}, {bursts} or a lag of {lags}")

    @property
    def steady(self) -> bool:
        """Whether there is one stream of constant rate."""
        return not (self.diurnal or self.bursts or self.cascade) and self.lags.streams == 1
