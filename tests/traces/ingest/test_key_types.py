"""Keys of every type and of several columns: one trace from every source and way, placed as Spark places them."""

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import mmh3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import adapt
from adapt.core.errors import UsageError
from adapt.core.stream import KeyType
from adapt.traces.ingest.ingest import ingest
from adapt.traces.ingest.mapping import Mapping, key_parts, read_mapping_file
from adapt.traces.spark.names import RunnerName
from adapt.traces.spark.session import SparkOptions

pytestmark = pytest.mark.usefixtures("spark")

ROWS = 300
TIMES = [datetime(2024, 3, 1, tzinfo=UTC) + timedelta(seconds=at) for at in range(ROWS)]
WHOLES = [at * at % 11 * 3 - 5 for at in range(ROWS)]
LANDS = [None if at % 7 == 0 else ("US", "DE", 'a,"b')[at % 3] for at in range(ROWS)]


def table():
    return pa.table(
        {
            "ts": pa.array(TIMES, pa.timestamp("us", "UTC")),
            "k": pa.array(WHOLES, pa.int32()),
            "land": LANDS,
            "day": pa.array([date(2024, 1, 1 + at % 9) for at in range(ROWS)]),
            "money": pa.array([Decimal(at % 8).scaleb(-2) for at in range(ROWS)], pa.decimal128(10, 2)),
            "lat": pa.array([at / 3 for at in range(ROWS)]),
        }
    )


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("source") / "in.parquet"
    pq.write_table(table(), path)
    return path


def spark_places(keys, channels):
    """`pmod(hash(k), N)` of int columns by the standard MurmurHash3, which agrees with Spark's on whole words."""
    return [mmh3.hash(each.to_bytes(4, "little", signed=True), 42) % channels for each in keys]


def imbalance(places, channels):
    return max(map(places.count, set(places))) / (len(places) / channels)


@pytest.mark.parametrize(
    ("key", "key_type", "stored"),
    [
        (
            "land,k",
            "(string,int32)",
            [json.dumps([a, b], separators=(",", ":")) for a, b in zip(LANDS, WHOLES, strict=True)],
        ),
        ("money, upper(land)", "(decimal(10,2),string)", None),
    ],
)
def test_a_trace_is_the_same_in_process_and_on_spark(source, tmp_path, key, key_type, stored):
    mapping = Mapping(key, "ts", keep=("lat", "day"))
    made = [
        ingest([str(source)], tmp_path / runner.value, mapping, spark_options=SparkOptions(runner=runner)).trace
        for runner in (RunnerName.IN_PROCESS, RunnerName.SPARK)
    ]
    assert made[0].manifest.content_hash == made[1].manifest.content_hash
    assert made[0].key_type is made[1].key_type is KeyType(key_type)
    assert made[0].key_columns == made[1].key_columns == tuple(part.strip() for part in key.split(","))
    if stored is not None:
        assert made[0].to_arrow()["key"].to_pylist() == stored
    assert made[0].to_arrow().schema.field("lat").type == pa.float64()
    assert made[0].to_arrow().schema.field("day").type == pa.date32()


def test_every_command_places_int_keys_as_spark(source, tmp_path):
    """One after the other, all by the type of the source: int and bigint shuffle apart."""
    trace = str(tmp_path / "k.trace")
    adapt.ingest(str(source), key="k", time="ts", out=trace)
    for channels in (8, 12):
        right = imbalance(spark_places(WHOLES, channels), channels)
        found = adapt.verdict(trace, channels=channels, engine="spark", force=True)
        assert found.verdict.imbalance == pytest.approx(right)
        plan = str(tmp_path / f"{channels}.plan")
        built = adapt.build(trace, channels=channels, scheme="spark", out=plan)
        assert built.metrics["imbalance"] == pytest.approx(right)
        assert built.key_type is KeyType.INT32
        assert built.partitioner().channels_of(pa.array(WHOLES)).tolist() == spark_places(WHOLES, channels)
        assert adapt.evaluate(trace, plan).plans[0].measured.imbalance == pytest.approx(right)
        rows = adapt.compare(trace, channels=channels, engine="spark").rows
        assert next(row for row in rows if row.scheme == "spark").metrics.imbalance == pytest.approx(right)
        told = adapt.check(trace, engine="spark", channels=channels, limit=f"imbalance <= {right + 1e-6}")
        assert told.passed
        periods = adapt.replay.repartition(trace, channels=channels, period="1h", engine="spark")
        assert periods.outcomes[0].nothing == pytest.approx(right)


def test_a_plan_over_the_ring_does_not_tell_widths_apart(source, tmp_path):
    trace = str(tmp_path / "k.trace")
    adapt.ingest(str(source), key="k", time="ts", out=trace)
    built = adapt.build(trace, channels=4, out=str(tmp_path / "ring.plan"), engine="consistent")
    assert built.key_type is KeyType.INT64
    adapt.ingest(str(source), key="k,land", time="ts", out=str(tmp_path / "pair.trace"))
    with pytest.raises(UsageError, match="bytes of its key"):
        adapt.verdict(str(tmp_path / "pair.trace"), channels=4, engine="kafka")


def test_uuids_of_parquet_are_their_text(tmp_path):
    texts = [f"0f8fad5b-d9cb-469f-a165-7086772895{at:02x}" for at in range(5)]
    raw = pa.array([bytes.fromhex(each.replace("-", "")) for each in texts], pa.binary(16))
    rows = pa.table({"ts": pa.array(TIMES[:5], pa.timestamp("us", "UTC")), "k": raw.cast(pa.uuid()), "n": range(5)})
    pq.write_table(rows, tmp_path / "u.parquet")
    for name, given in (("file", str(tmp_path / "u.parquet")), ("frame", rows)):
        trace = adapt.ingest(given, key="k", time="ts", out=str(tmp_path / f"{name}.trace")).trace
        assert trace.to_arrow()["key"].to_pylist() == texts
        assert trace.key_type is KeyType.STRING
    assert adapt.ingest(str(tmp_path / "u.parquet"), key="n", time="ts").trace.rows == 5


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a", ["a"]),
        ("a,b", ["a", "b"]),
        ("a , b.c", ["a", "b.c"]),
        ("concat(a, b)", ["concat(a, b)"]),
        ("coalesce(a, 'x,y'), b", ["coalesce(a, 'x,y')", "b"]),
        ("a, split(b, '\\',')[0], `c,d`", ["a", "split(b, '\\',')[0]", "c,d"]),
        ("x,y", ["x,y"]),
    ],
)
def test_commas_within_an_expression_do_not_separate_keys(text, parts):
    assert key_parts(text, ["a", "b", "c,d", "x,y"]) == parts


def test_a_mapping_file_lists_key_columns(tmp_path):
    (tmp_path / "map.toml").write_text('key = ["a", "b"]\n')
    assert read_mapping_file(tmp_path / "map.toml").options["key"] == "a, b"


def test_keys_of_nanoseconds_that_a_trace_would_cut_are_refused(tmp_path):
    near = pa.array([1_700_000_000_000_000_001 + at for at in range(6)], pa.timestamp("ns"))
    pq.write_table(pa.table({"ts": near, "k": near, "n": range(6)}), tmp_path / "in.parquet")
    for key in ("k", "`k`", "n,k"):
        with pytest.raises(UsageError, match=r"--key k has nanoseconds, .* different keys may become one"):
            ingest([str(tmp_path / "in.parquet")], tmp_path / "k.trace", Mapping(key, "ts"))
    made = ingest([str(tmp_path / "in.parquet")], tmp_path / "n.trace", Mapping("n", "ts"))
    assert made.trace.rows == 6
