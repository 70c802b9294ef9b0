"""Every client assigns units as `assigned_by` says: Java's and Python's Kafka clients, librdkafka, Flink's ranges."""

import os
import shutil
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyspark
import pytest

from adapt.core.errors import UsageError
from adapt.core.unit_loads.clients import Client, assigned_by
from tests.core.engines.flink.test_java import java
from tests.tiers import SOAK, soak

CASES = 2000 if SOAK else 50
HERE = Path(__file__).parent
KAFKA = (Client.RANGE, Client.ROUND_ROBIN, Client.STICKY, Client.COOPERATIVE_STICKY)


def cases():
    """Partitions of one to four topics, and workers, some more than there are partitions."""
    random = np.random.default_rng(18)
    for _ in range(CASES):
        yield random.integers(1, 25, random.integers(1, 5)).tolist(), int(random.integers(1, 31))


def topics_of(partitions):
    return [f"t{topic:02d}" for topic, count in enumerate(partitions) for _ in range(count)]


def test_java_s_assignors(tmp_path):
    jar = os.environ.get("ADAPT_KAFKA_JAR")
    if jar is None or shutil.which("javac") is None:
        pytest.skip("Java's client is not there; set ADAPT_KAFKA_JAR to kafka-clients.jar")
    logging = sorted((Path(pyspark.__path__[0]) / "jars").glob("slf4j-api-*.jar"))[0]
    shutil.copy(HERE / "AssignUnits.java", tmp_path)
    asked = [(client, *case) for case in cases() for client in KAFKA]
    lines = "\n".join(f"{client} {workers} {','.join(map(str, counts))}" for client, counts, workers in asked)
    found = java(tmp_path, "AssignUnits", asked=lines, classpath=os.pathsep.join([jar, str(logging)]))
    for (client, counts, workers), said in zip(asked, found, strict=True):
        assert assigned_by(client, topics_of(counts), workers).tolist() == list(map(int, said)), (client, counts)


def test_python_s_assignors():
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

    classes = (RangePartitionAssignor, RoundRobinPartitionAssignor, StickyPartitionAssignor, CooperativeStickyAssignor)
    for counts, workers in cases():
        topics = topics_of(counts)
        names = sorted(set(topics))
        has = Counter(topics)
        cluster = SimpleNamespace(
            topics=lambda has=has: set(has), partitions_for_topic=lambda at, has=has: set(range(has[at]))
        )
        for client, known in zip(KAFKA, classes, strict=True):
            assignor = known() if known in classes[2:] else known
            members = [
                SimpleNamespace(member_id=f"m{at:04d}", group_instance_id=None, metadata=assignor.metadata(names))
                for at in range(workers)
            ]
            owners = {
                (topic, partition): int(member[1:])
                for member, found in assignor.assign(cluster, members).items()
                for topic, partitions in found.assigned_partitions
                for partition in partitions
            }
            units = [(topic, at) for topic in names for at in range(topics.count(topic))]
            assert assigned_by(client, topics, workers).tolist() == [owners[unit] for unit in units], (client, counts)


@soak
@pytest.mark.parametrize("client", [Client.RANGE, Client.ROUND_ROBIN, Client.COOPERATIVE_STICKY])
@pytest.mark.parametrize(("topics", "workers"), [(1, 3), (3, 2), (3, 5)])
def test_librdkafka_s_assignors(client, topics, workers):
    """A group on the client's own broker, whose topics have four partitions."""
    import confluent_kafka

    mock = confluent_kafka.Producer({"test.mock.num.brokers": 1})
    names = [f"t{topic:02d}" for topic in range(topics)]
    for name in names:
        mock.produce(name, b"")
    assert mock.flush(30) == 0
    broker = next(iter(mock.list_topics(timeout=30).brokers.values()))
    name = "roundrobin" if client is Client.ROUND_ROBIN else client.value
    given = {
        "bootstrap.servers": f"{broker.host}:{broker.port}",
        "partition.assignment.strategy": name,
        "group.id": "g",
    }
    consumers = [confluent_kafka.Consumer({**given, "session.timeout.ms": 6000}) for _ in range(workers)]
    for each in consumers:
        each.subscribe(names)
    units, end = [(name, at) for name in names for at in range(4)], time.monotonic() + 60
    owners = {}
    while time.monotonic() < end and Counter(owners) != Counter(units):
        for each in consumers:
            each.poll(0.05)
        members = sorted((each.memberid(), each) for each in consumers) if all(e.memberid() for e in consumers) else []
        held = [((at.topic, at.partition), row) for row, (_, each) in enumerate(members) for at in each.assignment()]
        owners = dict(held) if len(held) == len(units) else {}
    for each in consumers:
        each.close()
    if (
        client is Client.COOPERATIVE_STICKY
    ):  # members join one after the other, so that only counts are those of a new group
        counts = Counter(Counter(owners.values()).values())
        expected = Counter(Counter(assigned_by(client, [name for name, _ in units], workers).tolist()).values())
        assert counts == expected
    else:
        assert [owners[unit] for unit in units] == assigned_by(client, [name for name, _ in units], workers).tolist()


def test_leases_are_dealt_evenly_and_at_random():
    deals = [assigned_by(Client.KCL, ["stream"] * 10, 4, seed) for seed in range(200)]
    assert {tuple(sorted(np.bincount(deal, minlength=4))) for deal in deals} == {(2, 2, 3, 3)}
    together = np.mean([deal[0] == deal[1] for deal in deals])
    assert abs(together - 8 / 45) < 0.1  # of 45 pairs, 1 + 1 + 3 + 3 share a worker


def test_lease_taking_ends_with_even_counts():
    """Workers that scan in random order: each aims at its part of the leases of all workers it sees, takes leases that
    nobody has, else steals one from the busiest worker if that has its part and the thief lacks two, or has more."""
    random = np.random.default_rng(9)
    for _ in range(30):
        units, workers = int(random.integers(1, 60)), int(random.integers(1, 15))
        owner = np.full(units, -1)
        for _ in range(40 * units // workers + 40):
            for me in random.permutation(workers):
                seen = len({*owner[owner >= 0].tolist(), int(me)})
                part = -(-units // seen)
                lacks = part - int((owner == me).sum())
                free = np.flatnonzero(owner < 0)
                if lacks > 0 and len(free):
                    owner[random.permutation(free)[:lacks]] = me
                elif lacks > 0:
                    counts = np.bincount(owner, minlength=workers)
                    busiest = int(random.choice(np.flatnonzero(counts == counts.max())))
                    if counts[busiest] > part or (counts[busiest] == part and lacks > 1):
                        owner[random.choice(np.flatnonzero(owner == busiest))] = me
        said = assigned_by(Client.KCL, ["stream"] * units, workers)
        assert sorted(np.bincount(owner, minlength=workers)) == sorted(np.bincount(said, minlength=workers))


def test_key_groups_lie_in_ranges():
    assert assigned_by(Client.FLINK, ["group"] * 5, 3).tolist() == [0, 0, 1, 1, 2]


def test_what_is_refused():
    for client, topics, workers in ((Client.RANGE, [], 1), (Client.RANGE, ["t"], 0), (Client.FLINK, ["t"], 2)):
        with pytest.raises(UsageError, match=r"at least 1 unit|from 1 to|key group"):
            assigned_by(client, topics, workers)
