"""Options of `adapt replay flux`: where keys are, what moves them, what happens to sites."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from adapt.cli.options.amounts import above_0, bits, seconds
from adapt.cli.options.groups import setting
from adapt.cli.options.placement import HashOption
from adapt.cli.options.replay.costs import NETWORK_PANEL
from adapt.cli.options.replay.stage import TROUBLE_PANEL, TroubleOptions
from adapt.core.errors import UsageError
from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.keys.names import HashName
from adapt.core.stage.conditions.names import Router

if TYPE_CHECKING:
    from adapt.core.flux.replay.replay import Adapting, Conditions
    from adapt.core.stage.conditions.settings import StageSettings
    from adapt.core.stage.input.mini_partitions import MiniPartitions
    from adapt.core.stage.movement.spilling import Memory
    from adapt.traces.store.trace import Trace


@dataclass(frozen=True, slots=True)
class PlacingOptions:
    """Where keys are at the start."""

    sites: int | None = setting(None, "Sites, each with a producer and a consumer.", "N", shown=False)
    plan: Path | None = setting(None, "The sites are its channels, where it places keys at the start.", "PLAN")
    partitions: int = setting(64, "Partitions of a site at the start; each moves as a whole.", "K")
    hash: HashOption = HashName.MURMUR3

    def placed(self, trace: "Trace") -> "tuple[MiniPartitions, str | None]":
        """Where the keys of a trace are, and the content hash of the plan that says so.

        Raises:
            UsageError: there are neither sites nor a plan, or both and they differ.
            BadInput: the plan is for keys of another type.
        """
        from adapt.core.stage.conditions.settings import check_sites
        from adapt.core.stage.input.mini_partitions import MiniPartitions
        from adapt.traces.replay.flux import check_key_type
        from adapt.traces.store.plans import read_plan

        if self.plan is None:
            if self.sites is None:
                raise UsageError("give either --sites N, or --plan PLAN, whose channels are the sites")
            check_sites(self.sites)
            return MiniPartitions(self.sites, self.partitions, self.hash), None
        read = read_plan(self.plan)
        if self.sites not in (None, read.channels):
            raise UsageError(
                f"{self.plan} has {read.channels} channels, but --sites is {self.sites}; leave --sites out, or build"
                " another plan"
            )
        check_sites(read.channels)
        check_key_type(trace, read.key_type, self.plan)
        return MiniPartitions(read.channels, self.partitions, read.hash, read.partitioner()), read.content_hash()


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    """What moves partitions, and when."""

    PANEL: ClassVar[str] = "The policy"
    policy: list[FluxPolicy] | None = setting(
        None, "What moves partitions, beside the static case; repeatable; load if left out.", panel="Options"
    )
    min_collection: str = setting("150ms", "Least time to collect statistics in a round.", "150ms")
    min_imbalance: float = setting(1.2, "Least ratio of two sites' utilisations to be evened out.", "X")
    max_receiver: float = setting(0.95, "A site that is busier receives nothing.", "U")

    def adapting(self, router: Router) -> "Adapting":
        """The policies, with delta_min, lambda_min and u_max."""
        from adapt.core.flux.replay.replay import Adapting, policies_of

        collection_s = above_0("--min-collection", self.min_collection)
        return Adapting(policies_of(self.policy or (), router), collection_s, self.min_imbalance, self.max_receiver)


@dataclass(frozen=True, slots=True)
class SiteOptions(TroubleOptions):
    """What limits, slows or kills sites."""

    PANEL: ClassVar[str] = TROUBLE_PANEL
    memory: list[str] | None = setting(
        None,
        "Memory of every site for state, and what a site has from a time on; what does not fit goes to disk;"
        " no limit if left out; repeatable.",
        "1GB|0@5s:512MB",
    )
    faults: Path | None = setting(
        None, "Loads, slow-downs, pauses and crashes of sites, as JSON (adapt.faults/1).", "FILE"
    )
    standby: bool = setting(
        False, "Every partition has a twin on another site, which takes over when its site dies.", None, "--standby"
    )
    disk: str = setting("160Mbps", "Bandwidth of a site's disk, 20 MB/s.", "160Mbps", panel=NETWORK_PANEL)
    seek: str = setting("5ms", "Before each access to it.", "5ms", panel=NETWORK_PANEL)

    def conditions(self, settings: "StageSettings") -> "Conditions":
        """The memory, faults and standby of a stage.

        Raises:
            UsageError: an option is not so written.
            BadInput: the file of faults is missing, or the stage cannot have such faults.
        """
        from adapt.core.flux.replay.replay import Conditions
        from adapt.traces.replay.flux import read_faults

        faults = read_faults(self.faults, settings) if self.faults else None
        return Conditions(self._memory(settings.sites), faults, self.standby)

    def _memory(self, sites: int) -> "Memory | None":
        from adapt.core.stage.control.schedules import memory_of_sites
        from adapt.core.stage.movement.spilling import Memory

        site_bytes, changes = memory_of_sites(self.memory or [], sites)
        if site_bytes is None:
            return None
        disk_bytes_per_s, seek_s = bits("--disk", self.disk) / 8, seconds("--seek", self.seek)
        return Memory(site_bytes, tuple(changes), disk_bytes_per_s=disk_bytes_per_s, seek_s=seek_s)
