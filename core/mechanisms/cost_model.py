"""Settings that all scenarios share, with defaults derived from the stream."""

from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np

from adapt.core.elastic.policies.names import COOLDOWN, SCALE_OUT_DELAY, WINDOW
from adapt.core.elastic.policies.placements import LEAST_S
from adapt.core.elastic.policies.scaler import Patience, Rebuild, check_pool
from adapt.core.errors import UsageError
from adapt.core.mechanisms.scenarios import Scenario
from adapt.core.stage.conditions.names import DropCurve
from adapt.core.stage.conditions.settings import (
    Costs,
    Network,
    Queueing,
    StageSettings,
    check_buffer,
    check_workers,
    even_groups,
)
from adapt.core.stage.conditions.shed_factor import Overload, ShedFactor, Thresholds
from adapt.core.stage.control.workers import Migration
from adapt.core.stage.input.mini_partitions import MiniPartitions
from adapt.core.stage.input.offered_load import Demand, bounds_of
from adapt.core.stage.input.row_costs import RowCosts
from adapt.core.stage.input.speed import OFFERED, Speed, period_of
from adapt.core.stage.outcome import costs_told
from adapt.core.stream import Weight

REBUILD, RETENTION = 10, 5
"""Default times, in periods; the retention is that of buffers."""

SHORT = 0.75
"""Workers at the start of scenarios that scale, over those that the rows keep busy."""

_LEAST_CAPACITY = 10


@dataclass(frozen=True, slots=True)
class Terms:
    """Settings that all scenarios share: one cost model, one speed-up, one seed.

    Attributes:
        queueing: Whose queues the stage has.
        migration: How partitions migrate in scenarios that scale and do not say.
    """

    channels: int  # N, the workers of scenarios that do not scale
    pool: int  # the maximum number of workers of scenarios that scale
    least: int  # M, the workers at the start of these
    per_worker: int  # partitions per channel
    speedup: float  # trace seconds per second of the stage
    period_s: float  # how often controllers run and partial results of split keys are merged
    scale_out_delay_s: float  # how long more workers must be needed before scaling out
    cooldown_s: float  # how long fewer workers must be enough before scaling in
    window_s: float  # how much recent history a plan is built from
    rebuild_s: float  # how often plans are rebuilt
    interval_s: float  # length of a measurement interval
    thresholds: Thresholds  # tau0 to tau3
    overload: Overload  # load shedding of scenarios that shed
    lag_rows: float  # lag threshold of a worker, in rows
    costs: Costs  # CPU times and tuple size
    network: Network  # latency, connections, bandwidth
    state: int | Weight = Weight.COUNT  # tuples of state per partition, or the column of the trace that gives the state
    buffer_tuples: int = 240  # buffer of a producer, in rows
    row_costs: RowCosts | None = None  # the CPU time of each row; None, service times are drawn
    by_stream: bool = False  # whether each stream has one producer
    duration_s: float | None = None  # when to stop; None, when all rows are processed
    seed: int = 0  # random seed
    queueing: Queueing = Queueing()  # noqa: RUF009 - frozen
    migration: Migration = Migration()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        check_workers(self.channels)
        check_pool(self.least, self.pool)
        Patience(self.scale_out_delay_s, self.cooldown_s)
        Rebuild(self.rebuild_s)
        if not 0 < self.speedup < np.inf:
            raise UsageError(f"the speed-up must be above 0 (got {self.speedup:g})")
        check_buffer(self.buffer_tuples)

    def as_data(self) -> dict[str, Any]:
        """The settings as JSON data."""
        told = asdict(replace(self, row_costs=None, costs=replace(self.costs, spread=None)))
        del told["row_costs"]
        return told | {"costs": costs_told(self.costs, self.row_costs)}

    def workers_of(self, scenario: Scenario) -> int:
        """The maximum number of workers: the channels, or the pool."""
        if scenario.elastic is None:
            return self.channels
        return self.pool if scenario.pool is None else scenario.pool

    def least_of(self, scenario: Scenario) -> int:
        """The number of workers at the start."""
        if scenario.elastic is None:
            return self.channels
        return self.least if scenario.workers is None else scenario.workers

    def at(self, speedup: float) -> "Terms":
        """The same settings at another speed-up; times of the stage stay."""
        return replace(self, speedup=speedup)

    def with_channels(self, channels: int) -> "Terms":
        """The same settings with other channels; pool and first workers in proportion."""
        ratio = channels / self.channels
        pool = max(2, round(self.pool * ratio))
        return replace(self, channels=channels, pool=pool, least=min(pool, max(1, round(self.least * ratio))))


@dataclass(frozen=True, slots=True)
class Wanted:
    """Given settings of a comparison; the rest follows from the stream.

    Fields that are not listed are those of `Terms`.

    Attributes:
        speed: How fast the stream arrives; an offered load is that of the busiest channel of static-uniform.
    """

    channels: int
    pool: int | None = None  # the maximum number of workers; None, twice the channels
    # M; None, three quarters of the workers that the rows keep busy, at most half the channels
    least: int | None = None
    per_worker: int = 64
    speed: Speed = Speed(offered=OFFERED)  # noqa: RUF009 - frozen
    thresholds: Thresholds = Thresholds()  # noqa: RUF009 - frozen
    overload: Overload | None = None  # load shedding; None, a buffer holds what a channel processes in five periods
    min_drop: float = 0.0  # B, without `overload`
    drop_curve: DropCurve = DropCurve.LINEAR  # shape of the drop-probability curve, without `overload`
    costs: Costs = field(default_factory=Costs)
    network: Network = field(default_factory=Network)
    state: int | Weight = Weight.COUNT
    buffer_tuples: int = 240
    row_costs: RowCosts | None = None
    by_stream: bool = False
    duration_s: float | None = None
    seed: int = 0
    queueing: Queueing = Queueing()  # noqa: RUF009 - frozen
    migration: Migration = Migration()  # noqa: RUF009 - frozen

    @property
    def placed(self) -> MiniPartitions:
        """The partitions of static-uniform."""
        check_workers(self.channels)
        return MiniPartitions(self.channels, self.per_worker)

    @property
    def uniform(self) -> StageSettings:
        """The stage of static-uniform."""
        partitions = self.channels * self.per_worker
        groups = even_groups(partitions, partitions)
        return StageSettings(self.channels, self.placed.owners, groups, costs=self.costs, network=self.network)

    def terms(self, demand: Demand) -> Terms:
        """Derive the settings for a stream.

        Args:
            demand: Offered load of the stream at its own speed, on the stage of static-uniform.
        """
        bounds = bounds_of(demand, self.uniform)
        if not bounds.static_load:
            raise UsageError(
                "all rows have the same timestamp, so the stream has no rate; a comparison needs a longer stream"
            )
        speedup = self.speed.speedup_at(bounds.static_load)
        lasts_s = min(demand.last_s / speedup, np.inf if self.duration_s is None else self.duration_s)
        period_s = period_of(lasts_s)
        retention_s = RETENTION * period_s
        capacity = max(_LEAST_CAPACITY, round(retention_s / bounds.row_s))
        busy = bounds.rows * bounds.row_s / demand.last_s * speedup
        usual_overload = Overload(
            ShedFactor(self.thresholds.tau2, self.min_drop, self.drop_curve), capacity, retention_s
        )
        known = {each.name for each in fields(Terms)}
        given = {each.name: getattr(self, each.name) for each in fields(self) if each.name in known}
        derived = {
            "pool": 2 * self.channels if self.pool is None else self.pool,
            "least": self._fewest(busy) if self.least is None else self.least,
            "interval_s": period_s,
            "overload": self.overload or usual_overload,
        }
        return Terms(
            **given | derived,
            speedup=speedup,
            period_s=period_s,
            scale_out_delay_s=SCALE_OUT_DELAY * period_s,
            cooldown_s=COOLDOWN * period_s,
            window_s=max(LEAST_S, WINDOW * period_s),
            rebuild_s=REBUILD * period_s,
            lag_rows=float(max(1, round(period_s / bounds.row_s))),
        )

    def _fewest(self, busy: float) -> int:
        """Too few workers for the average rate, so that scaling has to act; at most N/2."""
        return max(1, min(self.channels // 2, int(SHORT * busy)))
