"""Cost profiles from a running Flink job, whose answers were recorded from Flink 2.3 and are served on loopback.

The job of `reality/java/ReplayTrace.java` had been rescaled from 2 to 4 subtasks a few seconds before.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from adapt.core.errors import BadInput, EnvironmentFailure, UsageError
from adapt.traces.calibrate.flink import calibrate_flink

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
