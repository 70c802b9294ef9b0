"""Options of `adapt replay elastic`: when workers come and go, and which worker has what."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from adapt.cli.options.amounts import above_0, seconds
from adapt.cli.options.common import HashOption
from adapt.core.elastic.policies.names import Alignment, ScalingPolicy, Signal
from adapt.core.errors import UsageError
from adapt.core.keys.names import HashName
from adapt.core.partitioning.schemes.names import DEFAULT_CONSTRUCTION, Construction, Scheme
from adapt.core.stage.conditions.names import Migrating

if TYPE_CHECKING:
    from adapt.core.elastic.policies.scaler import Rebuild
    from adapt.core.elastic.replay.replay import Elastic
    from adapt.core.partitioning.build import Recipe
    from adapt.core.stage.conditions.shed_factor import Thresholds
    from adapt.core.stage.input.mini_partitions import MiniPartitions

SCALING_PANEL = "When workers come and go"
PLAN_PANEL = "Which worker has what"


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """Which worker has which partitions, and how they move."""

    rebuild: Annotated[
        str | None,
        typer.Option(
            "--rebuild",
            metavar="60s|1.5|60s,1.5",
            help="Build the plan anew every so often, when the imbalance is above a limit, or both; never if left out.",
            rich_help_panel=PLAN_PANEL,
        ),
    ] = None
    partitions: Annotated[
        int,
        typer.Option(
            "--partitions",
            metavar="K",
            help="Partitions for each worker of the pool; each is placed and moves as a whole.",
            rich_help_panel=PLAN_PANEL,
        ),
    ] = 64
    own_keys: Annotated[
        int,
        typer.Option(
            "--own-keys",
            metavar="H",
            help="The heaviest keys of the trace have a partition each.",
            rich_help_panel=PLAN_PANEL,
        ),
    ] = 0
    scheme: Annotated[
        Scheme, typer.Option("--scheme", help="How plans place partitions.", rich_help_panel=PLAN_PANEL)
    ] = Scheme.HYBRID
    construction: Annotated[
        Construction,
        typer.Option("--construction", help="How they place the heavy ones.", rich_help_panel=PLAN_PANEL),
    ] = DEFAULT_CONSTRUCTION
    ranges: Annotated[
        bool,
        typer.Option(
            "--ranges",
            help="Without a plan: each worker has a range of partitions, as consumers of Kafka have.",
            rich_help_panel=PLAN_PANEL,
        ),
    ] = False
    window: Annotated[
        str,
        typer.Option(
            "--window", metavar="30s", help="Plans are built from the rows of so long.", rich_help_panel=PLAN_PANEL
        ),
    ] = "30s"
    migrate: Annotated[
        Migrating, typer.Option("--migrate", help="In which portions partitions move.", rich_help_panel=PLAN_PANEL)
    ] = Migrating.ALL
    batch: Annotated[
        int, typer.Option("--batch", metavar="B", help="Partitions of a portion.", rich_help_panel=PLAN_PANEL)
    ] = 16
    hash: HashOption = HashName.MURMUR3

    def placed(self, pool: int) -> "MiniPartitions":
        """The partitions of a pool of workers."""
        from adapt.core.stage.conditions.settings import check_sites
        from adapt.core.stage.input.mini_partitions import MiniPartitions

        check_sites(pool)
        return MiniPartitions(pool, self.partitions, self.hash)

    def recipe(self) -> "Recipe | None":
        """How plans are built; None, workers have ranges of partitions."""
        from adapt.core.partitioning.build import Recipe

        if self.ranges and self.own_keys:
            raise UsageError("ranges know nothing of heavy keys; leave --ranges or --own-keys out")
        return None if self.ranges else Recipe(self.scheme, self.construction, hash=self.hash)

    def rebuilding(self, rest_s: float) -> "Rebuild":
        """When the plan is built anew: a time, a limit of imbalance, or both."""
        from adapt.core.elastic.policies.scaler import Rebuild

        every_s: float | None = None
        limit: float | None = None
        for part in [] if self.rebuild is None else map(str.strip, self.rebuild.split(",")):
            try:
                limit = float(part)
            except ValueError:
                every_s = above_0("--rebuild", part)
        return Rebuild(every_s, limit, rest_s)


@dataclass(frozen=True, slots=True)
class ScalingOptions:
    """How many workers there are, and when that changes."""

    pool: Annotated[int, typer.Option("--pool", metavar="N", help="All workers there are.")] = 16
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            metavar="M",
            help="Workers at the start; there are never fewer. What the mean rate asks for if left out.",
            show_default=False,
        ),
    ] = None
    policy: Annotated[
        list[ScalingPolicy] | None,
        typer.Option(
            "--policy", help="What scales, beside the case of fixed workers; repeatable; thresholds if left out."
        ),
    ] = None
    period: Annotated[
        str,
        typer.Option(
            "--period", metavar="1s", help="How often a policy looks at the workers.", rich_help_panel=SCALING_PANEL
        ),
    ] = "1s"
    sweep: Annotated[
        str | None,
        typer.Option(
            "--sweep",
            metavar="tau1=0.2,0.4",
            help="Run all cases with each tau1, and show false shedding against idle workers and state that moves.",
            rich_help_panel=SCALING_PANEL,
        ),
    ] = None
    signal: Annotated[
        Signal,
        typer.Option(
            "--signal",
            help="What thresholds are compared with: what workers hold (or work), or what is offered to them.",
            rich_help_panel=SCALING_PANEL,
        ),
    ] = Signal.HELD
    hold_up: Annotated[
        str,
        typer.Option(
            "--hold-up", metavar="5s", help="More workers must be wanted so long.", rich_help_panel=SCALING_PANEL
        ),
    ] = "5s"
    hold_down: Annotated[
        str,
        typer.Option("--hold-down", metavar="30s", help="Fewer must be, so long.", rich_help_panel=SCALING_PANEL),
    ] = "30s"
    start: Annotated[
        str,
        typer.Option("--start", metavar="10s", help="A worker takes so long to start.", rich_help_panel=SCALING_PANEL),
    ] = "0s"
    utilization: Annotated[
        float,
        typer.Option(
            "--utilization",
            metavar="U",
            help="Share of the time that workers are to work, for ds2.",
            rich_help_panel=SCALING_PANEL,
        ),
    ] = 0.8
    lag: Annotated[
        float,
        typer.Option(
            "--lag", metavar="ROWS", help="Rows that may wait for a worker, for lag.", rich_help_panel=SCALING_PANEL
        ),
    ] = 1000.0
    alignment: Annotated[
        Alignment,
        typer.Option(
            "--alignment",
            help="Which numbers of workers there may be: any, or those that divide the partitions.",
            rich_help_panel=SCALING_PANEL,
        ),
    ] = Alignment.ANY

    def elastic(self, plans: PlanOptions, thresholds: "Thresholds") -> "Elastic":
        """What scales the stage."""
        from adapt.core.elastic.policies.placements import Counting
        from adapt.core.elastic.policies.registry import Chosen
        from adapt.core.elastic.policies.scaler import Patience
        from adapt.core.elastic.replay.replay import Elastic
        from adapt.core.stage.control.workers import Migration

        hold_up_s = above_0("--hold-up", self.hold_up)
        return Elastic(
            pool=self.pool,
            least=self.workers,
            policies=tuple(self.policy or [ScalingPolicy.THRESHOLDS]),
            chosen=Chosen(thresholds, self.signal, None, self.utilization, self.lag),
            patience=Patience(hold_up_s, above_0("--hold-down", self.hold_down)),
            rebuild=plans.rebuilding(hold_up_s),
            alignment=self.alignment,
            recipe=plans.recipe(),
            counting=Counting(above_0("--window", plans.window)),
            period_s=above_0("--period", self.period),
            migration=Migration(plans.migrate, plans.batch),
            start_s=seconds("--start", self.start),
            sweep=self._swept(),
        )

    def _swept(self) -> tuple[float, ...]:
        """The values of tau1 to sweep."""
        if self.sweep is None:
            return ()
        name, _, values = self.sweep.partition("=")
        try:
            if name.strip() != "tau1":
                raise ValueError(name)
            return tuple(float(value) for value in values.split(","))
        except ValueError:
            raise UsageError(
                f"--sweep {self.sweep!r} is not values of tau1 with commas, such as tau1=0.2,0.4,0.6"
            ) from None
