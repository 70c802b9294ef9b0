"""A data frame gives the trace that a file of its rows gives, whatever library holds it."""

import importlib
from importlib.util import find_spec

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import adapt
from adapt.core.errors import BadInput, UsageError
from adapt.traces.ingest.cleaning import Cleaning
from adapt.traces.ingest.ingest import IngestOptions, ingest
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.sources.frames import BATCH_ROWS, Query, keep_frame
from tests.tiers import soak

MAPPING = Mapping("user", "ts", cost="ms", cost_unit="ms", keep=("page",))

ROWS = 400
TABLE = pa.table(
    {
        "ts": pa.array([1_700_000_000_000_000 + at * 1_000_003 for at in range(ROWS)], pa.timestamp("us", "UTC")),
        "user": [None if at % 50 == 7 else f"user{at * at % 23}" for at in range(ROWS)],
        "ms": [None if at == 3 else -1.0 if at == 5 else at % 7 / 2 for at in range(ROWS)],
        "page": [f"/{at % 11}" for at in range(ROWS)],
        "unused": [{"a": [at]} for at in range(ROWS)],
    }
)


def polars_frame(spark, folder):
    if find_spec("polars") is None:
        pytest.skip("polars is not installed")
    return importlib.import_module("polars").from_arrow(TABLE)


def dataset(spark, folder):
    (folder / "parts").mkdir()
    for at in range(4):
        pq.write_table(TABLE.slice(at * 100, 100), folder / "parts" / f"{at}.parquet")
    return ds.dataset(folder / "parts")


def relation(spark, folder):
    held = duckdb.from_arrow(TABLE)
    return held.filter("true")


KINDS = {
    "spark": lambda spark, _: spark.createDataFrame(TABLE).repartition(3, "page"),
    "pandas": lambda *_: TABLE.to_pandas(),
    "polars": polars_frame,
    "table": lambda *_: TABLE,
    "reader": lambda *_: TABLE.to_reader(7),
    "dataset": dataset,
    "duckdb": relation,
}


ALWAYS = {"spark", "pandas"}
"""Ingested in every run; the others, which take the same way as pandas, in the soak."""


class Viewed:
    """A frame of another library: text as views, categories, and nothing but the stream protocol."""

    def __init__(self, table):
        at = table.schema.get_field_index("user")
        self._table = table.set_column(at, "user", table["user"].cast(pa.string_view()))
        at = table.schema.get_field_index("page")
        self._table = self._table.set_column(at, "page", table["page"].dictionary_encode())

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.fixture(scope="module")
def of_file(spark, tmp_path_factory):
    """The trace of a Parquet file with the rows."""
    folder = tmp_path_factory.mktemp("file")
    pq.write_table(TABLE, folder / "rows.parquet")
    return ingest([str(folder / "rows.parquet")], folder / "file.trace", MAPPING).trace


def settings(session):
    """Every setting of a session and of its Spark, and which session is active."""
    held = (
        dict(session.sparkContext.getConf().getAll()),
        session.conf.getAll,
        session.sparkContext.getLocalProperty("x"),
    )
    return *held, session.getActiveSession(), session.builder.getOrCreate()


@pytest.mark.parametrize("kind", [each if each in ALWAYS else pytest.param(each, marks=soak) for each in KINDS])
def test_a_frame_gives_the_trace_of_the_file_in_the_session_of_the_program(spark, of_file, tmp_path, kind):
    theirs = spark.newSession()
    theirs.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    theirs.conf.set("spark.sql.ansi.enabled", "true")
    frame = KINDS[kind](theirs, tmp_path)
    theirs.range(1).collect()
    before = settings(theirs)
    made = adapt.ingest(frame, key="user", time="ts", cost="ms", cost_unit="ms", keep="page")
    assert made.trace.manifest.content_hash == of_file.manifest.content_hash
    assert made.rejects.reasons == {"cost is negative": 1}
    assert settings(theirs) == before


def kept(frame, folder, columns=("ts", "user", "page")):
    return pa.concat_tables([pq.read_table(file.path) for file in keep_frame(frame, "frame", folder / "kept", columns)])


def test_text_views_and_categories_are_kept_as_text(tmp_path):
    assert kept(Viewed(TABLE), tmp_path).equals(TABLE.select(["ts", "user", "page"]))


def test_a_spark_frame_gives_one_trace_whatever_its_partitions(spark, tmp_path):
    """Rows of equal time are sorted by their columns, and rejects are numbered in that order."""
    costs = [-1.0 if at % 5 == 0 else 1.0 for at in range(30)]
    users = [f"u{at * 7 % 30:02}" for at in range(30)]
    frame = spark.createDataFrame(
        pa.table({"ts": pa.array([0] * 30, pa.timestamp("us", "UTC")), "ms": costs, "user": users})
    )
    mapping, told = Mapping("user", "ts", cost="ms", cost_unit="ms"), []
    for parts in (1, 5):
        trace = ingest([frame.repartition(parts, "user")], tmp_path / f"{parts}.trace", mapping).trace
        assert trace.to_arrow()["key"].to_pylist() == sorted(
            user for user, cost in zip(users, costs, strict=True) if cost > 0
        )
        told.append(pq.read_table(trace.path / "_rejects").to_pylist())
    assert told[0] == told[1]
    assert [(each["file"], each["line"]) for each in told[0]] == [("pyspark.DataFrame", line) for line in range(1, 7)]


def test_a_reader_is_read_once_and_batch_by_batch(tmp_path):
    schema, ahead = pa.schema({"user": pa.int64()}), []

    def batches():
        for at in range(40):
            ahead.append(pa.total_allocated_bytes())
            yield pa.record_batch([pa.array(range(at * 20_000, (at + 1) * 20_000))], schema=schema)

    before = pa.total_allocated_bytes()
    table = kept(pa.RecordBatchReader.from_batches(schema, batches()), tmp_path, ["user"])
    assert table["user"].to_pylist() == list(range(800_000))
    assert max(ahead) - before < 8 * 8 * BATCH_ROWS
    assert len(ahead) == 40


@pytest.mark.parametrize("mapping", [Mapping("lower(usr)", "ts"), Mapping("user", "ts", keep=("usr",))], ids=str)
def test_a_wrong_column_reads_no_row(spark, tmp_path, mapping):
    reader = TABLE.to_reader(10)
    with pytest.raises(UsageError, match="column 'usr' does not exist; did you mean 'user'"):
        ingest([reader], tmp_path / "x.trace", mapping)
    assert reader.read_all().num_rows == ROWS
    assert list(tmp_path.iterdir()) == []


def failing():
    yield TABLE.to_batches()[0]
    raise pa.ArrowInvalid("the connection was reset")


REFUSED = {
    "no rows": (lambda: [TABLE.slice(0, 0).to_reader()], "RecordBatchReader has no rows", IngestOptions()),
    "fails": (
        lambda: [pa.RecordBatchReader.from_batches(TABLE.schema, failing())],
        "cannot be read to its end: the connection was reset",
        IngestOptions(),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_frame_that_cannot_be_read_leaves_nothing(spark, tmp_path, case):
    sources, sentence, options = REFUSED[case]
    with pytest.raises((BadInput, UsageError), match=sentence):
        ingest(sources(), tmp_path / "x.trace", Mapping("user", "ts"), options)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def shop(spark, of_file):
    """A database with a table of the rows."""
    spark.sql("CREATE DATABASE shop")
    spark.sql(f"CREATE TABLE shop.events USING parquet LOCATION '{of_file.path.parent / 'rows.parquet'}'")
    spark.sql("CREATE VIEW shop.odd AS SELECT *, ts - ts AS took FROM shop.events")
    yield
    spark.sql("DROP DATABASE shop CASCADE")


@pytest.mark.parametrize(
    "query", [{"table": "spark_catalog.shop.events"}, {"sql": "SELECT page, user, ts, ms FROM shop.events -- all\n;"}]
)
def test_a_table_and_a_query_give_the_trace_of_the_file(spark, of_file, shop, query):
    trace = adapt.ingest(**query, key="user", time="ts", cost="ms", cost_unit="ms", keep="page").trace
    assert trace.manifest.content_hash == of_file.manifest.content_hash
    assert trace.manifest.made.parameters["query"] == {"table": "", "sql": "", "version": ""} | query


NOT_READ = {
    "table": (Query("shop.evnts"), BadInput, "there is no table shop.evnts; did you mean 'events'"),
    "catalog": (Query("no.shop.events"), BadInput, "there is no catalog no"),
    "name": (Query("shop.a b"), UsageError, "a name such as"),
    "no SQL": (Query(sql="SELEC 1"), UsageError, "one query"),
    "two columns": (Query(sql="SELECT ts, user, ts FROM shop.events"), BadInput, "two columns 'ts'"),
}


def test_counts_of_a_query_are_judged_as_those_of_a_frame(spark, shop):
    query = "SELECT user, count(*) AS n, sum(ms) AS ms FROM shop.events GROUP BY user"
    asked = {"channels": 2, "engine": "spark", "key": "user", "cost": "ms", "cost_unit": "ms"}
    judged = adapt.verdict(sql=query, **asked).as_data()
    assert judged == adapt.verdict(spark.sql(query).toPandas(), **asked).as_data()
    assert judged["hot_keys"]["weight"] == "cost"


@pytest.mark.parametrize("kind", ["string", "bigint"])
@pytest.mark.parametrize("mergeable", [False, True])
def test_the_code_of_an_answer_counts_as_the_frame_and_places_as_planned(spark, kind, mergeable):
    session = spark.newSession()
    hot = [7] * 300 + [8] * 200 + [9] * 150 + list(range(100, 500))
    frame = session.createDataFrame([(key,) for key in hot], "user int").selectExpr(f"cast(user as {kind}) AS user")
    told = adapt.verdict(frame, key="user", engine="spark", channels=4, mergeable=mergeable)
    ours = {"spark": session, "df": frame}
    exec(told.pasted, ours)
    F = ours["F"]
    wanted = frame.groupBy("user").agg(F.count("*").alias("n"))
    assert sorted(map(tuple, ours["result"].collect())) == sorted(map(tuple, wanted.collect()))
    placed = ours["rekeyed"].repartition(4, "rekeyed").groupBy(F.spark_partition_id()).count().collect()
    if mergeable:  # else a plan of pins that the limit may not allow
        assert max(row[1] for row in placed) * 4 / len(hot) < 1.25
    assert told.pasted in repr(told)
    assert adapt.verdict(frame, key="user", engine="kafka", channels=4).pasted == ""


@pytest.mark.parametrize("case", NOT_READ)
def test_a_table_or_query_that_cannot_be_read_leaves_nothing(spark, shop, tmp_path, case):
    query, kind, sentence = NOT_READ[case]
    with pytest.raises(kind, match=sentence):
        ingest([query], tmp_path / "x.trace", Mapping("user", "ts"))
    assert list(tmp_path.iterdir()) == []
    assert spark.catalog.tableExists("shop.events")


def test_a_spark_frame_has_no_order_of_arrival(spark, tmp_path):
    options = IngestOptions(cleaning=Cleaning(max_lateness_us=1))
    with pytest.raises(UsageError, match="a Spark DataFrame has no order"):
        ingest([spark.createDataFrame(TABLE)], tmp_path / "x.trace", MAPPING, options)
