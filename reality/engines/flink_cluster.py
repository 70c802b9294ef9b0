"""Flink's standalone cluster on this machine: a JobManager, a TaskManager, and their REST API."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen
from uuid import uuid4

from adapt.core.errors import EnvironmentFailure

JOB_MANAGER = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
TASK_MANAGER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
MISSING = (
    "no Flink: name a flink-dist jar by ADAPT_FLINK_JAR, e.g. that of PyPI's apache-flink-libraries 2.3.0 (330 MB)"
)

_OPENED = (
    "java.base/java.lang",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.time",
)
_CONFIG = """\
jobmanager.rpc.address: 127.0.0.1
jobmanager.rpc.port: {rpc}
jobmanager.bind-host: 127.0.0.1
jobmanager.scheduler: adaptive
jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout: 100 ms
jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling: 1 ms
jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout: 100 ms
rest.address: 127.0.0.1
rest.bind-address: 127.0.0.1
rest.port: {rest}
taskmanager.host: 127.0.0.1
taskmanager.bind-host: 127.0.0.1
taskmanager.numberOfTaskSlots: {slots}
taskmanager.cpu.cores: 1
taskmanager.memory.framework.heap.size: 128m
taskmanager.memory.task.heap.size: 384m
taskmanager.memory.task.off-heap.size: 0m
taskmanager.memory.framework.off-heap.size: 128m
taskmanager.memory.network.min: 64m
taskmanager.memory.network.max: 64m
taskmanager.memory.managed.size: 64m
taskmanager.memory.jvm-metaspace.size: 128m
taskmanager.memory.jvm-overhead.min: 64m
taskmanager.memory.jvm-overhead.max: 64m
execution.checkpointing.dir: file://{folder}/checkpoints
io.tmp.dirs: {folder}/tmp
web.adaptive-scheduler.rescale-history.size: 20
metrics.fetcher.update-interval: 200 ms
metrics.reporters: prometheus
metrics.reporter.prometheus.factory.class: org.apache.flink.metrics.prometheus.PrometheusReporterFactory
"""
_LOG = """\
rootLogger.level = INFO
rootLogger.appenderRef.file.ref = File
appender.file.name = File
appender.file.type = File
appender.file.fileName = ${sys:log.file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c %m%n
"""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster.

    Attributes:
        url: Address of its REST API.
        prometheus: Address of the TaskManager's metrics.
        job: Number of the uploaded jar.
    """

    url: str
    prometheus: str
    job: str

    def get(self, path: str) -> Any:
        """Answer of the REST API."""
        return _answer(Request(self.url + path))

    def send(self, method: str, path: str, body: Any) -> Any:
        """Answer of the REST API to a request with JSON data."""
        data = json.dumps(body).encode()
        return _answer(Request(self.url + path, data, {"Content-Type": "application/json"}, method=method))

    def run(self, name: str, arguments: list[str]) -> str:
        """Start a job by its class; returns its number."""
        return str(
            self.send("POST", f"/jars/{self.job}/run", {"entryClass": name, "programArgsList": arguments})["jobid"]
        )

    def wait(self, job: str, *, ended: bool, limit_s: float) -> None:
        """Wait until all tasks of a job run, or until it has ended.

        Raises:
            EnvironmentFailure: The job failed, or it takes too long.
        """
        until_s = time.monotonic() + limit_s
        while True:
            found = self.get(f"/jobs/{job}")
            if found["state"] == "FAILED":
                raise EnvironmentFailure(f"Flink's job failed: {self.get(f'/jobs/{job}/exceptions')}"[:2000])
            if ended and found["state"] == "FINISHED":
                return
            if not ended and found["vertices"] and all(one["status"] == "RUNNING" for one in found["vertices"]):
                return
            if time.monotonic() > until_s:
                raise EnvironmentFailure(f"Flink's job is {found['state']} after {limit_s:g} s")
            time.sleep(0.1)


def _answer(request: Request) -> Any:
    with urlopen(request, timeout=30) as reply:
        return json.loads(reply.read() or "null")


def flink_jar() -> Path | None:
    """Flink's jar, named by ADAPT_FLINK_JAR."""
    named = os.environ.get("ADAPT_FLINK_JAR", "")
    return Path(named).absolute() if named and Path(named).is_file() else None


def compiled_jar(jar: Path, sources: list[Path], folder: Path) -> Path:
    """Compile Java sources against Flink's jar, and pack them."""
    classes, packed = folder / "classes", folder / "job.jar"
    shutil.rmtree(classes, ignore_errors=True)
    classes.mkdir(parents=True)
    subprocess.run(["javac", "-nowarn", "-cp", jar, "-d", classes, *sources], check=True)
    subprocess.run(["jar", "--create", "--file", packed, "-C", classes, "."], check=True)
    return packed


@contextmanager
def running(jar: Path, job: Path, folder: Path, ports: tuple[int, int, int, int], slots: int) -> Iterator[Cluster]:
    """A cluster that runs the jobs of a jar; its two processes end with the block.

    Args:
        jar: Flink's jar; its logging jars lie beside it, its plugins in the folder `plugins` above.
        ports: For RPC, REST, and Prometheus of both processes.
        slots: Most parallel subtasks of an operator.
    """
    rpc, rest, *metrics = ports
    configured = folder / "conf"
    configured.mkdir(parents=True, exist_ok=True)
    (folder / "tmp").mkdir(exist_ok=True)
    values = {"rpc": rpc, "rest": rest, "slots": slots, "folder": folder}
    (configured / "config.yaml").write_text(_CONFIG.format(**values))
    (configured / "log4j.properties").write_text(_LOG)
    path = os.pathsep.join(map(str, [jar, *sorted(jar.parent.glob("log4j-*.jar"))]))
    opened = [f"--add-opens={one}=ALL-UNNAMED" for one in _OPENED]
    environment = {**os.environ, "FLINK_PLUGINS_DIR": str(jar.parent.parent / "plugins")}
    with ExitStack() as stack:
        processes = []
        for main, port in zip((JOB_MANAGER, TASK_MANAGER), metrics, strict=True):
            log = folder / f"{main.rpartition('.')[2]}.log"
            logged = [f"-Dlog.file={log}", f"-Dlog4j.configurationFile={configured / 'log4j.properties'}"]
            command = [
                "java",
                "-Xms512m",
                "-Xmx512m",
                *opened,
                *logged,
                "-cp",
                path,
                main,
                "--configDir",
                str(configured),
            ]
            command += ["-D", f"metrics.reporter.prometheus.port={port}"]
            out = stack.enter_context(log.with_suffix(".out").open("w"))
            process = subprocess.Popen(command, env=environment, stdout=out, stderr=out, cwd=folder)
            stack.callback(_end, process)
            processes.append(process)
        url = f"http://127.0.0.1:{rest}"
        _until_ready(url, processes, folder)
        uploaded = _uploaded(url, job)
        yield Cluster(url, f"http://127.0.0.1:{metrics[1]}", uploaded)


def _until_ready(url: str, processes: list["subprocess.Popen[bytes]"], folder: Path, limit_s: float = 120) -> None:
    until_s = time.monotonic() + limit_s
    while time.monotonic() < until_s:
        if any(process.poll() is not None for process in processes):
            break
        try:
            if _answer(Request(f"{url}/overview"))["slots-total"]:
                return
        except (URLError, OSError):
            pass
        time.sleep(0.3)
    raise EnvironmentFailure(f"Flink's cluster did not start; its logs are in {folder}")


def _uploaded(url: str, job: Path) -> str:
    """Upload a jar; returns its number."""
    edge = uuid4().hex
    head = f'--{edge}\r\nContent-Disposition: form-data; name="jarfile"; filename="{job.name}"\r\n'
    body = (
        f"{head}Content-Type: application/x-java-archive\r\n\r\n".encode()
        + job.read_bytes()
        + f"\r\n--{edge}--\r\n".encode()
    )
    request = Request(f"{url}/jars/upload", body, {"Content-Type": f"multipart/form-data; boundary={edge}"})
    return str(_answer(request)["filename"]).rpartition("/")[2]


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)
