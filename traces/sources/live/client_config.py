"""Settings of the Kafka client, whose values are shown nowhere."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from adapt.core.errors import UsageError
from adapt.traces.read_errors import parsed

_JAAS = "sasl.jaas.config"

_OF_JAVA = {"ssl.truststore.location": "ssl.ca.location", "ssl.keystore.password": "ssl.keystore.password"}
"""Properties of the Java client that librdkafka names differently."""

_OURS = {
    "group.id": "adapt",  # the client wants one; with assigned partitions it joins no group
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "earliest",  # where records were deleted while they were read
    "allow.auto.create.topics": False,
    "enable.partition.eof": True,
}

_PLAIN = ("SSL", "SASL_SSL", "SASL_PLAINTEXT", "PLAINTEXT", "PLAIN", "TRUE", "FALSE", "ALL", "NONE")
"""Values that are words of the client's own sentences too."""

_QUEUE_KIB = 4096
"""Records that the client reads ahead, of all partitions together; by its own default, 64 MiB."""

_NO_READING_AHEAD = {"queued.min.messages": 1, "fetch.queue.backoff.ms": 1, "fetch.wait.max.ms": 50}

_JAVA_ONLY = ("key.deserializer", "value.deserializer", "client.dns.lookup", "max.poll.records")


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """Settings of a Kafka client, which never show their values."""

    settings: Mapping[str, str] = field(default_factory=dict, repr=False)  # by their names in librdkafka
    file: Path | None = None  # where they come from, for messages

    @classmethod
    def read(cls, file: Path | None) -> "ClientConfig":
        """Read a properties file, as Kafka's own tools take with `--consumer.config`."""
        return cls() if file is None else cls(parsed(file, _properties), file)

    def for_readers(self, servers: str) -> dict[str, object]:
        """Settings of a consumer without a group that commits nothing."""
        return {"queued.max.messages.kbytes": _QUEUE_KIB, **self.settings, **_OURS, "bootstrap.servers": servers}

    def for_runs(self, servers: str, fetch_bytes: int) -> dict[str, object]:
        """Settings of such a consumer with small fetches, which skips records."""
        most = dict.fromkeys(("fetch.max.bytes", "max.partition.fetch.bytes", "message.max.bytes"), fetch_bytes)
        return {**most, **_NO_READING_AHEAD, **self.for_readers(servers)}

    def for_questions(self, servers: str) -> dict[str, object]:
        """Settings of a client that only asks for topics and offsets."""
        return {**self.settings, "bootstrap.servers": servers}

    def hidden(self, message: str) -> str:
        """A message of the client without the values of the file."""
        for value in self.settings.values():
            plain = value.upper() in _PLAIN or len(value) < 2
            message = message.replace(f'"{value}"' if plain else value, "...")
        return message


def _properties(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, line in enumerate(re.sub(r"\\\n\s*", "", text).splitlines(), 1):
        name, equals, value = line.strip().partition("=")
        if not line.strip() or name.startswith(("#", "!")):
            continue
        if not equals:
            raise UsageError(f"line {number} is not NAME=VALUE")
        found[name.strip()] = value.strip()
    jaas = found.pop(_JAAS, "")
    for name in ("username", "password"):
        if given := re.search(rf'\b{name}\s*=\s*"((?:[^"\\]|\\.)*)"', jaas):
            found.setdefault(f"sasl.{name}", re.sub(r"\\(.)", r"\1", given[1]))
    for java, ours in _OF_JAVA.items():
        if java in found:
            found[ours] = found.pop(java)
    return {name: value for name, value in found.items() if name not in (*_JAVA_ONLY, *_OURS)}
