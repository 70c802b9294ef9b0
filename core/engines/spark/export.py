"""Export of plans to Spark: a hash expression and small joined tables."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.engines.exporter import Bundle, ExportablePlan, File, Program
from adapt.core.engines.names import Engine
from adapt.core.engines.registry import definition_of
from adapt.core.engines.spark.routes import spark_routes
from adapt.core.errors import BadInput
from adapt.core.keys.names import HashName
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.schemes.consistent import ConsistentHash
from adapt.core.partitioning.schemes.jump import TABLE, Maglev
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import KeyType
from adapt.core.units.seals import as_json, sealed


@dataclass(frozen=True, slots=True)
class RingTable:
    """Channels by bucket of 64-bit hashes with equal leading bits.

    A hash h of the bucket belongs to channel_0 if h <= bound_0, else to channel_1 if h <= bound_1, and so on, else to
    the last channel. Hashes and bounds compare as signed numbers, since a bucket has one sign.
    """

    shift: int  # a hash's bucket is the hash, unsigned, shifted right by this
    bounds: NDArray[np.int64]  # shape (buckets, steps), ascending; 2^63 - 1 without a further bound
    channels: NDArray[np.int32]  # shape (buckets, steps + 1)

    def table(self) -> pa.Table:
        """The same as columns: `bucket`, then `channel_0`, `bound_0`, `channel_1`, `bound_1`, ... `channel_<steps>`."""
        columns: dict[str, pa.Array] = {"bucket": pa.array(np.arange(len(self.channels), dtype=np.int64))}
        for step in range(self.bounds.shape[1]):
            columns[f"channel_{step}"] = pa.array(np.ascontiguousarray(self.channels[:, step]))
            columns[f"bound_{step}"] = pa.array(np.ascontiguousarray(self.bounds[:, step]))
        last = self.bounds.shape[1]
        columns[f"channel_{last}"] = pa.array(np.ascontiguousarray(self.channels[:, last]))
        return pa.table(columns)


def ring_table(ring: ConsistentHash) -> RingTable:
    """The table of an xxhash64 ring, with about one bucket per arc."""
    bounds, owners = _arcs(ring.positions.high, ring.owners)
    bits = max(1, len(bounds).bit_length())
    shift = 64 - bits
    firsts = np.searchsorted(bounds, np.arange(2**bits, dtype=np.uint64) << np.uint64(shift), side="left")
    counts = np.diff(np.append(firsts, len(bounds)))
    steps = int(counts.max())
    rows = firsts[:, None] + np.arange(steps + 1)
    # Beyond its last bound, a row repeats its last channel.
    channels = owners[np.minimum(rows, (firsts + counts)[:, None])].astype(np.int32)
    absent = np.arange(steps) >= counts[:, None]
    padded = np.append(bounds, np.uint64(0))[np.minimum(rows[:, :steps], len(bounds))].view(np.int64)
    return RingTable(shift, np.where(absent, np.int64(2**63 - 1), padded), channels)


def _arcs(high: NDArray[np.uint64], owners: Channels) -> tuple[NDArray[np.uint64], Channels]:
    """The last position of each arc but the last, and the channel of each arc; neighbors of one channel are joined."""
    around = np.append(owners, owners[0])  # the ring wraps around
    ends = around[1:] != around[:-1]
    return high[ends], np.append(around[:-1][ends], around[-1])


_TYPES = {
    "tinyint": KeyType.INT8,
    "smallint": KeyType.INT16,
    "int": KeyType.INT32,
    "bigint": KeyType.INT64,
    **{each.value: each for each in (KeyType.BOOLEAN, KeyType.DATE, KeyType.TIMESTAMP, KeyType.TIMESTAMP_NTZ)},
    **{each.value: each for each in (KeyType.STRING, KeyType.BINARY)},
}

_UTC = "timestampadd(MICROSECOND, unix_micros({}), TIMESTAMP_NTZ'1970-01-01 00:00:00')"
"""A time in UTC, whatever the zone of the session."""


def spark_key_type(kind: str) -> KeyType | None:
    """Key type by the name of a Spark type, if any."""
    if kind.startswith(("varchar(", "char(", "string collate")):
        return KeyType.STRING
    return KeyType(kind) if kind.startswith("decimal(") else _TYPES.get(kind)


def stored_key_sql(key_type: KeyType) -> str:
    """Expression of the stored key, with columns as `{0}`, `{1}`."""
    if key_type.columns:
        parts = [_json(kind, f"{{{at}}}") for at, kind in enumerate(key_type.columns)]
        return f"concat('[', concat_ws(',', {', '.join(parts)}), ']')"
    return _stored(key_type, "{0}")


def _stored(key_type: KeyType, column: str) -> str:
    if key_type in (KeyType.STRING, KeyType.BINARY):
        return column
    if key_type.storage is KeyType.INT64:
        return f"cast({column} as bigint)"
    return f"cast({_UTC.format(column) if key_type is KeyType.TIMESTAMP else column} as string)"


def _json(key_type: KeyType, column: str) -> str:
    """A column as a JSON value: numbers of whole types, else text."""
    if key_type.storage is KeyType.INT64:
        return f"coalesce(cast({column} as string), 'null')"
    text = f"hex({column})" if key_type is KeyType.BINARY else _stored(key_type, column)
    array = f"to_json(array({text}))"
    return f"substring({array}, 2, length({array}) - 2)"


SCHEMA = "adapt.spark/1"
ROUTING, EXPLICIT, BUCKETS = "routing.json", "explicit.parquet", "buckets.parquet"
PROGRAM = "adapt_spark.py"
_PROGRAM = Program("places DataFrames by these tables", "adapt.traces.deploy", "spark.py")

_REFUSED = {Scheme.JUMP: "its loop of jumps", Scheme.RENDEZVOUS: "its bid of every channel for every key"}
"""Schemes that Spark has no expression for, besides those of other engines."""

_USE = """\
`adapt_spark.py` needs only pyspark 4.1 or later, not adapt (with adapt, `import adapt.traces.deploy.spark` is the same
module). Paths may be any that Spark reads.

```python
from adapt_spark import SparkPlan

plan = SparkPlan.load(spark, "{folder}")

# batch: rows on the partitions of the plan, in a column `channel`
placed = plan.place(rows, "user")
placed.groupBy("channel", "user").count()  # no further shuffle

# stateful streaming: group by the route alone, and keep each key's state within that of its route
spark.conf.set("spark.sql.shuffle.partitions", plan.channels)  # before the first start: a checkpoint fixes it
plan.with_route(rows, "user").groupBy("route").transformWithStateInPandas(...)
```

Three pitfalls. A further `groupBy("user")` without `channel` shuffles again by Spark's own hash and undoes the plan.
In a batch grouped by `route`, adaptive execution may merge partitions: set `spark.sql.adaptive.enabled` to false (it is
off in stateful streaming). The number of shuffle partitions must be {channels}, as in the plan.
`plan.check_shuffle(spark)` checks the last two.
"""


@dataclass(frozen=True, slots=True)
class _Lookup:
    """How the hash of a key becomes its channel."""

    hash: str  # Spark's function: `xxhash64` or `hash`
    # how it is reduced: `{"modulo": n}`, `{"modulo": n, "groups": true}` or `{"shift": bits, "steps": k}`
    step: dict[str, Any]
    buckets: pa.Table | None = None  # the table to look the result up in; None if the result is the channel


def spark_bundle(plan: ExportablePlan, max_parallelism: int | None) -> Bundle:  # noqa: ARG001 - Spark has no key groups
    """Routing, pinned keys and buckets, and the program that reads them."""
    lookup = _lookup(plan)
    present = plan.explicit.column.is_valid()
    routing = {
        "schema": SCHEMA,
        "plan": plan.content_hash(),
        "channels": plan.channels,
        "key_type": plan.key_type.value,
        **({} if plan.key_type is plan.key_type.storage else {"stored": stored_key_sql(plan.key_type)}),
        "hash": lookup.hash,
        **lookup.step,
        "null_channel": plan.partitioner().channel_of(None),
        "explicit": int(np.count_nonzero(present)),
        "buckets": 0 if lookup.buckets is None else len(lookup.buckets),
        "routes": spark_routes(plan.channels).tolist(),
    }
    files = {ROUTING: File(as_json(sealed(routing)), "how a key is hashed")}
    if routing["explicit"]:
        keys, channels = plan.explicit.column.filter(present), pa.array(plan.explicit.channels).filter(present)
        files[EXPLICIT] = File(pa.table({"key": keys, "channel": channels}), "channels of the pinned keys")
    if lookup.buckets is not None:
        files[BUCKETS] = File(lookup.buckets, "channels of all other keys by hash")
    use = _USE.replace("{channels}", str(plan.channels))
    return Bundle(files, use, {PROGRAM: _PROGRAM})


def _lookup(plan: ExportablePlan) -> _Lookup:
    hashing = plan.hashing
    if hashing is Engine.SPARK:
        return _Lookup("hash", {"modulo": plan.channels})
    refused = definition_of(hashing).hash_title if isinstance(hashing, Engine) else _REFUSED.get(hashing)
    if refused is not None:
        raise BadInput(
            f"scheme {plan.scheme} cannot run on Spark, which has no expression for {refused}; build the"
            " plan with --scheme hybrid --engine spark, or export it --to plan for your own program"
        )
    if plan.hash is not HashName.XXHASH64:
        raise BadInput(
            f"Spark has no function for {plan.hash}, the hash of the plan; build it again with"
            " --engine consistent:hash=xxhash64 or, if hybrid, --engine spark"
        )
    if hashing is Scheme.CONSISTENT:
        made = ring_table(ConsistentHash(plan.channels, plan.replicas, plan.hash))
        return _Lookup("xxhash64", {"shift": made.shift, "steps": made.bounds.shape[1]}, made.table())
    if hashing is Scheme.MAGLEV:
        table = pa.array(Maglev(plan.channels, plan.hash).table)
        return _Lookup(
            "xxhash64", {"modulo": TABLE}, pa.table({"bucket": pa.array(np.arange(TABLE)), "channel_0": table})
        )
    if hashing is Scheme.KEY_GROUPS:
        return _Lookup("xxhash64", {"modulo": plan.max_parallelism, "groups": True})
    return _Lookup("xxhash64", {"modulo": plan.channels})
