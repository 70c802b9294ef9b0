"""What all scenarios of a comparison have in common, and how it follows from a stream where nothing is said."""

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from adapt.core.elastic.policies.scaler import Patience, Rebuild, check_pool
from adapt.core.errors import UsageError
from adapt.core.keys.names import HashName
from adapt.core.mechanisms.scenarios import Scenario
from adapt.core.stage.conditions.names import DropCurve
from adapt.core.stage.conditions.settings import (
    PACKET_TUPLES,
    Costs,
    Network,
    StageSettings,
    check_workers,
    even_groups,
)
from adapt.core.stage.conditions.shed_factor import Overload, ShedFactor, Thresholds
from adapt.core.stage.input.mini_partitions import MiniPartitions
from adapt.core.stage.input.offered_load import Demand, bounds_of
from adapt.core.stream import Weight

PERIODS = 100
"""So many of them are in a stream, if nothing is said."""

HOLD_UP, HOLD_DOWN, WINDOW, REBUILD, HELD = 2, 10, 10, 10, 5
"""Periods, if nothing is said: for how long more and fewer workers must be wanted, from how long ago plans are built
and how often, and for how long channels hold rows, where they shed."""

OFFERED = 1.2
"""What comes for the busiest channel of static uniform over what it can do, if nothing is said."""

SHORT = 0.75
"""Of the workers that all rows keep busy, those that elastic stages begin with."""

_LEAST_HELD = 10


@dataclass(frozen=True, slots=True)
class Terms:
    """What all scenarios of a comparison have in common: one cost model, one speed, one seed.

    Attributes:
        channels: N, of scenarios whose workers are fixed.
        pool: All workers there are, for those whose workers come and go.
        least: M, with which these begin.
        per_worker: Partitions of a channel.
        speedup: Trace seconds in a second of the stage.
        period_s: How often policies look at workers and parts of split keys are merged.
        hold_up_s: How long more workers must be wanted.
        hold_down_s: The same of fewer.
        window_s: Plans are built from the rows of so long.
        rebuild_s: How often plans are built anew.
        interval_s: How often to take down what the stage does.
        thresholds: tau0 to tau3.
        overload: How channels shed, where they do.
        lag_rows: Rows that may wait for a worker, for lag.
        costs: CPU and the size of a tuple.
        network: Between channels.
        state: Tuples of state of a partition, or what of the trace decides.
        buffer_tuples: Rows that a producer holds back.
        by_cost: Whether a row takes the CPU that the trace says; else service times are drawn.
        by_stream: Whether the rows of a stream have one producer.
        duration_s: Until then at most.
        hash: Of keys.
        seed: Of all that is drawn.

    Raises:
        UsageError: a number is out of its range.
    """

    channels: int
    pool: int
    least: int
    per_worker: int
    speedup: float
    period_s: float
    hold_up_s: float
    hold_down_s: float
    window_s: float
    rebuild_s: float
    interval_s: float
    thresholds: Thresholds
    overload: Overload
    lag_rows: float
    costs: Costs
    network: Network
    state: int | Weight = Weight.COUNT
    buffer_tuples: int = 240
    by_cost: bool = False
    by_stream: bool = False
    duration_s: float | None = None
    hash: HashName = HashName.MURMUR3
    seed: int = 0

    def __post_init__(self) -> None:
        check_workers(self.channels)
        check_pool(self.least, self.pool)
        Patience(self.hold_up_s, self.hold_down_s)
        Rebuild(self.rebuild_s)
        if not 0 < self.speedup < np.inf:
            raise UsageError(f"a speed-up of {self.speedup:g} is none; give a number above 0")
        if self.buffer_tuples < PACKET_TUPLES:
            raise UsageError(
                f"a buffer of {self.buffer_tuples} tuples is smaller than a packet; give it {PACKET_TUPLES} or more"
            )

    def as_data(self) -> dict[str, Any]:
        """All of it as JSON data."""
        return asdict(self)

    def workers_of(self, scenario: Scenario) -> int:
        """The workers of its stage: the channels, or the pool from which workers come."""
        if scenario.elastic is None:
            return self.channels
        return self.pool if scenario.pool is None else scenario.pool

    def least_of(self, scenario: Scenario) -> int:
        """The workers with which it begins."""
        if scenario.elastic is None:
            return self.channels
        return self.least if scenario.workers is None else scenario.workers

    def at(self, speedup: float) -> "Terms":
        """The same at another speed; what is said in seconds of the stage stays."""
        return replace(self, speedup=speedup)

    def with_channels(self, channels: int) -> "Terms":
        """The same with other channels, and a pool and first workers in proportion."""
        ratio = channels / self.channels
        pool = max(2, round(self.pool * ratio))
        return replace(self, channels=channels, pool=pool, least=min(pool, max(1, round(self.least * ratio))))


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is said of all scenarios; the rest follows from the stream. Other fields are those of `Terms`.

    Attributes:
        pool: All workers there are; None, twice as many.
        least: M; None, half as many, or as few as are not enough: three quarters of those that all rows keep busy.
        speedup: Trace seconds in a second of the stage; None, what `offered` asks for.
        offered: Work of the busiest channel of static uniform over what it can do.
        period_s: How often policies look; None, a hundredth of the stream. Other times follow from it.
        interval_s: How often to take down what the stage does; None, every period.
        overload: How channels shed; None, they hold what they can do in five periods.
        min_drop: B, if that is not given.
        drop_curve: How shedding rises, likewise.
        lag_rows: Rows that may wait for a worker; None, those that it does in a period.
    """

    channels: int
    pool: int | None = None
    least: int | None = None
    per_worker: int = 64
    speedup: float | None = None
    offered: float = OFFERED
    period_s: float | None = None
    hold_up_s: float | None = None
    hold_down_s: float | None = None
    window_s: float | None = None
    rebuild_s: float | None = None
    interval_s: float | None = None
    thresholds: Thresholds = Thresholds()  # noqa: RUF009 - frozen
    overload: Overload | None = None
    min_drop: float = 0.0
    drop_curve: DropCurve = DropCurve.LINEAR
    lag_rows: float | None = None
    costs: Costs = field(default_factory=Costs)
    network: Network = field(default_factory=Network)
    state: int | Weight = Weight.COUNT
    buffer_tuples: int = 240
    by_cost: bool = False
    by_stream: bool = False
    duration_s: float | None = None
    hash: HashName = HashName.MURMUR3
    seed: int = 0

    @property
    def placed(self) -> MiniPartitions:
        """The partitions of static uniform.

        Raises:
            UsageError: there cannot be so many.
        """
        check_workers(self.channels)
        return MiniPartitions(self.channels, self.per_worker, self.hash)

    @property
    def uniform(self) -> StageSettings:
        """Its stage."""
        partitions = self.channels * self.per_worker
        groups = even_groups(partitions, partitions)
        return StageSettings(self.channels, self.placed.owners, groups, costs=self.costs, network=self.network)

    def terms(self, demand: Demand) -> Terms:
        """All of it for a stream.

        Args:
            demand: Of the stream at its own speed, on the stage of static uniform.

        Raises:
            UsageError: a number is out of its range, or all rows are due at once.
        """
        bounds = bounds_of(demand, self.uniform)
        if not 0 < self.offered < np.inf:
            raise UsageError(f"an offered load of {self.offered:g} is none; give a number above 0")
        if not bounds.static_load:
            raise UsageError("all rows are due at the same time, so that they have no rate; mechanisms need a while")
        speedup = self.offered / bounds.static_load if self.speedup is None else self.speedup
        if not 0 < speedup < np.inf:
            raise UsageError(f"a speed-up of {speedup:g} is none; give a number above 0")
        lasts_s = min(demand.last_s / speedup, np.inf if self.duration_s is None else self.duration_s)
        period_s = _told(lasts_s / PERIODS) if self.period_s is None else self.period_s
        window_s = HELD * period_s
        holds = max(_LEAST_HELD, round(window_s / bounds.row_s))
        busy = bounds.rows * bounds.row_s / demand.last_s * speedup
        usual_overload = Overload(ShedFactor(self.thresholds.tau2, self.min_drop, self.drop_curve), holds, window_s)
        return Terms(
            channels=self.channels,
            pool=2 * self.channels if self.pool is None else self.pool,
            least=self._fewest(busy) if self.least is None else self.least,
            per_worker=self.per_worker,
            speedup=speedup,
            period_s=period_s,
            hold_up_s=_or(self.hold_up_s, HOLD_UP * period_s),
            hold_down_s=_or(self.hold_down_s, HOLD_DOWN * period_s),
            window_s=_or(self.window_s, WINDOW * period_s),
            rebuild_s=_or(self.rebuild_s, REBUILD * period_s),
            interval_s=_or(self.interval_s, period_s),
            thresholds=self.thresholds,
            overload=self.overload or usual_overload,
            lag_rows=_or(self.lag_rows, float(max(1, round(period_s / bounds.row_s)))),
            costs=self.costs,
            network=self.network,
            state=self.state,
            buffer_tuples=self.buffer_tuples,
            by_cost=self.by_cost,
            by_stream=self.by_stream,
            duration_s=self.duration_s,
            hash=self.hash,
            seed=self.seed,
        )

    def _fewest(self, busy: float) -> int:
        """Too few workers for the stream on average, so that there is something to scale, N/2 at most."""
        return max(1, min(self.channels // 2, int(SHORT * busy)))


def _or(said: float | None, usual: float) -> float:
    return usual if said is None else said


def _told(seconds: float) -> float:
    """To three digits, as it is told."""
    return float(f"{seconds:.3g}")
