"""Seeded topics of known producers."""

import numpy as np
import pyarrow as pa

from adapt.core.audit.observed import KeyPartitions
from adapt.core.engines.names import Engine
from adapt.core.engines.registry import definition_of
from adapt.core.keys.columns import key_type_of

PRODUCERS = {
    "Java's murmur2": Engine.KAFKA,
    "librdkafka's CRC32": Engine.LIBRDKAFKA,
    "Sarama's FNV-1a": Engine.SARAMA,
    "partitions at random": None,
    "a custom partitioner": None,
}


def placed(name, keys, rows, partitions, chance):
    """The partition of each record, of the key of that row."""
    if PRODUCERS[name] is not None:
        return definition_of(PRODUCERS[name]).placement(partitions, None).channels_of(keys)[rows]
    if name == "partitions at random":
        return chance.integers(0, partitions, len(rows))
    return chance.integers(0, partitions, len(keys))[rows]


def observed(keys, rows, partition, key_type=None):
    """What an audit sees of records."""
    cells, records = np.unique(np.stack([rows, partition]), axis=1, return_counts=True)
    table = pa.table({"key": keys.take(pa.array(cells[0])), "partition": cells[1], "records": records})
    return KeyPartitions.from_table(
        table, np.bincount(partition), np.ones(len(table)), key_type or key_type_of(keys.type)
    )


def mixture(seed, records, *, own_keys=False):
    """A topic of one to three producers, and the share of the records of each."""
    chance = np.random.default_rng(seed)
    partitions, number = int(chance.choice([6, 12, 24, 50])), int(chance.choice([200, 2000]))
    popularity = np.arange(1, number + 1.0) ** -chance.choice([0.7, 1.1])
    names = chance.choice(list(PRODUCERS), size=chance.integers(1, 4), replace=False)
    shares = 0.1 + (1 - 0.1 * len(names)) * chance.dirichlet(np.ones(len(names)))
    keys = pa.array([f"user-{at}" for at in range(number)])
    rows = chance.choice(number, size=records, p=popularity / popularity.sum())
    who = (
        chance.choice(len(names), size=number, p=shares)[rows]
        if own_keys
        else chance.choice(len(names), records, p=shares)
    )
    each = np.stack([placed(name, keys, rows, partitions, chance) for name in names])
    found = {str(name): float((who == at).mean()) for at, name in enumerate(names)}
    return observed(keys, rows, each[who, np.arange(records)]), partitions, found
