"""Options of the CPU and network costs of a stage."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, TypeAlias

from adapt.cli.options.amounts import amount_of, bits, bits_of_workers, seconds
from adapt.cli.options.groups import option, setting
from adapt.core.errors import UsageError
from adapt.core.units.amounts import bytes_of

if TYPE_CHECKING:
    from adapt.core.stage.conditions.settings import Costs, Network
    from adapt.traces.store.trace import Trace

NETWORK_PANEL = "Network and disk"

ServiceSdOption: TypeAlias = Annotated[str, option("Standard deviation of the service time, where it is drawn.", "3us")]


@dataclass(frozen=True, slots=True)
class CostOptions:
    """What a row and a tuple of state cost."""

    PANEL: ClassVar[str] = "Costs"
    DEFAULT_SERVICE: ClassVar[str] = "45us"
    service_time: Annotated[
        str | None, option("CPU time per row (default: the trace's cost, else 45us).", "45us", shown=False)
    ] = None
    service_sd: ServiceSdOption = "3us"
    produce_time: str = setting("0.5us", "CPU time to produce a row.", "0.5us")
    marshal_time: str = setting("0.2us", "CPU time to serialize or deserialize a tuple of state.", "0.2us")
    tuple_size: str = setting("80B", "Size of a tuple of state.", "80B")

    def costs(self) -> "Costs":
        """The costs in seconds and bytes."""
        from adapt.core.stage.conditions.settings import Costs

        return Costs(
            service_s=seconds("--service-time", self.service_time or self.DEFAULT_SERVICE),
            service_sd_s=seconds("--service-sd", self.service_sd),
            produce_s=seconds("--produce-time", self.produce_time),
            marshal_s=seconds("--marshal-time", self.marshal_time),
            tuple_bytes=round(amount_of("--tuple-size", self.tuple_size, bytes_of)),
        )

    def by_cost(self, trace: "Trace") -> bool:
        """Whether rows take the CPU time of the trace's cost column."""
        return self.service_time is None and "cost_us" in trace.columns


@dataclass(frozen=True, slots=True)
class NetworkOptions:
    """The network between producers and workers."""

    PANEL: ClassVar[str] = NETWORK_PANEL
    network_latency: str = setting("70us", "One-way network latency.", "70us")
    connection_buffer: str = setting(
        "24",
        "Rows that a connection buffers; 2x12 is two packets of 12, each free again once it is empty.",
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

    def network(self, workers: int | None = None) -> "Network":
        """The network in seconds and bits per second.

        Args:
            workers: Number of workers; None, unknown, so that options are for all of them.
        """
        from adapt.core.stage.conditions.settings import Network

        packets, times, rows = self.connection_buffer.rpartition("x")
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
