"""Cost profiles from Flink's answers and Spark's logs."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest

from adapt.core.errors import BadInput, EnvironmentFailure, UsageError
from adapt.traces.calibrate.flink import calibrate_flink
from adapt.traces.calibrate.spark import calibrate_spark

HERE = Path(__file__).parent
RECORDED = json.loads((HERE / "flink_job.json").read_text())
METRICS = (HERE / "flink_metrics.txt").read_text()
(JOB,) = RECORDED["/jobs/overview"]["jobs"]
PATH = f"/jobs/{JOB['jid']}"
PROCESS = next(one["id"] for one in RECORDED[PATH]["vertices"] if one["name"].startswith("process"))


@contextmanager
def served(**changed: Any) -> Iterator[str]:
    """Address of a server with the recorded answers, some of them changed; None is not found."""
    answers = {**RECORDED, "/metrics": METRICS, **{f"/{path}": answer for path, answer in changed.items()}}

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = answers.get(self.path)
            self.send_response(404 if answer is None else 200)
            self.end_headers()
            self.wfile.write((answer if isinstance(answer, str) else json.dumps(answer)).encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def subtasks() -> list[tuple[int, float]]:
    """Rows and busy milliseconds of each subtask, as Flink answered."""
    metrics = [one["metrics"] for one in RECORDED[f"{PATH}/vertices/{PROCESS}"]["subtasks"]]
    return [(one["read-records"], one["accumulated-busy-time"]) for one in metrics]


def test_busy_time_over_records_is_the_service_time() -> None:
    with served() as url:
        made = calibrate_flink(url, None, None, None)
    rows, busy_ms = map(sum, zip(*subtasks(), strict=True))
    assert made.profile.service.rows == rows
    assert made.profile.service.mean_s == pytest.approx(busy_ms / rows / 1e3)
    assert made.profile.service.quantiles_s is None
    assert "process -> Sink: Writer" in made.profile.measured


def test_a_rescale_but_not_the_first_start_is_a_restart() -> None:
    with served() as url:
        made = calibrate_flink(url, None, None, None)
    assert made.profile.restart.start_s == pytest.approx(2.011)  # 1795462200868 to 1795462202879
    assert any("1 rescales" in note for note in made.notes)


def test_collections_have_their_mean_length_and_the_rate_of_the_last_minute() -> None:
    with served() as url:
        (pause,) = calibrate_flink(url, None, None, url).profile.pauses
    assert pause.durations_s == (pytest.approx(1.465 / 9),)
    assert pause.durations_s[0] / (pause.interval_s + pause.durations_s[0]) == pytest.approx(0.0244166667)


def test_a_job_or_operator_must_be_named_alone() -> None:
    with served() as url:
        with pytest.raises(UsageError, match="no running job 'other'; running jobs: replay"):
            calibrate_flink(url, "other", None, None)
        with pytest.raises(UsageError, match="no operator with 'join' in the name; operators: 'Source"):
            calibrate_flink(url, None, "join", None)
        with pytest.raises(UsageError, match="several operators with 'r' in the name"):
            calibrate_flink(url, None, "r", None)
    two = {"jobs": [JOB, {**JOB, "jid": "0" * 32}]}
    with served(**{"jobs/overview": two}) as url, pytest.raises(UsageError, match=r"several jobs.*choose one by --job"):
        calibrate_flink(url, None, None, None)


def test_what_does_not_answer_like_flink_is_refused() -> None:
    with served(**{"jobs/overview": "<html>"}) as url, pytest.raises(BadInput, match="does not answer with JSON"):
        calibrate_flink(url, None, None, None)
    with served(**{"jobs/overview": None}) as url, pytest.raises(BadInput, match="status 404"):
        calibrate_flink(url, None, None, None)
    with pytest.raises(EnvironmentFailure, match="does not answer"):
        calibrate_flink(url, None, None, None)  # the server has ended
    with pytest.raises(UsageError, match="does not begin with http://"):
        calibrate_flink("localhost:8081", None, None, None)


def test_a_job_without_rows_yet_is_refused() -> None:
    answer = json.loads(json.dumps(RECORDED[f"{PATH}/vertices/{PROCESS}"]))
    for one in answer["subtasks"]:
        one["metrics"]["read-records"] = 0
    changed = {f"{PATH[1:]}/vertices/{PROCESS}": answer}
    with served(**changed) as url, pytest.raises(BadInput, match="has no processed rows yet"):
        calibrate_flink(url, None, "process", None)


def task(stage, rows, run_ms, *, shuffle=False, gc_ms=0, wait_ms=0, write_ns=0, at_ms=0, failed=False, gcs=(0, 0)):
    """The event of a task, with the fields that Spark 4 writes."""
    read = {"Total Records Read": rows if shuffle else 0, "Fetch Wait Time": wait_ms}
    return {
        "Event": "SparkListenerTaskEnd",
        "Stage ID": stage,
        "Task Info": {"Launch Time": at_ms, "Finish Time": at_ms + run_ms, "Executor ID": "1", "Failed": failed},
        "Task Metrics": {
            "Executor Run Time": run_ms,
            "JVM GC Time": gc_ms,
            "Shuffle Read Metrics": read,
            "Shuffle Write Metrics": {"Shuffle Write Time": write_ns},
            "Input Metrics": {"Records Read": 0 if shuffle else rows},
        },
        "Task Executor Metrics": {"MinorGCCount": gcs[0], "MinorGCTime": gcs[1], "MajorGCCount": 0, "MajorGCTime": 0},
    }


def submitted(stage, name):
    return {"Event": "SparkListenerStageSubmitted", "Stage Info": {"Stage ID": stage, "Stage Name": name}}


def batch(second, rows, *, by_source=False, **durations_ms):
    counted = {"sources": [{"numInputRows": rows}]} if by_source else {"numInputRows": rows}
    return {"timestamp": f"2026-01-01T00:00:{second:02d}.000Z", **counted, "durationMs": durations_ms}


LOG = [
    {"Event": "SparkListenerApplicationStart", "Timestamp": 1000},
    {"Event": "SparkListenerExecutorAdded", "Timestamp": 3500},
    submitted(0, "map"),
    submitted(1, "sum"),
    task(0, 1000, 500, write_ns=100_000_000, gcs=(1, 20)),
    task(1, 400, 2000, shuffle=True, gc_ms=100, wait_ms=300, at_ms=500, gcs=(4, 100)),
    task(1, 600, 2400, shuffle=True, at_ms=2500, gcs=(5, 150)),
    task(1, 999, 9999, shuffle=True, failed=True),
    task(1, 0, 700, shuffle=True),
]


def written(tmp_path, events, name="log"):
    path = tmp_path / name
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return path


def test_tasks_of_the_stage_with_the_most_run_time_give_service_and_transport(tmp_path):
    found = calibrate_spark(written(tmp_path, LOG))
    profile = found.profile
    assert profile.service.rows == 1000
    assert profile.service.mean_s == pytest.approx((2.0 - 0.3 - 0.1 + 2.4) / 1000)
    assert profile.transport.row_s == pytest.approx(0.3 / 1000)
    assert profile.service.quantiles_s is None
    assert profile.restart.start_s == 2.5
    assert "2 tasks of 'sum', which read shuffle" in profile.measured
    (pause,) = profile.pauses
    assert (pause.kind, pause.durations_s) == ("gc", (0.03,))
    assert pause.interval_s == pytest.approx((4.9 - 0.15) / 5)
    assert "service.quantiles_s" in profile.missing()


def test_a_start_of_days_is_doubted(tmp_path):
    changed = [LOG[0], {**LOG[1], "Timestamp": 592 * 86_400_000}, *LOG[2:]]
    found = calibrate_spark(written(tmp_path, changed))
    assert found.profile.restart.start_s is None
    assert any(note.startswith("the first executor starts 592 d after its application") for note in found.notes)


def test_a_stage_can_be_chosen(tmp_path):
    path = written(tmp_path, LOG)
    profile = calibrate_spark(path, stage=0).profile
    assert profile.service.mean_s == pytest.approx(0.4 / 1000)
    assert profile.transport.row_s == pytest.approx(0.1 / 1000)
    with pytest.raises(UsageError, match="--stage 7 has no tasks with rows; stages: 0, 1"):
        calibrate_spark(path, stage=7)


def test_a_folder_of_parts_and_zstd_are_read_in_order(tmp_path):
    folder = tmp_path / "eventlog_v2_app-1"
    folder.mkdir()
    for number, part in ((10, LOG[5:]), (2, LOG[:5])):
        data = written(tmp_path, part).read_bytes()
        with pa.CompressedOutputStream(str(folder / f"events_{number}_app-1.zstd"), "zstd") as out:
            out.write(data)
    (folder / "appstatus_app-1").touch()
    assert calibrate_spark(folder).profile.service == calibrate_spark(written(tmp_path, LOG)).profile.service


@pytest.mark.parametrize("by_source", [False, True])
def test_streaming_progress_gives_a_line_over_rows_and_a_pause(tmp_path, by_source):
    batches = [
        batch(2 * at, rows, by_source=by_source, addBatch=200 + rows, walCommit=30, commitOffsets=20, queryPlanning=50)
        for at, rows in enumerate((100, 400, 200, 800))
    ]
    batches.append(batch(9, 0, by_source=by_source, addBatch=5000))
    if by_source:
        batches = [{"Event": "a.b.StreamingQueryListener$QueryProgressEvent", "progress": one} for one in batches]
    path = written(tmp_path, batches)
    profile = calibrate_spark(path, workers=4).profile
    assert profile.service.rows == 1500
    assert profile.service.mean_s == pytest.approx(4e-3)
    (pause,) = profile.pauses
    assert pause.together
    assert pause.durations_s == pytest.approx((0.3,) * 4)
    assert pause.interval_s == pytest.approx(1.7)
    with pytest.raises(UsageError, match="give --workers N"):
        calibrate_spark(path)
    path.write_text(json.dumps(batches))
    assert calibrate_spark(path, workers=4).profile.service == profile.service


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no events"),
        ("{}\nnot json\n", "has no task and no micro-batch with rows"),
        ("[1]\n", "holds no events"),
        ('{"Event": "SparkListenerStageSubmitted"}\n', "an event is not as Spark writes it: 'Stage Info'"),
        ("\ufffd", "holds no events"),
    ],
)
def test_what_is_wrong_with_a_log_is_said(tmp_path, text, said):
    path = tmp_path / "log"
    path.write_text(text)
    with pytest.raises(BadInput) as raised:
        calibrate_spark(path)
    assert said in str(raised.value)
