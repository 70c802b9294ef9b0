"""What this process reads without Spark against Spark: the same trace, rejects, guesses and errors."""

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapt.core.errors import AdaptError
from adapt.traces.ingest import ingest as ingesting
from adapt.traces.ingest.ingest import IngestOptions, ingest
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.spark.names import RunnerName
from adapt.traces.spark.session import SparkOptions
from tests.tiers import SOAK
from tests.traces.ingest.test_both_paths import told

pytestmark = pytest.mark.usefixtures("spark")

Alike = Callable[..., bool]


@pytest.fixture
def alike(tmp_path, monkeypatch) -> Alike:
    """Ingests on Spark and as by default, compares the outcomes, and returns whether the latter needed Spark."""
    asked = []
    begun = ingesting.spark_session
    monkeypatch.setattr(ingesting, "spark_session", lambda *given: asked.append(given) or begun(*given))

    def run(source: Path, mapping: Mapping, options: IngestOptions | None = None) -> bool:
        outcomes = []
        for runner in (RunnerName.SPARK, RunnerName.AUTO):
            asked.clear()
            try:
                made = ingest(
                    [str(source)],
                    tmp_path / "made",
                    mapping,
                    options,
                    force=True,
                    spark_options=SparkOptions(runner=runner),
                )
                rows = made.trace.to_arrow().schema
                columns = dict(zip(rows.names, rows.types, strict=True))
                outcomes.append((told(made.trace), made.guesses, made.trace.key_type, columns))
            except AdaptError as error:
                outcomes.append((type(error), str(error)))
        assert outcomes[1] == outcomes[0]
        return bool(asked)

    return run


START = datetime(2015, 5, 17, 10, tzinfo=UTC)
ROWS = 200


def column(random: Random, kind: pa.DataType) -> pa.Array:
    """Values of a type, some null and some that a trace refuses."""
    whole = [random.randrange(-1 if random.random() < 0.1 else 0, 100) for _ in range(ROWS)]
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        values = [START + timedelta(days=at % 7, milliseconds=at * 977) for at in whole]
        values = [at.date() for at in values] if pa.types.is_date(kind) else values
        if random.random() < 0.3:
            values[3] = date(1, 1, 1) if pa.types.is_date(kind) else datetime(1700, 1, 1, tzinfo=UTC)
    elif pa.types.is_floating(kind):
        values = [at / random.choice((1, 4, 7)) for at in whole]
        values[5:7] = random.choice(([1.5, 2.0], [float("nan"), 1e30], [float("inf"), -0.0]))
    elif pa.types.is_string(kind):
        values = [random.choice((f"k{at}", f"{at}", 'say "x"\\', "ключ", "", "7.5")) for at in whole]
    elif pa.types.is_boolean(kind):
        values = [at % 2 == 1 for at in whole]
    elif pa.types.is_binary(kind):
        values = [bytes([at % 128]) for at in whole]
    else:
        values = [max(at, 0) for at in whole] if str(kind).startswith("uint") else whole
        if kind == pa.int64() and random.random() < 0.3:
            values[7] = 2**63 - 1
    nulls = random.choice((0, 0.1))
    return pa.array([None if random.random() < nulls else value for value in values], kind)


def epochs(random: Random, kind: pa.DataType) -> pa.Array:
    """Times as numbers in a unit."""
    unit = random.choice((1, 1000, 10**6, 10**9)) if kind in (pa.int64(), pa.float64()) else 1
    start = int(START.timestamp())
    numbers = [start * unit + random.randrange(10**5) * random.choice((1, unit)) for _ in range(ROWS)]
    if kind == pa.float64():
        numbers = [float(number + random.choice((0, 0.5, 0.25, 0.123456))) for number in numbers]
    return pa.array([None if random.random() < 0.02 else number for number in numbers], kind)


WHOLE = (pa.int64(), pa.int32(), pa.int16(), pa.uint8())
TIMES = (
    pa.timestamp("us"),
    pa.timestamp("ns", "UTC"),
    pa.timestamp("ms", "Europe/Berlin"),
    pa.timestamp("s"),
    pa.date32(),
)
OTHERS = (*TIMES, pa.float32(), pa.decimal128(12, 2), pa.uint64())


USUAL = (*WHOLE, pa.float64(), pa.string(), pa.string(), pa.bool_(), pa.binary())


def test_typed_columns_give_the_same_trace(alike, tmp_path):
    needed = 0
    tries = 300 if SOAK else 12
    for seed in range(tries):
        random = Random(seed)
        kinds = {name: random.choice(OTHERS if random.random() < 0.1 else USUAL) for name in "abcd"}
        rows = {name: column(random, kind) for name, kind in kinds.items()}
        timed = random.choice((*TIMES, *TIMES, pa.int64(), pa.float64(), pa.int32()))
        rows["t"] = (column if timed in TIMES else epochs)(random, timed)
        pq.write_table(pa.table(rows), tmp_path / "in.parquet", row_group_size=random.choice((50, 1000)))
        pick = [name for name, kind in kinds.items() if kind in (*WHOLE, pa.float64())] or ["a"]
        mapping = Mapping(
            random.choice(("a", "a", "b", "a,b", "a,b,c")),
            random.choice(("t", "t", "")),
            *random.choice((("", ""), (random.choice(pick), random.choice(("", *pick))))),
            random.choice(("", "d")),
            keep=random.choice(((), ("c", "d"))),
            cost_unit="3ms",
            partition=random.choice(("", "", "a")),
        )
        zone = random.choice(("UTC", "UTC", "UTC", "America/New_York"))
        needed += alike(tmp_path / "in.parquet", mapping, IngestOptions(time_zone=zone))
    assert needed < tries


def test_usual_types_need_no_spark(alike, tmp_path):
    random = Random(0)
    whole = {f"n{at}": column(random, kind) for at, kind in enumerate(WHOLE)}
    others = {"s": column(random, pa.string()), "x": pa.array([at / 8 if at % 9 else None for at in range(ROWS)])}
    times = {f"t{at}": column(random, kind) for at, kind in enumerate(TIMES)}
    times["e"] = epochs(random, pa.int64())
    table = pa.table({**whole, **others, **times})
    pq.write_table(table, tmp_path / "in.parquet")
    for at, time in enumerate(times):
        key = ("n0", "s", "n1,s", "n2", "s,x", "n3")[at]
        mapping = Mapping(key, time, "x", "n0", "s", keep=("t1", "x"), cost_unit="ms", partition="n2")
        assert alike(tmp_path / "in.parquet", mapping) == ("x" in key)
    assert not alike(tmp_path / "in.parquet", Mapping("s", cost="x", cost_unit="s"))


EXPRESSIONS = (
    Mapping(
        "split(_path, 'c')[0] || '-' || user", "at", "bigint(ms) * 2", "length(page)", "upper(lang)", cost_unit="ms"
    ),
    Mapping(
        "concat(user, '/', page), bigint(ms)", "concat(day, ' ', clock)", "if(lang = 'de', ms, 0.5 * ms)", cost_unit="s"
    ),
    Mapping("bigint(ms) % 7", "timestamp_seconds(bigint(epoch))", stream="case when ms > 50 then 'slow' else lang end"),
    Mapping("pmod(bigint(ms), 5), lang", "timestamp_millis(1000 * bigint(epoch))", bytes="coalesce(size, '0')"),
    Mapping("substr(user, 2)", "concat(epoch, '000')", keep=("page", "slow = bigint(ms) > 50", "lang=upper(lang)")),
)


def csv(random: Random) -> str:
    """Rows with text of several kinds."""
    lines = ["user,page,lang,ms,size,day,clock,at,epoch"]
    for _ in range(ROWS):
        at = START + timedelta(seconds=random.randrange(10**5))
        page, lang, size = random.choice(("/a/b", "", "/ü")), random.choice(("de", "en")), random.choice(("7", ""))
        times = f"{at:%Y-%m-%d,%H:%M:%S,%d/%b/%Y:%H:%M:%S +0000},{int(at.timestamp())}"
        lines.append(f"u{random.randrange(9)},{page},{lang},{random.randrange(100)},{size},{times}")
    return "\n".join(lines)


@pytest.mark.parametrize("at", range(len(EXPRESSIONS)) if SOAK else (0, 3))
def test_expressions_need_no_spark(alike, tmp_path, at):
    (tmp_path / "in.csv").write_text(csv(Random(at)))
    assert not alike(tmp_path / "in.csv", EXPRESSIONS[at])


WRONG = (
    Mapping("usr", "at"),
    Mapping("user", "att"),
    Mapping("user", "at", "mss", cost_unit="ms"),
    Mapping("user", "page"),
    Mapping("user", "ms"),
    Mapping("user", "at", keep=("pag",)),
)


def test_errors_and_guesses_are_the_same(alike, tmp_path):
    (tmp_path / "in.csv").write_text(csv(Random(1)))
    assert [alike(tmp_path / "in.csv", each) for each in WRONG] == [False] * len(WRONG)
    forms = (
        "{at:%Y/%m/%d %H:%M}",
        "{at:%m/%d/%Y}",
        "{at:%d.%m.%Y %H:%M:%S}",
        "{at:%Y%m%d}",
        "{at:%d-%b-%Y}",
        "{at:%b %d %H:%M:%S}",
    )
    for form in forms if SOAK else forms[:2]:
        times = [form.format(at=START + timedelta(hours=7 * at)) for at in range(ROWS)]
        lines = [f"k{at % 5},{at},{time}" for at, time in enumerate(times)]
        (tmp_path / "in.csv").write_text("\n".join(["key,n,when", *lines]))
        alike(tmp_path / "in.csv", Mapping("key"))


JSON = {
    "k": ("a", "ü", "2015-05-17T10:00:00Z", None),
    "n": (1, -3, 2**53, None),
    "x": (1, 0.5, 1e15, 12, None),
    "b": (True, False),
    "e": ({"u": "x", "n": 1}, {"u": "y", "s": {"t": 2.5}}, {}),
    "l": ([1], []),
    "z": (None,),
}
"""Fields, and values that each may have; values of other types are rare."""


def test_json_lines_give_the_same_trace(alike, tmp_path):
    needed = 0
    keys = ("k", "n", "e.u", "b", "n,k", "upper(e.u)", "x", "l", "e.missing", "z")
    for seed in range(60 if SOAK else 6):
        random, lines = Random(seed), []
        for at in range(ROWS):
            row = {name: random.choice(values) for name, values in JSON.items() if random.random() < 0.9}
            odd = seed % 3 == 2 and random.random() < 0.02
            row |= {random.choice("knx"): random.choice(("text", 7, 2**70, [1], "\U0001f600"))} if odd else {}
            row["ts"] = (START + timedelta(seconds=at)).isoformat() if seed % 2 else 1431857103000 + at
            line = json.dumps(
                row, ensure_ascii=random.random() < 0.5, separators=random.choice(((",", ":"), (", ", ": ")))
            )
            lines.append(random.choice(("{}", "[1]", line + " ", line + line, "{'k': 1}")) if odd else line)
        (tmp_path / "in.jsonl").write_text("\n".join(lines))
        cost = random.choice(("", "x", "e.n"))
        mapping = Mapping(keys[seed % len(keys)], cost=cost, cost_unit="ms", bytes="n" if seed % 3 else "")
        needed += alike(tmp_path / "in.jsonl", mapping)
    assert needed <= seed // 2
