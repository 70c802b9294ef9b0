"""Options of load shedding: what a site or node drops by itself when it fills up."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, TypeAlias

from adapt.cli.options.amounts import above_0
from adapt.cli.options.groups import option, setting
from adapt.core.errors import UsageError
from adapt.core.stage.conditions.names import SheddingForm

if TYPE_CHECKING:
    from adapt.core.stage.conditions.shed_factor import Overload, Thresholds

SHED_PANEL = "What a site or node does by itself when it fills up"

LeastShedOption: TypeAlias = Annotated[float, option("Part that it drops right above that.", "B")]
ShedFormOption: TypeAlias = Annotated[SheddingForm, option("How that rises to all where nothing more fits.")]


@dataclass(frozen=True, slots=True)
class SheddingOptions:
    """What a site of a stage holds, and what it drops."""

    PANEL: ClassVar[str] = SHED_PANEL
    shed: str | None = setting(
        None,
        "A site holds up to so many rows, each for so long, and drops the more of what comes the fuller it is;"
        " none if left out.",
        "5000@100ms",
    )
    tau: str = setting(
        "0.1,0.4,0.8,0.9",
        "Thresholds of how full a site is, rising; it drops from the third on, the others are for scaling.",
        "T0,T1,T2,T3",
    )
    least_shed: LeastShedOption = 0.0
    shed_form: ShedFormOption = SheddingForm.LINEAR

    def thresholds(self) -> "Thresholds":
        """The thresholds of how full a site is."""
        from adapt.core.stage.conditions.shed_factor import Thresholds

        try:
            return Thresholds(*map(float, self.tau.split(",")))
        except UsageError as error:
            raise UsageError(f"--tau: {error}") from None
        except (TypeError, ValueError):
            raise UsageError(
                f"--tau {self.tau!r} is not up to four numbers with commas, such as 0.1,0.4,0.8,0.9"
            ) from None

    def overload(self, window_s: float | None = None) -> "Overload | None":
        """How many rows a site holds, how long, and what it drops meanwhile; a join holds them for its window."""
        from adapt.core.stage.conditions.shed_factor import Overload, ShedFactor

        if self.shed is None:
            return None
        held, at, window = self.shed.partition("@")
        counted = held.isdecimal() and len(held) < 8
        if window_s is not None and (at or not counted):
            raise UsageError(
                f"--shed {self.shed!r}: a join holds rows for its window; give how many alone, such as 5000"
            )
        if window_s is None and not (at and counted):
            raise UsageError(
                f"--shed {self.shed!r} is not how many rows a site holds and for how long; give it as 5000@100ms"
            )
        factor = ShedFactor(self.thresholds().tau2, self.least_shed, self.shed_form)
        return Overload(factor, int(held), above_0("--shed", window) if window_s is None else window_s)
