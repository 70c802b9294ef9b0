"""Tables of any columns, as frames and files: each question ends in an answer or in one sentence."""

import json
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import adapt
from adapt import AdaptError
from tests.tiers import SEED, SOAK

START = datetime(2024, 1, 1)
ODD = ["it's", 'a "b"', "c\\d", "${e}", "ü\n", "\t", "", "\0", "null", "🙂", "-1", "1e3"]
NAMES = ["a", "b", "c d", "e`f", "key", "ts", "count", "ü", "select", "a.b", "_salt", "id"]
ROWS = [0, 1, 3, 50, 50, 500]
KINDS = {
    pa.string(): lambda at: f"k{at}",
    pa.large_string(): lambda at: ODD[at % len(ODD)],
    pa.dictionary(pa.int32(), pa.string()): lambda at: f"k{at}",
    pa.int8(): lambda at: at % 100 - 50,
    pa.int64(): lambda at: at << 40,
    pa.uint32(): lambda at: at + 2**31,
    pa.uint64(): lambda at: at + 2**63,
    pa.bool_(): lambda at: at == 0,
    pa.float64(): lambda at: [0.0, -0.0, 1.5, float("nan")][at % 4],
    pa.decimal128(10, 2): Decimal,
    pa.binary(): lambda at: bytes([at]),
    pa.date32(): lambda at: date(2024, 1, 1) + timedelta(at),
    pa.time64("us"): lambda at: time(1, 2, at % 60),
    pa.timestamp("s"): lambda at: START + timedelta(seconds=at),
    pa.timestamp("ns"): lambda at: START + timedelta(seconds=at),
    pa.timestamp("us", "UTC"): lambda at: START + timedelta(seconds=at),
    pa.list_(pa.int64()): lambda at: [1] * (at % 3),
    pa.struct([("a", pa.int64())]): lambda at: {"a": at},
    pa.null(): lambda _: None,
}


def column(chance, kind, rows):
    """Skewed, rising, unique or constant values, some of them null."""
    numbers = {
        "skewed": [min(99, int(chance.paretovariate(0.7)) - 1) for _ in range(rows)],
        "rising": [at // 3 % 100 for at in range(rows)],
        "constant": [1] * rows,
    }
    nulls = chance.choice([0, 0, 0.1, 1])
    values = [None if chance.random() < nulls else KINDS[kind](at) for at in chance.choice(list(numbers.values()))]
    return pa.array(values, kind)


def any_kind(chance):
    return chance.choice(list(KINDS))


def frame(chance):
    """A table of up to five columns."""
    rows, names = chance.choice(ROWS), chance.sample(NAMES, chance.randint(1, 5))
    return pa.table({name: column(chance, chance.choice([pa.string(), any_kind(chance)]), rows) for name in names})


def source(chance, asked, name="asked"):
    """A table as a frame, or as a file if its types allow it."""
    write = chance.choice([None, pa.csv.write_csv, pq.write_table, lines])
    if write is not None:
        with suppress(pa.ArrowException):
            write(asked, name)
            return name
    return asked


def lines(asked, name):
    Path(name).write_text("".join(json.dumps(row, default=str) + "\n" for row in asked.to_pylist()))


def which_key(chance):
    asked, engine = frame(chance), chance.choice(["spark", "kafka", "flink", "pulsar", "kinesis"])
    names = chance.choice(["auto", asked.column_names[0], *("+".join(pair) for pair in pairwise(asked.column_names))])
    needs = chance.choice(["", asked.column_names[0]])
    return adapt.advise.which_key(
        source(chance, asked), candidates=names, needs=needs, channels=chance.choice([1, 8]), engine=engine
    )


def join(chance):
    kind = any_kind(chance)
    left, right = (pa.table({"k": column(chance, kind, chance.choice(ROWS))}) for _ in range(2))
    right = source(chance, right if chance.random() < 0.8 else frame(chance), "right")
    return adapt.verdict(source(chance, left), join_with=right, key="k")


def verdict(chance):
    asked, engine = frame(chance), chance.choice(["spark", "kafka", "flink", "pulsar", "kinesis"])
    key, channels = chance.choice([asked.column_names[0], ",".join(asked.column_names[:2])]), chance.choice([1, 8])
    return adapt.verdict(source(chance, asked), key=key, channels=channels, engine=engine, force=True)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("question", [which_key, join, verdict])
@pytest.mark.parametrize("batch", range(10 if SOAK else 1))
def test_a_question_about_any_frame_ends_in_an_answer_or_one_sentence(tmp_path, monkeypatch, promise, question, batch):
    monkeypatch.chdir(tmp_path)
    faults, answers, cases = [], 0, 100 if SOAK else 20
    for seed in range(cases):
        named = f"{SEED} {question.__name__} {batch} {seed}"
        try:
            found = question(Random(named))
            assert found.as_data()
            answers += 1
        except AdaptError as error:
            faults += [f"{named}: {error}"] if "\n" in str(error) else []
        except Exception as error:
            faults.append(f"{named}: {error!r}")
    assert not faults, "\n".join(faults)
    assert answers
    promise("frames").checked(cases)
