"""`adapt advise which-key` against an exhaustive search, with exact counts and CRC32."""

import json
import zlib
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import adapt
from adapt.core.engines.names import Engine
from adapt.core.errors import BadInput, UsageError
from adapt.traces.which_key import Question, which_key
from tests.claims.real_columns import flights, messages, reviews, taxi, wiki
from tests.tiers import SOAK, soak

WORKERS = 8
REAL = [
    *[("flights/flights.csv.gz", flights, needs) for needs in ("", "tailnum", "route", "dest")],
    *[("taxi/taxi-traces.csv", taxi, needs) for needs in ("", "taxi")],
    *[("reviews/anonreviews.csv.bz2", reviews, needs) for needs in ("", "vendorId")],
    *[("wiki-edits/wikiticker-2015-09-12-sampled.json.gz", wiki, needs) for needs in ("user", "channel")],
    *[("messages/CollegeMsg.txt", messages, needs) for needs in ("pair", "sender")],
]


def generated(seed, rows=12_000):
    """Orders of users in cities, with ids, sessions and days."""
    chance = np.random.default_rng(seed)
    users = chance.zipf(1.2 + seed / 20, rows) % 3000
    cities = (users * 2654435761 % 2**32) % int(chance.integers(20, 400))
    columns = {
        "user": users,
        "city": cities,
        "country": cities % 12,
        "order": chance.permutation(rows),
        "session": np.arange(rows) // 40 * 7919 % 100_003,
        "day": np.arange(rows) // 500,
        "page": chance.zipf(1.5, rows) % 500,
        "shade": chance.integers(0, int(chance.integers(30, 3000)), rows),
    }
    table = pa.table({name: pa.array(each).cast(pa.string()) for name, each in columns.items()})
    gaps = chance.random(rows) < 0.2
    return table.append_column("coupon", pa.array(users % 97, mask=gaps).cast(pa.string()))


def frame_of(table, times):
    """The rows in time order, all as text, with a time each."""
    rows = table.take(pa.array(np.argsort(times, kind="stable")))
    rows = rows.select(
        [each.name for each in rows.schema if each.name != "time" and not pa.types.is_floating(each.type)]
    )
    text = pa.table(
        {name: rows[name].combine_chunks().cast(pa.string()) for name in rows.column_names if name != "time"}
    )
    return text.append_column("ts", pa.array(1_600_000_000_000_000 + np.arange(len(rows)), pa.timestamp("us", "UTC")))


@dataclass(frozen=True)
class Exact:
    """A candidate by exact counts."""

    later: float
    pooled: float  # imbalance of all later rows
    keys: int
    nulls: float
    top_share: float
    fits: bool


def exact(frame, needs):
    """Every column by exact counts."""
    values, rows, found = frame.drop(columns="ts"), len(frame), {}
    pane = -(-rows // 12)
    window = np.arange(rows) // pane
    for name in values:
        column = values[name]
        keys = column.fillna("")
        worker = keys.map({key: zlib.crc32(key.encode()) % WORKERS for key in keys.unique()}).to_numpy()
        loads = np.array([np.bincount(worker[window == at], minlength=WORKERS) for at in range(6, 12)])
        spans = pd.DataFrame({"key": keys, "window": window}).groupby("key")["window"]
        passing = (spans.transform("min") == spans.transform("max")).mean()
        known = column.dropna()
        ranks = pd.to_numeric(known, errors="coerce")
        ranks = (known if ranks.isna().any() else ranks).rank()
        rises = ranks.nunique() > 1 and abs(np.corrcoef(ranks, known.index)[0, 1]) > 0.95
        told = values.dropna(subset=[needs]) if needs else values
        meets = not needs or (told.groupby(needs)[name].nunique(dropna=False) <= 1).all()
        later = column[window >= 6]
        found[name] = Exact(
            float(np.median(loads.max(axis=1) * WORKERS / loads.sum(axis=1))),
            float(loads.sum(axis=0).max() * WORKERS / loads.sum()),
            column.nunique(dropna=False),
            float(column.isna().mean()),
            later.value_counts(dropna=False).iloc[0] / len(later),
            bool(
                meets
                and column.isna().mean() <= 0.5
                and column.nunique() > 1
                and column.nunique() < 0.9 * len(known)
                and not rises
                and passing < 0.95
            ),
        )
    return found


def check(table, needs):
    found = which_key([table], Question("auto", (needs,) if needs else (), CRC32, WORKERS, "ts"), None, lambda *_: None)
    truth = exact(table.to_pandas(), needs)
    fit = {name: each.later for name, each in truth.items() if each.fits}
    if not fit:
        assert found.recommended is None
        return
    assert found.recommended.key in fit
    assert fit[found.recommended.key] <= 1.05 * min(fit.values())
    for each in found.candidates:
        if each.salts == 1 and each.key != "ts":
            own = truth[each.key]
            assert each.later == pytest.approx(own.later, rel=1e-12)
            assert each.nulls == pytest.approx(own.nulls)
            assert each.keys == pytest.approx(own.keys, rel=0 if own.keys < 2048 else 0.1)
            assert each.top_share - 1e-12 <= own.top_share <= each.top_share + each.top_error + 1e-12
            assert 1 <= each.best <= own.pooled + 1e-9


CRC32 = Engine("librdkafka:consistent")


@pytest.mark.parametrize("needs", ["", "user", "session"])
def test_the_best_key_of_generated_rows_is_recommended(needs):
    check(frame_of(generated(3), np.arange(12_000)), needs)


@soak
@pytest.mark.parametrize("seed", range(8))
def test_the_best_key_of_many_generated_rows_is_recommended(seed):
    check(frame_of(generated(seed, 60_000), np.arange(60_000)), ("", "user", "coupon")[seed % 3])


@pytest.mark.parametrize(("file", "read", "needs"), REAL if SOAK else REAL[-1:])
def test_the_best_key_of_real_rows_is_recommended(real_traces, file, read, needs):
    check(frame_of(*read(real_traces(file))), needs)


def test_a_pair_and_salts_are_placed_as_if_they_were_a_column(tmp_path):
    table = frame_of(generated(1), np.arange(12_000))
    rows = table.to_pandas()
    pair, salted = (np.array(each) for each in (rows["city"] + "," + rows["page"], rows["page"]))
    found = adapt.advise.which_key(table, candidates="city+page,page#4,page", channels=5, time="ts")
    by_name = {each.key: each for each in found.candidates}
    assert by_name["city+page"].keys == pytest.approx(len(set(pair)), rel=0.1)
    assert by_name["page#4"].keys == 4 * len(set(salted))
    assert by_name["page#4"].top_share == pytest.approx(by_name["page"].top_share / 4)
    assert by_name["page#4"].later < by_name["page"].later
    needed = adapt.advise.which_key(table, candidates="page#4,page", needs="page", channels=5, time="ts")
    assert needed.recommended.key == "page"
    assert {each.key: each.against for each in needed.candidates}["page#4"] == "splits equal page: merge results"


@pytest.mark.parametrize("engine", ["kafka", "flink", "pulsar", "spark"])
def test_a_pair_is_judged_as_the_key_that_its_expression_makes(tmp_path, engine, spark):
    table = frame_of(generated(2), np.arange(12_000)).select(["coupon", "page", "ts"])
    table = table.append_column("shop", pa.array(np.arange(12_000) % 12))
    pq.write_table(table, tmp_path / "orders.parquet")
    found = adapt.advise.which_key(
        tmp_path / "orders.parquet", candidates="coupon+shop,page", engine=engine, channels=WORKERS, time="ts"
    )
    pair = next(each for each in found.candidates if each.columns == 2)
    assert pair.as_key == ("coupon, shop" if engine == "spark" else "concat(coupon, '|', shop)")
    assert found.table().note.endswith("null where a column is.") == (engine != "spark")
    own = adapt.ingest(
        tmp_path / "orders.parquet", key=pair.as_key, time="ts", out=tmp_path / "pairs.trace", force=True
    )
    (built,) = adapt.advise.which_key(own, engine=engine, channels=WORKERS).candidates
    same = ("later", "worst", "best", "keys", "top_share", "drift", "new_keys")
    assert [getattr(pair, name) for name in same] == pytest.approx([getattr(built, name) for name in same], rel=0.03)
    assert (pair.later, pair.worst) == (built.later, built.worst)
    assert pair.nulls == pytest.approx(table["coupon"].null_count / 12_000)


def test_a_trace_is_judged_by_its_key_and_the_columns_that_it_keeps(tmp_path):
    table, file = frame_of(generated(2), np.arange(12_000)), tmp_path / "orders.parquet"
    pq.write_table(table, file)
    made = adapt.ingest(file, key="city,shade", time="ts", keep=["user", "page"], out=tmp_path / "orders.trace")
    kept = adapt.advise.which_key(made, channels=WORKERS)
    raw = adapt.advise.which_key(file, candidates="user,city+shade,page", channels=WORKERS, time="ts")
    assert {each.later for each in kept.candidates} == {each.later for each in raw.candidates}
    assert {each.key for each in kept.candidates} == {"key", "user", "page"}


def test_rows_that_the_engine_places_at_random_are_no_hot_key():
    table, codes = frame_of(generated(5), np.arange(12_000)), np.arange(12_000) * 7919 % 12_000
    codes = pa.array(codes % 100, mask=codes % 10 < 4).cast(pa.string())
    (code,) = adapt.advise.which_key(
        table.append_column("code", codes), candidates="code", engine="kafka", channels=WORKERS, time="ts"
    ).candidates
    assert code.nulls == pytest.approx(0.4)
    assert code.top_share == pytest.approx(0.01, abs=0.001)
    assert code.best < 1.05


def test_sampled_keys_are_the_same_however_often_they_are_summed(monkeypatch):
    table = frame_of(generated(6, 60_000), np.arange(60_000))
    once = adapt.advise.which_key(table, channels=WORKERS, time="ts")
    monkeypatch.setattr("adapt.core.advice.candidates.MOST_SEEN", 0)
    assert adapt.advise.which_key(table, channels=WORKERS, time="ts").candidates == once.candidates


def test_few_rows_are_judged_in_sample():
    found = adapt.advise.which_key(
        frame_of(generated(0, 2000), np.arange(2000)), candidates="page", channels=3, time="ts"
    )
    assert found.later_windows == 0
    assert any("In-sample" in each for each in found.said)


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"candidates": "usr"}, UsageError, "candidate 'usr' does not exist; did you mean 'user'"),
        ({"candidates": "same,user"}, BadInput, "candidate 'same' has one value in all 12,000 rows; omit it"),
        (
            {"candidates": "page,shade", "needs": "user"},
            BadInput,
            "no candidate keeps rows with equal user on one",
        ),
        ({"candidates": "order"}, BadInput, "all candidates have a new value in at least 90 % of rows"),
        ({"candidates": "nested"}, UsageError, "candidate 'nested' is nested"),
        ({"candidates": "raw"}, UsageError, "candidate 'raw' is of type binary"),
        ({"needs": "usr"}, UsageError, "--needs 'usr' does not exist or cannot be a key"),
        ({"candidates": "a+b+c"}, UsageError, "candidate 'a' does not exist"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(options, error, sentence):
    table = frame_of(generated(4), np.arange(12_000))
    page = (np.arange(12_000) % 50).astype(str)
    table = table.set_column(table.column_names.index("page"), "page", pa.array(page))
    table = table.append_column("same", pa.array(["x"] * 12_000)).append_column("raw", pa.array([b"x"] * 12_000))
    table = table.append_column("nested", pa.array([{"a": 1}] * 12_000))
    with pytest.raises(error, match=sentence.replace("+", r"\+")):
        adapt.advise.which_key(table, channels=4, time="ts", **options)


def test_auto_takes_at_most_200_columns():
    table = pa.table({f"c{at}": [1, 2] for at in range(201)})
    with pytest.raises(UsageError, match="at most 200 columns"):
        adapt.advise.which_key(table, channels=4)


def test_lists_in_json_are_left_out_of_auto_and_refused_where_they_are_named(tmp_path, spark):
    named = [{"user": f"u{at % 7}", "city": f"c{at % 5}", "tags": ["x"]} for at in range(300)]
    lines = [{"at": 1_700_000_000 + at, **each, "late": None} for at, each in enumerate(named)]
    lines += [{**each, "late": [each["user"]]} for each in lines]
    (tmp_path / "tags.jsonl").write_text("\n".join(map(json.dumps, lines)))
    found = adapt.advise.which_key(tmp_path / "tags.jsonl", channels=4)
    assert {each.key for each in found.candidates} == {"at", "user", "city"}
    assert found.skipped == ("tags (list)", "late (array<string>)")
    assert found.said[-1].endswith("type: tags (list), late (array<string>).")
    for name, sentence in (("tags", "is nested"), ("late", "has type array<string>")):
        with pytest.raises(UsageError, match=f"candidate '{name}' {sentence}; a key must be"):
            adapt.advise.which_key(tmp_path / "tags.jsonl", channels=4, candidates=name)


def test_columns_of_a_spark_data_frame_are_judged(spark):
    rows = frame_of(generated(2), np.arange(12_000)).select(["user", "city", "page", "ts"])
    frame = spark.createDataFrame(rows.to_pandas()).withColumn("nested", F.array("user"))
    found = adapt.advise.which_key(frame, channels=WORKERS, needs="user")
    local = adapt.advise.which_key(rows, channels=WORKERS, needs="user")
    assert found.candidates == local.candidates
    assert found.skipped == (*local.skipped, "nested (list<element: string>)")
