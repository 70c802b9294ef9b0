"""Addresses of topics, and which of their records are read."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from adapt.core.errors import UsageError
from adapt.core.units.durations import duration_us
from adapt.traces.locations.location import TOPIC_SCHEME
from adapt.traces.sources.names import KeyFormat

_FORM = "kafka://HOST:PORT/TOPIC"


@dataclass(frozen=True, slots=True)
class TopicAddress:
    """A topic and the brokers to ask first."""

    servers: str  # HOST:PORT of a broker, or several, separated by commas
    topic: str  # name of the topic

    @classmethod
    def parse(cls, text: str) -> "TopicAddress":
        """Read `kafka://HOST:PORT/TOPIC`."""
        servers, _, topic = text.removeprefix(TOPIC_SCHEME).partition("/")
        if "@" in servers:  # a command line is recorded, so it is not repeated here either
            raise UsageError(f"a user or password is not allowed in {_FORM}; give --client-config FILE")
        if not re.fullmatch(r"[^,\s]+:\d{1,5}(,[^,\s]+:\d{1,5})*", servers):
            raise UsageError(f"a topic must be given as {_FORM} (got {text!r})")
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", topic):
            raise UsageError(f"{text!r} must end in the name of one topic: {_FORM}")
        return cls(servers, topic)

    def __str__(self) -> str:
        return f"{TOPIC_SCHEME}{self.servers}/{self.topic}"


def topic_of(sources: Sequence[str]) -> TopicAddress | None:
    """The topic that the sources name; None for files."""
    if not any(source.startswith(TOPIC_SCHEME) for source in sources):
        return None
    if len(sources) > 1:
        raise UsageError("a topic is read alone; give other topics and files their own `adapt ingest`")
    return TopicAddress.parse(sources[0])


@dataclass(frozen=True, slots=True)
class TopicOptions:
    """Which records of a topic are read."""

    # time of the first record: ISO 8601, or a duration before now; empty for the first that the topic holds
    begin: str = ""
    end: str = ""  # time after the last record, likewise; empty for the end of the topic as it is when reading starts
    share: Fraction = Fraction(1)  # share of the records that is read, spread over all offsets, in (0, 1]
    max_records: int | None = None  # most records to read, shared out over the partitions; None for all
    client_config: Path | None = None  # properties of the Kafka client, with its secrets; its content is kept nowhere
    key_format: KeyFormat = KeyFormat.AUTO  # how keys were written

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise UsageError(f"--sample must be above 0% and at most 100% (got {float(100 * self.share):g}%)")
        if self.max_records is not None and self.max_records < 1:
            raise UsageError(f"--max-records must be at least 1 (got {self.max_records})")

    @property
    def given(self) -> bool:
        """Whether any option differs from its default."""
        return self != TopicOptions()

    def span_ms(self, zone: str) -> tuple[int | None, int | None]:
        """First time and the time after the last, in milliseconds since 1970."""
        begin, end = (_time_ms(name, text, zone) for name, text in (("--since", self.begin), ("--until", self.end)))
        if begin is not None and end is not None and end <= begin:
            raise UsageError(f"--until must be after --since (got {self.end!r} and {self.begin!r})")
        return begin, end


def _time_ms(option: str, text: str, zone: str) -> int | None:
    if not text:
        return None
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        try:
            return int(time.time() * 1000) - duration_us(text) // 1000
        except UsageError:
            raise UsageError(
                f"{option} must be a time such as 2024-03-01T10:00:00Z, or a duration before now such as 6h"
                f" (got {text!r})"
            ) from None
    try:
        at = given if given.tzinfo is not None else given.replace(tzinfo=ZoneInfo(zone))
    except (ValueError, ZoneInfoNotFoundError):
        raise UsageError(f"--time-zone must be a zone such as UTC or Europe/Berlin (got {zone!r})") from None
    return int(at.timestamp() * 1000)
