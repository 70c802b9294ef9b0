"""Placement of string keys by every engine, against a hash library called key by key.

Claim: a column of keys of 12 bytes is placed at 20 million keys a CPU second or more, by Kinesis at 3 million, and
by the Kafka router of an export, pinned keys included, at 20 million; and at least 3 times as fast as a loop over a
hash function in C (`zlib.crc32`, `hashlib.md5`, `mmh3.hash`) in the same run. A router places new keys one by one at
least 5 times as fast as columns of one key.
"""

import hashlib
import sys
import zlib
from collections.abc import Callable
from time import process_time

import mmh3
import numpy as np
import pyarrow as pa
from ratio import cpu_measured, holds

from adapt.core.engines.names import Engine
from adapt.core.engines.registry import definition_of
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import KeyType
from adapt.traces.deploy.kafka import Router

ROWS, PARTITIONS = 1_000_000, 12
KEYS_A_SECOND = {Engine.KINESIS: 3e6}
MANY_KEYS = 20e6
CLAIM = 3.0
FEW, ONE_BY_ONE = 20_000, 5.0


def _loop(engine: Engine, keys: list[str]) -> Callable[[], list[int]]:
    """The nearest hash function of Python, key by key."""
    if engine is Engine.KINESIS:
        return lambda: [int.from_bytes(hashlib.md5(key.encode()).digest(), "big") % PARTITIONS for key in keys]
    if engine.family in ("librdkafka", "risingwave"):
        return lambda: [zlib.crc32(key.encode()) % PARTITIONS for key in keys]
    return lambda: [mmh3.hash(key, 0, signed=False) % PARTITIONS for key in keys]


def _fastest(work: Callable[[], object]) -> float:
    """Rows a CPU second, the best of five."""
    seconds = []
    for _ in range(5):
        started = process_time()
        work()
        seconds.append(process_time() - started)
    return ROWS / min(seconds)


def main() -> int:
    """Compare speeds; 0 if the claims are met."""
    keys = [f"user{number:08d}" for number in np.random.default_rng(0).integers(10**8, size=ROWS)]
    column, met = pa.array(keys), []
    for engine in Engine:
        partitioner = definition_of(engine).placement(PARTITIONS, None)
        loop = _loop(engine, keys)

        def ours(place: Callable[[pa.Array], np.ndarray] = partitioner.channels_of) -> np.ndarray:
            return place(column)

        speed, wanted = _fastest(ours), KEYS_A_SECOND.get(engine, MANY_KEYS)
        print(f"{engine}: {speed / 1e6:.1f} million keys a CPU second (claim: {wanted / 1e6:g})")
        claim = f"{engine} on {ROWS:,} keys of 12 bytes, against a loop over a hash function"
        met += [speed >= wanted, holds(claim, cpu_measured(ours, loop, 3), CLAIM)]
    for base in (Engine.KAFKA, Engine.FLINK, Engine.LIBRDKAFKA, Scheme.JUMP):
        plan = Plan(Scheme.HYBRID, PARTITIONS, KeyType.STRING, base=base, explicit={keys[0]: 3, keys[1]: 4})
        router, few = Router(plan), [key.encode() for key in keys[:FEW]]
        speed = _fastest(lambda router=router: router.partitions(column))
        print(f"router over {base}, a column: {speed / 1e6:.1f} million keys a CPU second")
        met.append(speed >= MANY_KEYS)

        def new_keys(plan: Plan = plan, few: list[bytes] = few) -> list[int]:
            router = Router(plan)  # with an empty cache
            return [router.partition(key) for key in few]

        def columns(plan: Plan = plan) -> list[int]:
            placed = plan.partitioner()
            return [int(placed.channels_of(column[row : row + 1])[0]) for row in range(FEW // 10) for _ in range(10)]

        assert new_keys()[:20] == router.partitions(column[:20]).tolist()
        claim = f"router over {base}, {FEW:,} new keys, against columns of one key"
        met.append(holds(claim, cpu_measured(new_keys, columns, 3), ONE_BY_ONE))
        started = process_time()
        new_keys()
        print(f"router over {base}, one by one: {FEW / (process_time() - started):,.0f} new keys a CPU second")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
