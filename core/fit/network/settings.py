"""Settings of load shedding in a running network."""

from adapt.core.fit.network.names import BATCH, PRECOMPUTED, DropPlanner, Drops, Flow, Grid, RateSteps
from adapt.core.stage.conditions.names import DropCurve
from adapt.core.units.settings import ABOVE_0, BYTES, MICROSECONDS, PERCENT, SECONDS, Range, knob, settings

MAX_PLANS = 200_000
"""Default of the maximum plans per table."""

_OF_TABLES = f"planner {'|'.join(PRECOMPUTED)}"
_SHARE = Range(0, below=1)


@settings("network")
class SheddingSettings:
    """How often drop plans are made, for which rates, by what."""

    tick_us: int = knob("Planning interval.", "1s", default=1_000_000, unit=MICROSECONDS, range=ABOVE_0)
    planner: DropPlanner = DropPlanner.EXACT  # the drop planner
    epsilon: float = knob(
        "Score that precomputed plans may lose, as a share of the best; with d-fit only the grid of its tables.",
        "RATIO",
        default=0.05,
        range=Range(above=0, below=1),
        needs=_OF_TABLES,
    )
    headroom: float = knob("Share of every capacity that plans leave free.", "RATIO", default=0.05, range=_SHARE)
    lag_ticks: int = knob(
        "Age of the newest input rates that a plan knows.", "TICKS", default=1, typed="lag", range=Range(0)
    )
    smoothing: float = knob(
        "Weight of the newest rates in the moving average, up to 1 (no smoothing).",
        "RATIO",
        default=1.0,
        range=Range(above=0, at_most=1),
    )
    min_rate_change: float = knob(  # it is always lowered
        "Raise the share kept on an arc only by more than this part of it.", "RATIO", default=0.01, range=_SHARE
    )
    feedback: bool = knob("Correct the nodes' capacities by their measured utilization.", default=False)
    drops: Drops = knob(
        "Drop random tuples before an aggregate, or whole windows. With whole windows, every result emitted is exact.",
        default=Drops.RANDOM,
    )
    batch: int = knob(
        "Consecutive windows to keep or drop together.",
        "WINDOWS",
        default=BATCH,
        range=Range(1),
        needs="network:drops window",
    )


@settings()
class Execution:
    """How a network runs."""

    speedup: float = knob("Speed of the replay: seconds of the trace per second.", "RATIO", default=1.0, range=ABOVE_0)
    flow: Flow = knob("Simulate single tuples with queues, or a fluid.", default=Flow.TUPLES)
    seed: int = knob("Random seed.", "SEED", default=0, range=Range(0, at_most=2**63 - 1))
    cost_scale: float = knob(
        "Actual cost per tuple / cost in the network file.", "RATIO", default=1.0, typed="true-costs", range=ABOVE_0
    )


@settings("tables", help="How drop plans are precomputed as tables, and how large these are.")
class TableSettings:
    """Precomputed drop plans."""

    grid: Grid = knob(
        "How densely c-fit and d-fit sample input rates. A guaranteed grid never loses more than epsilon: where a"
        " table cannot promise that, c-fit plans exactly.",
        default=Grid.GUARANTEED,
        needs="planner c-fit|d-fit",
    )
    rate_steps: RateSteps = knob(
        "Space the input rates of c-fit and d-fit at equal distances, or at equal ratios.",
        default=RateSteps.FIXED,
        needs="planner c-fit|d-fit",
    )
    distance: float = knob(
        "Score error accepted in the tables that d-fit nodes exchange, to send fewer rows.",
        "RATIO",
        default=0.0,
        range=_SHARE,
        needs="planner d-fit",
    )
    table_bytes: int | None = knob(
        "Largest table that a d-fit node sends another. Rows that others represent go, with the least loss.",
        "30KiB",
        default=None,
        unit=BYTES,
        range=Range(1),
        needs="planner d-fit",
    )
    max_plans: int = knob(
        "Maximum plans per table. Epsilon is raised, and reported, until they suffice.",
        "PLANS",
        default=MAX_PLANS,
        range=Range(1),
        needs=_OF_TABLES,
    )


@settings("workload")
class KnownRates:
    """What precomputed plans know of the rates."""

    learn: float = knob(
        "Make the plans from the rates in this first part of the trace, and replay the rest.",
        "RATIO",
        default=0.0,
        range=_SHARE,
    )
    margin: float = knob(
        "Rates to cover, as a multiple of the highest known.",
        "RATIO",
        default=1.0,
        typed="rate-margin",
        range=ABOVE_0,
        needs=_OF_TABLES,
    )


@settings("observe", head="window")
class Observing:
    """How nodes estimate true costs and selectivities, and when plans follow."""

    window: int = knob(
        "Plan with costs and selectivities that nodes estimate over this window while they run. Default: plan with"
        " those of the network file.",
        "TICKS",
        range=Range(2),
    )
    important: float = knob(
        "Difference of an estimate from the value that plans use, above which they use it.",
        "PERCENT",
        default=0.2,
        unit=PERCENT,
        typed="important-change",
        range=Range(0),
    )


@settings("messages", help="Messages between nodes, or with a coordinator, take time (default: none).")
class Delivery:
    """How messages between nodes arrive, and what nodes make of them."""

    delay_s: float | None = knob(  # None: all are delivered before the trace starts, and later ones at once
        "Delay of messages. Rates and plans are exchanged from the start of the trace on; until then, nodes go on with"
        " what they know.",
        "2s",
        default=None,
        unit=SECONDS,
        range=Range(0),
    )
    trust_upstream: bool = knob(
        "Accept whatever other nodes send, as in the paper. Nodes are overloaded while tables are stale. By default,"
        " they drop the excess on arrival.",
        default=False,
        needs="planner d-fit|d-fit-cuts",
    )


AT_ONCE = Delivery()
"""Messages that take no time."""


@settings("queue", head="capacity_tuples", needs="flow tuples")
class NodeQueue:
    """What a node drops when its queue fills up."""

    capacity_tuples: int = knob(
        "Queue capacity of a node, which drops more the fuller it is. Default: unbounded.", "TUPLES", range=Range(1)
    )
    tau2: float = knob(
        "Share of the queue above which a node drops.", "RATIO", default=0.8, range=Range(above=0, below=1)
    )
    min_drop: float = knob("Drop probability at tau2.", "RATIO", default=0.0, range=Range(0, at_most=1))
    drop_curve: DropCurve = knob(
        "Shape of the drop-probability curve, which reaches 1 at a full queue.", default=DropCurve.LINEAR
    )
