"""What changes in a synthetic stream while it runs, and what its rows carry beside key and time."""

from dataclasses import dataclass, field

from adapt.core.synthetic.distribution import Distribution
from adapt.core.synthetic.popularity import Drift, KeyLife
from adapt.core.synthetic.rates import Bursts, Diurnal, Lags


@dataclass(frozen=True, slots=True)
class Variation:
    """Nothing of it unless it is given.

    Attributes:
        lags: Into how many streams rows are parted, and how late each is.
        cost: Microseconds of work a row.
        bytes_: Size of a row in bytes, rounded to whole ones.
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
        """Whether the rate never changes, and there is one stream."""
        return self.diurnal is None and self.bursts is None and self.lags.streams == 1
