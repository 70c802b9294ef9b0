"""Audit of a topic: whose partitioners explain where its records lie."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import floor
from typing import Any

from adapt.core.arrays import Floats
from adapt.core.audit.mixture import Share
from adapt.core.engines.names import Engine
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.problem.at_random import Elsewhere
from adapt.core.phrases import counted, percent


@dataclass(frozen=True, slots=True)
class Producer:
    """Partitioners that place keyed records alike, and their share."""

    name: str  # the partitioner in words
    engines: tuple[Engine, ...]  # the engines, the one that also places null and empty keys first; none if unknown
    share: Share  # share of the records with a key, with its confidence interval

    @property
    def sentence(self) -> str:
        """Name, share and interval."""
        share = self.share
        if share.share > 1 - 1e-9:
            return f"{self.name} (at least {percent(floor(1000 * share.low) / 1000)})"
        return f"{percent(share.share)} {self.name} ({percent(share.low)} to {percent(share.high)})"


@dataclass(frozen=True, slots=True)
class Audit:
    """Partitioners that explain where the records of a topic lie."""

    partitions: int  # partitions of the topic
    records: int
    keyed: float  # share of the records whose key is neither null nor empty
    empty: float  # share of the records whose key is empty, not null
    # the partitioners, largest share first; none if no record has a key, or with one partition
    producers: tuple[Producer, ...]
    keys: int  # keys of the topic; an estimate if many
    split_keys: int  # those with records in several partitions
    loads: tuple[float, ...]  # share of the records in each partition
    # today's placement: the main partitioner, and the keys that lie elsewhere; None after reading an artefact
    placement: Plan | None = field(default=None, compare=False, repr=False)
    # records outside the main partition of their key; None after reading an artefact
    elsewhere: Elsewhere | None = field(default=None, compare=False, repr=False)
    # load of each partition in each window of the stream, shape (partitions, windows), in the weight that is judged;
    # None after reading an artefact
    window_loads: Floats | None = field(default=None, compare=False, repr=False)
    judged: str = ""  # which placement the verdict judges, as a sentence; empty if there is only one

    @property
    def engine(self) -> Engine | None:
        """The engine of the main partitioner; None if it is custom."""
        return self.producers[0].engines[0] if self.producers and self.producers[0].engines else None

    @property
    def is_one_partitioner(self) -> bool:
        """Whether one engine explains all records with a key."""
        return len(self.producers) == 1 and self.engine is not None

    @property
    def imbalance(self) -> float:
        """Records of the busiest partition over the mean."""
        return max(self.loads) * self.partitions

    @property
    def sentence(self) -> str:
        """The finding, what it means, and today's loads."""
        if self.partitions == 1:
            return "Audit: the topic has one partition, so any partitioner places its records alike."
        if not self.producers:
            keyless = "every key is empty or null" if self.empty else "no record has a key"
            return f"Audit: {keyless}, so producers choose the partitions."
        mixed = len(self.producers) > 1
        broken = ""
        if self.split_keys:
            broken = (
                f": {counted(self.split_keys, 'key lies', 'keys lie')} in several partitions, so joins and order by key"
                f" are broken{'; set one partitioner in all producers' if mixed else ''}"
            )
        names = ", ".join(each.sentence for each in self.producers)
        null = 1 - self.keyed - self.empty
        keyless = f" {percent(null)} of the records have no key." if null > 1e-9 else ""
        if self.empty > 1e-9:
            keyless += f" {percent(self.empty)} have an empty key; if it means no key, send null."
        return (
            f"Audit of {counted(self.partitions, 'partition')}: {names}{broken}.{keyless} The busiest partition has"
            f" {self.imbalance:.3f} times the mean.{self.judged and f' {self.judged}'}"
        )

    def as_data(self) -> dict[str, Any]:
        """The audit as JSON data."""
        return {
            "partitions": self.partitions,
            "records": self.records,
            "keyed_share": self.keyed,
            "empty_key_share": self.empty,
            "producers": [
                {
                    "name": each.name,
                    "engines": [engine.value for engine in each.engines],
                    "share": each.share.share,
                    "share_low": each.share.low,
                    "share_high": each.share.high,
                }
                for each in self.producers
            ],
            "keys": self.keys,
            "split_keys": self.split_keys,
            "loads": list(self.loads),
            "imbalance": self.imbalance,
            "judged": self.judged,
            "sentence": self.sentence,
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Audit":
        """The audit that `as_data` wrote."""
        producers = tuple(
            Producer(
                each["name"],
                tuple(map(Engine, each["engines"])),
                Share(each["share"], each["share_low"], each["share_high"]),
            )
            for each in data["producers"]
        )
        return cls(
            data["partitions"],
            data["records"],
            data["keyed_share"],
            data.get("empty_key_share", 0.0),
            producers,
            data["keys"],
            data["split_keys"],
            tuple(data["loads"]),
            judged=data.get("judged", ""),
        )
