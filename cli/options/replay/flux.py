"""Options of `adapt replay flux`: placement, policies and failures."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapt.cli.options import own
from adapt.cli.options.amounts import above_0, bits_of_workers
from adapt.cli.options.groups import setting
from adapt.cli.options.replay.stage import TroubleOptions
from adapt.core.errors import UsageError
from adapt.core.flux.policies.names import FluxPolicy, PairSettings, RoundSettings
from adapt.core.stage.conditions.names import Router
from adapt.core.stage.conditions.stage_settings import TROUBLE, DiskSettings, TroubleSettings
from adapt.core.units.settings import same, settings, settings_from

if TYPE_CHECKING:
    from adapt.core.flux.replay.replay import Flux
    from adapt.core.stage.conditions.settings import StageSettings
    from adapt.core.stage.input.mini_partitions import MiniPartitions
    from adapt.core.stage.input.speed import Tempo
    from adapt.core.stage.movement.spilling import Memory
    from adapt.core.stage.movement.splitting import HotSplit
    from adapt.traces.store.plans import NamedPlan
    from adapt.traces.store.trace import Trace


@dataclass(frozen=True, slots=True)
class PlacingOptions:
    """Initial placement of keys."""

    workers: int | None = setting(None, "Number of workers (without --plan).", "N")
    plan: Path | None = setting(None, "Start from this plan, with its workers.", "PLAN", unless="--stages")
    partitions: int = setting(64, "Partitions per worker, the units that move.", "N")

    def placed(self, trace: "Trace") -> "tuple[MiniPartitions, NamedPlan | None]":
        """Initial placement of the keys, and the plan, if any."""
        from adapt.core.stage.conditions.settings import check_workers
        from adapt.core.stage.input.mini_partitions import MiniPartitions
        from adapt.traces.store.plans import open_named_plan

        if self.plan is None:
            if self.workers is None:
                raise UsageError("give --workers N, or --plan PLAN with its workers")
            check_workers(self.workers)
            return MiniPartitions(self.workers, self.partitions), None
        named = open_named_plan(self.plan)
        read = named.plan
        if self.workers not in (None, read.channels):
            raise UsageError(
                f"{self.plan} has {read.channels} workers, but --workers is {self.workers}; omit --workers, or build"
                " another plan"
            )
        check_workers(read.channels)
        read.check_keys(trace.key_type, trace.path, self.plan)
        return MiniPartitions(read.channels, self.partitions, read.hash, read.partitioner()), named


@settings("policy", head="name")
class PolicyOption(PairSettings):
    """A rebalancing policy with its parameters."""

    OWN: ClassVar[str] = "own"
    BUILT_IN: ClassVar[tuple[str, ...]] = tuple(FluxPolicy)
    name: str = setting(
        FluxPolicy.LOAD.value,
        f"Rebalancing policy; repeatable (default: load). {own.CLASS} Built in: {', '.join(FluxPolicy)}.",
        "NAME",
    )
    own: Mapping[str, str] = field(default_factory=dict)


@settings(panel="Policy")
class PolicyOptions:
    """Rebalancing policies and their limits."""

    policy: list[PolicyOption]
    min_collection_s: float | None = same(RoundSettings, "min_collection_s")
    split_hot: str | None = same(RoundSettings, "split_hot")

    def flux(self, router: Router, tempo: "Tempo", conditions: "Mapping[str, Any]") -> "Flux":
        """The policies with their parameters, and delta_min.

        Args:
            conditions: Memory, faults and standby replicas.
        """
        from adapt.core.flux.policies.load_policy import MIN_COLLECTION_S, LoadBalancing
        from adapt.core.flux.policies.registry import ChosenFluxPolicy
        from adapt.core.flux.replay.replay import Flux, policies_of

        chosen = [
            ChosenFluxPolicy(policy, settings_from(each, LoadBalancing), own.given(each))
            for policy, each in zip(own.policies(FluxPolicy, self.policy), self.policy, strict=True)
        ]
        return Flux(
            policies=policies_of(chosen, router),
            min_collection_s=self.min_collection_s or tempo.at_most_a_period(MIN_COLLECTION_S),
            hot=None if self.split_hot is None else _hot_split(self.split_hot),
            **conditions,
        )


def _hot_split(text: str) -> "HotSplit":
    """When to split, by `--split-hot`."""
    from adapt.core.stage.movement.splitting import HotSplit

    found = re.fullmatch(r"(\d+(?:\.\d+)?)%(?:@(.+))?", text)
    if found is None:
        raise UsageError(f"--split-hot takes a share of a worker's time, such as 50% or 50%@1s (got {text!r})")
    threshold = float(found[1]) / 100
    return HotSplit(threshold) if found[2] is None else HotSplit(threshold, above_0("--split-hot", found[2]))


@settings(panel=TROUBLE, kw_only=True)
class FaultOptions(TroubleOptions):
    """Memory, faults and standby replicas."""

    memory: list[str] | None = same(TroubleSettings, "memory")
    faults: Path | None = setting(
        None, "Fault schedule, as JSON (adapt.faults/1). It lists loads, slowdowns, pauses and crashes.", "FILE"
    )
    standby: bool = setting(
        False, "Keep a replica of every partition on another worker.", None, "--standby", unless="--stages"
    )
    disk: DiskSettings

    def conditions(self, settings: "StageSettings") -> dict[str, Any]:
        """Memory, faults and standby replicas of a stage."""
        from adapt.traces.replay.stage import read_faults

        faults = read_faults(self.faults, settings) if self.faults else None
        return {"memory": self._memory(settings.workers), "faults": faults, "standby": self.standby}

    def _memory(self, workers: int) -> "Memory | None":
        from adapt.core.stage.control.schedules import memory_of_workers
        from adapt.core.stage.movement.spilling import Memory

        worker_bytes, changes = memory_of_workers(self.memory or [], workers)
        if worker_bytes is None:
            return None
        disks = bits_of_workers("--disk bandwidth", self.disk.bandwidth or (), 160e6, workers)
        return Memory(
            worker_bytes,
            tuple(changes),
            disk_bytes_per_s=disks / 8 if isinstance(disks, float) else tuple(each / 8 for each in disks),
            seek_s=self.disk.seek_s,
            seek_sd_s=self.disk.seek_s / 25,
            quantum_s=self.disk.quantum_s,
        )
