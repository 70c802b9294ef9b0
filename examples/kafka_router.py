"""Records routed by a plan: a real producer and a real consumer over the mock cluster within librdkafka.

    python examples/kafka_router.py

It needs no Kafka. It places ten thousand visits on four partitions by a plan with pinned hot keys, reads them back, and
compares each record with the plan.
"""

import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import confluent_kafka
import numpy as np
import pyarrow as pa
from visits import counted

import adapt

PARTITIONS = 4
"""The mock cluster creates every topic with this number."""
TOPIC = "visits"


def visits(rows: int = 10_000) -> list[bytes | None]:
    """Keys of a skewed stream; one visit in a hundred has no key."""
    drawn = np.random.default_rng(1).zipf(1.3, rows)
    return [None if row % 100 == 99 else f"user{rank % 5_000}".encode() for row, rank in enumerate(drawn)]


def make_plan(keys: list[bytes | None], folder: Path) -> Path:
    """A plan file for these keys; `adapt partition build` creates one from a trace."""
    path = folder / "visits.plan"
    adapt.build(counted(pa.array(keys, pa.binary())), channels=PARTITIONS, engine="kafka", out=path)
    return path


def produce(keys: list[bytes | None], router: adapt.Router) -> tuple[confluent_kafka.Producer, str]:
    """Send a record for each key; returns the producer, which keeps the mock cluster alive, and its address."""
    producer = confluent_kafka.Producer({"bootstrap.servers": "mock", "log_level": 3, "test.mock.num.brokers": 3})
    brokers = producer.list_topics(timeout=10).brokers.values()
    address = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
    router.check_partitions(len(producer.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions))
    for key in keys:
        producer.produce(TOPIC, key=key, value=b"visit", partition=router.partition(key))
        producer.poll(0)
    producer.flush(30)
    return producer, address


def consume(address: str, records: int) -> list[tuple[bytes | None, int]]:
    """The key and partition of each record."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": address, "group.id": "reader", "auto.offset.reset": "earliest"}
    )
    consumer.assign([confluent_kafka.TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    found: list[tuple[bytes | None, int]] = []
    while len(found) < records:
        messages = consumer.consume(1_000, timeout=10)
        if not messages:
            raise SystemExit(f"only {len(found)} of {records} records came back")
        found += [(message.key(), message.partition()) for message in messages]
    consumer.close()
    return found


def main() -> int:
    """Produce, consume, compare; 0 if every record is on its planned partition."""
    keys = visits()
    with TemporaryDirectory() as folder:
        plan = make_plan(keys, Path(folder))
        _producer, address = produce(keys, adapt.Router.load(plan))
        read = adapt.read_plan(plan)
    found = consume(address, len(keys))
    planned = adapt.route(read, [key for key, _ in found]).tolist()
    misplaced = sum(partition != channel for (_, partition), channel in zip(found, planned, strict=True))
    predicted = Counter(adapt.route(read, keys).tolist())
    actual = Counter(partition for _, partition in found)
    print("partition  predicted  actual")
    for partition in range(PARTITIONS):
        print(f"{partition:9}  {predicted[partition]:9,}  {actual[partition]:6,}")
    print(f"{len(found):,} records came back, {misplaced} of them from another partition than planned")
    return int(misplaced > 0 or predicted != actual)


if __name__ == "__main__":
    sys.exit(main())
