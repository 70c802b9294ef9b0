"""Rekey tables of plans over an engine's own hash."""

from collections.abc import Callable, Iterable
from itertools import chain
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.engines.exporter import ExportablePlan
from adapt.core.engines.names import AnyScheme, Engine, shards_of
from adapt.core.engines.registry import definition_of
from adapt.core.engines.rekey.marks import Mark, mark_for
from adapt.core.engines.rekey.table import Job, RekeyTable
from adapt.core.errors import BadInput, UsageError
from adapt.core.keys.partitioner import AtRandom, Channels
from adapt.core.stream import KeyType

Place: TypeAlias = Callable[[pa.Array], Channels]
"""The channel of each key of a column."""

CANDIDATES = 1 << 19
"""Candidates hashed at once."""


def replacements(keys: pa.Array, channels: Channels, place: Place, mark: Mark) -> pa.Array:
    """The first replacement of each key that lands on its channel.

    Args:
        keys: Without null; a key may occur several times, with different channels.
        channels: The channel wanted for each; shape (keys,).

    Returns:
        A replacement for each key, by number of the mark; shape (keys,).
    """
    left = np.arange(len(keys))
    rows: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
    found: list[pa.Array] = []
    first = 0
    while len(left):
        size = min(max(CANDIDATES // len(left), 1), mark.most - first)
        if size <= 0:
            key, channel = keys[int(left[0])].as_py(), int(channels[left[0]])
            raise UsageError(f"none of {first:,} replacements of key {key!r} lands on channel {channel}")
        candidates = mark.marked(keys.take(pa.array(left)), first, size)
        hits = place(candidates).reshape(len(left), size) == channels[left][:, None]
        done = hits.any(axis=1)
        found.append(candidates.take(pa.array(np.flatnonzero(done) * size + hits.argmax(axis=1)[done])))
        rows.append(left[done])
        left, first = left[~done], first + size
    if not rows:
        return keys
    back = np.argsort(np.concatenate(rows))
    return pa.concat_arrays(found).take(pa.array(back))


def rekey_table(
    plan: ExportablePlan,
    engine: AnyScheme | None = None,
    keys: Iterable[pa.Array] = (),
    trace: str | None = None,
    separator: str | None = None,
    max_parallelism: int | None = None,
) -> RekeyTable:
    """The replacements of a plan's pinned and split keys.

    A pinned key whose own channel is the planned one needs no replacement. The null key stays where the engine has it.

    Args:
        engine: The engine of the job (default: that under the plan).
        keys: Keys of the trace in blocks, which the mark must not occur in (default: only those of the plan).
        trace: Fingerprint of that trace.
        separator: The separator of suffixes (default: the first that no key uses).
        max_parallelism: The key groups of the job (default: the plan's, and no others).
    """
    if max_parallelism not in (None, plan.max_parallelism):
        own = plan.max_parallelism
        raise UsageError(
            f"--max-parallelism {max_parallelism} is not that of the plan ({own or 'none'}); build the plan with it"
        )
    job = _job_of(plan, engine)
    owners, channels = _wanted(plan)
    mark = mark_for(chain([owners], keys), plan.key_type, job.channels, separator)
    natural = job.channels_of(owners) == channels
    split = pc.is_in(owners, value_set=plan.splits.column).to_numpy(zero_copy_only=False)
    elsewhere = np.flatnonzero(~natural)
    new = replacements(owners.take(pa.array(elsewhere)), channels[elsewhere], job.channels_of, mark)
    rows = np.concatenate((elsewhere, np.flatnonzero(natural & split)))
    order = np.argsort(rows)
    both = pa.concat_arrays([new, owners.filter(pa.array(natural & split))]).take(pa.array(order))
    kept = owners.take(pa.array(rows[order]))
    firsts = np.flatnonzero(np.append(True, pc.not_equal(kept[1:], kept[:-1]))) if len(kept) else np.zeros(0, np.int64)
    offsets = np.append(firsts, len(kept)).astype(np.int64)
    return RekeyTable(job, plan.content_hash(), trace, mark, kept.take(pa.array(firsts)), both, offsets)


def _wanted(plan: ExportablePlan) -> tuple[pa.Array, Channels]:
    """Each key with each channel that it is to reach, in key order."""
    pinned = plan.explicit.column.is_valid()
    keys = pa.concat_arrays([plan.explicit.column.filter(pinned), plan.splits.keys_of_places])
    channels = np.concatenate((plan.explicit.channels[pinned.to_numpy(zero_copy_only=False)], plan.splits.channels))
    order = pc.sort_indices(keys)  # stable
    return keys.take(order), channels[order.to_numpy()]


def _job_of(plan: ExportablePlan, engine: AnyScheme | None) -> Job:
    """The job of a plan's engine."""
    base, wanted = plan.hashing, engine or plan.hashing
    if not isinstance(wanted, Engine) or base is not wanted:
        raise BadInput(
            f"scheme {plan.scheme} has the other keys on {base}, but replacements need the engine's own hash; build it"
            f" with --scheme hybrid --engine {wanted if isinstance(wanted, Engine) else 'ENGINE, such as kafka'}"
        )
    if definition_of(wanted).at_random is AtRandom.ALL:
        raise BadInput(
            f"scheme {plan.scheme} is over {wanted}, which places every key at random; use another partitioner"
        )
    if shards_of(wanted):
        raise BadInput(
            f"scheme {plan.scheme} is over a list of shards, which a rekey table cannot name; export it --to plan"
        )
    if plan.key_type is not plan.key_type.storage:
        raise BadInput(
            f"a rekey table cannot replace {plan.key_type} keys by keys of their type; ingest them as string(...) or"
            " bigint(...), if the job groups by that"
        )
    if wanted is Engine.FLINK and plan.key_type is KeyType.BINARY:
        raise BadInput(
            f"scheme {plan.scheme} has keys of bytes, which Flink has not; count the keys as text, such as hex"
        )
    return Job(wanted, plan.channels, plan.max_parallelism)
