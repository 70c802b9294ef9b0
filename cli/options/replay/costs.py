"""Options of the CPU and network costs of a stage."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from adapt.cli.options.amounts import amount_of, bits, bits_of_workers, seconds
from adapt.cli.options.groups import option, setting
from adapt.cli.terminal.output import narrate
from adapt.core.errors import UsageError
from adapt.core.units.amounts import bytes_of

if TYPE_CHECKING:
    from adapt.core.stage.conditions.service_times import Service
    from adapt.core.stage.conditions.settings import Costs, Network
    from adapt.core.stage.input.row_costs import RowCosts
    from adapt.traces.store.trace import Trace

DEFAULT_CONNECTION = 24
"""Rows that a connection buffers, as in Flux: two packets of 12."""

NETWORK_PANEL = "Network and disk"

SERVICE = "45us"
SERVICE_HELP = "CPU time per row, or its distribution"
ASSUMED = (
    "service times: only their mean, {time}, is known, so they are drawn from a lognormal distribution with a"
    " coefficient of variation of 1; state yours with --service-time"
)


@dataclass(frozen=True, slots=True)
class CostOptions:
    """What a row and a tuple of state cost."""

    PANEL: ClassVar[str] = "Costs"
    DEFAULT_SERVICE: ClassVar[str] = "45us"
    service_time: Annotated[
        str | None, option(f"{SERVICE_HELP} (default: the trace's cost, else 45us).", SERVICE, shown=False)
    ] = None
    produce_time: str = setting("0.5us", "CPU time to produce a row.", "0.5us")
    marshal_time: str = setting("0.2us", "CPU time to serialize or deserialize a tuple of state.", "0.2us")
    tuple_size: str = setting("80B", "Size of a tuple of state.", "80B")

    def costs(self) -> "Costs":
        """The costs in seconds and bytes."""
        from adapt.core.stage.conditions.settings import Costs
        from adapt.traces.replay.files.service_times import measured

        service = measured(self._service())
        return Costs(
            service_s=seconds("--service-time", self.DEFAULT_SERVICE) if service.mean_s is None else service.mean_s,
            service_sd_s=service.sd_s or 0.0,
            produce_s=seconds("--produce-time", self.produce_time),
            marshal_s=seconds("--marshal-time", self.marshal_time),
            tuple_bytes=round(amount_of("--tuple-size", self.tuple_size, bytes_of)),
            spread=None if service.sd_s is not None else service.spread,
        )

    def row_costs(self, trace: "Trace", seed: int) -> "RowCosts | None":
        """The CPU time of each row; None where service times are drawn.

        Args:
            seed: Random seed of the spread around a row's own mean.
        """
        from adapt.core.stage.input.keyed_rows import COST
        from adapt.core.stage.input.row_costs import RowCosts
        from adapt.traces.replay.files.service_times import row_costs

        if self.service_time is None:
            return RowCosts(COST) if COST in trace.columns else None
        return row_costs(self._service(), trace, seed)

    def say_what_is_assumed(self, trace: "Trace") -> None:
        """Say so where only the mean of the service times is known."""
        spread = self._service().spread
        if not self.by_cost(trace) and spread is not None and spread.assumed:
            narrate(ASSUMED.format(time=self.service_time or self.DEFAULT_SERVICE))

    def by_cost(self, trace: "Trace") -> bool:
        """Whether rows take the CPU time of the trace's cost column."""
        from adapt.core.stage.input.keyed_rows import COST

        return COST in trace.columns and (self.service_time is None or self._service().column == COST)

    def _service(self) -> "Service":
        """The stated service times, or the default."""
        from adapt.core.stage.conditions.service_times import Service

        return amount_of("--service-time", self.service_time or self.DEFAULT_SERVICE, Service.parse)


@dataclass(frozen=True, slots=True)
class NetworkOptions:
    """The network between producers and workers."""

    PANEL: ClassVar[str] = NETWORK_PANEL
    network_latency: str = setting("70us", "One-way network latency.", "70us")
    connection_buffer: str | None = setting(
        None,
        "Rows that a connection buffers (default: 24; for flink 2 network buffers). With 2x12 they are two packets of"
        " 12, each free again once it is empty.",
        "ROWS|2x12",
    )
    network_bandwidth: list[str] | None = setting(
        None,
        "Bandwidth of a worker for the rows it sends (default: unlimited). Repeatable; 0:3=10Mbps is for some workers.",
        "1Gbps|3=10Mbps",
    )
    state_bandwidth: list[str] | None = setting(
        None,
        "Bandwidth for the state of one partition (default: 250Mbps). Repeatable; 0:3=10Mbps is for what some workers"
        " send.",
        "250Mbps|3=10Mbps",
    )
    state_bandwidth_total: str = setting("500Mbps", "Bandwidth for all state transfers together.", "500Mbps")

    def network(self, workers: int | None = None, connection: int = DEFAULT_CONNECTION) -> "Network":
        """The network in seconds and bits per second.

        Args:
            workers: Number of workers; None, unknown, so that options are for all of them.
            connection: Rows that a connection buffers, unless given.
        """
        from adapt.core.stage.conditions.settings import Network

        packets, times, rows = (self.connection_buffer or str(connection)).rpartition("x")
        if not rows.isdecimal() or not (packets.isdecimal() or not times):
            raise UsageError(
                f"--connection-buffer takes a number of rows, or packets and their rows such as 2x12 (got"
                f" {self.connection_buffer!r})"
            )
        return Network(
            latency_s=seconds("--network-latency", self.network_latency),
            connection_tuples=int(packets or 1) * int(rows),
            packet_tuples=int(rows) if packets else 1,
            link_bits_per_s=bits_of_workers("--network-bandwidth", self.network_bandwidth or (), None, workers),
            flow_bits_per_s=bits_of_workers("--state-bandwidth", self.state_bandwidth or (), 250e6, workers),
            state_bits_per_s=bits("--state-bandwidth-total", self.state_bandwidth_total),
        )
