"""Export of plans to Spark: a hash expression and small joined tables."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from adapt.core.engines.bundle import Bundle, File, Program
from adapt.core.engines.exporter import ExportablePlan
from adapt.core.engines.names import Engine
from adapt.core.engines.registry import definition_of
from adapt.core.engines.spark.ring_table import ring_table
from adapt.core.engines.spark.routes import spark_routes
from adapt.core.engines.spark.stored_keys import stored_key_sql
from adapt.core.errors import BadInput
from adapt.core.keys.names import HashName
from adapt.core.partitioning.schemes.consistent import ConsistentHash
from adapt.core.partitioning.schemes.maglev import TABLE, Maglev
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.units.seals import as_json, sealed

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
