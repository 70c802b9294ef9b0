"""Joins against brute force over single rows."""

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.counting.exact import KeyCounts
from adapt.core.engines.spark.hash import salted_hashes, spark_hash, spark_hash_of_key
from adapt.core.errors import BadInput, UsageError
from adapt.core.joins.adaptive import ADVISORY, FACTOR, THRESHOLD, Adaptive, parts_of, splits_of
from adapt.core.joins.answer import JoinVerdict
from adapt.core.joins.loads import Side, join_of
from adapt.core.joins.remedies import Judged
from adapt.core.stream import KeyType
from adapt.core.verdict.first_screen import Status

TEXT = KeyType.STRING
MIB = 1 << 20

rows = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=60)


def side(counts, name="left", kind=TEXT, **facts):
    """An input with so many rows of each key."""
    keys = pa.array(list(counts), pa.string() if kind.storage is TEXT else pa.int64())
    found = np.array(list(counts.values()), np.int64)
    return Side(name, ("k",), kind, KeyCounts(keys, found, int(found.sum())), **facts)


def joined(left, right, **facts):
    return join_of(side(left, **facts), side(right, "right", **facts))


def judged(left, right, partitions=8, limit=1.2, settings=None, **facts):
    return Judged(joined(left, right, **facts), partitions, limit, settings or Adaptive())


def of(found, way):
    return next(each for each in found.remedies if each.way == way)


@given(rows, rows, st.integers(1, 5))
def test_tasks_read_and_write_what_single_rows_do(left, right, partitions):
    if not set(left) & set(right):
        return
    found = judged(Counter(left), Counter(right), partitions)
    read, written = [0] * partitions, [0] * partitions
    for key in left + right:
        read[spark_hash_of_key(key.encode(), TEXT) % partitions] += 1
    for mine in left:
        for other in right:
            written[spark_hash_of_key(mine.encode(), TEXT) % partitions] += mine == other
    assert found.tasks.rows.tolist() == read
    assert found.tasks.pairs.tolist() == written
    assert np.count_nonzero(found.join.pairs) == len(set(left) & set(right))


@given(rows, rows)
def test_remedies_write_all_pairs(left, right):
    """Remedies write what the plain join does, however they spread it."""
    if not set(left) & set(right):
        return
    found = judged(Counter(left), Counter(right), 4, 1.0)
    for each in found.remedies:
        if each.largest_pairs is not None:
            tasks = 4 * 8 if each.way == "partitions" else 2 * 4
            assert each.largest_pairs * tasks >= found.tasks.pairs.sum() - 1e-9
    assert sum(each.recommended for each in found.remedies) == 1


@given(rows, rows, st.sampled_from([None, 0, MIB, 20 * MIB, 1000 * MIB]), st.sampled_from([1, 4, 200]))
def test_every_verdict_is_said(left, right, stored, partitions):
    if not set(left) & set(right):
        return
    found = JoinVerdict(judged(Counter(left), Counter(right), partitions, bytes=stored, stored=stored), is_default=True)
    assert all(found.said)
    assert json.dumps(found.as_data(), allow_nan=False)
    assert found.displayed()[0].rows
    assert bool(found.pasted) == (found.status is Status.ACT)


@given(st.lists(st.text(max_size=9), min_size=1), st.integers(0, 500))
def test_a_salted_key_has_the_hash_of_two_columns(keys, salt):
    found = salted_hashes(spark_hash(pa.array(keys)), salt)
    kind = KeyType("(string,int32)")
    wanted = [spark_hash_of_key(json.dumps([key, salt], ensure_ascii=False).encode(), kind) for key in keys]
    assert found.tolist() == wanted


def test_a_hot_key_is_split_and_the_few_rows_of_its_other_side_are_broadcast():
    left = {"hot": 100_000} | {f"k{at}": 100 for at in range(1000)}
    found = judged(left, dict.fromkeys(left, 1), 20)
    assert [found.join.keys[at].as_py() for at in found.hot] == ["hot"]
    assert found.best.way == "split"
    assert found.best.copied == 1
    assert found.best.work < 1.3 * found.mean < found.remedies[0].work
    salted = of(found, "salt")
    assert salted.copied in [2**at - 1 for at in range(1, 10)]
    assert "user" not in salted.code.pyspark


def test_a_key_that_is_hot_in_both_inputs_is_salted_where_it_has_more_rows():
    left = {"hot": 3_000_000} | {f"k{at}": 10 for at in range(1000)}
    right = {"hot": 2_000_000} | {f"k{at}": 1 for at in range(1000)}
    found = judged(left, right, 20)
    assert not of(found, "split").fits
    assert found.best.way == "salt"
    assert "salted_left = left.withColumn" in found.best.code.pyspark
    assert "explode" not in found.best.code.pyspark.splitlines()[2]


def test_without_skew_nothing_is_to_do():
    found = judged({f"k{at}": 10 for at in range(20_000)}, {f"k{at}": 1 for at in range(20_000)}, 4)
    assert found.best.way == "nothing"
    assert not len(found.hot)


def test_a_small_input_is_broadcast_by_spark_or_by_a_hint():
    left = {"hot": 100_000} | {f"k{at}": 100 for at in range(1000)}
    sized = {"bytes": 50 * MIB, "stored": 50 * MIB}
    assert judged(left, dict.fromkeys(left, 1), **sized).best.way == "broadcast"
    small = judged(left, dict.fromkeys(left, 1), **dict.fromkeys(sized, MIB))
    assert small.is_broadcast
    assert small.best.way == "nothing"


@pytest.mark.parametrize(("stored", "way"), [(MIB, "spread"), (100 * MIB, "nothing")])
def test_a_broadcast_join_whose_pairs_one_task_writes_is_spread(stored, way):
    rows = {"hot": 2000} | {f"k{at}": 1 for at in range(1000)}
    left, right = side(rows, bytes=stored, stored=stored), side(rows, "right", bytes=MIB, stored=MIB)
    found = Judged(join_of(left, right), 20, 1.2, Adaptive())
    assert found.smaller is found.join.right
    assert found.best.way == way
    assert found.remedies[1].largest_pairs == (2000**2 + 1000) / 20


def test_null_keys_are_of_no_weight_but_in_a_left_join():
    left = side({f"k{at}": 100 for at in range(1000)}, nulls=900_000)
    found = Judged(join_of(left, side({f"k{at}": 1 for at in range(1000)}, "right")), 8, 1.2, Adaptive())
    assert found.tasks.rows.sum() == 101_000
    assert found.null_rows == found.tasks.rows[42 % 8] + 900_000
    assert "has_no_key" in of(found, "nulls").code.pyspark


@pytest.mark.parametrize(
    ("left", "right", "kinds", "why"),
    [
        ({"a": 1}, {"b": 1}, (TEXT, TEXT), "no key of left is in right"),
        ({"a": 2**40}, {"a": 2**24}, (TEXT, TEXT), "make 18,446,744,073,709,551,616 pairs, 2^63 or more"),
        ({"1": 1}, {1: 1}, (TEXT, KeyType.INT64), "which Spark would cast"),
        ({1: 1}, {'["a",1]': 1}, (KeyType.INT64, KeyType("(string,int32)")), "1 column in left and 2 in right"),
    ],
)
def test_inputs_that_do_not_join_are_refused(left, right, kinds, why):
    with pytest.raises(BadInput, match=why.replace("^", r"\^")):
        join_of(side(left, kind=kinds[0]), side(right, "right", kinds[1]))


def test_whole_numbers_of_two_widths_are_compared_as_the_wider():
    found = join_of(side({7: 1}, kind=KeyType.INT16), side({7: 3}, "right", KeyType.INT64))
    assert found.left.key_type is found.right.key_type is KeyType.INT64
    assert found.pairs.tolist() == [3]


def test_partitions_above_both_limits_are_split():
    sizes = np.array([100.0, 100, 100, 100, 2000]) * MIB
    found = splits_of(sizes, 40, Adaptive())
    assert found.limit == 500 * MIB
    assert found.parts.tolist() == [1, 1, 1, 1, 20]  # two pieces of 50 MiB make the mean of the others
    assert found.largest[-1] == pytest.approx(0.05)
    assert splits_of(sizes, 1, Adaptive()).parts.tolist() == [1] * 5
    assert splits_of(sizes, 40, Adaptive(is_on=False)).parts.tolist() == [1] * 5
    assert splits_of(sizes / 10, 40, Adaptive()).parts.tolist() == [1] * 5


@given(st.lists(st.floats(0, 100), min_size=1, max_size=30), st.floats(1, 200))
def test_parts_hold_all_pieces(pieces, target):
    found = parts_of(pieces, target)
    assert sum(found) == pytest.approx(sum(pieces))
    assert 1 <= len(found) <= len(pieces)


def test_settings_of_a_session_are_read():
    found = Adaptive.from_conf(
        {THRESHOLD: "64MB", ADVISORY: "1g", FACTOR: "2.5", "spark.sql.adaptive.enabled": "false"}
    )
    assert found == Adaptive(is_on=False, factor=2.5, threshold=64 * MIB, advisory=1 << 30)
    for name, text in ((THRESHOLD, "many"), (FACTOR, "x")):
        with pytest.raises(UsageError, match=name):
            Adaptive.from_conf({name: text})
