"""Scenarios: mechanisms and their combinations to compare on one stream."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any

from adapt.core.elastic.policies.names import Alignment, ScalingPolicy, Signal
from adapt.core.elastic.policies.registry import AnyScalingPolicy
from adapt.core.elastic.policies.scaler import BUSIEST, ScaleOn
from adapt.core.errors import UsageError, did_you_mean
from adapt.core.fit.network.names import DropPlanner
from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.flux.policies.registry import AnyFluxPolicy
from adapt.core.own.own_code import OwnCode
from adapt.core.partitioning.splitting.names import Splitting
from adapt.core.stage.conditions.names import Migrating, RestartName
from adapt.core.stage.conditions.shed_factor import Thresholds


class Static(StrEnum):
    """The initial placement of keys."""

    UNIFORM = "uniform"
    """Hash modulo the number of channels."""

    CONSISTENT = "consistent"
    """Consistent hashing on a ring."""

    HYBRID = "hybrid"
    """A ring with hot keys pinned by the counts of the whole stream (in-sample)."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One mechanism, or several combined.

    Fields that are None default to those of the comparison.

    Attributes:
        name: Letters, digits, points, dashes and underscores.
        plan: The initial placement of keys.
        split: How hot keys are split over channels; None, no splitting.
        flux: The Flux policy that moves partitions; None, no moves.
        memory: Memory of a channel over the average state of a channel; None, no limit.
        rebuilds: Whether plans are rebuilt during the replay.
        rebuild_s: Time between rebuilds.
        rebuild_limit: Imbalance above which the plan is rebuilt.
        elastic: The scaling policy; None, a fixed number of workers.
        workers: M, the workers at the start and the minimum.
        pool: The maximum number of workers.
        thresholds: tau0 to tau3.
        signal: The utilization that is compared with them.
        scale_on: Whose utilization it is.
        scale_out_delay_s: How long more workers must be needed before scaling out.
        cooldown_s: How long fewer workers must be enough before scaling in.
        alignment: Which numbers of workers are allowed.
        utilization: Target utilization of ds2.
        lag_rows: Lag threshold of a worker, in rows.
        migrating: How partitions move in a rescale or rebuild.
        restart: What a restart costs.
        sheds: Whether channels shed load as their buffers fill.
        drops: The FIT planner that drops rows before they reach workers; None, no drops.
    """

    name: str
    plan: Static | OwnCode = Static.UNIFORM
    split: Splitting | None = None
    flux: AnyFluxPolicy | None = None
    memory: float | None = None
    rebuilds: bool = False
    rebuild_s: float | None = None
    rebuild_limit: float | None = None
    elastic: AnyScalingPolicy | None = None
    workers: int | None = None
    pool: int | None = None
    thresholds: Thresholds | None = None
    signal: Signal = Signal.HELD
    scale_on: ScaleOn = BUSIEST
    scale_out_delay_s: float | None = None
    cooldown_s: float | None = None
    alignment: Alignment = Alignment.ANY
    utilization: float = 0.8
    lag_rows: float | None = None
    migrating: Migrating | None = None
    restart: RestartName | None = None
    sheds: bool = False
    drops: DropPlanner | None = None

    def __post_init__(self) -> None:
        if not self.name or not all(letter.isalnum() or letter in "-_." for letter in self.name) or self.name[0] == ".":
            raise UsageError(f"a scenario cannot be named {self.name!r}; use letters, digits, '.', '-' and '_'")
        for one, other in self._apart():
            raise UsageError(f"scenario {self.name!r}: {one} and {other} exclude each other; remove one")
        if self.memory is not None and not 1 <= self.memory < float("inf"):
            raise UsageError(
                f"scenario {self.name!r}: memory must be at least 1, the average state (got {self.memory:g})"
            )

    def as_data(self) -> dict[str, Any]:
        """The fields that differ from their defaults, as JSON data."""
        given = {
            each.name: getattr(self, each.name) for each in fields(self) if getattr(self, each.name) != each.default
        }
        named: dict[str, Any] = {"scale_on": str(self.scale_on)} if "scale_on" in given else {}
        named |= {name: each.as_data() for name, each in given.items() if isinstance(each, OwnCode)}
        return given | named | ({} if self.thresholds is None else {"thresholds": asdict(self.thresholds)})

    @property
    def is_scaled(self) -> bool:
        """Whether it plans partitions: by rebuilds, or for other workers."""
        return self.rebuilds or self.elastic is not None

    @property
    def is_static_plan(self) -> bool:
        """Whether a plan places the keys, and nothing else is done."""
        return self.plan is not Static.UNIFORM and set(self.as_data()) == {"name", "plan"}

    def _apart(self) -> list[tuple[str, str]]:
        """Pairs of its parts that exclude each other."""
        has = {
            "split": self.split is not None,
            "flux": self.flux is not None,
            "memory": self.memory is not None,
            "rebuild": self.rebuilds,
            "elastic": self.elastic is not None,
            "a plan": self.plan is not Static.UNIFORM,
            "drop": self.drops is not None,
            "shed": self.sheds,
            "migrate": self.migrating is not None,
            "restart": self.restart is not None,
            "alignment": self.alignment is not Alignment.ANY,
            "scale_on": self.scale_on != BUSIEST,
        }
        apart = (
            *(("split", other) for other in ("flux", "rebuild", "elastic", "a plan")),
            *(("flux", other) for other in ("rebuild", "elastic")),
            *(("memory", other) for other in ("rebuild", "elastic")),
            *(("a plan", other) for other in ("rebuild", "elastic")),
            *(("drop", other) for other in ("split", "flux", "rebuild", "elastic")),
        )
        return [pair for pair in apart if has[pair[0]] and has[pair[1]]]


TIGHT = 1.15
"""Limited memory of a channel, over the average state of a channel."""

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
    Scenario("shed-exact", drops=DropPlanner.EXACT),
    Scenario("shed-c-fit", drops=DropPlanner.C_FIT),
    Scenario("shed-d-fit", drops=DropPlanner.D_FIT),
    Scenario("flux-shed", flux=FluxPolicy.LOAD, sheds=True),
    Scenario("elastic-shed", elastic=ScalingPolicy.THRESHOLDS, signal=Signal.OFFERED, sheds=True),
)
"""The built-in scenarios; the first is the baseline."""

BY_NAME = (
    Scenario("slicer", flux=FluxPolicy.SLICER),
    Scenario("flink", elastic=ScalingPolicy.FLINK, migrating=Migrating.RESTART, restart=RestartName.FLINK_SAVEPOINT),
    Scenario("spark", elastic=ScalingPolicy.SPARK),
)
"""Further built-in scenarios, which run only by name: comparisons are often shorter than the intervals of policies of
other systems."""

BASELINE = SCENARIOS[0].name
"""The baseline: plain hashing, nothing adapts."""

ALL = "all"
"""All of `SCENARIOS`."""


def chosen(names: Sequence[str], further: Sequence[Scenario] = ()) -> tuple[Scenario, ...]:
    """The scenarios with these names, each once, the baseline first.

    Args:
        names: Names of built-in and own scenarios, or `ALL`; empty, all own ones if any, else all of `SCENARIOS`.
        further: Own scenarios; they replace built-in ones of the same name.
    """
    known = {one.name: one for one in (*SCENARIOS, *BY_NAME, *further)}
    given = [each for name in names for each in ([one.name for one in SCENARIOS] if name == ALL else [name])]
    wanted = given or [one.name for one in further or SCENARIOS]
    for name in wanted:
        if name not in known:
            raise UsageError(f"scenario {name!r} does not exist{did_you_mean(name, known)}")
    return tuple(known[name] for name in dict.fromkeys([BASELINE, *wanted]))


def own_scenarios(policies: Sequence[OwnCode]) -> tuple[Scenario, ...]:
    """The scenarios of users' classes, named `module.Class`.

    A class with the methods `moves` and `workers` makes two, `module.Class-moves` and `module.Class-workers`.
    """
    found = []
    for own in dict.fromkeys(policies):
        name = own.name.replace(":", ".")
        if sum(each.name == own.name for each in policies) > 1:
            name += "".join(f"-{parameter}={value}" for parameter, value in own.options)
        moves, scales = hasattr(own.call, "moves"), hasattr(own.call, "workers")
        if not (moves or scales):
            raise UsageError(f"policy {own.name} has neither a method moves(self, view) nor workers(self, view)")
        if moves:
            found.append(Scenario(f"{name}-moves" if scales else name, flux=own))
        if scales:
            found.append(Scenario(f"{name}-workers" if moves else name, elastic=own))
    return tuple(found)
