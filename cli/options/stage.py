"""Options and readings that the commands on a simulated stage share, with `replay fit` those of the shed factor."""

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from adapt.core.errors import UsageError
from adapt.core.stage.conditions.names import SheddingForm

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapt.core.stage.conditions.settings import Network
    from adapt.core.stage.conditions.shed_factor import Overload, Thresholds
    from adapt.core.stream import Weight
    from adapt.traces.store.trace import Trace

COSTS_PANEL = "What things cost"
NETWORK_PANEL = "Network and disk"
TROUBLE_PANEL = "What happens to sites"
SHED_PANEL = "What a site or node does by itself when it fills up"

SpeedupOption: TypeAlias = Annotated[
    float, typer.Option("--speedup", metavar="X", help="Trace seconds that pass in a second of the stage.")
]
DurationOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--duration", metavar="60s", help="Stop at this time of the stage; at the end of the trace if left out."
    ),
]
IntervalOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--interval", metavar="1s", help="How often to take down what the stage does."),
]
SeedOption: TypeAlias = Annotated[int, typer.Option("--seed", metavar="S", help="Of all that is drawn.")]
BufferOption: TypeAlias = Annotated[int, typer.Option("--buffer", metavar="N", help="Rows that a producer holds back.")]
StateOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--state", metavar="N|rows|bytes", help="State of a partition: N tuples, or what it has in the trace."
    ),
]
ProducersOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--producers",
        metavar="row|stream",
        help="A row's producer by the hash of its number or of its stream; stream where the trace has streams.",
        show_default=False,
    ),
]
LoadOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--load",
        metavar="3@5s-60s",
        help="Another process on a site takes 57% of its CPU; sites as 3, 0:7, 1,4 or all; 3@5s-60s:100us/50us sets"
        " its burst and sleep; repeatable.",
        rich_help_panel=TROUBLE_PANEL,
    ),
]
SlowOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--slow",
        metavar="3@5s-60s:50%",
        help="A site runs at a part of its speed; 0% is a pause; repeatable.",
        rich_help_panel=TROUBLE_PANEL,
    ),
]
ShedOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--shed",
        metavar="5000@100ms",
        help="A site holds up to so many rows, each for so long, and drops the more of what comes the fuller it is;"
        " none if left out.",
        rich_help_panel=SHED_PANEL,
    ),
]
TauOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--tau",
        metavar="T0,T1,T2,T3",
        help="Thresholds of how full a site is, rising; it drops from the third on, the others are for scaling.",
        rich_help_panel=SHED_PANEL,
    ),
]
LeastShedOption: TypeAlias = Annotated[
    float,
    typer.Option("--least-shed", metavar="B", help="Part that it drops right above that.", rich_help_panel=SHED_PANEL),
]
ShedFormOption: TypeAlias = Annotated[
    SheddingForm,
    typer.Option("--shed-form", help="How that rises to all where nothing more fits.", rich_help_panel=SHED_PANEL),
]
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
CostUnitOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--cost-unit",
        metavar="1us",
        help="CPU for 1 of a row's cost in the trace; nothing is drawn then.",
        rich_help_panel=COSTS_PANEL,
    ),
]
ProduceTimeOption: TypeAlias = Annotated[
    str,
    typer.Option("--produce-time", metavar="0.5us", help="CPU to make a row.", rich_help_panel=COSTS_PANEL),
]
MarshalTimeOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--marshal-time",
        metavar="0.2us",
        help="CPU to take out or put in a tuple of state.",
        rich_help_panel=COSTS_PANEL,
    ),
]
TupleBytesOption: TypeAlias = Annotated[
    int,
    typer.Option("--tuple-bytes", metavar="B", help="Size of a tuple of state.", rich_help_panel=COSTS_PANEL),
]
LatencyOption: TypeAlias = Annotated[
    str,
    typer.Option("--latency", metavar="70us", help="A packet is on its way so long.", rich_help_panel=NETWORK_PANEL),
]
ConnectionOption: TypeAlias = Annotated[
    int,
    typer.Option("--connection", metavar="N", help="Rows that a connection holds.", rich_help_panel=NETWORK_PANEL),
]
StateBandwidthOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--state-bandwidth", metavar="250Mbps", help="For one partition on its way.", rich_help_panel=NETWORK_PANEL
    ),
]
StateBandwidthAllOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--state-bandwidth-all",
        metavar="500Mbps",
        help="For all of them together.",
        rich_help_panel=NETWORK_PANEL,
    ),
]


def network_of(latency: str, connection: int, state_bandwidth: str, state_bandwidth_all: str) -> "Network":
    """What connects producers, sites and the states that move."""

    from adapt.core.stage.conditions.settings import Network
    from adapt.core.units.amounts import bits_of, seconds_of

    return Network(
        latency_s=amount_of("--latency", latency, seconds_of),
        connection_tuples=connection,
        flow_bits_per_s=amount_of("--state-bandwidth", state_bandwidth, bits_of),
        state_bits_per_s=amount_of("--state-bandwidth-all", state_bandwidth_all, bits_of),
    )


def overload_of(text: str, tau: str, least: float, form: SheddingForm, window_s: float | None = None) -> "Overload":
    """How many rows a site holds, how long, and what it drops meanwhile; a join holds them for its window."""
    from adapt.core.stage.conditions.shed_factor import Overload, ShedFactor

    held, at, window = text.partition("@")
    if window_s is not None:
        if at or not (held.isdecimal() and len(held) < 8):
            raise UsageError(f"--shed {text!r}: a join holds rows for its window; give how many alone, such as 5000")
        return Overload(ShedFactor(thresholds_of(tau).tau2, least, form), int(held), window_s)
    if not at or not (held.isdecimal() and len(held) < 8):
        raise UsageError(f"--shed {text!r} is not how many rows a site holds and for how long; give it as 5000@100ms")
    return Overload(ShedFactor(thresholds_of(tau).tau2, least, form), int(held), above_0("--shed", window))


def thresholds_of(tau: str) -> "Thresholds":
    """The thresholds of how full a site is."""
    from adapt.core.stage.conditions.shed_factor import Thresholds

    try:
        return Thresholds(*map(float, tau.split(",")))
    except UsageError as error:
        raise UsageError(f"--tau: {error}") from None
    except (TypeError, ValueError):
        raise UsageError(f"--tau {tau!r} is not up to four numbers with commas, such as 0.1,0.4,0.8,0.9") from None


def state_of(text: str) -> "int | Weight":
    """So many tuples, or what of the trace decides."""
    from adapt.core.stream import Weight

    named = {"rows": Weight.COUNT, "bytes": Weight.BYTES}
    if text in named:
        return named[text]
    if not (text.isdecimal() and len(text) < 16):
        raise UsageError(f"--state {text!r} is neither a number of tuples nor one of rows, bytes")
    return int(text)


def by_stream_of(trace: "Trace", producers: str | None) -> bool:
    """Whether the rows of a stream have one producer."""
    if producers not in (None, "row", "stream"):
        raise UsageError(f"--producers {producers!r} is not known; give row or stream")
    return "stream" in trace.columns if producers is None else producers == "stream"


def amount_of(option: str, text: str, read: "Callable[[str], float]") -> float:
    """The amount that an option gives, or a refusal that names it."""
    try:
        return read(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error}") from None


def above_0(option: str, text: str) -> float:
    """The time that an option gives, or a refusal that names it."""

    from adapt.core.units.amounts import seconds_of

    value = amount_of(option, text, seconds_of)
    if value == 0:
        raise UsageError(f"{option} {text} is no time; give one above 0")
    return value
