"""Optional features of a synthetic stream: changing rates and keys, costs, sizes."""

from dataclasses import dataclass, field

from adapt.core.errors import UsageError
from adapt.core.synthetic.cascade import Cascade
from adapt.core.synthetic.distribution import Distribution
from adapt.core.synthetic.popularity import Drift, KeyLife
from adapt.core.synthetic.rates import Bursts, Diurnal, Lags


@dataclass(frozen=True, slots=True)
class Variation:
    """Optional features of a synthetic stream; off by default."""

    diurnal: Diurnal | None = None  # daily swing of the rate
    bursts: Bursts | None = None  # bursts of the rate
    lags: Lags = field(default_factory=Lags)  # number of streams, and the lag between them
    drift: Drift | None = None  # changes of the keys' ranks
    life: KeyLife | None = None  # lifetime of keys
    cost: Distribution | None = None  # cost of a row in microseconds
    bytes_: Distribution | None = None  # size of a row in bytes, rounded to a whole number
    cascade: Cascade | None = None  # self-similar bursts, of each stream its own

    def __post_init__(self) -> None:
        if self.cascade and (self.diurnal or self.bursts or self.lags.lag_s):
            raise UsageError("self-similar bursts cannot be combined with --diurnal, --bursts or --streams lag")

    @property
    def steady(self) -> bool:
        """Whether there is one stream of constant rate."""
        return not (self.diurnal or self.bursts or self.cascade) and self.lags.streams == 1
