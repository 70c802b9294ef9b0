"""A cluster whose processes are killed or stopped, or whose shuffle files go: the same content, or a clear failure."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.journeys.processes import standalone, started
from tests.tiers import soak

pytestmark = soak

SEED = 29
FAULTS = os.environ.get("ADAPT_FAULTS", "")
"""Which moments of a test, as 20:60 for those from the 20th on; all without."""
FILES, ROWS_A_FILE, PARTS = 6, 8_000, 4
EXECUTOR, PYTHON, WORKER = (
    "CoarseGrainedExecutorBackend --driver-url",
    "-m pyspark.daemon",
    "deploy.worker.Worker --host",
)
STEPS = ("ingest", "ingest large", "count", "count all", "evaluate")
SHUFFLING = ("ingest", "ingest large", "count all")

DRIVER = """
import json, sys
from pathlib import Path
import pyarrow.parquet as pq
from adapt.core.counting.names import CountMethod
from adapt.core.errors import EnvironmentFailure
from adapt.core.partitioning.build import Recipe, build_plan
from adapt.core.partitioning.schemes.names import Scheme
from adapt.traces import block_cache
from adapt.traces.counting import count as counting
from adapt.traces.counting.count import Counting, count_trace
from adapt.traces.counting.evaluating import evaluate_plans
from adapt.traces.ingest import ingest as module
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.spark import runner as spark_runner
from adapt.traces.spark.names import RunnerName
from adapt.traces.spark.session import SparkOptions
from adapt.core.units.seals import hash_of
from adapt.traces.store.trace import open_trace

source, rows, parts, *settings = sys.argv[1:]
conf = dict(each.split("=", 1) for each in settings)
master = conf.pop("master")
spark = SparkOptions(master, conf, runner=RunnerName.SPARK)
spark_runner.TASK_FILES = 1  # a task a file
small, mapping = module.SMALL_BYTES, Mapping("key", "ts", bytes="bytes")
plans = []

def content(step, out):
    if step.startswith("ingest"):
        module.SMALL_BYTES = 0 if "large" in step else small
        shares = {} if "large" in step else {module.PARTS_SETTING: parts}
        module.count_ahead = lambda *_, **__: None
        options = SparkOptions(master, conf | shares, runner=RunnerName.SPARK)
        module.ingest([source], out, mapping, spark_options=options)
        trace = open_trace(out, check_all=True)
        assert trace.rows == sum(map(len, trace.batches()))
        return [trace.manifest.content_hash, pq.read_table(out / "_rejects").to_pylist()]
    trace = open_trace(rows)
    if step == "count all":
        block_cache.CACHE, counting.KEYS_A_PART = str(out), 5_000
        return open_manifest(counting.all_keys(trace, spark_options=spark))
    if step == "count":
        found = count_trace(trace, Counting(epsilon=1e-3), spark_options=spark)
        return [found.keys.to_pylist(), found.count_low.tolist()]
    if not plans:
        counted = count_trace(trace, Counting(epsilon=1e-3), spark_options=spark)
        plans.append(("plan", build_plan(counted, Recipe(Scheme.HYBRID), 7)))
    return evaluate_plans(plans, trace.path, spark_options=spark).as_data()

def open_manifest(path):
    from adapt.traces.store.frequencies import read_frequencies
    return read_frequencies(path, check_all=True)[1].content_hash

for line in sys.stdin:
    step, out = json.loads(line)
    print("begun", flush=True)
    try:
        print("done", hash_of(content(step, Path(out))), flush=True)
    except EnvironmentFailure as error:
        print("failed", error, flush=True)
"""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """CSV files for an ingest, and a trace of two blocks for the rest."""
    from adapt.traces.generators.keyed import zipf_stream
    from adapt.traces.generators.write import generate

    folder = tmp_path_factory.mktemp("inputs")
    source = folder / "in"
    source.mkdir()
    for at in range(FILES):
        rows = range(at * ROWS_A_FILE, (at + 1) * ROWS_A_FILE)
        lines = [f"{1_700_000_000 + row * 7919 % 100_000},k{row * row % 997},{row}" for row in rows]
        (source / f"{at}.csv").write_text("ts,key,bytes\n" + "\n".join([*lines, "never,k,1"]) + "\n")
    return source, generate(zipf_stream(rows=1_200_000, domain=20_000, seed=3), folder / "z.trace").trace.path


class Cluster:
    """A driver on a cluster of this test, and the faults that may come to it."""

    def __init__(self, folder, inputs, master, *settings):
        line = [sys.executable, "-c", DRIVER, *map(str, inputs), str(PARTS), f"master={master}", *settings]
        self.log = (folder / "driver.log").open("w")
        self.driver = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.folder, self.master = folder, master
        self.out = folder / "out"
        self.out.mkdir()

    def does(self, step, fault=None, after_s=0.0):
        """What the driver says of a step, and how long it took; the fault comes so long after its begin."""
        self.before = set(self.folder.rglob("shuffle_*.data"))
        self.driver.stdin.write(json.dumps([step, str(self.out / "it")]) + "\n")
        self.driver.stdin.flush()
        assert self.driver.stdout.readline() == "begun\n", (self.folder / "driver.log").read_text()
        begun, over = time.monotonic(), threading.Event()
        hit = []

        def strike():
            if not over.wait(after_s):
                while not over.is_set() and not hit:
                    if fault(over):
                        hit.append(time.monotonic() - begun)
                    else:
                        over.wait(0.02)

        striker = threading.Thread(target=strike, daemon=True)
        if fault is not None:
            striker.start()
        said = self.driver.stdout.readline().strip()
        took = time.monotonic() - begun
        over.set()
        if fault is not None:
            striker.join()
        assert said, (self.folder / "driver.log").read_text()
        self.left_clean(step, said)
        return said, took, bool(hit)

    def left_clean(self, step, said):
        """The output is whole or absent, with nothing next to it."""
        from adapt.traces.store.disk import remove_tree

        left = [each.name for each in self.out.iterdir()]
        whole = step.startswith("ingest") or step == "count all"
        assert left == (["it"] if whole and said.startswith("done") else []) or step == "count all", (said, left)
        if "it" in left:
            hidden = [each for each in (self.out / "it").rglob("*") if each.name.startswith((".", "_task", "_part"))]
            assert not hidden, hidden
            remove_tree(self.out / "it")

    def processes(self, kind):
        """Processes of the cluster whose command line names a kind, such as `EXECUTOR`."""
        found, of_driver = [], below(self.driver.pid)
        for process in below(os.getpid()):
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                if kind in words and process not in of_driver:
                    found.append(process)
        return found

    def signalled(self, draw, kind, sent):
        """Send a signal to one of the processes of a kind, and return it; None without one."""
        found = self.processes(kind)
        if not found:
            return None
        process = draw.choice(sorted(found))
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, sent)
            return process
        return None

    def close(self):
        """End the driver."""
        self.driver.stdin.close()
        self.driver.kill()
        self.driver.wait()
        self.log.close()


def below(process):
    """All processes that a process started, and those that these did."""
    parents = {}
    for each in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append(int(each))
    found, asked = [], [process]
    while asked:
        found += (of := parents.get(asked.pop(), []))
        asked += of
    return found


def go_through(cluster, moments, fault, steps=STEPS, share=1.0):
    """Strike at moments drawn over each step, or a first share of it; what came of it, by step."""
    usual, came = {}, Counter()
    for step in steps:
        cluster.does(step)  # what is compiled and started once
        said, took, _ = cluster.does(step)
        assert said.startswith("done"), said
        usual[step] = said, took
    asked = range(moments)[slice(*map(int, FAULTS.split(":")))] if FAULTS else range(moments)
    for moment in asked:
        step, draw = steps[moment % len(steps)], random.Random(f"{SEED} {moment}")
        expected, usually = usual[step]
        said, took, hit = cluster.does(
            step, lambda over, draw=draw: fault(draw, over), share * draw.uniform(0, usually)
        )
        what = f"moment {moment} of {step}, {took:.1f} s instead of {usually:.1f}"
        print(f"{what}: {'missed' if not hit else said}", file=sys.stderr, flush=True)
        assert said == expected or said.startswith("failed"), f"seed {SEED}, {what}: {said}"
        assert "a bug" not in said
        came[step, "missed" if not hit else "same" if said == expected else said] += 1
    print(came)
    assert sum(came[step, "same"] for step in steps) >= len(asked) // 2, came


@contextlib.contextmanager
def driven(inputs, folder, *settings):
    """A driver on a cluster of two workers."""
    with standalone(folder) as master:
        cluster = Cluster(folder, inputs, master, *settings)
        try:
            yield cluster
        finally:
            cluster.close()


def test_killed_executors_and_python_workers(inputs, tmp_path):
    with driven(inputs, tmp_path) as cluster:

        def kill(draw, _over):
            return cluster.signalled(draw, draw.choice([EXECUTOR, PYTHON]), signal.SIGKILL)

        go_through(cluster, 60, kill)


def test_shuffle_files_removed_between_stages(inputs, tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "local"))
    (tmp_path / "local").mkdir()
    with driven(inputs, tmp_path) as cluster:

        def remove(draw, _over):
            found = sorted(set((tmp_path / "local").rglob("shuffle_*.data")) - cluster.before)
            if not found or draw.random() > 0.1:
                return False
            for each in draw.sample(found, -(-len(found) // 2)):
                each.unlink()
            return True

        go_through(cluster, 12, remove, SHUFFLING, share=0.0)


def test_a_cluster_without_workers_ends_the_work(inputs, tmp_path):
    wait = "spark.scheduler.maxRegisteredResourcesWaitingTime=20s"
    with driven(inputs, tmp_path, wait) as cluster:

        def no_more(_over):
            for process in cluster.processes(WORKER) + cluster.processes(EXECUTOR):
                os.kill(process, signal.SIGKILL)
            return True

        cluster.does("count")
        said, _, _ = cluster.does("count", no_more, 0.2)
        assert said.startswith("failed counting keys: no executor for 20 s: spark://127.0.0.1:"), said
        line = ["ingest", inputs[0] / "0.csv", "--key", "key", "--time", "ts", "-o", tmp_path / "a.trace"]
        run = started([*line, "--master", cluster.master, "--spark-conf", wait])
        said = run.communicate()[1]
    assert run.returncode == 4
    assert "no executor for 20 s: " in said, said
    assert len(said.splitlines()) == 1, said
    assert not (tmp_path / "a.trace").exists()
