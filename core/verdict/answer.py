"""Opening of a report: the verdict, hot keys, channels before and after."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from adapt.core.audit.audit import Audit
from adapt.core.partitioning.frontier.frontier import Frontier
from adapt.core.partitioning.measures.per_channel import BeforeAfter
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.phrases import percent
from adapt.core.reading import Reading
from adapt.core.table import Displayed, Table
from adapt.core.verdict.hot_keys import HotKeys
from adapt.core.verdict.verdict import Verdict

MOST_CHANNELS = 64
"""An artefact keeps at most this many channels, the busiest before first."""


@dataclass(frozen=True, slots=True)
class AtRandomLoad:
    """Load that is placed at random."""

    share: float
    by: str  # what places it

    @property
    def sentence(self) -> str:
        """The same in words."""
        return f"{percent(self.share)} of the load has no fixed worker with {self.by}; it counts as spread evenly."


@dataclass(frozen=True, slots=True, repr=False)
class Answer(Displayed):
    """Verdict, hot keys and channels that an artefact carries."""

    verdict: Verdict | None  # none without load
    hot_keys: HotKeys
    channels: BeforeAfter | None = None  # each channel before and after; None without a plan
    # the plan that the verdict speaks of; None after reading an artefact
    recommended: Plan | None = field(default=None, compare=False, repr=False)
    frontier: Frontier | None = None  # other plans to choose from; None if not asked for
    at_random: AtRandomLoad | None = None  # the load that today's placement spreads at random; None without any
    audit: Audit | None = None  # whose partitioners explain today's partitions; None where these are not known
    assumed: str = ""  # how integer keys are taken to be sent, as a sentence; empty if that does not matter
    pasted: str = field(default="", compare=False)  # PySpark code of the plan; empty for other engines
    reading: Reading | None = field(default=None, compare=False)  # of the source; artefacts do not keep it

    @property
    def lead(self) -> list[str]:
        """The verdict in words, the action first."""
        if self.verdict is None:
            return ["Nothing to do", "All rows weigh 0: there is no load to balance."]
        return [self.verdict.headline, *self.verdict.sentences, *self.caveats]

    @property
    def caveats(self) -> list[str]:
        """Sentences on the audit, load at random, rejected rows, and assumptions."""
        told = [each.sentence for each in (self.audit, self.at_random) if each is not None]
        rejected = "" if self.reading is None else self.reading.caveat
        return [each for each in (*told, rejected, self.assumed) if each]

    def tables(self) -> list[Table]:
        """Tables: channels before and after, hot keys, verdict over time."""
        return [*self.channels_tables(), *self.more_tables()]

    def channels_tables(self) -> list[Table]:
        """Workers before and after, if there is a plan."""
        return [] if self.channels is None else [self.channels.table()]

    def more_tables(self) -> list[Table]:
        """Hot keys, out-of-sample imbalance, the frontier, and the verdict over time."""
        over_time = None if self.verdict is None else self.verdict.over_time
        tested = None if self.verdict is None else self.verdict.out_of_sample
        told = [each for each in (tested, self.frontier, over_time) if each is not None]
        return [self.hot_keys.table(), *(each.table() for each in told)]

    @property
    def said(self) -> list[str]:
        """The verdict in words."""
        return self.lead

    displayed = tables

    def as_data(self) -> dict[str, Any]:
        """JSON data, with at most `MOST_CHANNELS` channels."""
        channels = None
        if self.channels is not None:
            channels = self.channels.as_data(MOST_CHANNELS)
        return {
            "verdict": None if self.verdict is None else self.verdict.as_data(),
            "hot_keys": self.hot_keys.as_data(),
            "channels_before_and_after": channels,
            "frontier": None if self.frontier is None else self.frontier.as_data(),
            "placed_at_random": None if self.at_random is None else asdict(self.at_random),
            "audit": None if self.audit is None else self.audit.as_data(),
            "assumed": self.assumed,
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Answer":
        """The answer that `as_data` wrote."""
        verdict, channels, frontier = data["verdict"], data["channels_before_and_after"], data["frontier"]
        return cls(
            None if verdict is None else Verdict.from_data(verdict),
            HotKeys.from_data(data["hot_keys"]),
            None if channels is None else BeforeAfter.from_data(channels),
            frontier=None if frontier is None else Frontier.from_data(frontier),
            at_random=None if data.get("placed_at_random") is None else AtRandomLoad(**data["placed_at_random"]),
            audit=None if data.get("audit") is None else Audit.from_data(data["audit"]),
            assumed=data.get("assumed", ""),
        )
