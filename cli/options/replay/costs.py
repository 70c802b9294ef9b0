"""Options of what rows and state cost on a simulated stage: CPU and network."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, TypeAlias

from adapt.cli.options.amounts import above_0_or_none, bits, seconds
from adapt.cli.options.groups import option, setting

if TYPE_CHECKING:
    from adapt.core.stage.conditions.settings import Costs, Network

NETWORK_PANEL = "Network and disk"

ServiceTimeOption: TypeAlias = Annotated[str, option("CPU to process a row, the mean of what is drawn.", "45us")]
ServiceSdOption: TypeAlias = Annotated[str, option("Its deviation.", "3us")]


@dataclass(frozen=True, slots=True)
class CostOptions:
    """What a row and a tuple of state cost."""

    PANEL: ClassVar[str] = "What things cost"
    service_time: ServiceTimeOption = "45us"
    service_sd: ServiceSdOption = "3us"
    cost_unit: str | None = setting(None, "CPU for 1 of a row's cost in the trace; nothing is drawn then.", "1us")
    produce_time: str = setting("0.5us", "CPU to make a row.", "0.5us")
    marshal_time: str = setting("0.2us", "CPU to take out or put in a tuple of state.", "0.2us")
    tuple_bytes: int = setting(80, "Size of a tuple of state.", "B")

    def costs(self) -> "Costs":
        """The costs in seconds and bytes."""
        from adapt.core.stage.conditions.settings import Costs

        return Costs(
            service_s=seconds("--service-time", self.service_time),
            service_sd_s=seconds("--service-sd", self.service_sd),
            produce_s=seconds("--produce-time", self.produce_time),
            marshal_s=seconds("--marshal-time", self.marshal_time),
            tuple_bytes=self.tuple_bytes,
        )

    @property
    def cost_unit_s(self) -> float | None:
        """Seconds for 1 of a row's cost, if rows cost what the trace says."""
        return above_0_or_none("--cost-unit", self.cost_unit)


@dataclass(frozen=True, slots=True)
class NetworkOptions:
    """What connects producers, sites and the states that move."""

    PANEL: ClassVar[str] = NETWORK_PANEL
    latency: str = setting("70us", "A packet is on its way so long.", "70us")
    connection: int = setting(24, "Rows that a connection holds.", "N")
    state_bandwidth: str = setting("250Mbps", "For one partition on its way.", "250Mbps")
    state_bandwidth_all: str = setting("500Mbps", "For all of them together.", "500Mbps")

    def network(self) -> "Network":
        """The network in seconds and bits per second."""
        from adapt.core.stage.conditions.settings import Network

        return Network(
            latency_s=seconds("--latency", self.latency),
            connection_tuples=self.connection,
            flow_bits_per_s=bits("--state-bandwidth", self.state_bandwidth),
            state_bits_per_s=bits("--state-bandwidth-all", self.state_bandwidth_all),
        )
