"""Every command on a few rows, keys and channels: an answer or one sentence, never a bug or a warning."""

import json
import re
import signal
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from adapt.core.reading import Rejects
from adapt.traces.ingest.profile import settle
from adapt.traces.spark.progress import silent
from adapt.traces.store.manifest import Provenance
from tests.any_trace import VISITS, two_halves
from tests.tiers import SOAK

LIGHT = [
    "ingest raw.RAW --key key [--time ts] [--bytes b] [--keep b] [--dedup *] -o OUT/raw.trace --force",
    "verdict raw.RAW --key {key|key,b} [--time ts] [--cost b] --channels N [--engine ENGINE] --force",
    "verdict x.trace --channels N [--engine ENGINE] [--max-pins {0|2|N}] [--max-migration 10%] --force [--all]",
    "verdict x.trace --channels N [--max-imbalance {1|1.5}] --force --format {json|csv|md}",
    "partition count x.trace --channels N -o OUT/x.freq",
    "partition count x.trace --method {exact|lossy} [--weight count] [--resources {LLQ|CLL}] --format json",
    "partition count x.trace --method sliding --window {auto|1h|2rows}",
    "partition count x.trace --over time [--step {1h|2rows}]",
    "partition build x.trace --channels N [--engine BASE] [--max-pins M] [--max-migration 10%] -o OUT/x.plan --all",
    "partition build x.trace --channels N --scheme SCHEME --resources QQQ -o OUT/y.plan",
    "partition build {x.trace|OUT/x.freq} --channels N --construction {scan|redist|readj|level}",
    "partition build x.trace --channels N --exact --weight count [--from OUT/x.plan] -o OUT/z.plan",
    "partition build counts.csv --channels N [--resources {QQQ|LQC}] [--tolerance {1|1.05,2,3}]",
    "partition compare x.trace --channels N,M [--max-imbalance 1] [--exact] --all",
    "partition compare {counts.csv|OUT/x.freq} --channels N [--scheme {hybrid|pkg|split-hot|d-choices}]",
    "partition evaluate x.trace OUT/x.plan OUT/z.plan [--engine {kafka|flink}] [--no-baseline] --format {json|csv}",
    "partition diff x.trace OUT/x.plan OUT/z.plan [--exact] [--weight count]",
    "partition export OUT/x.plan --to {plan|rekey|spark|kafka|flink} -o OUT/export",
    "partition route OUT/x.plan keys",
    "partition tolerance --channels N --total M --capacity N",
    "report x.trace [OUT/x.plan] [OUT/x.freq] [--all] [--format {json|csv|md}]",
    "report x.trace OUT/x.plan OUT/x.freq --html OUT/page.html",
    "report OUT/x.plan --verify",
    "lint x.trace --format {json|table}",
    "check {x.trace|OUT/x.plan} --limit imbalance<=2 [--verify]",
    "advise salts {x.trace|counts.csv} --parallelism N [--max-parallelism 128] [--partitions M]",
    "advise workers --rate M --shed N@60s [--imbalance 1.5]",
    "clean . [--yes]",
]
"""Command lines that take milliseconds. `[may]` is there or not, and one of `{a|b}` is."""

REPLAYS = [
    "generate {zipf|calls|clicks|sales} --rows M --keys N [--rate {1|1000}] [--seed N] -o OUT/z.trace",
    "generate {zipf|packets} --rows 1 --keys 1 [--cost constant(5us)] [--bytes uniform(1B,9B)] -o OUT/one.trace",
    "replay repartition x.trace --channels N --period {2rows|1h|7d} [--trigger {worth|violation}] -o OUT/r.run",
    "replay repartition x.trace --schedule 0h:N,1h:M --period {1h|7d} -o OUT/s.run",
    "replay repartition x.trace --channels N --period {1s|1h} [--trigger worth] --live [--speedup 1000] -o OUT/p.run",
    "replay flux x.trace --workers N [--partitions M] [--policy FLUX] [--engine STAGE] -o OUT/f.run",
    "replay flux x.trace --workers N [--state {rows|9}] [--standby] [--slow 0@1s:50%] -o OUT/g.run",
    "replay elastic x.trace --pool N [--policy all] [--migrate MIGRATE] [--shed 5@1s] -o OUT/e.run",
    "replay elastic x.trace --pool N [--speedup {9|1000}] [--period {1s|1h}] -o OUT/h.run",
    "replay fit x.trace --network net.toml[:tick={1s|1h}] [--planner PLANNER] [--queue N] -o OUT/fit.run",
    "replay ordered x.trace --chain chain.toml --workers 1 {--backend sim|--repeats 1} [--reorder lock] -o OUT/o.run",
    "replay compare x.trace --channels N --seeds 1 --jobs 1 --scenario {split-pkg|flux-load} -o OUT/c.run",
    "report OUT/{r|f|e|fit|o|c}.run [--format json] [--all]",
    "report OUT/e.run OUT/f.run OUT/fit.run OUT/c.run [--html OUT/runs.html]",
    "check OUT/e.run --limit latency_p99<=2ms",
]
"""Command lines that take longer."""

WORDS = {
    "ENGINE": ["spark", "kafka", "flink", "librdkafka", "sarama", "kinesis", "pulsar", "risingwave", "flink-sql"],
    "BASE": ["uniform", "spark", "kafka", "consistent"],
    "RAW": ["csv", "jsonl", "parquet"],
    "SCHEME": ["uniform", "hybrid", "consistent", "bounded", "bounded:cap=1.05"],
    "FLUX": ["load", "none", "memory", "hybrid", "load-guarded", "slicer"],
    "STAGE": ["flux", "flink", "kafka", "spark"],
    "MIGRATE": ["all", "batched", "one", "hottest", "demand", "restart"],
    "PLANNER": ["none", "exact", "c-fit", "d-fit", "solver-w", "lp"],
}
"""Words that stand for one of several."""

MOST_CPU_S = 30.0
"""Most CPU time of a command, which is its limit in `run`."""


def drawn(line: str, chance: np.random.Generator) -> list[str]:
    """One of the command lines that a line stands for."""
    line = re.sub(r"\[([^]]*)\]", lambda may: may[1] if chance.random() < 0.4 else "", line)
    line = re.sub(r"{([^}]*)}", lambda one: str(chance.choice(one[1].split("|"))), line)
    words = {name: str(chance.choice(each)) for name, each in WORDS.items()}
    words |= {"N": str(chance.integers(1, 41)), "M": str(chance.integers(1, 41))}
    return [re.sub(r"\b(?:" + "|".join(words) + r")\b", lambda one: words[one[0]], word) for word in line.split()]


def out_of_time(*_: object) -> None:
    """Ends a command that runs too long, as a bug."""
    raise RuntimeError(f"more than {MOST_CPU_S:g} s of CPU time")


SEEDS = range(50) if SOAK else (0, 4)
"""Of the cases; in soak they run two thousand commands."""


def random_rows(chance: np.random.Generator) -> pa.Table:
    """Up to 30 rows of all kinds that may go wrong: one time, no key, no weight, huge weights."""
    rows = int(chance.integers(1, 31)) if chance.random() < 0.5 else int(chance.integers(1, 5))
    numbers = chance.integers(0, chance.integers(1, 31), rows)
    kind = chance.choice(["string", "int64", "binary"])
    keys = {
        "string": [f"{chance.choice(['k', 'ключ ', '😀'])}{at}" if at else "" for at in numbers],
        "int64": numbers.tolist(),
    }
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


def write_raw(rows: pa.Table, chance: np.random.Generator) -> None:
    """The rows as raw files of each format, their times in a random form."""
    ts = rows["ts"]
    key = [each.decode(errors="replace") if isinstance(each, bytes) else each for each in rows["key"].to_pylist()]
    forms = {
        "text": [str(each) for each in ts.to_pylist()],
        "us": ts.cast(pa.int64()).to_pylist(),
        "ms": [each // 1000 for each in ts.cast(pa.int64()).to_pylist()],
    }
    sizes = chance.integers(-1, 100, len(rows)).tolist()
    raw = pa.table({"ts": forms[chance.choice(list(forms))], "key": pa.array(key), "b": pa.array(sizes)})
    pq.write_table(raw.set_column(0, "ts", ts), "raw.parquet")
    pc.write_csv(raw, "raw.csv")
    Path("raw.jsonl").write_text("".join(json.dumps(each) + "\n" for each in raw.to_pylist()))


@pytest.mark.parametrize("seed", SEEDS)
def test_no_command_fails_on_a_few_rows(adapt, spark, tmp_path, monkeypatch, seed):
    monkeypatch.chdir(tmp_path)
    chance = np.random.default_rng(seed)
    Path("x.trace").mkdir()
    rows = random_rows(chance)
    pq.write_table(rows, "x.trace/part-00000.parquet", write_page_checksum=True)
    settle(Path("x.trace"), Provenance("a test"), Rejects(), lambda written: written.profiled(None, silent))
    write_raw(rows, chance)
    counts = chance.integers(0, chance.choice([2, 30, 10**12, 2**57]), chance.integers(1, 31))
    Path("counts.csv").write_text("".join(f"k{at},{count}\n" for at, count in enumerate(counts)))
    Path("keys").write_text("k1\n\n0\n")
    Path("net.toml").write_text(two_halves("1s", 0.001))
    Path("chain.toml").write_text(VISITS)
    Path("OUT").mkdir()
    signal.signal(signal.SIGPROF, out_of_time)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lines = [*LIGHT, *REPLAYS] if SOAK else [*LIGHT, REPLAYS[seed % len(REPLAYS)]]
        for line in lines:
            typed = drawn(line, chance)
            signal.setitimer(signal.ITIMER_PROF, MOST_CPU_S)
            said = adapt(*typed)
            signal.setitimer(signal.ITIMER_PROF, 0)
            assert said.code in (0, 1, 2, 3, 4), (typed, said.err)
            assert said.code in (0, 1) or said.err.splitlines()[-1].startswith("adapt: "), (typed, said.err)
            assert "Warning" not in said.err + said.out, (typed, said.err)
