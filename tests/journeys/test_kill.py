"""`kill -9` at any moment of an ingest: the trace is absent or complete, and the next run clears what was left."""

import os
import random
import select
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from adapt.traces.ingest.ingest import ingest
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.leftovers import Leftover, leftovers
from adapt.traces.locations.location import is_stored
from adapt.traces.locations.run_folders import MANIFEST
from adapt.traces.store.disk import remove_tree
from adapt.traces.store.manifest import read_manifest, verify
from adapt.traces.store.plans import read_plan
from adapt.traces.store.trace import open_trace
from tests.fault_proxy import Fault, Proxy, Request
from tests.tiers import SOAK

pytestmark = pytest.mark.skipif(
    not (SOAK and hasattr(os, "pidfd_open")),
    reason="takes minutes; ADAPT_SOAK=1 runs it where processes are watched as Linux lets them be",
)

KILLS = 10
"""Of each seed."""
WRITES, MANIFEST_WRITE = 5, 4
"""Requests of an ingest that change the store: rejects, rows, its manifest, the manifest in place, and a clean-up."""
ROWS = 20_000
STEPS = ("surveying the files", "reading", "writing rejects", "sorting by time", "profiling")
LONGEST_S = 0.8
"""About as long as a step takes in a fresh process, so that moments spread over all of it."""

CHILD = """
import sys
from adapt.traces.ingest.ingest import ingest
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.locations.location import location
from adapt.traces.spark.session import SparkOptions

def told(what, done, total):
    if not total:
        print(what, flush=True)

source, target = sys.argv[1:]
mapping = Mapping("key", time="ts", bytes="bytes", time_format="epoch_s")
ingest([source], location(target), mapping, spark_options=SparkOptions(master="local[2]"), progress=told)
print("done", flush=True)
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("source") / "source.csv"
    path.write_text(rows_to_ingest())
    return path


def rows_to_ingest() -> str:
    """Rows enough for writes to take a while, one of them refused."""
    rows = "".join(f"{1_700_000_000 + row * 7 % ROWS},k{row % 97},{row}\n" for row in range(ROWS))
    return f"ts,key,bytes\n{rows}never,k,1\n"


def kill_at(step: str, delay_s: float, source: Path, target: Path, spare: Path) -> bool:
    """Run an ingest in processes of its own and kill them all, that long after a step began; whether it had ended."""
    spared = {"TMPDIR": str(spare), "SPARK_LOCAL_DIRS": str(spare)}
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(source), str(target)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **spared},
        start_new_session=True,
    ) as child:
        try:
            assert child.stdout is not None
            heard = []
            for line in child.stdout:
                heard.append(line.strip())
                if heard[-1] == step:
                    break
            assert heard[-1:] == [step], heard
            with suppress(subprocess.TimeoutExpired):
                child.wait(timeout=delay_s)
        finally:
            ended = child.poll() is not None
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
    await_end_of_session(child.pid)
    return ended


def await_end_of_session(session: int) -> None:
    """Wait until no process that the child started is left, Java and its Python workers among them."""
    for process in in_session(session):
        with suppress(ProcessLookupError):
            handle = os.pidfd_open(process)
            gone, _, _ = select.select([handle], [], [], 60)
            os.close(handle)
            assert gone, f"process {process} outlives the run that was killed"


def in_session(session: int) -> list[int]:
    found = []
    for process in map(int, filter(str.isdigit, os.listdir("/proc"))):
        with suppress(ProcessLookupError, PermissionError):
            if os.getsid(process) == session:
                found.append(process)
    return found


def complete(target: Path) -> bool:
    """Whether the whole trace stands there; a part of one fails the test."""
    if not (target / MANIFEST if is_stored(target) else target).exists():
        return False
    trace = open_trace(target, check_all=True)
    assert trace.rows == sum(batch.num_rows for batch in trace.batches()) == ROWS
    return True


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("seed", range(8))
def test_a_killed_ingest_leaves_all_or_nothing_and_the_next_one_succeeds(source, tmp_path, promise, seed):
    """Each run starts from what the killed one before it left, and the last one is let through."""
    place, spare = tmp_path / "out", tmp_path / "spare"
    place.mkdir()
    spare.mkdir()
    target = place / "web.trace"
    moments = random.Random(seed)
    halves = 0
    for kill in range(KILLS):
        step, delay_s = STEPS[kill % len(STEPS)], moments.uniform(0, LONGEST_S)
        told = f"seed {seed}, kill {kill}: {delay_s:.3f} s after {step!r}"
        ended = kill_at(step, delay_s, source, target, spare)
        stands = complete(target)
        assert stands or not ended, told
        assert set(os.listdir(place)) <= {"web.trace", ".web.trace.partial"}, told
        halves += (place / ".web.trace.partial").exists()
        if stands:
            remove_tree(target)
    assert halves >= KILLS // 2, "the kills came before or after the writing"
    ingest([str(source)], target, Mapping("key", time="ts", bytes="bytes", time_format="epoch_s"))
    assert complete(target)
    assert os.listdir(place) == ["web.trace"]
    promise("kill").checked(KILLS)


def kill_at_write(proxy: Proxy, line: list[str], spare: Path, write: int, done: bool) -> list[Request]:
    """Run a command and kill its processes at a request that changes the store, or once it is done; such requests."""
    seen: list[Request] = []
    spared = {**os.environ, "TMPDIR": str(spare), "SPARK_LOCAL_DIRS": str(spare)}
    with subprocess.Popen(line, stdout=subprocess.DEVNULL, env=spared, start_new_session=True) as child:

        def kill(request: Request) -> Fault | None:
            if request.method in ("GET", "HEAD"):
                return None
            seen.append(request)
            if len(seen) < write:
                return None
            os.killpg(child.pid, signal.SIGKILL)
            return Fault.LOST if done else Fault.RESET

        proxy.failing = kill
    await_end_of_session(child.pid)
    proxy.failing = lambda _: None
    return seen


def cleaned(bucket: Path) -> list[Leftover]:
    """What runs left in a bucket, which is removed."""
    left = leftovers(bucket)
    for each in left:
        each.remove()
    assert leftovers(bucket) == []
    return left


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("write", range(1, WRITES + 1))
def test_an_ingest_killed_at_a_write_to_a_store_leaves_all_or_nothing(bucket, proxy, tmp_path, write, done):
    """What it left is named and removed by `adapt clean`, is never taken for a trace, and the next run succeeds."""
    source, target = bucket / "source.csv", bucket / "web.trace"
    source.write_bytes(rows_to_ingest().encode())
    seen = kill_at_write(proxy, [sys.executable, "-c", CHILD, str(source), str(target)], tmp_path, write, done)
    assert len(seen) >= write
    stands = complete(target)
    assert stands == (write > MANIFEST_WRITE or (write == MANIFEST_WRITE and done))
    assert bool(cleaned(bucket)) == (done or write > 1) or stands
    assert complete(target) == stands
    mapping = Mapping("key", time="ts", bytes="bytes", time_format="epoch_s")
    ingest([str(source)], target, mapping, force=stands)
    assert complete(target)


@dataclass(frozen=True, slots=True)
class Writing:
    """A command that writes to a store.

    Attributes:
        words: The command, with `{}` for the place.
        out: Its output there.
        writes: Requests that change the store, the counts that later commands reuse among them.
    """

    words: str
    out: str
    writes: int

    def at(self, place: Path) -> list[str]:
        return [*self.words.replace("{}", str(place).rstrip("/")).split(), str(place / self.out)]


COMMANDS = {
    "count": Writing("partition count {}/web.trace -o", "web.freq", 4),
    "build": Writing("partition build {}/web.trace --channels 3 -o", "web.plan", 5),
    "compare": Writing("partition compare {}/web.trace --channels 3 -o", "web.plans", 11),
    "repartition": Writing("replay repartition {}/web.trace --channels 3 --period 1h -o", "web.run", 5),
    "report": Writing("report {}/web.trace --html", "web.html", 1),
}
"""With the ten of an ingest, 64 kills."""


def content(target: Path) -> str:
    """The content hash of a whole artefact, empty without one; a part of one fails the test."""
    if target.suffix == ".html":
        page = target.read_text() if target.exists() else "</html>"
        assert page.rstrip().endswith("</html>")
        return "a page" if target.exists() else ""
    if target.suffix == ".plan":
        return read_plan(target).content_hash() if target.exists() else ""
    if not (target / MANIFEST).exists():
        return ""
    manifest = read_manifest(target)
    verify(target, manifest)
    return manifest.content_hash


@pytest.fixture(scope="module")
def disk(source, tmp_path_factory) -> Path:
    """A folder with a trace."""
    place = tmp_path_factory.mktemp("disk")
    ingest([str(source)], place / "web.trace", Mapping("key", time="ts", bytes="bytes", time_format="epoch_s"))
    return place


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("name", "write", "done"),
    [
        (name, write, done)
        for name, command in COMMANDS.items()
        for write in range(1, command.writes + 1)
        for done in (False, True)
    ],
)
def test_a_command_killed_at_a_write_to_a_store_leaves_all_or_nothing(
    adapt, bucket, proxy, disk, tmp_path, name, write, done
):
    """Its output stands once its last request has come, and after a clean-up the next run writes what a disk holds."""
    command = COMMANDS[name]
    if not content(disk / command.out):
        adapt.done(*command.at(disk))
    for path in (disk / "web.trace").rglob("*.*"):
        (bucket / path.relative_to(disk)).upload(path)
    target = bucket / command.out
    line = [str(Path(sys.executable).with_name("adapt")), *command.at(bucket)]
    seen = kill_at_write(proxy, line, tmp_path, write, done)
    assert len(seen) == write, [each.path for each in seen]
    last = f"/{target.bucket}/{target.key}{'' if target.suffix in ('.plan', '.html') else f'/{MANIFEST}'}"
    took = [each.path for each in (seen if done else seen[:-1])]
    stands = content(target)
    assert stands == (content(disk / command.out) if last in took else "")
    cleaned(bucket)
    assert content(target) == stands
    adapt.done(*command.at(bucket), *(["--force"] if stands else []))
    assert content(target) == content(disk / command.out)
    assert cleaned(bucket) == []
