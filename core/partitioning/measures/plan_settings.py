"""Settings of plans: loads, pins, moves and imbalance."""

from adapt.core.units.settings import ABOVE_0, Range, SettingError, knob, settings

EXPERT = "For experts"
"""The heading over options that few users need."""


@settings()
class PlanSettings:
    """Settings of plans; commands take some of them."""

    resources: str = knob(
        "How state, computation and network grow with a key's count: C constant, L linear, Q quadratic.",
        "XYZ",
        default="LLL",
        panel=EXPERT,
    )
    tolerance: str = knob(
        "Tolerated max/min load ratio, alpha: one number, or one each for state, computation and network.",
        "RATIO|X,Y,Z",
        default="1.2",
        panel=EXPERT,
        unless="method exact",
    )
    sigma: float = knob(
        "Share of the tolerated imbalance left to hashed keys.",
        "SHARE",
        default=0.1,
        range=Range(above=0, at_most=1),
        panel=EXPERT,
        needs="scheme hybrid",
        unless="method exact",
    )
    max_pins: int | None = knob(
        "Pin at most K keys. Default: every key above the threshold, and with construction level at least 1000.",
        "K",
        default=None,
        range=Range(0),
        panel=EXPERT,
        needs="scheme hybrid",
        unless="method exact",
    )
    measure: list[str] | None = knob(
        "Measure state, computation or network by this column; repeatable. One of count, cost and bytes of a trace, or"
        " a column of a CSV. It takes the place of that letter in --resources.",
        "RESOURCE=COLUMN",
        default=None,
        panel=EXPERT,
    )
    max_imbalance: float = knob("Limit of the verdict: max/mean worker load.", "RATIO", default=1.2, range=Range(1))
    max_migration: str | None = knob(
        "Most state that may migrate in one step: 0.5 is half an average channel's state, 10% a part of all.",
        "X|P%",
        default=None,
    )
    capacity: str | None = knob(
        "Relative capacity of each worker, e.g. 1,1,2. Imbalance is then of utilization.", "X,X,X", default=None
    )
    pin: list[str] | None = knob(
        "Pin this key to this worker; repeatable. Or the file of a CSV of key,channel.",
        "KEY=CHANNEL|FILE",
        default=None,
    )
    utility: str | None = None


USUAL = PlanSettings()
"""The defaults."""


def refused(why: str) -> SettingError:
    """The refusal of settings of plans, named like `{pin}` in the text."""
    return SettingError(PlanSettings, why)


@settings()
class ToleranceSettings:
    """A least utilization, or the capacity of a channel."""

    utilization: float | None = knob(
        "Least utilization of any worker when one is full, above 0 and up to 1.",
        "SHARE",
        default=None,
        range=Range(above=0, at_most=1),
    )
    total: float | None = knob("Load of all workers together, in any unit.", "X", default=None, range=ABOVE_0)
    capacity: float | None = knob("Capacity of one worker, in the same unit.", "Y", default=None, range=ABOVE_0)

    def __post_init__(self) -> None:
        if (self.total is None) != (self.capacity is None):
            raise SettingError(
                ToleranceSettings,
                "{total} and {capacity} go together: the load of all workers, and the capacity of one",
            )
        if self.utilization is None and self.total is None:
            raise SettingError(
                ToleranceSettings, "give {utilization}, or {total} and {capacity}; e.g. {utilization} 0.9"
            )
