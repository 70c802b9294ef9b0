"""Every command on a few rows, keys and channels: an answer or one sentence, never a bug or a warning."""

import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapt.core.reading import Rejects
from adapt.traces.ingest.finalize import settle
from adapt.traces.spark.progress import silent
from adapt.traces.store.manifest import Provenance
from tests.any_trace import VISITS, two_halves
from tests.tiers import SOAK

LIGHT = [
    "verdict x.trace --channels N --engine ENGINE --all",
    "verdict x.trace --channels N --max-pins 2 --format json",
    "partition count x.trace --channels N -o OUT/x.freq",
    "partition count x.trace --method exact --format json",
    "partition count x.trace --over time",
    "partition build x.trace --channels N --engine BASE -o OUT/x.plan --all",
    "partition build x.trace --channels N --scheme SCHEME --resources QQQ -o OUT/y.plan",
    "partition build x.trace --channels N --exact --weight count -o OUT/z.plan",
    "partition build counts.csv --channels N --resources QQQ",
    "partition compare x.trace --channels N,M --all",
    "partition compare counts.csv --channels N",
    "partition evaluate x.trace OUT/x.plan --format json",
    "partition diff x.trace OUT/x.plan OUT/z.plan",
    "partition export OUT/x.plan --to plan -o OUT/export",
    "partition route OUT/x.plan keys",
    "partition tolerance --channels N --total M --capacity N",
    "report x.trace",
    "report x.trace --html OUT/page.html",
    "report OUT/x.plan --verify",
    "lint x.trace --format json",
    "check x.trace --limit imbalance<=2",
    "advise keys x.trace --parallelism N",
    "advise workers --rate M --shed N@60s",
    "clean .",
]
"""Command lines that take milliseconds. `generate` has rows of its own."""

REPLAYS = [
    "generate zipf --rows M --keys N -o OUT/zipf.trace",
    "generate uniform --rows 1 --keys 1 -o OUT/one.trace",
    "replay repartition x.trace --channels N --period 2rows -o OUT/r.run",
    "replay repartition x.trace --schedule 0h:N,1h:M -o OUT/s.run",
    "replay repartition x.trace --channels N --period 1s --window 2rows --trigger worth --live -o OUT/p.run",
    "replay flux x.trace --workers N --partitions M -o OUT/f.run",
    "replay elastic x.trace --pool N -o OUT/e.run",
    "replay fit x.trace --network net.toml -o OUT/fit.run",
    "replay ordered x.trace --chain chain.toml --workers 1 --repeats 1 -o OUT/o.run",
    "replay compare x.trace --channels N --seeds 1 --jobs 1 --scenario split-pkg -o OUT/c.run",
    "report OUT/e.run OUT/f.run OUT/fit.run OUT/c.run",
    "check OUT/e.run --limit p99_ms<=2",
]
"""Command lines that take longer."""

CASES = 2000 if SOAK else 6


def random_rows(chance: np.random.Generator) -> pa.Table:
    """Up to 30 rows of all kinds that may go wrong: one time, no key, no weight, huge weights."""
    rows = int(chance.integers(1, 31)) if chance.random() < 0.5 else int(chance.integers(1, 5))
    numbers = chance.integers(0, chance.integers(1, 31), rows)
    kind = chance.choice(["string", "int64", "binary"])
    keys = {"string": [f"k{at}" if at else "" for at in numbers], "int64": numbers.tolist()}
    keys["binary"] = [text.encode() for text in keys["string"]]
    nulls = chance.random(rows) < chance.choice([0.0, 0.0, 0.3, 1.0])
    made = [None if is_null else key for key, is_null in zip(keys[kind], nulls, strict=True)]
    steps = chance.integers(0, chance.choice([1, 2, 1_000_000, 10**13]), rows)
    columns = {
        "ts": pa.array(chance.choice([0, 1_700_000_000_000_000]) + np.cumsum(steps), pa.timestamp("us", "UTC")),
        "key": pa.array(made, {"string": pa.string(), "int64": pa.int64(), "binary": pa.binary()}[kind]),
    }
    if chance.random() < 0.5:
        columns["cost_us"] = pa.array(
            chance.random(rows) * chance.choice([0, 1e-300, 1, 1e6, 1e17]), pa.float64(), mask=nulls
        )
    if chance.random() < 0.5:
        columns["bytes"] = pa.array(chance.integers(0, chance.choice([1, 10, 2**57]), rows), pa.int64())
    return pa.table(columns)


@pytest.mark.parametrize("seed", range(CASES))
def test_no_command_fails_on_a_few_rows(adapt, tmp_path, monkeypatch, seed):
    monkeypatch.chdir(tmp_path)
    chance = np.random.default_rng(seed)
    Path("x.trace").mkdir()
    pq.write_table(random_rows(chance), "x.trace/part-00000.parquet", write_page_checksum=True)
    settle(Path("x.trace"), Provenance("a test"), Rejects(), lambda written: written.profiled(None, silent))
    counts = chance.integers(0, chance.choice([2, 30, 10**12, 2**57]), chance.integers(1, 31))
    Path("counts.csv").write_text("".join(f"k{at},{count}\n" for at, count in enumerate(counts)))
    Path("keys").write_text("k1\n\n0\n")
    Path("net.toml").write_text(two_halves("1s", 0.001))
    Path("chain.toml").write_text(VISITS)
    Path("OUT").mkdir()
    words = {
        "N": str(chance.integers(1, 41)),
        "M": str(chance.integers(1, 41)),
        "ENGINE": chance.choice(["spark", "kafka", "flink", "librdkafka"]),
        "BASE": chance.choice(["uniform", "spark", "kafka", "consistent"]),
        "SCHEME": chance.choice(["uniform", "hybrid", "consistent", "bounded", "bounded:cap=1.05"]),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lines = [*LIGHT, *REPLAYS] if SOAK else [*LIGHT, REPLAYS[seed % len(REPLAYS)]]
        for line in lines:
            typed = [",".join(words.get(each, each) for each in word.split(",")) for word in line.split()]
            typed = [f"{words['N']}@60s" if word == "N@60s" else word for word in typed]
            said = adapt(*typed)
            assert said.code in (0, 1, 2, 3, 4), (typed, said.err)
            assert said.code in (0, 1) or said.err.splitlines()[-1].startswith("adapt: "), (typed, said.err)
            assert "Warning" not in said.err + said.out, (typed, said.err)
