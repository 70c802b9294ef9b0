"""Whatever settings a Spark session has, results are the same, and it keeps them."""

import json
import random
import subprocess
import sys
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapt.core.counting.names import CountMethod
from adapt.core.partitioning.build import Recipe, build_plan
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import Weight
from adapt.traces.counting.count import Counting, count_trace
from adapt.traces.counting.evaluating import evaluate_plans
from adapt.traces.counting.exact import count_exactly
from adapt.traces.ingest import ingest as module
from adapt.traces.ingest.ingest import ingest
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.spark import session
from adapt.traces.spark.names import RunnerName
from adapt.traces.spark.session import SparkOptions, spark_session
from tests.tiers import soak

pytestmark = pytest.mark.usefixtures("spark")

SETTINGS = {
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": ("false",),
    "spark.sql.adaptive.enabled": ("true", "false"),
    "spark.sql.ansi.enabled": ("true", "false"),
    "spark.sql.autoBroadcastJoinThreshold": ("-1",),
    "spark.sql.caseSensitive": ("false", "true"),
    "spark.sql.codegen.wholeStage": ("false",),
    "spark.sql.datetime.java8API.enabled": ("true",),
    "spark.sql.execution.arrow.localRelationThreshold": ("0",),
    "spark.sql.execution.arrow.maxRecordsPerBatch": ("1", "77"),
    "spark.sql.execution.arrow.useLargeVarTypes": ("true",),
    "spark.sql.files.ignoreCorruptFiles": ("true",),
    "spark.sql.files.ignoreMissingFiles": ("true",),
    "spark.sql.files.maxPartitionBytes": ("1k",),
    "spark.sql.files.maxRecordsPerFile": ("50",),
    "spark.sql.groupByAliases": ("false",),
    "spark.sql.groupByOrdinal": ("false",),
    "spark.sql.legacy.timeParserPolicy": ("LEGACY", "EXCEPTION"),
    "spark.sql.mapKeyDedupPolicy": ("LAST_WIN",),
    "spark.sql.parquet.binaryAsString": ("true",),
    "spark.sql.parquet.compression.codec": ("gzip",),
    "spark.sql.parquet.enableVectorizedReader": ("false",),
    "spark.sql.parquet.fieldId.read.enabled": ("true",),
    "spark.sql.parquet.inferTimestampNTZ.enabled": ("false",),
    "spark.sql.parquet.int96RebaseModeInRead": ("LEGACY",),
    "spark.sql.parquet.datetimeRebaseModeInRead": ("LEGACY",),
    "spark.sql.parquet.datetimeRebaseModeInWrite": ("LEGACY",),
    "spark.sql.parquet.mergeSchema": ("true",),
    "spark.sql.parquet.outputTimestampType": ("INT96", "TIMESTAMP_MILLIS"),
    "spark.sql.parquet.writeLegacyFormat": ("true",),
    "spark.sql.session.timeZone": ("America/New_York", "Asia/Kathmandu"),
    "spark.sql.shuffle.partitions": ("1", "7", "200"),
    "spark.sql.sources.partitionColumnTypeInference.enabled": ("false",),
    "spark.sql.sources.partitionOverwriteMode": ("dynamic",),
    "spark.sql.storeAssignmentPolicy": ("STRICT",),
    "spark.sql.timestampType": ("TIMESTAMP_NTZ",),
}
"""Settings that people have, with values that are not the usual ones."""

ROWS, SEED = 400, 5
MAPPING = Mapping(
    "concat(User, '/', user)",
    "ts",
    cost="try_cast(cost AS double) * 1.5",
    bytes="bytes",
    stream="upper(user)",
    cost_unit="us",
)


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """CSV, JSON lines and Parquet of the same rows, some of them refused, with names that differ only in case."""
    folder = tmp_path_factory.mktemp("sources")
    draw = random.Random(SEED)
    rows = [
        {
            "ts": "soon" if at % 97 == 5 else f"2015-03-29 0{at % 7}:{at % 60:02d}:00.{at % 1000:03d}",
            "User": f"é{draw.randrange(9)}",
            "user": f"k{int(draw.paretovariate(1))}",
            "cost": "a lot" if at % 91 == 7 else f"{draw.random():.17g}",
            "bytes": "-1" if at % 89 == 3 else str(draw.randrange(10**6)),
        }
        for at in range(ROWS)
    ]
    names = list(rows[0])
    lines = [",".join(names), *(",".join(row.values()) for row in rows)]
    (folder / "a.csv").write_text("".join(f"{line}\n" for line in lines))
    (folder / "a.json").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    good = [row for row in rows if row["ts"] != "soon"]
    columns = {name: [row[name] for row in good] for name in names}
    times = [datetime.fromisoformat(text).replace(tzinfo=UTC) for text in columns["ts"]]
    columns |= {"ts": pa.array(times, pa.timestamp("us", "UTC")), "bytes": [int(each) for each in columns["bytes"]]}
    pq.write_table(pa.table(columns), folder / "a.parquet", row_group_size=100)
    return folder


@pytest.fixture(scope="module")
def plan():
    """A plan for the keys of the sources."""
    from adapt.core.counting.exact import count_keys, frequencies_of

    return build_plan(frequencies_of(count_keys(pa.array(["é1/k1", "é2/k1", "é1/k2"]))), Recipe(Scheme.HYBRID), 5)


def content(sources, plan, folder, conf, kinds):
    """What the pipeline makes of the sources."""
    options, found = SparkOptions(conf=conf, runner=RunnerName.SPARK), []
    for kind in kinds:
        trace = ingest([str(sources / f"a.{kind}")], folder / f"{kind}.trace", MAPPING, spark_options=options).trace
        rejects = (
            pq.read_table(trace.path / "_rejects").to_pylist() if trace.manifest.summary["rejects"]["rows"] else []
        )
        found += [trace.manifest.content_hash, rejects]
    how = Counting(CountMethod.LOSSY, 0.01, weight=Weight.COST)
    for counted in (
        count_exactly(trace, weight=Weight.COST, spark_options=options),
        count_trace(trace, how, spark_options=options),
    ):
        found += [counted.keys.to_pylist(), counted.count_low.tolist(), counted.total]
    counts = folder / "counts.parquet"
    pq.write_table(pa.table({"key": counted.keys, "count": counted.count_low}), counts)
    for source in (trace.path, counts):
        found.append(evaluate_plans([("plan", plan)], source, spark_options=options).as_data())
    return found


@pytest.fixture(scope="module")
def usual(sources, plan, tmp_path_factory):
    """The content by formats, with the settings that we have."""
    return {
        kinds: content(sources, plan, tmp_path_factory.mktemp("usual"), {}, kinds)
        for kinds in [("csv", "json", "parquet")]
    }


def check(spark, monkeypatch, tmp_path, sources, plan, usual, settings, *, of_session):
    """The content is the usual one, and the session is as it was."""
    for kinds, expected in usual.items():
        folder = tmp_path / ("session" if of_session else "conf")
        folder.mkdir()
        if not of_session:
            assert content(sources, plan, folder, settings, kinds) == expected, settings
            continue
        theirs = spark.newSession()
        for name, value in settings.items():
            theirs.conf.set(name, value)
        held = theirs.conf.getAll
        monkeypatch.setattr(session, "_ours", [])
        monkeypatch.setattr(session, "_running", lambda theirs=theirs: theirs)
        assert content(sources, plan, folder, {}, kinds) == expected, settings
        assert theirs.conf.getAll == held
        assert spark_session(SparkOptions(conf={"spark.sql.shuffle.partitions": "3"})) is not theirs
        monkeypatch.undo()


@soak
@pytest.mark.parametrize("of_session", [True, False])
def test_many_unusual_settings_at_once(spark, monkeypatch, tmp_path, sources, plan, usual, of_session):
    settings = {name: values[0] for name, values in SETTINGS.items()}
    settings |= {"spark.sql.ansi.enabled": "true", "spark.sql.execution.arrow.maxRecordsPerBatch": "77"}
    check(spark, monkeypatch, tmp_path, sources, plan, usual, settings, of_session=of_session)


@soak
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("of_session", [True, False])
def test_settings_drawn_together_on_a_large_source(
    spark, monkeypatch, tmp_path, sources, plan, usual, seed, of_session
):
    """As above, with what is done for sources of more than `SMALL_BYTES` done for these."""
    draw = random.Random(seed)
    settings = {name: draw.choice(values) for name, values in SETTINGS.items() if draw.random() < 0.5}
    monkeypatch.setattr(module, "SMALL_BYTES", 0)
    check(spark, monkeypatch, tmp_path, sources, plan, usual, settings, of_session=of_session)


CORE = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.speculation": "true",
    "spark.speculation.minTaskRuntime": "0",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.1",
}
"""Settings of Spark's core, which a session has from its start."""

OTHERS = CORE | {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "Asia/Kathmandu",
    "spark.sql.shuffle.partitions": "7",
}

LIBRARY = """
import json, sys, adapt
from adapt.traces.store.trace import open_trace
source, out, conf, master, own = *sys.argv[1:3], json.loads(sys.argv[3]), *sys.argv[4:]
options = {"master": master or None, "spark_conf": [f"{name}={value}" for name, value in conf.items()]}
if own:
    from pyspark.sql import SparkSession
    builder = SparkSession.builder.master(master)
    for name, value in conf.items():
        builder = builder.config(name, value)
    theirs = builder.getOrCreate()
    begun, options = theirs.conf.getAll, {}
adapt.ingest(source, key="user", time="ts", cost="try_cast(cost AS double)", cost_unit="us", out=out, **options)
counts = adapt.count(out, method="exact", **(options or {"master": "local[*]"}))
found = adapt.verdict(out, channels=4, **options).as_data()
if own:
    assert theirs.conf.getAll == begun, "settings changed"
    assert SparkSession.getActiveSession() is theirs, "another session is active"
    assert theirs.range(3).count() == 3
print(json.dumps([open_trace(out).manifest.content_hash, counts.to_arrow().to_pylist(), found], default=str))
"""


@soak
def test_a_cluster_with_settings_of_others_gives_what_this_machine_gives(sources, tmp_path):
    """Speculation, dynamic allocation, ANSI mode, a time zone: of a user's own session, and of `--spark-conf`."""
    found = []
    for conf, master, own in (({}, "", ""), (OTHERS, "local-cluster[2,1,1024]", "own"), (OTHERS, "local[2]", "")):
        out = tmp_path / f"{len(found)}" / "a.trace"
        out.parent.mkdir()
        line = [sys.executable, "-c", LIBRARY, sources / "a.csv", out, json.dumps(conf), master, own]
        done = subprocess.run(line, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found.append(done.stdout.replace(str(out), ""))
    assert found[1] == found[0]
    assert found[2] == found[0]
