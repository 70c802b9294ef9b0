"""Numbers by unit: each kind of file, recognised and read as what it holds."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.errors import BadInput, UsageError
from adapt.traces.sources.formats.spark_log import Faults, events
from adapt.traces.units.reading import units_of
from adapt.traces.units.samples import Amount, loads_of
from tests.traces.calibrate.test_calibrate import served, subtasks

SECOND = 1_000_000
T0 = 1_700_000_000


def answer(series, **labels):
    return {
        "status": "success",
        "data": {
            "resultType": "matrix",
            "result": [
                {"metric": {"__name__": "numRecordsIn", **labels, **of}, "values": values} for of, values in series
            ],
        },
    }


def rising(steps, every=15, first=0.0):
    totals = np.cumsum([first, *steps])
    return [[T0 + every * at + 0.5, f"{total:g}"] for at, total in enumerate(totals)]


def file_of(folder, text, name="units.json"):
    path = folder / name
    path.write_text(text) if isinstance(text, str) else path.write_bytes(text)
    return path


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("bare", [True, False])
def test_a_range_query_is_read_however_it_is_written(tmp_path, indent, bare):
    found = answer([({"subtask_index": str(at)}, rising([at + 1] * 9)) for at in range(4)])
    found = found["data"]["result"] if bare else found
    separators = None if indent else (",", ":")
    path = file_of(tmp_path, json.dumps(found, indent=indent, separators=separators))
    series = loads_of(units_of(str(path)))
    assert series.loads.units == ("0", "1", "2", "3")
    assert series.samples.amount is Amount.COUNTER
    np.testing.assert_allclose(series.loads.loads, np.outer([1, 2, 3, 4], np.ones(9)))
    assert series.loads.starts_us[0] == T0 * SECOND + SECOND // 2


def test_totals_that_start_again_count_from_0_and_windows_in_gaps_are_dropped(tmp_path):
    restarted = [[T0, "100"], [T0 + 15, "110"], [T0 + 30, "4"], [T0 + 45, "14"]]
    whole = rising([10] * 40)
    gap = [each for at, each in enumerate(whole) if not 10 < at < 20]
    path = file_of(tmp_path, json.dumps(answer([({"partition": "0"}, whole), ({"partition": "1"}, gap)])))
    series = loads_of(units_of(str(path)))
    np.testing.assert_allclose(series.loads.loads[0], 10)
    assert series.loads.loads.shape[1] == 30
    assert [each.evidence for each in series.findings] == ["10 windows of 40 without samples of some unit are dropped"]
    path = file_of(tmp_path, json.dumps(answer([({"partition": str(at)}, restarted) for at in range(2)])))
    series = loads_of(units_of(str(path)))
    np.testing.assert_allclose(series.loads.loads[0], [10, 4, 10])
    assert series.findings[0].evidence.startswith("totals started again, and count from 0 then: unit 0 (1 time)")


def test_values_that_are_no_numbers_are_dropped_and_said(tmp_path):
    odd = [[T0, "1"], [T0 + 15, "NaN"], [T0 + 30, "+Inf"], [T0 + 45, "4"]]
    path = file_of(tmp_path, json.dumps(answer([({"partition": str(at)}, odd) for at in range(2)])))
    (finding,) = loads_of(units_of(str(path))).findings
    assert finding.evidence == "4 values of numRecordsIn dropped: not a number from 0"


def test_milliseconds_for_seconds_are_put_right_and_a_lint_finding(adapt, tmp_path):
    values = [[time * 1000, value] for time, value in rising([1] * 9)]
    path = file_of(tmp_path, json.dumps(answer([({"partition": str(at)}, values) for at in range(2)])))
    assert loads_of(units_of(str(path))).loads.starts_us[0] == T0 * SECOND + SECOND // 2
    (finding,) = adapt.json("lint", str(path))["findings"]
    assert (finding["id"], finding["severity"]) == ("clock-unit", "warning")


def test_labels_and_metrics_that_may_mean_several_things_are_asked_for(tmp_path):
    same = [({"partition": "0", "job": job}, rising([1, 2])) for job in "ab"]
    more = [({"partition": "1", "job": job}, rising([2, 3])) for job in "ab"]
    path = file_of(tmp_path, json.dumps(answer(same + more)))
    with pytest.raises(UsageError, match="several series have the same partition, and differ by job"):
        units_of(str(path))
    assert loads_of(units_of(str(path), 'numRecordsIn{job="a"}')).loads.loads.sum() == 8
    assert loads_of(units_of(str(path), unit=["partition"])).loads.loads.sum() == 16
    with pytest.raises(UsageError, match=r"no metric 'numRecordsOn'.*did you mean 'numRecordsIn'"):
        units_of(str(path), "numRecordsOn")
    with pytest.raises(UsageError, match=r"--key shard: .* has no such label"):
        units_of(str(path), unit=["shard"])


EXPOSED = """# HELP kafka_topic_partition_current_offset Current Offset
# TYPE kafka_topic_partition_current_offset gauge
kafka_topic_partition_current_offset{partition="0",topic="t"} 100
kafka_topic_partition_current_offset{partition="1",topic="t"} 1e3
kafka_consumergroup_lag{consumergroup="g",partition="0",topic="t"} 17
kafka_consumergroup_lag{consumergroup="g",partition="1",topic="t"} 1700
go_goroutines 12
"""


def test_text_exposition_gives_offsets_and_lag(tmp_path):
    samples = units_of(str(file_of(tmp_path, EXPOSED, "metrics.txt")))
    assert (samples.metric, samples.amount) == ("kafka_topic_partition_current_offset", Amount.COUNTER)
    assert samples.lag is not None
    assert samples.lag.values.tolist() == [17, 1700]
    assert loads_of(samples).loads.loads.tolist() == [[100], [1000]]
    lag = units_of(str(tmp_path / "metrics.txt"), "kafka_consumergroup_lag")
    assert lag.amount is Amount.LEVEL


GROUPS = """
GROUP  TOPIC  PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG  CONSUMER-ID  HOST       CLIENT-ID
pay    t      0          1000            1200            200  c-1          /10.0.0.1  c
pay    t      1          5000            9000            4000 c-2          /10.0.0.2  c
pay    t      2          -               70              -    -            -          -
"""


def test_consumer_groups_are_read_with_their_snapshots(tmp_path):
    later = GROUPS.replace("1200            200", "1300            300").replace("9000            4000", "9900  4900")
    samples = units_of(str(file_of(tmp_path, GROUPS + later, "groups.txt")))
    series = loads_of(samples)
    assert series.loads.loads.tolist() == [[100], [900], [0]]
    assert [unit.worker for unit in series.units] == ["c-1", "c-2", ""]
    assert not samples.is_timed
    two = GROUPS + GROUPS.replace("pay", "web")
    with pytest.raises(UsageError, match="several consumer groups; choose one with --count: pay and web"):
        units_of(str(file_of(tmp_path, two, "two.txt")))
    assert len(units_of(str(tmp_path / "two.txt"), "web").units) == 3


def test_end_offsets_are_totals(tmp_path):
    samples = units_of(str(file_of(tmp_path, "t:0:10\nt:1:30\nt:2:\n", "offsets.txt")))
    assert loads_of(samples).loads.loads.tolist() == [[10], [30]]


def test_cloudwatch_and_flink_and_tables(tmp_path):
    times = ["2024-05-01T10:00:00+00:00", "2024-05-01T10:01:00Z"]
    results = [{"Id": f"m{at}", "Label": f"shardId-00{at}", "Timestamps": times, "Values": [at, 9]} for at in range(2)]
    series = loads_of(units_of(str(file_of(tmp_path, json.dumps({"MetricDataResults": results})))))
    assert series.loads.loads.tolist() == [[0, 9], [1, 9]]
    subtasks = [{"subtask": at, "endpoint": f"h{at}", "metrics": {"read-records": 10 * at}} for at in range(3)]
    samples = units_of(str(file_of(tmp_path, json.dumps({"id": "v", "now": T0 * 1000, "subtasks": subtasks}))))
    assert (samples.metric, samples.values.tolist()) == ("read-records", [0, 10, 20])
    rows = [{"id": f"{at}.numRecordsIn", "value": str(at)} for at in range(3)]
    assert units_of(str(file_of(tmp_path, json.dumps(rows)))).values.tolist() == [0, 1, 2]
    text = "timestamp,partition,value\n" + "".join(
        f"2024-05-01T10:{minute:02}:00Z,{unit},{unit + 1}\n" for minute in range(5) for unit in range(3)
    )
    series = loads_of(units_of(str(file_of(tmp_path, text, "t.csv"))))
    np.testing.assert_allclose(series.loads.shares, [1 / 6, 2 / 6, 3 / 6])
    wide = "Timestamp,shardId-000,shardId-001\n2024-05-01 10:00:00,1,9\n2024-05-01 10:01:00,,8\n"
    assert loads_of(units_of(str(file_of(tmp_path, wide, "wide.csv")))).loads.loads.tolist() == [[1, 0], [9, 8]]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"jid": "j", "vertices": []}, "has totals by vertex; save /jobs/JOB/vertices/VERTEX"),
        ({"Label": "x", "Datapoints": []}, "one series without its shard"),
        ({"MetricDataResults": [{"Id": "m", "Timestamps": [], "Values": []}]}, "has 1 series"),
        ({"subtasks": [{"metrics": {"read-records": "x"}}]}, "a part is missing or of another kind"),
    ],
)
def test_documents_without_units_are_one_sentence(tmp_path, document, said):
    with pytest.raises(BadInput, match=said):
        units_of(str(file_of(tmp_path, json.dumps(document))))


def log_of(tasks, stage="keyed"):
    lines = [{"Event": "SparkListenerLogStart", "Spark Version": "4.0"}]
    for number in range(2):
        info = {"Stage ID": number, "Stage Name": stage, "Submission Time": T0 * 1000 + number * 60_000}
        lines.append({"Event": "SparkListenerStageSubmitted", "Stage Info": info})
        for index, rows in enumerate(tasks):
            metrics = {"Executor Run Time": 5, "Shuffle Read Metrics": {"Total Records Read": rows}}
            task = {"Index": index, "Host": f"h{index}", "Failed": False}
            lines.append(
                {"Event": "SparkListenerTaskEnd", "Stage ID": number, "Task Info": task, "Task Metrics": metrics}
            )
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode()


def lz4_blocks(data):
    codec, out = pa.Codec("lz4_raw"), b""
    for part in (data[:100], data[100:]):
        packed = codec.compress(part, asbytes=True)
        sizes = len(packed).to_bytes(4, "little") + len(part).to_bytes(4, "little")
        out += b"LZ4Block" + b"\x25" + sizes + b"\0\0\0\0" + packed
    return out + b"LZ4Block" + b"\x15" + bytes(12)


def snappy_chunks(data):
    codec, out = pa.Codec("snappy"), b"\x82SNAPPY\0" + (1).to_bytes(4, "big") * 2
    for part in (data[:1000], data[1000:]):
        packed = codec.compress(part, asbytes=True)
        out += len(packed).to_bytes(4, "big") + packed
    return out


PACKED = {
    "plain": lambda data: data,
    "gz": gzip.compress,
    "zstd": lambda data: b"".join(pa.Codec("zstd").compress(part, asbytes=True) for part in (data[:900], data[900:])),
    "lz4": lz4_blocks,
    "snappy": snappy_chunks,
}


@pytest.mark.parametrize("form", PACKED)
def test_an_event_log_is_read_in_every_form_and_up_to_where_it_is_cut(tmp_path, form):
    data = log_of([5, 10, 600])
    path = tmp_path / "app"
    path.write_bytes(PACKED[form](data))
    series = loads_of(units_of(str(path)))
    assert series.loads.loads.tolist() == [[5, 5], [10, 10], [600, 600]]
    path.write_bytes(PACKED[form](data)[:-60])
    faults = Faults()
    assert 1 <= len(list(events(path, faults))) < 10
    assert faults.sentences()


@pytest.mark.parametrize(
    "names", [["events_1_app", "events_2_app", "events_10_app"], ["eventlog-2024-01-01", "eventlog"]]
)
def test_folders_of_rolling_logs_are_read_in_order(tmp_path, names):
    folder = tmp_path / "eventlog_v2_app"
    folder.mkdir()
    lines = log_of([5, 10, 600]).splitlines(keepends=True)
    for at, name in enumerate(names):
        part = lines[at * 3 :] if at == len(names) - 1 else lines[at * 3 : at * 3 + 3]
        (folder / name).write_bytes(b"".join(part))
    assert [each["Event"] for each in events(folder, Faults())] == [json.loads(line)["Event"] for line in lines]
    assert loads_of(units_of(str(folder))).loads.loads.sum() == 1230


def test_a_bad_line_of_a_log_is_counted_and_not_fatal(tmp_path):
    path = tmp_path / "app"
    path.write_bytes(log_of([1, 2]) + b"not json\n[3]\n")
    faults = Faults()
    assert len(list(events(path, faults))) == 7
    assert faults.lines == 2
    assert "2 lines that are not events are skipped" in units_of(str(path)).notes


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rows.csv", "ts,key,partition\n1,a,0\n"),
        ("hosts.csv", "ts,host,bytes\n1,a,100\n"),
        ("log.txt", "1.2.3.4 GET /\n"),
        ("rows.jsonl", '{"a": 1}\n{"a": 2}\n'),
        ("empty", ""),
    ],
)
def test_rows_of_a_stream_are_no_units(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert units_of(str(tmp_path / name)) is None


def test_a_verdict_on_metrics_keeps_counts_that_other_commands_take(adapt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    series = [({"partition": str(at)}, rising([10 + 90 * (at == 2)] * 40)) for at in range(6)]
    file_of(tmp_path, json.dumps(answer(series)))
    said = adapt.done(*"verdict units.json --engine kafka --channels 3 -o units.counts.parquet".split())
    assert said.out.startswith("Verdict: Count the keys of unit 2")
    assert adapt(*"check units.counts.parquet".split(), "--limit", "top_share <= 0.2").code == 1
    assert "66.7 %" in adapt.done(*"report units.counts.parquet --html page.html".split()).out
    assert "Load over time" in (tmp_path / "page.html").read_text()
    assert adapt.done(*"lint units.counts.parquet".split())
    again = adapt.done(*"verdict units.counts.parquet --engine kafka".split())
    assert again.out.startswith("Verdict: Count the keys of unit 2")
    refused = adapt.refused(2, *"verdict units.json --engine kafka --max-pins 3".split())
    assert refused == "adapt: units.json holds metrics by unit, where --max-pins has no effect; omit it"
    refused = adapt(*"verdict units.json --keys 0 --engine kafka".split())
    assert (refused.code, refused.err.splitlines()[-1]) == (2, "adapt: the number of keys must be at least 1 (got 0)")


def test_subtasks_of_a_running_job_are_read_by_rest():
    with served() as url:
        samples = units_of(url, "process")
    assert samples.values.tolist() == [rows for rows, _ in subtasks()]
    with served() as url, pytest.raises(UsageError, match="--count nothing: no operator has this in its name"):
        units_of(url, "nothing")
