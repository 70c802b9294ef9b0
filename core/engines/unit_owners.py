"""How engines assign their units of work to workers."""

import numpy as np

from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.schemes.key_groups import channels_of_groups


def in_ranges(units: int, workers: int) -> Channels:
    """Ranges of equally many units; the first ones are longer.

    Source: the range assignor of Kafka.
    """
    each, more = divmod(units, workers)
    return np.repeat(np.arange(workers, dtype=np.int32), each + (np.arange(workers) < more))


def in_key_group_ranges(units: int, workers: int) -> Channels:
    """Ranges of key groups as in Flink.

    Group g is on worker floor(g N / units).
    """
    return channels_of_groups(np.arange(units, dtype=np.int32), workers, units)


def in_turn(units: int, workers: int) -> Channels:
    """Deal units to the workers in turn.

    As Spark offers tasks to equally busy slots.
    """
    return np.asarray(np.arange(units) % workers, np.int32)
