"""Mechanisms that are compared on one stream: what each does, and those that are compared if nothing is said."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any

from adapt.core.elastic.policies.names import Alignment, ScalingPolicy, Signal
from adapt.core.errors import UsageError, did_you_mean
from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.partitioning.splitting.names import Splitting
from adapt.core.stage.conditions.names import Migrating
from adapt.core.stage.conditions.shed_factor import Thresholds


class Static(StrEnum):
    """Where keys are at the start."""

    UNIFORM = "uniform"
    """By their hash, modulo the channels."""

    CONSISTENT = "consistent"
    """By their hash, on a ring."""

    HYBRID = "hybrid"
    """On a ring but for heavy keys, placed one by one by what the whole stream counts: by hindsight."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One mechanism, or several together. What is not given is as the comparison has it for all.

    Attributes:
        name: Letters, digits, points, dashes and underscores.
        plan: Where keys are at the start.
        split: How keys are split over channels; None, they are whole.
        flux: What moves partitions between channels; None, nothing does.
        memory: Of a channel for state, over the state of a channel on average; None, no limit.
        rebuilds: Whether plans are built anew while the stream goes on.
        rebuild_s: How often.
        rebuild_limit: And when the imbalance is above this.
        elastic: What takes workers on and lets them go; None, their number is fixed.
        workers: M, at the start; there are never fewer.
        pool: All workers there are.
        thresholds: tau0 to tau3.
        signal: What is compared with them.
        hold_up_s: How long more workers must be wanted.
        hold_down_s: The same of fewer.
        alignment: Which numbers of workers there may be.
        utilization: Share of the time that workers are to work, for ds2.
        lag_rows: Rows that may wait for a worker, for lag.
        migrating: In which portions partitions move when a plan is built anew.
        sheds: Whether channels hold what they take, and drop input as they fill up.

    Raises:
        UsageError: two parts do not go together, or a number is out of its range; the sentence names the scenario.
    """

    name: str
    plan: Static = Static.UNIFORM
    split: Splitting | None = None
    flux: FluxPolicy | None = None
    memory: float | None = None
    rebuilds: bool = False
    rebuild_s: float | None = None
    rebuild_limit: float | None = None
    elastic: ScalingPolicy | None = None
    workers: int | None = None
    pool: int | None = None
    thresholds: Thresholds | None = None
    signal: Signal = Signal.HELD
    hold_up_s: float | None = None
    hold_down_s: float | None = None
    alignment: Alignment = Alignment.ANY
    utilization: float = 0.8
    lag_rows: float | None = None
    migrating: Migrating = Migrating.ALL
    sheds: bool = False

    def __post_init__(self) -> None:
        if not self.name or not all(letter.isalnum() or letter in "-_." for letter in self.name) or self.name[0] == ".":
            raise UsageError(f"a scenario cannot be called {self.name!r}; give a name of letters, digits, - and _")
        for one, other in self._apart():
            raise UsageError(f"scenario {self.name!r}: {one} and {other} do not go together; leave one of them out")
        if self.memory is not None and not 1 <= self.memory < float("inf"):
            raise UsageError(
                f"scenario {self.name!r}: memory is {self.memory:g} of a channel's state on average; give 1 or more"
            )

    def as_data(self) -> dict[str, Any]:
        """What it says, as JSON data."""
        told = {field.name: getattr(self, field.name) for field in fields(self)}
        usual = {field.name: field.default for field in fields(self)}
        said = {name: value for name, value in told.items() if value != usual[name]}
        return said | ({} if self.thresholds is None else {"thresholds": asdict(self.thresholds)})

    @property
    def is_scaled(self) -> bool:
        """Whether its placement is that of an elastic stage, which plans partitions."""
        return self.rebuilds or self.elastic is not None

    def _apart(self) -> list[tuple[str, str]]:
        """Parts of it that do not go together."""
        has = {
            "split": self.split is not None,
            "flux": self.flux is not None,
            "memory": self.memory is not None,
            "rebuild": self.rebuilds,
            "elastic": self.elastic is not None,
            "a plan": self.plan is not Static.UNIFORM,
        }
        apart = (
            *(("split", other) for other in ("flux", "rebuild", "elastic", "a plan")),
            *(("flux", other) for other in ("rebuild", "elastic")),
            *(("memory", other) for other in ("rebuild", "elastic")),
            *(("a plan", other) for other in ("rebuild", "elastic")),
        )
        return [pair for pair in apart if has[pair[0]] and has[pair[1]]]


TIGHT = 1.15
"""Of the state of a channel on average, the memory that channels have where it is limited."""

SCENARIOS = (
    Scenario("static-uniform"),
    Scenario("static-consistent", Static.CONSISTENT),
    Scenario("static-hybrid", Static.HYBRID),
    Scenario("split-pkg", split=Splitting.PKG),
    Scenario("split-w-choices", split=Splitting.W_CHOICES),
    Scenario("flux-load", flux=FluxPolicy.LOAD),
    Scenario("static-memory", memory=TIGHT),
    Scenario("flux-memory", flux=FluxPolicy.MEMORY, memory=TIGHT),
    Scenario("flux-hybrid", flux=FluxPolicy.HYBRID, memory=TIGHT),
    Scenario("rebuild", rebuilds=True),
    Scenario("elastic", elastic=ScalingPolicy.THRESHOLDS),
    Scenario("ds2", elastic=ScalingPolicy.DS2),
    Scenario("lag", elastic=ScalingPolicy.LAG),
    Scenario("shed", sheds=True),
    Scenario("flux-shed", flux=FluxPolicy.LOAD, sheds=True),
    Scenario("elastic-shed", elastic=ScalingPolicy.THRESHOLDS, signal=Signal.OFFERED, sheds=True),
)
"""What is compared if nothing is said; the first is what everything else is held against."""

BASELINE = SCENARIOS[0].name
"""Keys where their hash has them, and nothing is done."""


def chosen(names: Sequence[str], further: Sequence[Scenario] = ()) -> tuple[Scenario, ...]:
    """The scenarios of some names, each once, that everything is held against always among them and first.

    Args:
        names: Those of a user's own and of the built-in ones; none, the user's own if there are any, else all.
        further: The user's own; one that is named as a built-in one stands in its place.

    Raises:
        UsageError: there is none of a name.
    """
    known = {one.name: one for one in (*SCENARIOS, *further)}
    wanted = names or [one.name for one in further or SCENARIOS]
    for name in wanted:
        if name not in known:
            raise UsageError(f"there is no scenario {name!r}{did_you_mean(name, known)}")
    return tuple(known[name] for name in dict.fromkeys([BASELINE, *wanted]))
