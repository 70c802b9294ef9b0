"""Rows of split keys: dealt and merged as the plain loop does it, however the stream is cut."""

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.errors import UsageError
from adapt.core.keys.hashes import HASHES
from adapt.core.keys.names import HashName
from adapt.core.partitioning.splitting.names import Splitting
from adapt.core.partitioning.splitting.split import choices_of
from adapt.core.stage.input.keyed_rows import Reading
from adapt.core.stage.input.mini_partitions import MiniPartitions
from adapt.core.stage.input.row_costs import RowCosts
from adapt.core.stage.input.split_rows import SplitKeys

PER_WORKER, MERGE_S = 3, 1.0


def chunks(keys, times, cuts, split, workers, cost=None):
    """The tuples of a stream cut at some rows."""
    columns = {"ts": pa.array((np.asarray(times) * 1e6).astype(np.int64)), "key": pa.array(keys)}
    if cost is not None:
        columns["cost_us"] = pa.array(cost)
    batch = pa.record_batch(columns)
    edges = [0, *sorted(cuts), len(keys)]
    batches = [batch.slice(first, end - first) for first, end in pairwise(edges)]
    costs = None if cost is None else RowCosts("cost_us")
    reading = Reading(MiniPartitions(workers, PER_WORKER), 1.0, costs, split=split)
    return list(reading.rows(lambda: iter(batches)).chunks())


def joined(parts, name):
    return np.concatenate([getattr(part, name) for part in parts])


def plainly(keys, times, producers, split, workers):
    """Row by row: the worker of each, and what merges each period, as (time, worker that sends, worker that merges)."""
    sent = np.zeros((workers, workers))
    parts, rows, period = defaultdict(set), [], 0
    since = times[0]
    for key, time, producer in zip(keys, times, producers, strict=True):
        now = int((time - since) // MERGE_S)
        if now != period:
            rows += merged(parts, period, workers)
            parts, period = defaultdict(set), now
        is_heavy = key in split.heavy.to_pylist()
        many = {Splitting.PKG: 2, Splitting.W_CHOICES: workers if is_heavy else 2}[split.splitting]
        allowed = choices_of(pa.array([key]), np.array([many]), np.array([many == workers and is_heavy]), workers)
        best = min(allowed.channels.tolist(), key=sent[producer].tolist().__getitem__)  # the first of equals
        sent[producer, best] += 1
        parts[key].add(best)
        rows.append((time - since, producer, best))
    return rows


def rounded(rows, per_worker):
    return sorted((round(1e6 * float(due)), int(sender), int(group) // per_worker) for due, sender, group in rows)


def merged(parts, period, workers):
    told = []
    for key, at in parts.items():
        home = int(HASHES[HashName.MURMUR3].modulo(pa.array([key]), workers)[0])
        first, *others = sorted(at, key=lambda worker: (worker - home) % workers)
        told += [((period + 1) * MERGE_S, worker, first) for worker in others]
    return told


@settings(max_examples=30 * settings.default.max_examples // 100)
@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from((0.0, 0.25, 1.5))), min_size=1, max_size=30),
    st.sampled_from([Splitting.PKG, Splitting.W_CHOICES]),
    st.integers(2, 5),
    st.sets(st.integers(0, 30), max_size=3),
)
def test_rows_are_dealt_and_merged_as_the_plain_loop_does_it(steps, splitting, workers, cuts):
    keys = [key for key, _ in steps]
    times = np.cumsum([wait for _, wait in steps])
    split = SplitKeys(splitting, pa.array(["a", "b"]), MERGE_S)
    whole = chunks(keys, times, [], None, workers)
    found = chunks(keys, times, [cut for cut in cuts if cut < len(keys)], split, workers)
    expected = plainly(keys, times, joined(whole, "producers"), split, workers)
    dealt = (joined(found, name) for name in ("due_s", "producers", "groups"))
    assert rounded(zip(*dealt, strict=True), PER_WORKER) == rounded(expected, 1)
    assert (np.diff(joined(found, "due_s")) >= 0).all()


def test_a_merge_tuple_goes_where_its_key_has_its_group():
    """So that all that is known of a key ends in one place."""
    split = SplitKeys(Splitting.W_CHOICES, pa.array(["hot"]), MERGE_S)
    parts = chunks(["hot"] * 50 + ["hot"], [0.0] * 50 + [2.0], [], split, 4)
    groups, due = joined(parts, "groups"), joined(parts, "due_s")
    merges = groups[due == MERGE_S]
    assert len(merges) == 3
    assert len(set(merges.tolist())) == 1
    assert set(merges.tolist()) <= set(groups[due == 0].tolist())


def test_a_merge_tuple_costs_what_rows_do_on_average():
    split = SplitKeys(Splitting.W_CHOICES, pa.array(["hot"]), MERGE_S)
    parts = chunks(["hot"] * 40 + ["hot"], [0.0] * 40 + [2.0], [], split, 4, [100.0, 300.0] * 20 + [200.0])
    costs, due = joined(parts, "cost_s"), joined(parts, "due_s")
    assert costs[due == MERGE_S] == pytest.approx(200e-6)


@pytest.mark.parametrize("said", [{"merge_s": 0.0}, {"merge_s": 1.0, "choices": 1}])
def test_what_cannot_be_is_refused(said):
    with pytest.raises(UsageError, match="got"):
        SplitKeys(Splitting.PKG, pa.array(["a"]), **said)
