"""Addresses of topics: `kafka://HOST:PORT/TOPIC`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from adapt.core.errors import UsageError
from adapt.traces.sources.reading.files import SCHEME

_FORM = "kafka://HOST:PORT/TOPIC"


@dataclass(frozen=True, slots=True)
class TopicAddress:
    """A topic and the brokers to ask first."""

    servers: str  # HOST:PORT of a broker, or several, separated by commas
    topic: str  # name of the topic

    @classmethod
    def parse(cls, text: str) -> "TopicAddress":
        """Read `kafka://HOST:PORT/TOPIC`."""
        servers, _, topic = text.removeprefix(SCHEME).partition("/")
        if "@" in servers:  # a command line is recorded, so it is not repeated here either
            raise UsageError(f"a user or password is not allowed in {_FORM}; give --client-config FILE")
        if not re.fullmatch(r"[^,\s]+:\d{1,5}(,[^,\s]+:\d{1,5})*", servers):
            raise UsageError(f"a topic must be given as {_FORM} (got {text!r})")
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", topic):
            raise UsageError(f"{text!r} must end in the name of one topic: {_FORM}")
        return cls(servers, topic)

    def __str__(self) -> str:
        return f"{SCHEME}{self.servers}/{self.topic}"


def topic_of(sources: Sequence[str]) -> TopicAddress | None:
    """The topic that the sources name; None for files."""
    if not any(source.startswith(SCHEME) for source in sources):
        return None
    if len(sources) > 1:
        raise UsageError("a topic is read alone; give other topics and files their own `adapt ingest`")
    return TopicAddress.parse(sources[0])
