"""Options of what rows and state cost on a simulated stage: CPU and network."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from adapt.cli.options.amounts import above_0_or_none, bits, seconds

if TYPE_CHECKING:
    from adapt.core.stage.conditions.settings import Costs, Network

COSTS_PANEL = "What things cost"
NETWORK_PANEL = "Network and disk"

ServiceTimeOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--service-time",
        metavar="45us",
        help="CPU to process a row, the mean of what is drawn.",
        rich_help_panel=COSTS_PANEL,
    ),
]
ServiceSdOption: TypeAlias = Annotated[
    str, typer.Option("--service-sd", metavar="3us", help="Its deviation.", rich_help_panel=COSTS_PANEL)
]


@dataclass(frozen=True, slots=True)
class CostOptions:
    """What a row and a tuple of state cost."""

    service_time: ServiceTimeOption = "45us"
    service_sd: ServiceSdOption = "3us"
    cost_unit: Annotated[
        str | None,
        typer.Option(
            "--cost-unit",
            metavar="1us",
            help="CPU for 1 of a row's cost in the trace; nothing is drawn then.",
            rich_help_panel=COSTS_PANEL,
        ),
    ] = None
    produce_time: Annotated[
        str,
        typer.Option("--produce-time", metavar="0.5us", help="CPU to make a row.", rich_help_panel=COSTS_PANEL),
    ] = "0.5us"
    marshal_time: Annotated[
        str,
        typer.Option(
            "--marshal-time",
            metavar="0.2us",
            help="CPU to take out or put in a tuple of state.",
            rich_help_panel=COSTS_PANEL,
        ),
    ] = "0.2us"
    tuple_bytes: Annotated[
        int,
        typer.Option("--tuple-bytes", metavar="B", help="Size of a tuple of state.", rich_help_panel=COSTS_PANEL),
    ] = 80

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

    latency: Annotated[
        str,
        typer.Option(
            "--latency", metavar="70us", help="A packet is on its way so long.", rich_help_panel=NETWORK_PANEL
        ),
    ] = "70us"
    connection: Annotated[
        int,
        typer.Option("--connection", metavar="N", help="Rows that a connection holds.", rich_help_panel=NETWORK_PANEL),
    ] = 24
    state_bandwidth: Annotated[
        str,
        typer.Option(
            "--state-bandwidth", metavar="250Mbps", help="For one partition on its way.", rich_help_panel=NETWORK_PANEL
        ),
    ] = "250Mbps"
    state_bandwidth_all: Annotated[
        str,
        typer.Option(
            "--state-bandwidth-all",
            metavar="500Mbps",
            help="For all of them together.",
            rich_help_panel=NETWORK_PANEL,
        ),
    ] = "500Mbps"

    def network(self) -> "Network":
        """The network in seconds and bits per second."""
        from adapt.core.stage.conditions.settings import Network

        return Network(
            latency_s=seconds("--latency", self.latency),
            connection_tuples=self.connection,
            flow_bits_per_s=bits("--state-bandwidth", self.state_bandwidth),
            state_bits_per_s=bits("--state-bandwidth-all", self.state_bandwidth_all),
        )
