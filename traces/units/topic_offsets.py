"""End offsets of a topic over time, asked of its brokers."""

from contextlib import closing

import numpy as np

from adapt.core.errors import BadInput
from adapt.traces.sources.live.address import TopicAddress
from adapt.traces.sources.live.cluster import ClientConfig, Cluster
from adapt.traces.units.samples import Amount, Samples, Unit

WINDOWS = 48
"""Windows between the first record and the last."""


def read_topic_offsets(address: TopicAddress) -> Samples:
    """Records of each partition over time, without reading any.

    The brokers are asked for the first offset from a time on, which takes the right to describe the topic alone.
    Compacted records count too.
    """
    with closing(Cluster(address, ClientConfig.read(None))) as cluster:
        ends, span = cluster.ends(), cluster.span_ms()
        if span is None:
            raise BadInput(f"{address} has no records with times; without them, its partitions have no load")
        edges = np.unique(np.linspace(span[0], span[1] + 1, WINDOWS + 1).round().astype(np.int64))
        found = [cluster.first_from(int(edge)) for edge in edges]
    series = [
        (
            Unit(str(partition), address.topic),
            edges * 1000,
            np.array([float(each.get(partition, end)) for each in found]),
        )
        for partition, end in sorted(ends.items())
    ]
    return Samples.of_series("end offset", Amount.COUNTER, series, notes=["offsets count compacted records too"])
