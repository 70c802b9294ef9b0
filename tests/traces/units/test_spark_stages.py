"""Verdicts on the stages of an event log: operator, adaptive execution, code, and bad logs."""

import json

import pytest
from jsonschema import Draft202012Validator

from adapt.core.errors import BadInput
from adapt.traces.units.spark_tasks import read_tasks
from tests.conftest import REPOSITORY

SQL = "org.apache.spark.sql.execution.ui.SparkListenerSQL"
MIB = 1 << 20


def node(name, text, metrics, *children):
    """A node of a plan, by accumulators of its metrics."""
    found = [{"name": each, "accumulatorId": number, "metricType": "sum"} for each, number in metrics.items()]
    return {"nodeName": name, "simpleString": text, "children": children, "metrics": found}


def exchange(keys, first, *children):
    metrics = {"records read": first, "local bytes read": first + 1, "remote bytes read": first + 2}
    return node("Exchange", f"Exchange hashpartitioning({keys}, 4), REQUIRED, [plan_id=1]", metrics, *children)


def join(kind="Inner", read=""):
    sides = [exchange("k#1L", 10), exchange("id#2L", 20)]
    if read:
        sides = [node("AQEShuffleRead", f"AQEShuffleRead {read}", {}, side) for side in sides]
    keys = "SortMergeJoin [k#1L], [id#2L]"
    return node("SortMergeJoin", f"{keys}, {kind}", {"number of output rows": 30}, *sides)


def aggregate(functions="count(1), sum(v#2)", partial=False, name="HashAggregate"):
    below = [node(name, f"{name}(keys=[k#1], functions=[partial_count(1)])", {"number of output rows": 41})]
    read = exchange("k#1", 10, *(below if partial else []))
    return node(name, f"{name}(keys=[k#1], functions=[{functions}])", {"number of output rows": 30}, read)


def log(plan, tasks, conf=None, stages=1, expected=None, ends=True, app="app-1"):
    """A log of a query whose stage has tasks of seconds, host, rows and bytes of the left side."""
    lines = [
        {"Event": "SparkListenerLogStart", "Spark Version": "4.0.0"},
        {"Event": "SparkListenerApplicationStart", "App ID": app, "Timestamp": 1},
        {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": conf or {}},
        {
            "Event": f"{SQL}ExecutionStart",
            "executionId": 0,
            "description": "count at job.py:7",
            "sparkPlanInfo": plan,
            "modifiedConfigs": {},
        },
    ]
    for stage in range(stages):
        info = {"Stage ID": stage, "Stage Name": "count", "Number of Tasks": expected or len(tasks)}
        properties = {"spark.sql.execution.id": "0"}
        lines.append({"Event": "SparkListenerStageSubmitted", "Stage Info": info, "Properties": properties})
        for index, (seconds, host, rows, size) in enumerate(tasks):
            values = {10: rows, 11: size, 12: 0, 20: 5, 21: 50, 22: 0, 30: rows}
            known = [
                {"ID": each, "Name": NAMES[each], "Update": str(of), "Metadata": "sql"} for each, of in values.items()
            ]
            task = {"Index": index, "Host": host, "Launch Time": 1000, "Finish Time": 1000 + int(seconds * 1000)}
            read = {"Total Records Read": rows + 5, "Local Bytes Read": size + 50}
            metrics = {"Executor Run Time": int(seconds * 1000), "Shuffle Read Metrics": read}
            lines.append(
                {
                    "Event": "SparkListenerTaskEnd",
                    "Stage ID": stage,
                    "Task Info": {**task, "Accumulables": known},
                    "Task Metrics": metrics,
                }
            )
        if ends:
            lines.append({"Event": "SparkListenerStageCompleted", "Stage Info": info})
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


NAMES = {10: "records read", 11: "local bytes read", 12: "remote bytes read", 30: "number of output rows"}
NAMES |= {20: "records read", 21: "local bytes read", 22: "remote bytes read"}
SKEWED = [(1, "a", 100, 2 * MIB), (1, "b", 100, 2 * MIB), (9, "a", 5000, 100 * MIB), (1, "b", 100, 2 * MIB)]
SLOW = [(1, "a", 100, 2 * MIB), (1, "b", 101, 2 * MIB), (9, "c", 99, 2 * MIB), (9, "c", 100, 2 * MIB)]


def verdict(adapt, tmp_path, *args, **options):
    (tmp_path / "app").write_text(log(*args, **options))
    return json.loads(adapt.done("verdict", tmp_path / "app", "--format", "json").out)


def test_the_operator_its_keys_and_what_is_won_are_named(adapt, tmp_path):
    found = verdict(adapt, tmp_path, join(), SKEWED)
    Draft202012Validator(json.loads((REPOSITORY / "docs/schemas/units.json").read_text())).validate(found)
    (stage,) = found["stages"]["ranked"]
    assert (stage["operator"], stage["keys"]) == ("SortMergeJoin [k] = [id], Inner", [["k"], ["id"]])
    assert (stage["won_s"], stage["call_site"], stage["cause"]) == (6.0, "count at job.py:7", "data")
    assert found["headline"].startswith("Spread the data of stage 0 (SortMergeJoin [k] = [id], Inner)")
    assert "6 s, 66.7 % of the application's task time" in found["headline"].replace("\u202f", " ")


@pytest.mark.parametrize(
    ("plan", "conf", "said", "changes"),
    [
        (join(), {"spark.sql.adaptive.enabled": "false"}, "spark.sql.adaptive.enabled is false", True),
        (join(), {}, "has 100 MiB, and spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes is 256 MiB", True),
        (join(), {"spark.sql.adaptive.skewJoin.skewedPartitionFactor": "99"}, "50 times the median", False),
        (join(), {"spark.sql.adaptive.skewJoin.enabled": "false"}, "skewJoin.enabled is false", True),
        (join("RightOuter"), {}, "cannot split the left side of a RightOuter join", False),
        (join(read="coalesced and skewed"), {}, "split skewed partitions", False),
        (join(), {"spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "9m"}, "above both thresholds", True),
        (aggregate(), {}, "it splits joins only", False),
    ],
)
def test_it_is_said_why_adaptive_execution_did_not_split(adapt, tmp_path, plan, conf, said, changes):
    found = verdict(adapt, tmp_path, plan, SKEWED, conf)
    assert said in found["stages"]["ranked"][0]["adaptive"].replace("\u202f", " ")
    assert ("spark.conf.set" in found["stages"]["code"]) is changes


def test_a_slow_host_is_named_and_gets_no_code(adapt, tmp_path):
    found = verdict(adapt, tmp_path, join(), SLOW)
    assert found["headline"].startswith("Replace host c, which slows stage 0")
    assert found["stages"]["code"] == ""


def test_even_tasks_have_nothing_to_win(adapt, tmp_path):
    found = verdict(adapt, tmp_path, join(), [(2, "a", 100, MIB)] * 4, stages=3)
    assert found["headline"].startswith("Nothing to win")
    assert (found["status"], found["stages"]["ranked"][0]["runs"]) == ("fine", 3)


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (aggregate(partial=True), "aggregated before this shuffle already"),
        (aggregate("percentile(v#2, 0.5, 1, 0, 0)", name="ObjectHashAggregate"), "merge the results"),
        (node("Window", "Window [rank(v#2) AS r#3], [k#1], [v#2 ASC]", {}, exchange("k#1", 10)), "PARTITION BY"),
        (node("Sort", "Sort [v#1 ASC]", {}, exchange("v#1", 10)), "reads no shuffle by key"),
    ],
)
def test_where_no_code_is_known_it_says_what_to_do(adapt, tmp_path, plan, said):
    found = verdict(adapt, tmp_path, plan, SKEWED)
    assert (found["stages"]["code"], said in " ".join(found["sentences"])) == ("", True)


def test_bad_logs_are_one_sentence(tmp_path):
    path = tmp_path / "app"
    cases = {
        log(join(), []): "has no task that ended",
        log(join(), SKEWED) + log(join(), SKEWED, app="app-2"): "holds several applications, app-1 and app-2",
        log(join(), SKEWED, expected=9, ends=False): "ends before any stage ended",
    }
    for text, said in cases.items():
        path.write_text(text)
        with pytest.raises(BadInput, match=said):
            read_tasks(path)
    folder = tmp_path / "eventlog_v2_app-1"
    folder.mkdir()
    for name in ("events_1_app-1", "events_2_app-2.zstd"):
        (folder / name).write_text(log(join(), SKEWED))
    with pytest.raises(BadInput, match="parts of several applications, app-1 and app-2"):
        read_tasks(folder)
