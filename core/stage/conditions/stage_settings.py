"""Settings of a simulated stage as given, light enough for `--help`."""

from typing import ClassVar

from adapt.core.stage.conditions.names import DropCurve, Migrating, Producers, QueueingName, RestartName
from adapt.core.units.amounts import bits_of, bytes_of
from adapt.core.units.settings import ABOVE_0, SECONDS, Range, SettingError, Unit, knob, same, settings

UNCHANGED = "policy fixed without rebuild"
"""Where elastic changes no plan."""

STILL = ("policy none without standby or faults or split-hot", "router river", UNCHANGED)
"""Where no state moves."""

BITS = Unit(bits_of)
SIZE = Unit(lambda text: round(bytes_of(text)), lambda value: f"{value}B")

_FLINK, _SPARK = (QueueingName.FLINK,), (QueueingName.SPARK,)
_CHECKPOINTS = "engine:checkpoint-interval"
_AT_LEAST_0 = Range(0)


@settings("engine", head="engine")
class EngineSettings:
    """Whose queues a stage has."""

    engine: QueueingName | None = knob(
        "Engine whose queues the stage has (default: flux). A buffer for all workers (flux), bounded channels and"
        " checkpoints (flink), a log per partition (kafka), or micro-batches (spark). The default of compare is the"
        " trace's engine.",
        default=None,
    )
    fetch_rows: int = knob(  # max.poll.records
        "Rows that a worker takes from one log before the next (default: 500).",
        "ROWS",
        default=500,
        range=Range(1),
        of=(QueueingName.KAFKA,),
    )
    checkpoint_s: float | None = knob(
        "Time between checkpoints (default: none).",
        "60s",
        default=None,
        unit=SECONDS,
        typed="checkpoint-interval",
        range=ABOVE_0,
        of=_FLINK,
    )
    checkpoint_pause_s: float = knob(
        "How long a worker stops for its part of a checkpoint (default: 0s).",
        "10ms",
        default=0.0,
        unit=SECONDS,
        range=_AT_LEAST_0,
        of=_FLINK,
        needs=_CHECKPOINTS,
    )
    unaligned: bool = knob(
        "Unaligned checkpoints, whose barriers stop no channel.", default=False, of=_FLINK, needs=_CHECKPOINTS
    )
    trigger_s: float = knob(
        "Time between micro-batches (default: the next starts when one ends).",
        "10s",
        default=0.0,
        unit=SECONDS,
        typed="batch-interval",
        range=_AT_LEAST_0,
        of=_SPARK,
    )
    batch_overhead_s: float = knob(  # Spark's guide states latencies from 100 ms
        "Time to plan and commit a micro-batch (default: 100ms).",
        "100ms",
        default=0.1,
        unit=SECONDS,
        range=_AT_LEAST_0,
        of=_SPARK,
    )
    batch_rows: int = knob(  # maxOffsetsPerTrigger
        "Most rows of a micro-batch (default: 1,048,576).", "ROWS", default=2**20, range=Range(1), of=_SPARK
    )


@settings("migrate", head="migrate")
class MigrationSettings:
    """How partitions migrate in a rescale."""

    migrate: Migrating | None = knob(
        "How partitions move in a rescale. Live: all at once, batched, one by one, hottest first, or those with rows"
        " first (demand); or by a restart (default: all, or as the engine of a published policy).",
        default=None,
    )
    batch: int = knob(
        "Partitions per batch.",
        "PARTITIONS",
        default=16,
        range=Range(1),
        of=(Migrating.BATCHED, Migrating.HOTTEST),
    )
    restart: RestartName | None = knob(
        "What a restart costs (default: kafka-eager with --engine kafka, else flink-savepoint).",
        default=None,
        of=(Migrating.RESTART,),
    )
    restart_time_s: float | None = knob(
        "Time of a restart, besides that to save and restore state (default: by restart). It is 120s for"
        " flink-savepoint, 10s for flink-adaptive, 3s for kafka.",
        "10s",
        default=None,
        unit=SECONDS,
        range=_AT_LEAST_0,
        of=(Migrating.RESTART,),
    )


@settings("migrate", head="migrate", unless=UNCHANGED)
class RescaleSettings(MigrationSettings):
    """How partitions migrate in a rescale, and how soon workers start."""

    startup_time_s: float | None = knob(
        "Worker start-up time (default: 0s).",
        "10s",
        default=None,
        unit=SECONDS,
        range=_AT_LEAST_0,
        unless="policy fixed",
    )


@settings("join", head="join", unless=("stages", "state"))
class JoinSettings:
    """The windowed join of two streams."""

    join: str | None = knob(
        "Join rows with equal keys and different values in COLUMN, which has two values.", "COLUMN", default=None
    )
    window_s: float | None = knob(
        "How far apart matching rows may be, in trace time. With --shed 5000, workers keep rows that long.",
        "10s",
        default=None,
        unit=SECONDS,
        range=ABOVE_0,
        needs="join",
    )
    match_s: float = knob(
        "CPU time per match, in addition to that of the row (default: 1us).",
        "1us",
        default=1e-6,
        unit=SECONDS,
        typed="match-time",
        range=_AT_LEAST_0,
        needs="join",
    )
    split_hot: bool = knob(
        "Deal one side of hot keys over several workers, and send the other to all; copies count as rows.",
        default=False,
        needs="join",
    )

    def __post_init__(self) -> None:
        if self.join is not None and self.window_s is None:
            raise SettingError(JoinSettings, f"{{join}} needs a window, such as {self.join}:window=10s")


@settings("disk", help="Bandwidth and seek times of the disks to which state spills.", needs="memory")
class DiskSettings:
    """The disks to which state spills."""

    bandwidth: list[str] | None = knob(
        "Disk bandwidth per worker (default: 160Mbps). Repeatable; 0:3=80Mbps is for some workers.",
        "160Mbps|3=80Mbps",
        default=None,
    )
    seek_s: float = knob(
        "Mean disk seek time, before every access.", "5ms", default=5e-3, unit=SECONDS, range=_AT_LEAST_0
    )
    quantum_s: float = knob(
        "Time for input before a worker reads its next spilled partition.",
        "200ms",
        default=0.2,
        unit=SECONDS,
        range=ABOVE_0,
    )


@settings("shed", head="shed", unless="stages")
class BufferSettings:
    """What a worker of a stage buffers."""

    READ: ClassVar[tuple[int, ...]] = (1, 2)
    """The thresholds that are read."""

    shed: str | None = knob(
        "Buffer per worker, such as 5000@100ms. The drop probability rises with occupancy. Off by default.",
        "ROWS@TIME",
        default=None,
    )
    tau: str = knob(
        "Occupancy thresholds, as ascending ratios: the busiest worker starts at T1, and drops rows above T2.",
        "T1,T2",
        default="0.1,0.4,0.8,0.9",
        needs="shed",
    )


@settings("shed", head="shed", unless="stages")
class SheddingSettings(BufferSettings):
    """What a worker of a stage buffers, and what it drops."""

    READ: ClassVar[tuple[int, ...]] = (2,)

    tau: str = same(BufferSettings, "tau", help="Occupancy above which a worker drops rows.", placeholder="T2")
    min_drop: float = knob(
        "Drop probability at the threshold.", "RATIO", default=0.0, range=Range(0, at_most=1), needs="shed"
    )
    drop_curve: DropCurve = knob("Shape of the drop-probability curve.", default=DropCurve.LINEAR, needs="shed")


@settings("shed", head="shed", unless="stages")
class ScalingBuffer(SheddingSettings):
    """Buffer of a worker, with all thresholds of scaling."""

    READ: ClassVar[tuple[int, ...]] = (0, 1, 2, 3)

    tau: str = same(
        BufferSettings,
        "tau",
        help="Occupancy thresholds, as ascending ratios. A worker drops rows above T2; the others are for scaling.",
        placeholder="T0,T1,T2,T3",
        needs="policy thresholds|all or shed",
    )


@settings("shed", head="shed", unless="stages")
class ComparedBuffer(ScalingBuffer):
    """Buffer of the scenarios that shed load."""

    tau: str = same(
        ScalingBuffer,
        "tau",
        help="Occupancy thresholds, as ascending ratios: those of `replay elastic`.",
        needs=(),
    )
    min_drop: float = same(SheddingSettings, "min_drop", needs=())
    drop_curve: DropCurve = same(SheddingSettings, "drop_curve", needs=())


@settings("network", help="Latency and bandwidth between workers, and what a tuple of state takes.")
class NetworkSettings:
    """The network between producers and workers."""

    latency_s: float | None = knob(
        "One-way network latency (default: 70us).", "70us", default=None, unit=SECONDS, range=_AT_LEAST_0
    )
    connection_buffer: str | None = knob(
        "Rows that a connection buffers (default: 24; for flink 2 network buffers). With 2x12 they are two packets of"
        " 12, each free again once it is empty.",
        "ROWS|2x12",
        default=None,
    )
    bandwidth: list[str] | None = knob(
        "Bandwidth of a worker for the rows it sends (default: unlimited). Repeatable; 0:3=10Mbps is for some workers.",
        "1Gbps|3=10Mbps",
        default=None,
    )
    state_bandwidth: list[str] | None = knob(
        "Bandwidth for the state of one partition (default: 250Mbps). Repeatable; 0:3=10Mbps is for what some workers"
        " send.",
        "250Mbps|3=10Mbps",
        default=None,
        unless=STILL,
    )
    state_bandwidth_total: float | None = knob(
        "Bandwidth for all state transfers together (default: 500Mbps).",
        "500Mbps",
        default=None,
        unit=BITS,
        unless=STILL,
    )
    tuple_bytes: int = knob(
        "Size of a tuple of state.", "80B", default=80, unit=SIZE, typed="tuple-size", range=Range(1)
    )


@settings("producers", head="by")
class ProducerSettings:
    """Who produces rows, and how."""

    by: Producers | None = knob(
        "Assign rows to producers by row or by stream (default: by stream, if the trace has streams).", default=None
    )
    buffer: int | None = knob("Rows that a producer buffers (default: 2048).", "ROWS", default=None)


@settings("producers", head="by")
class EngineProducers(ProducerSettings):
    """Producers for an engine's queues."""

    buffer: int | None = same(
        ProducerSettings,
        "buffer",
        help="Rows that a producer buffers (default: 2048, in compare 240; with --engine flink 8 network buffers, and 2"
        " per worker).",
        unless=("router exchange|river", "engine kafka|spark"),
    )


@settings()
class Sampling:
    """How long a stage is simulated, and from which seed."""

    duration_s: float | None = knob(
        "Stop at this simulated time (default: at the end of the trace).",
        "60s",
        default=None,
        unit=SECONDS,
        range=ABOVE_0,
    )
    seed: int = knob("Random seed.", "S", default=0, range=Range(0, at_most=2**63 - 1))


TROUBLE = "Slow and failing workers"
"""The heading over disturbances and limits of workers."""


@settings(panel=TROUBLE)
class TroubleSettings:
    """External load, slowdowns and memory of workers, by schedules as text."""

    load: list[str] | None = knob(
        "Another process takes 57% of a worker's CPU. Repeatable; workers: 3, 0:7, 1,4 or all;"
        " 3@5s-60s:100us/50us sets its burst and sleep.",
        "3@5s-60s",
        default=None,
    )
    slow: list[str] | None = knob(
        "Slow a worker down to a percentage of its speed; 0% pauses it; repeatable.", "3@5s-60s:50%", default=None
    )
    memory: list[str] | None = knob(
        "Memory per worker for state; the rest spills to disk (default: unlimited). Repeatable; 0@5s:512MB changes"
        " worker 0 at 5 s.",
        "1GB|0@5s:512MB",
        default=None,
    )
