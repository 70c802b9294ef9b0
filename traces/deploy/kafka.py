"""Kafka partitions by a plan, for every Python client."""

from collections.abc import Collection, Sequence
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa

from adapt.core.engines.names import Engine
from adapt.core.engines.placement import WIDTHS
from adapt.core.errors import BadInput, EnvironmentFailure
from adapt.core.keys.columns import key_bytes, key_type_of
from adapt.core.keys.partitioner import ByBytes, Channels
from adapt.core.partitioning.measures.cells import base_of
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.stream import Key, KeyType
from adapt.traces.locations.location import location
from adapt.traces.store.plans import read_plan

MOST_REMEMBERED = 65_536
"""Keys whose partitions a router caches, besides the pinned ones."""


class Nulls(StrEnum):
    """Where a record without a key goes."""

    PLAN = "plan"
    """To the partition of the plan's null key, always the same."""

    SPREAD = "spread"
    """To the available partitions in turn."""


class Integers(StrEnum):
    """How the producer serializes integer keys."""

    LONG = "long"
    """8, 4 or 2 bytes big-endian, as by Kafka's `LongSerializer`, `IntegerSerializer` and `ShortSerializer`."""

    TEXT = "text"
    """Decimal text."""


class Router:
    """The partition of each key by a plan, for every Python client.

    - aiokafka, and kafka-python before 3.0: `partitioner=router`;
    - kafka-python from 3.0 on: `partitioner=router.for_kafka_python()`;
    - confluent-kafka: `producer.produce(topic, key=key, partition=router.partition(key), ...)`.

    Recent keys are cached. Threads may share a router.

    Attributes:
        plan: Its channels are the partitions.
    """

    def __init__(self, plan: Plan, *, nulls: str = Nulls.PLAN, integers: str = Integers.LONG) -> None:
        """Route by a plan.

        Args:
            plan: The plan.
            nulls: Where records without a key go: `plan` or `spread` (see `Nulls`).
            integers: How integer keys are serialized: `long` or `text` (see `Integers`).

        Raises:
            ValueError: `nulls` or `integers` has another value.
        """
        self.plan = plan
        self._nulls, self._integers = Nulls(nulls), Integers(integers)
        self._width = None if self._integers is Integers.TEXT else WIDTHS.get(plan.key_type)
        self._partitioner = plan.partitioner()
        self._null_channel = self._partitioner.channel_of(None)
        self._turn = count()
        self._explicit = _explicit_by_bytes(plan)
        base = base_of(self._partitioner)
        assert isinstance(base, ByBytes)
        self._base = base
        of_text = plan.key_type.storage is KeyType.STRING
        self._over_characters = of_text and plan.hashing in (Engine.FLINK, Engine.PULSAR_JAVA)
        self._remembered: dict[bytes, int] = {}

    @classmethod
    def load(cls, path: str | Path, *, nulls: str = Nulls.PLAN, integers: str = Integers.LONG) -> "Router":
        """Route by a plan file of `adapt partition build` or `export`.

        Raises:
            BadInput: it is not a plan, or damaged.
        """
        return cls(read_plan(location(path)), nulls=nulls, integers=integers)

    def partition(self, key: Key) -> int:
        """The partition of a key: text, a number, or the serialized bytes.

        Raises:
            BadInput: the key does not have the plan's key type.
        """
        if isinstance(key, bytes):
            found = self._remembered.get(key)
            return self._placed(key) if found is None else found
        if key is None:
            return self._null_channel if self._nulls is Nulls.PLAN else next(self._turn) % self.plan.channels
        try:
            return self.partition(self._serialized(key))
        except (UnicodeEncodeError, OverflowError) as error:
            raise BadInput(f"key {key!r} is not a valid {self.plan.key_type} key: {error}") from error

    def partitions(self, keys: pa.Array | pa.ChunkedArray) -> Channels:
        """The partition of each key of a column; shape (rows,).

        A hundred times as fast as one by one: for producers that send batches.

        Raises:
            BadInput: the column has another type.
        """
        if key_type_of(keys.type) is not self.plan.key_type.storage:
            raise BadInput(f"this plan needs {self.plan.key_type} keys (got a column of {keys.type})")
        placed = self._partitioner.channels_of(keys)
        if self._nulls is Nulls.SPREAD and keys.null_count:
            missing = keys.is_null().to_numpy(zero_copy_only=False)
            placed[missing] = [next(self._turn) % self.plan.channels for _ in range(keys.null_count)]
        return placed

    def __call__(self, key: bytes | None, all_partitions: Collection[int], available: Sequence[int]) -> int:
        """The partition of a serialized key in a topic with these partitions.

        As with any partitioner by key, the partition need not be available.

        Raises:
            BadInput: the topic's partitions differ from the plan's channels, or the key does not have its key type.
        """
        if len(all_partitions) != self.plan.channels:
            self.check_partitions(len(all_partitions))
        if key is None and self._nulls is Nulls.SPREAD and available:
            return available[next(self._turn) % len(available)]
        return self.partition(key)

    def check_partitions(self, partitions: int) -> None:
        """Check the number of partitions against the channels of the plan.

        Raises:
            BadInput: the numbers differ.
        """
        if partitions != self.plan.channels:
            raise BadInput(
                f"the topic has {partitions} partitions, but the plan has {self.plan.channels} channels; build a plan"
                f" with --channels {partitions} (--from this plan to move few keys)"
            )

    def for_kafka_python(self) -> Any:
        """A partitioner for kafka-python 3.0 or later.

        Raises:
            EnvironmentFailure: kafka-python 3.0 or later is not installed.
        """
        try:
            from kafka.partitioner import Partitioner
        except ImportError as error:
            raise EnvironmentFailure(
                f"kafka-python 3.0 or later is not installed ({error}); run pip install 'kafka-python>=3'"
            ) from error
        route = self.__call__

        class PlanPartitioner(Partitioner):  # type: ignore[misc]  # kafka-python has no types
            """Places records by the plan of a router."""

            def partition(
                self, topic: str, key: Any, serialized: bytes | None, value: Any, serialized_value: Any, cluster: Any
            ) -> int:
                """The partition of a record."""
                del key, value, serialized_value
                partitions = cluster.partitions_for_topic(topic)
                if not partitions:
                    raise BadInput(f"no partitions of topic {topic!r} are known yet; create the topic first")
                return route(serialized, partitions, sorted(cluster.available_partitions_for_topic(topic) or ()))

        return PlanPartitioner()

    def _placed(self, serialized: bytes) -> int:
        """The partition of a key that is not cached, then cached."""
        key = self._as_hashed(serialized)
        channel = self._explicit.get(key)
        if channel is None:
            channel = self._base.channel_of_bytes(key, self.plan.key_type.storage)
        if len(self._remembered) >= MOST_REMEMBERED:
            self._remembered.clear()
        self._remembered[serialized] = channel
        return channel

    def _serialized(self, key: str | int) -> bytes:
        """The key as a producer serializes it."""
        match self.plan.key_type.storage, key:
            case KeyType.STRING, str():
                return key.encode()
            case KeyType.INT64, int():
                return str(key).encode() if self._width is None else key.to_bytes(self._width, "big", signed=True)
        raise BadInput(f"this plan needs {self.plan.key_type} keys (got {key!r})")

    def _as_hashed(self, serialized: bytes) -> bytes:
        """The bytes that plans hash: 8 little-endian for integers."""
        if self._over_characters:
            try:
                serialized.decode()
            except UnicodeDecodeError as error:
                raise BadInput(f"text keys must be UTF-8 (got {serialized[:40]!r}): {error}") from error
        if self.plan.key_type.storage is not KeyType.INT64:
            return serialized
        if len(serialized) == self._width:
            return int.from_bytes(serialized, "big", signed=True).to_bytes(8, "little", signed=True)
        try:
            if self._width is None:
                return int(serialized).to_bytes(8, "little", signed=True)
        except (ValueError, OverflowError):
            pass
        meant = "64-bit integers in decimal" if self._width is None else f"{self._width} bytes big-endian"
        raise BadInput(f"integer keys must be {meant} (got {serialized[:40]!r}); see `integers` of Router")


def _explicit_by_bytes(plan: Plan) -> dict[bytes, int]:
    """The channels of the pinned keys by key bytes, without the null key."""
    keys = plan.explicit.column
    found = key_bytes(keys)
    data, ends = found.data.tobytes(), found.offsets.tolist()
    present, channels = keys.is_valid().to_pylist(), plan.explicit.channels.tolist()
    return {data[ends[row] : ends[row + 1]]: channels[row] for row in range(len(channels)) if present[row]}
