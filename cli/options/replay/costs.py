"""Options of the CPU and network costs of a stage."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from adapt.cli.options.amounts import amount_of, bits_of_workers, seconds
from adapt.cli.options.groups import option, setting
from adapt.cli.terminal.output import narrate
from adapt.core.errors import UsageError
from adapt.core.stage.conditions.stage_settings import EngineProducers, NetworkSettings, ProducerSettings

if TYPE_CHECKING:
    from adapt.core.costs.profile import Profile
    from adapt.core.stage.conditions.service_times import Service
    from adapt.core.stage.conditions.settings import Costs, Network
    from adapt.core.stage.input.row_costs import RowCosts
    from adapt.traces.store.trace import Trace

DEFAULT_CONNECTION = 24
"""Rows that a connection buffers, as in Flux: two packets of 12."""

SERVICE = "45us"
SERVICE_HELP = "CPU time per row, or its distribution"
DEFAULT_SERVICE = "1ms"
SHORT_S = 1.0
"""A shorter replay says so: latencies of the network, and moves, weigh more than they would."""


@dataclass(frozen=True, slots=True)
class CostOptions:
    """Costs of a row, and of a tuple of state."""

    PANEL: ClassVar[str] = "Costs"
    service_time: Annotated[
        str | None, option(f"{SERVICE_HELP} (default: the trace's cost, else 1ms).", SERVICE, shown=False)
    ] = None
    costs_file: Path | None = setting(
        None, "Cost profile from adapt calibrate; options win over it.", "FILE.toml", "--costs", panel="Options"
    )
    producers: ProducerSettings = field(default_factory=ProducerSettings)
    network: NetworkSettings = field(default_factory=NetworkSettings)

    def to_network(self, workers: int | None, connection: int) -> "Network":
        """The network; options win over the cost profile.

        Args:
            workers: Number of workers; None, unknown, so that options are for all of them.
            connection: Rows that a connection buffers, unless given.
        """
        from adapt.core.stage.conditions.settings import Network

        asked, profile, usual = self.network, self.profile(), Network()
        packets, times, rows = (asked.connection_buffer or str(connection)).rpartition("x")
        if not rows.isdecimal() or not (packets.isdecimal() or not times):
            raise UsageError(
                f"--network connection-buffer takes a number of rows, or packets and their rows such as 2x12 (got"
                f" {asked.connection_buffer!r})"
            )
        latency_s = profile.transport.latency_s if asked.latency_s is None and profile is not None else asked.latency_s
        byte_s = None if profile is None else profile.state.transfer_byte_s
        flow = 8 / byte_s if byte_s else usual.flow_bits_per_s
        assert isinstance(flow, float)
        return Network(
            latency_s=usual.latency_s if latency_s is None else latency_s,
            connection_tuples=int(packets or 1) * int(rows),
            packet_tuples=int(rows) if packets else 1,
            link_bits_per_s=bits_of_workers("--network bandwidth", asked.bandwidth or (), None, workers),
            flow_bits_per_s=bits_of_workers("--network state-bandwidth", asked.state_bandwidth or (), flow, workers),
            state_bits_per_s=2 * flow if asked.state_bandwidth_total is None else asked.state_bandwidth_total,
        )

    def costs(self) -> "Costs":
        """The costs in seconds and bytes."""
        from adapt.core.costs.profile_file import profile_hash
        from adapt.core.stage.conditions.service_times import Service
        from adapt.core.stage.conditions.settings import Costs
        from adapt.core.stage.input.profiled import fixed_costs_of, shifted, transport_of
        from adapt.traces.replay.files.service_times import measured

        profile, tuple_bytes = self.profile(), self.network.tuple_bytes
        service = measured(self._service())
        if service.mean_s is None:
            service = Service(seconds("--service-time", DEFAULT_SERVICE), service.sd_s, service.spread)
        if profile is not None:
            service = shifted(service, transport_of(profile, tuple_bytes))
        assert service.mean_s is not None
        state = None if profile is None else profile.state
        marshal_s = None if state is None else _of_tuple(state.serialize_row_s, state.serialize_byte_s, tuple_bytes)
        install_s = None if state is None else _of_tuple(state.install_row_s, state.install_byte_s, tuple_bytes)
        produce_s, usual = None if profile is None else profile.transport.produce_s, Costs()
        return Costs(
            service_s=service.mean_s,
            service_sd_s=service.sd_s or 0.0,
            produce_s=usual.produce_s if produce_s is None else produce_s,
            marshal_s=usual.marshal_s if marshal_s is None else marshal_s,
            tuple_bytes=tuple_bytes,
            spread=None if service.sd_s is not None else service.spread,
            install_s=install_s,
            fixed=fixed_costs_of(profile),
            pauses=() if profile is None else profile.pauses,
            profile=None if profile is None else profile_hash(profile),
        )

    def profile(self) -> "Profile | None":
        """The cost profile, if given."""
        from adapt.traces.replay.files.service_times import read_cost_profile

        return None if self.costs_file is None else read_cost_profile(self.costs_file)

    def row_costs(self, trace: "Trace", seed: int) -> "RowCosts | None":
        """The CPU time of each row; None where service times are drawn.

        Args:
            seed: Random seed of the spread around a row's own mean.
        """
        from adapt.core.stage.input.keyed_rows import COST
        from adapt.core.stage.input.profiled import transport_of
        from adapt.core.stage.input.row_costs import RowCosts
        from adapt.traces.replay.files.service_times import profiled_row_costs, row_costs

        profile, tuple_bytes = self.profile(), self.network.tuple_bytes
        if self.service_time is not None:
            costs = row_costs(self._service(), trace, seed)
        elif self.costs_file is not None and profile is not None and profile.service.mean_s is not None:
            return profiled_row_costs(self.costs_file, trace, tuple_bytes, seed)
        else:
            costs = RowCosts(COST) if COST in trace.columns else None
        if costs is None or profile is None:
            return costs
        return replace(costs, transport_s=transport_of(profile, tuple_bytes))

    def say_what_is_assumed(self, trace: "Trace", load: float | None = None, lasts_s: float | None = None) -> None:
        """Say which service times and which load nobody has stated.

        Args:
            load: The default load over the capacity; None, the speed is given.
            lasts_s: Length of the replay at an offered load.
        """
        from adapt.core.values import duration

        service, said = self._service(), []
        if not self.by_cost(trace):
            if self.service_time is None and (self.costs_file is None or service.mean_s is None):
                said.append(f"{DEFAULT_SERVICE} of CPU per row (--service-time)")
            if service.spread is not None and service.spread.assumed:
                said.append("service times are lognormal with a coefficient of variation of 1 (--service-time)")
        if load is not None:
            said.append(f"load {load:g} (--offered)")
        if lasts_s is not None and lasts_s < SHORT_S:
            said.append(
                f"the rows are enough for {duration(lasts_s)} of that load, so that moves weigh more than usual"
            )
        if said:
            narrate(f"ASSUMED: {'; '.join(said)}")

    def by_cost(self, trace: "Trace") -> bool:
        """Whether rows take the CPU time of the trace's cost column."""
        from adapt.core.costs.profile import ServiceBy
        from adapt.core.stage.input.keyed_rows import COST

        profile = self.profile()
        if self.service_time is not None:
            return COST in trace.columns and self._service().column == COST
        if profile is not None and profile.service.mean_s is not None:
            return profile.service.by is ServiceBy.COST
        return COST in trace.columns

    def _service(self) -> "Service":
        """The stated service times, those of the profile, or the default."""
        from adapt.core.stage.conditions.service_times import Service
        from adapt.core.stage.input.profiled import service_of

        profile = self.profile()
        if self.service_time is None and profile is not None:
            found = service_of(profile)
            if found is not None:
                return found
        return amount_of("--service-time", self.service_time or DEFAULT_SERVICE, Service.parse)


@dataclass(frozen=True, slots=True)
class EngineCosts(CostOptions):
    """Costs where rows wait in an engine's queues."""

    producers: EngineProducers = field(default_factory=EngineProducers)


def _of_tuple(row_s: float | None, byte_s: float | None, tuple_bytes: int) -> float | None:
    """Seconds of a tuple of state; None if not measured."""
    return None if row_s is None and byte_s is None else (row_s or 0.0) + (byte_s or 0.0) * tuple_bytes
