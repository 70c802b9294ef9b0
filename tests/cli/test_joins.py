"""`adapt verdict --join-with`: inputs of all kinds, and what is refused."""

from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import adapt as package

RNG = np.random.default_rng(5)
USERS = [None if user == 9 else f"u{user}" for user in np.where(RNG.random(4000) < 0.5, 3, RNG.integers(0, 90, 4000))]
DAYS = [int(day) for day in RNG.integers(0, 3, 4000)]
LEFT = pa.table({"user": USERS, "day": pa.array(DAYS, pa.int32()), "v": np.arange(4000)})
RIGHT = pa.table({"id": [f"u{at}" for at in range(40, -1, -1)], "day": pa.array([1] * 41, pa.int64()), "w": [0.5] * 41})
OFF = ("--spark-conf", "spark.sql.autoBroadcastJoinThreshold=-1", "--channels", 8)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(LEFT, "left.parquet")
    pq.write_table(RIGHT, "right.parquet")
    pa.csv.write_csv(LEFT, "left.csv")
    pa.csv.write_csv(RIGHT, "right.csv")
    LEFT.to_pandas().to_json("left.jsonl", orient="records", lines=True)
    counts = Counter(user for user in USERS if user)
    pa.csv.write_csv(pa.table({"user": list(counts), "n": list(counts.values())}), "counts.csv")
    return tmp_path


PAIRS = sum(user is not None and int(user[1:]) <= 40 for user in USERS)


@pytest.mark.parametrize("name", ["left.parquet", "left.csv", "left.jsonl"])
@pytest.mark.parametrize("other", ["right.parquet", "right.csv"])
def test_files_of_all_formats_make_the_same_pairs(adapt, files, name, other):
    found = adapt.json("verdict", name, "--join-with", other, "--key", "user", "--right-key", "id", *OFF)
    assert found["pairs"] == PAIRS
    assert found["left"]["null_keys"] == USERS.count(None)
    assert found["right"]["unique"]
    assert [each["key"] for each in found["hot_keys"]] == ["u3"]
    assert found["status"] == "act"


def test_counts_and_traces_make_the_same_pairs_as_rows(adapt, files):
    adapt.done("generate", "zipf", "--rows", 500, "--keys", 50, "-o", "z.trace")
    rows = adapt.json("verdict", "z.trace", "--join-with", "z.trace")
    adapt.done("partition", "count", "z.trace", "--method", "exact", "-o", "z.freq")
    counted = adapt.json("verdict", "z.freq", "--join-with", "z.trace")
    assert counted["pairs"] == rows["pairs"] > 500
    told = adapt.json(
        *("verdict", "counts.csv", "--count", "n", "--join-with", "right.csv"), "--key", "user", "--right-key", "id"
    )
    assert told["pairs"] == PAIRS
    assert told["adaptive_splits"] is None


def test_a_key_of_two_columns_has_no_partner_where_one_is_null(adapt, files):
    keys = ("--key", "user,day", "--right-key", "id,day")
    found = adapt.json("verdict", "left.parquet", "--join-with", "right.parquet", *keys)
    wanted = sum(day == 1 and user is not None and int(user[1:]) <= 40 for user, day in zip(USERS, DAYS, strict=True))
    assert found["pairs"] == wanted
    assert found["left"]["key_type"] == "(string,int64)"  # the wider of two whole numbers
    assert found["left"]["null_keys"] == USERS.count(None)


@pytest.mark.parametrize("kind", [pd.DataFrame, pa.Table])
def test_frames_are_joined_in_python(kind):
    left, right = (each.to_pandas() if kind is pd.DataFrame else each for each in (LEFT, RIGHT))
    found = package.verdict(left, join_with=right, key="user", right_key="id", channels=8)
    assert int(found.judged.join.pairs.sum()) == PAIRS
    assert found.judged.best.code.pyspark in found.pasted
    assert "Remedies" in repr(found)


def test_the_verdict_says_what_to_paste(adapt, files):
    said = adapt.done("verdict", "left.csv", "--join-with", "right.csv", "--key", "user", "--right-key", "id", *OFF)
    assert said.out.startswith("Verdict: Broadcast right.csv: the largest of 8 tasks has ")
    assert 'left.join(F.broadcast(right), F.expr("user = id"))' in said.out
    assert "No key occurs twice in right.csv." in said.out
    assert "under spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes" in " ".join(said.out.split())


@pytest.mark.parametrize(
    ("line", "code", "why"),
    [
        ("left.csv --join-with right.csv --key usr", 2, "--key: left.csv has no column 'usr'; did you mean 'user'?"),
        ("left.csv --join-with right.csv --key user", 2, "--key: right.csv has no column 'user'"),
        ("left.csv --join-with right.csv", 2, "--key is required"),
        ("left.parquet --join-with right.parquet --key day --right-key w", 2, "'w' is of type double"),
        ("left.parquet --join-with right.parquet --key user --right-key day", 3, "which Spark would cast"),
        ("left.csv --join-with right.csv --key day --right-key id", 3, "no key of left.csv is in right.csv"),
        ("left.csv --join-with none.csv --key user", 3, "none.csv"),
        ("left.csv --join-with right.csv --key user --engine flink", 2, "joins in Spark, not in flink"),
        ("left.csv --join-with right.csv --key user --mergeable", 2, "--mergeable has no effect with --join-with"),
        ("left.csv --join-with right.csv --key user --time v", 2, "--time has no effect with --join-with"),
        ("left.csv --join-with right.csv --key user -o x.trace", 2, "--out has no effect with --join-with"),
        ("left.csv --right-key id --key user --channels 2", 2, "--right-key has no effect without --join-with"),
        ("left.csv --join-with - --key user", 2, "cannot be an input of a join"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(adapt, files, line, code, why):
    assert why in adapt.refused(code, "verdict", *line.split())
