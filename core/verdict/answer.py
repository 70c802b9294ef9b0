"""What a report says of a stream before anything else: the verdict, its hot keys, its channels before and after."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adapt.core.partitioning.measures.per_channel import BeforeAfter
from adapt.core.table import Table, told_html
from adapt.core.verdict.hot_keys import HotKeys
from adapt.core.verdict.verdict import Verdict

MOST_CHANNELS = 64
"""Of more channels, the worst before are kept with an artefact."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What is kept with an artefact, to be shown first.

    Attributes:
        verdict: None where there is no load.
        channels: Each channel before and after; None where nothing was placed.
    """

    verdict: Verdict | None
    hot_keys: HotKeys
    channels: BeforeAfter | None = None

    @property
    def lead(self) -> list[str]:
        """The verdict in words, the class first; without a load, that."""
        if self.verdict is None:
            return ["no load", "No row weighs anything: there is no load to balance."]
        return [self.verdict.headline, *self.verdict.sentences]

    def tables(self) -> list[Table]:
        """What goes with the words: channels before and after, hot keys, the verdict over time."""
        return [*self.channels_tables(), *self.more_tables()]

    def channels_tables(self) -> list[Table]:
        """The channels before and after, if anything was placed."""
        return [] if self.channels is None else [self.channels.table()]

    def more_tables(self) -> list[Table]:
        """Hot keys, and the verdict over time."""
        over_time = None if self.verdict is None else self.verdict.over_time
        return [self.hot_keys.table(), *([] if over_time is None else [over_time.table()])]

    def _repr_html_(self) -> str:
        """The verdict in words, and its tables, for a notebook."""
        headline, *sentences = self.lead
        return told_html(headline, sentences, self.tables())

    def as_data(self) -> dict[str, Any]:
        """The same as JSON data; of very many channels, the worst."""
        channels = None
        if self.channels is not None:
            channels = self.channels.as_data(MOST_CHANNELS)
        return {
            "verdict": None if self.verdict is None else self.verdict.as_data(),
            "hot_keys": self.hot_keys.as_data(),
            "channels_before_and_after": channels,
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Answer":
        """What `as_data` told.

        Raises:
            KeyError, TypeError, ValueError: it is damaged.
        """
        verdict, channels = data["verdict"], data["channels_before_and_after"]
        return cls(
            None if verdict is None else Verdict.from_data(verdict),
            HotKeys.from_data(data["hot_keys"]),
            None if channels is None else BeforeAfter.from_data(channels),
        )
