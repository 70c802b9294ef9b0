"""A running Kafka cluster: its topic, offsets and records, without a group."""

import logging
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from adapt.core.errors import BadInput, EnvironmentFailure, UsageError, did_you_mean
from adapt.traces.read_errors import parsed
from adapt.traces.sources.live.address import TopicAddress

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


CONNECT_S = 10.0
"""How long brokers may take to answer the first question."""

ANSWER_S = 30.0
"""How long they may take to answer others."""

_SILENT = logging.Logger("librdkafka", logging.CRITICAL + 1)
"""The client's own log is shown nowhere, as it could name users; its errors come by callback."""

_NO_TIME = -1


@dataclass(frozen=True, slots=True)
class Bounds:
    """Offsets of a partition."""

    low: int  # the first that the broker still has
    high: int  # the one after the last record, the watermark


class Cluster:
    """Connections to the brokers of a topic.

    Attributes:
        consumer: Reads assigned partitions, and commits nothing.
    """

    def __init__(self, address: TopicAddress, config: ClientConfig) -> None:
        """Connect."""
        self._kafka = _client()
        self._admins = import_module("confluent_kafka.admin")
        self._address, self._config = address, config
        self._errors: dict[str, str] = {}
        asking = config.for_questions(address.servers)
        try:
            self.consumer = self._reader(config.for_readers(address.servers))
            self._admin = self._admins.AdminClient({**asking, "error_cb": self._note}, logger=_SILENT)
        except (self._kafka.KafkaException, ValueError, TypeError) as error:
            where = f"{config.file}: " if config.file else ""
            raise UsageError(f"{where}{self._said(error)}; see the properties of librdkafka") from None
        try:
            self.partitions = self._partitions()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connections."""
        self.consumer.close()

    def fetch_runs(self, fetch_bytes: int) -> None:
        """Switch to small fetches of about this many bytes."""
        self.consumer.close()
        self.consumer = self._reader(self._config.for_runs(self._address.servers, fetch_bytes))

    def skip(self, partition: int, offset: int) -> None:
        """Seek to a later offset of a partition.

        While a connection is being made, that is ignored, and records come on in order.
        """
        with suppress(self._kafka.KafkaException):
            self.consumer.seek(self._kafka.TopicPartition(self._address.topic, partition, offset))

    def topic_id(self) -> str:
        """Identity of the topic, empty if brokers give none.

        A topic that is created again under the same name has another.
        """
        with suppress(self._kafka.KafkaException):
            topics = self._kafka.TopicCollection([self._address.topic])
            described = self._admin.describe_topics(topics, request_timeout=ANSWER_S)[self._address.topic]
            return str(described.result(ANSWER_S).topic_id)
        return ""

    def bounds(self) -> dict[int, Bounds]:
        """Offsets of each partition, by its number."""
        specs = self._admins.OffsetSpec
        low, high = (self._offsets(dict.fromkeys(self.partitions, spec())) for spec in (specs.earliest, specs.latest))
        marks = self._watermarks({partition: offset for partition, (offset, _) in high.items()})
        return {partition: Bounds(low[partition][0], marks[partition]) for partition in self.partitions}

    def first_from(self, time_ms: int) -> dict[int, int]:
        """The first offset of each partition from a time on.

        Partitions without such a record are missing.
        """
        found = self._offsets(dict.fromkeys(self.partitions, self._admins.OffsetSpec.for_timestamp(time_ms)))
        return {partition: offset for partition, (offset, time) in found.items() if time != _NO_TIME and offset >= 0}

    def ends(self) -> dict[int, int]:
        """The end offset of each partition, as brokers list it."""
        listed = self._offsets(dict.fromkeys(self.partitions, self._admins.OffsetSpec.latest()))
        return {partition: offset for partition, (offset, _) in listed.items()}

    def span_ms(self) -> tuple[int, int] | None:
        """Times of the first records and of the latest; None without records."""
        specs = self._admins.OffsetSpec
        first, last = self._times(specs.for_timestamp(0)), self._times(specs.latest())
        if first and not last:  # most brokers know it of the end only when asked so, and those before 3.0 not at all
            with suppress(EnvironmentFailure):
                last = self._times(specs.max_timestamp())
        return (min(first), max(last or [time.time_ns() // 10**6])) if first else None

    def _times(self, spec: Any) -> list[int]:
        """The times that brokers know of a place in each partition."""
        return [at for _, at in self._offsets(dict.fromkeys(self.partitions, spec)).values() if at != _NO_TIME]

    def refused(self) -> EnvironmentFailure | None:
        """Why the brokers cannot be read, if they said so."""
        for kind, sentence in _REFUSALS.items():
            if kind in self._errors:
                said = self._config.hidden(self._errors[kind])
                return EnvironmentFailure(f"{self._address}: {sentence} ({_short(said)})")
        return None

    def has_failed(self) -> bool:
        """Whether any connection has failed since the start."""
        return bool(self._errors)

    def lost(self, quiet_s: float) -> EnvironmentFailure:
        """Silent brokers, with their reason if they gave one."""
        silent = EnvironmentFailure(f"{self._address}: the brokers have sent nothing for {quiet_s:.0f} s")
        return self.refused() or silent

    def failed(self, error: Any) -> Exception:
        """An error of a partition as one of ours."""
        kind, said = error.name(), self._config.hidden(error.str())
        if kind in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_PARTITION", "_UNKNOWN_TOPIC"):
            return EnvironmentFailure(f"{self._address}: a partition disappeared while it was read ({said})")
        return EnvironmentFailure(f"{self._address} cannot be read: {said}")

    def _reader(self, settings: Mapping[str, object]) -> Any:
        return self._kafka.Consumer({**settings, "error_cb": self._note}, logger=_SILENT)

    def _note(self, error: Any) -> None:
        self._errors[error.name()] = error.str()

    def _partitions(self) -> tuple[int, ...]:
        listed = self._metadata(self._address.topic)[self._address.topic]
        if listed.error is None:
            return tuple(sorted(listed.partitions))
        if listed.error.name() != "UNKNOWN_TOPIC_OR_PART":
            raise EnvironmentFailure(f"{self._address} cannot be read: {self._config.hidden(listed.error.str())}")
        known = [name for name in self._metadata() if not name.startswith("__")]
        raise BadInput(
            f"{self._address.servers} has no topic {self._address.topic!r}{did_you_mean(self._address.topic, known)}"
        )

    def _metadata(self, topic: str | None = None) -> Mapping[str, Any]:
        """What the brokers know of their topics, once they answer."""
        begun = time.monotonic()
        while True:
            with suppress(self._kafka.KafkaException):
                return dict(self.consumer.list_topics(topic, timeout=1.0).topics)
            self.consumer.poll(0)  # hands over errors
            refused = self.refused()
            if refused is not None:
                raise refused
            if time.monotonic() - begun > CONNECT_S:
                raise EnvironmentFailure(
                    f"{self._address}: no broker answers at {self._address.servers}"
                    f"{_short(self._errors.get('_TRANSPORT', ''), ' (', ')')}; check the address and security.protocol"
                )

    def _watermarks(self, listed: Mapping[int, int]) -> dict[int, int]:
        """The watermarks that come with fetched records; some brokers list the begin of the last batch instead."""
        marks: dict[int, int] = {}
        place, begun = self._kafka.TopicPartition, time.monotonic()
        self.consumer.assign([place(self._address.topic, *each) for each in listed.items()])
        while len(marks) < len(listed) and time.monotonic() - begun < CONNECT_S:
            for message in self.consumer.consume(len(listed), 0.1):
                at = message.partition()
                if at not in marks:
                    mark = self.consumer.get_watermark_offsets(place(self._address.topic, at), cached=True)
                    marks[at] = max(listed[at], mark[1])
        if len(marks) < len(listed):
            raise self.refused() or EnvironmentFailure(f"{self._address}: no broker answers any more; run again")
        self.consumer.unassign()
        return marks

    def _offsets(self, wanted: Mapping[int, Any]) -> dict[int, tuple[int, int]]:
        """Offset and time of a record of each partition."""
        asked = {self._kafka.TopicPartition(self._address.topic, number): spec for number, spec in wanted.items()}
        try:
            found = self._admin.list_offsets(asked, request_timeout=ANSWER_S)
            told = {place.partition: each.result(ANSWER_S) for place, each in found.items()}
        except self._kafka.KafkaException as error:
            raise self.failed(error.args[0]) from None
        except TimeoutError:
            raise EnvironmentFailure(f"{self._address}: no broker answers any more; run again") from None
        return {partition: (int(each.offset), int(each.timestamp)) for partition, each in told.items()}

    def _said(self, error: Exception) -> str:
        kafka = error.args[0] if error.args else error
        return self._config.hidden(str(kafka.str() if hasattr(kafka, "str") else kafka))


_REFUSALS = {
    "_AUTHENTICATION": "authentication was refused; check the properties of --client-config",
    "_SSL": "no TLS connection could be made; check the ssl properties of --client-config",
    "_RESOLVE": "there is no such host",
}
"""Errors that waiting does not fix, and their causes."""


def _short(text: str, before: str = "", after: str = "") -> str:
    """What a client said, without its own addresses and durations."""
    parts = text.split(": ", 1)[-1].split(" (after ")[0]
    return f"{before}{parts}{after}" if parts else ""


def _client() -> Any:
    try:
        return import_module("confluent_kafka")
    except ImportError as error:
        raise EnvironmentFailure("reading a topic needs confluent-kafka: pip install 'adapt-streams[kafka]'") from error
