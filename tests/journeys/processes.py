"""Processes that tests start: the command line, and a cluster on this machine."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import py4j
import pyspark

PROGRAM = "from adapt.cli.main import main; main()"


def started(arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def bare_python(folder):
    """A fresh Python that has PySpark alone."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/*/site-packages")
    for package in (pyspark, py4j):
        (site / package.__name__).symlink_to(Path(package.__file__).parent)
    return str(folder / "bin" / "python")


@contextlib.contextmanager
def standalone(folder, unmounted=None, python=sys.executable):
    """A standalone Spark on this machine with two workers of a core each; its address.

    The workers have hosts of their own, as Spark never runs a task twice on one host. They see nothing in the folder
    `unmounted`.
    """
    from adapt.traces.spark.java import find_java_home

    script = Path(pyspark.__file__).parent / "bin" / "spark-class"
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_java_home()),
        "PYSPARK_PYTHON": str(python),
        "SPARK_WORKER_DIR": str(folder / "work"),
    }
    processes = []

    def server(kind, *arguments, host="127.0.0.1", before=()):
        log = (folder / f"{len(processes)}.log").open("w+")
        line = [*before, str(script), f"org.apache.spark.deploy.{kind}", "--host", host, *arguments]
        environment["SPARK_LOCAL_IP"] = host
        processes.append(subprocess.Popen(line, env=environment, stdout=log, stderr=log, start_new_session=True))
        return Path(log.name)

    def told(log, pattern):
        for _ in range(1200):
            found = re.search(pattern, log.read_text())
            if found:
                return found.group(0)
            time.sleep(0.1)
        raise AssertionError(log.read_text())

    try:
        master = told(server("master.Master", "--port", "0", "--webui-port", "0"), r"spark://127\.0\.0\.1:\d+")
        for host in ("127.0.0.1", "127.0.0.2"):
            options = ("--cores", "1", "--memory", "1g", "--webui-port", "0")
            hiding = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs none "{unmounted}" && exec "$@"', "sh"]
            log = server("worker.Worker", *options, master, host=host, before=hiding if unmounted else ())
            told(log, "Successfully registered with master")
        yield master
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def connect_server(folder, python=sys.executable, master="local[2]"):
    """A Spark Connect server on this machine; its address."""
    from adapt.traces.spark.java import find_java_home

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    line = [
        Path(pyspark.__file__).parent / "bin" / "spark-submit",
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        *("--master", master, "--driver-memory", "1g", "--conf", "spark.ui.enabled=false"),
        *(
            "--conf",
            f"spark.connect.grpc.binding.port={port}",
            "--conf",
            "spark.connect.grpc.binding.address=127.0.0.1",
        ),
        *("--conf", f"spark.sql.warehouse.dir={folder}/warehouse", "spark-internal"),
    ]
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_java_home()),
        "PYSPARK_PYTHON": str(python),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(line, env=environment, cwd=folder, stdout=log, stderr=log, start_new_session=True)
    try:
        for _ in range(6000):  # a loaded machine takes minutes
            with socket.socket() as client:
                if server.poll() is None and client.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        else:
            raise AssertionError((folder / "server.log").read_text())
        yield f"sc://127.0.0.1:{port}"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()
