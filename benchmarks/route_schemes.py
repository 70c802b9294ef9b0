"""Routing speed of every scheme against `mmh3` and `uhashring`.

Claims: hashing schemes are faster than a loop of `mmh3`, searching schemes twice as fast as `uhashring`. Keys are
routed once through each scheme of the registry, as an Arrow column. The peers take them key by key from a list: a loop
of `mmh3.hash128(key) % N` for hashing schemes; `uhashring.HashRing` with 1000 points per channel and mmh3 for schemes
that search among the channels. Plans are built from the counts of the keys: hybrid pins the thousand hottest, bounded
those away from their ring channel."""

import sys
from collections.abc import Callable, Mapping
from typing import Any

import mmh3
import numpy as np
import pyarrow as pa
from ratio import best_of, holds, measured
from uhashring import HashRing

from adapt.core.counting.exact import count_keys, frequencies_of
from adapt.core.engines.names import SCHEMES_BY_NAME, AnyScheme
from adapt.core.partitioning.build import Recipe, build_partitioner
from adapt.core.partitioning.schemes.names import MAPPED_SCHEMES, Scheme

ROWS = 1_000_000
PEER_ROWS = 100_000
REPLICAS = 1000
SEARCHING = MAPPED_SCHEMES | {Scheme.CONSISTENT, Scheme.RENDEZVOUS}
CLAIMS = {"mmh3 loop": 1.0, "uhashring": 2.0}


def main() -> int:
    """Print the speed of schemes and peers; 0 if claims hold."""
    keys = [f"user-{number}" for number in np.random.default_rng(0).zipf(1.2, ROWS) % 10**9]
    met = [_routed(scheme, keys, channels) for channels in (16, 100) for scheme in SCHEMES_BY_NAME.values()]
    return 0 if all(met) else 1


def _routed(scheme: AnyScheme, keys: list[str], channels: int) -> bool:
    column = pa.array(keys)
    frequencies = frequencies_of(count_keys(column))
    partitioner = build_partitioner(frequencies, Recipe(scheme, max_pins=1000), channels)
    seconds = best_of(lambda: partitioner.channels_of(column), 5)
    few, some = keys[:PEER_ROWS], column[:PEER_ROWS]
    name = "uhashring" if scheme in SEARCHING else "mmh3 loop"
    peer = _peers(few, channels)[name]
    ratio = measured(lambda: partitioner.channels_of(some), peer, repeats=5)
    speeds = ROWS / seconds / 1e6, PEER_ROWS / ratio.reference_s / 1e6
    print(f"{scheme}, N = {channels}: {speeds[0]:.1f} M keys/s; {name}: {speeds[1]:.2f} M keys/s")
    return holds(f"{PEER_ROWS:,} keys, {scheme} against {name}", ratio, CLAIMS[name])


def _peers(keys: list[str], channels: int) -> Mapping[str, Callable[[], Any]]:
    nodes = {str(channel): {"vnodes": REPLICAS} for channel in range(channels)}
    ring = HashRing(nodes=nodes, hash_fn=lambda key: mmh3.hash128(key, 0))
    return {
        "mmh3 loop": lambda: [mmh3.hash128(key, 0) % channels for key in keys],
        "uhashring": lambda: [ring.get_node(key) for key in keys],
    }


if __name__ == "__main__":
    sys.exit(main())
