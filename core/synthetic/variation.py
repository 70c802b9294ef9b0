"""Optional features of a synthetic stream: changing rates and keys, costs, sizes."""

from dataclasses import dataclass, field

from adapt.core.synthetic.distribution import Distribution
from adapt.core.synthetic.popularity import Drift, KeyLife
from adapt.core.synthetic.rates import Bursts, Diurnal, Lags


@dataclass(frozen=True, slots=True)
class Variation:
    """Optional features of a synthetic stream; off by default.

    Attributes:
        diurnal: Daily swing of the rate.
        bursts: Bursts of the rate.
        lags: Number of streams, and the lag between them.
        drift: Changes of the keys' ranks.
        life: Lifetime of keys.
        cost: Cost of a row in microseconds.
        bytes_: Size of a row in bytes, rounded to a whole number.
    """

    diurnal: Diurnal | None = None
    bursts: Bursts | None = None
    lags: Lags = field(default_factory=Lags)
    drift: Drift | None = None
    life: KeyLife | None = None
    cost: Distribution | None = None
    bytes_: Distribution | None = None

    @property
    def steady(self) -> bool:
        """Whether there is one stream of constant rate."""
        return self.diurnal is None and self.bursts is None and self.lags.streams == 1
