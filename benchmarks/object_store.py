"""Reading from an S3 store on this machine, beside the same work on a disk.

Claims: ingesting files and counting a trace that lie in the store take at most 1.4 times the CPU seconds of the
program, its Java and its tasks; counting sends at most 1.2 requests for each column chunk that it reads. The store is
moto, in memory, in a process that is not counted. ADAPT_BENCH_ROWS sets the rows (4 million)."""

import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1]))

from examples import object_store
from tests import fault_proxy

ROWS = int(os.environ.get("ADAPT_BENCH_ROWS", 4_000_000))
TURNS = 3
MOST_CPU, MOST_REQUESTS = 1.4, 1.2
KEY, COUNT = ["--key", "key", "--time", "ts"], ["partition", "count", "--method", "exact"]


def main() -> int:
    """Run both in turns; 0 if the claims are met."""
    with (
        object_store.running("bench") as store,
        fault_proxy.running(store.port) as proxy,
        tempfile.TemporaryDirectory() as place,
    ):
        os.environ.update(object_store.reached_at(store.port))
        from adapt.traces.locations.location import location

        make(Path(place) / "in.csv")
        location("s3://bench/in.csv").upload(Path(place) / "in.csv")
        met = True
        for format_ in ("csv", "parquet"):
            if format_ == "parquet":
                pq.write_table(pa.csv.read_csv(f"{place}/in.csv"), f"{place}/in.parquet", row_group_size=1 << 20)
                location("s3://bench/in.parquet").upload(Path(place) / "in.parquet")
            met &= compared(
                f"ingest of {ROWS:,} rows of {format_}",
                *(["ingest", f"{where}/in.{format_}", *KEY, "-o", f"{place}/out.trace", "--force"]
                  for where in (place, "s3://bench")),
            )  # fmt: skip
        run(["ingest", f"{place}/in.csv", *KEY, "-o", f"{place}/web.trace"])
        run(["ingest", f"{place}/in.csv", *KEY, "-o", "s3://bench/web.trace"])
        met &= compared(
            f"exact counts of {ROWS:,} rows", *([*COUNT, f"{where}/web.trace"] for where in (place, "s3://bench"))
        )
        os.environ.update(object_store.reached_at(proxy.port))
        chunks = read_chunks(Path(place) / "web.trace")
        run([*COUNT, "s3://bench/web.trace"])
        sent = len([each for each in proxy.requests if each.reads and each.path.endswith(".parquet")])
        every = len(proxy.requests)
        met &= sent <= MOST_REQUESTS * chunks
        print(
            f"counting: {sent} requests for {chunks} column chunks, {sent / chunks:.2f} each (at most {MOST_REQUESTS}):"
            f" {'met' if sent <= MOST_REQUESTS * chunks else 'NOT MET'}; {every} requests in all"
        )
        return 0 if met else 1


def make(path: Path) -> None:
    """A stream of skewed keys in the order of time."""
    chance = np.random.default_rng(28)
    keys = pa.array(chance.zipf(1.2, ROWS) % 1_000_000).cast(pa.string())
    times = pa.array(1_700_000_000_000_000 + np.arange(ROWS) * 1000).cast(pa.timestamp("us"))
    pyarrow.csv.write_csv(pa.table({"ts": times, "key": keys}), path)


def read_chunks(trace: Path) -> int:
    """Column chunks of the key in all parts."""
    return sum(pq.read_metadata(part).num_row_groups for part in trace.glob("part-*.parquet"))


def compared(what: str, on_disk: list[str], in_store: list[str]) -> bool:
    """Whether the store takes at most so much more CPU, the least of some turns each."""
    least = [float("inf")] * 2
    for _ in range(TURNS):
        for at, line in enumerate((on_disk, in_store)):
            least[at] = min(least[at], run(line))
    ratio = least[1] / least[0]
    met = ratio <= MOST_CPU
    print(
        f"{what}: {least[1]:.2f} CPU s from the store, {least[0]:.2f} from the disk, {ratio:.2f} times (at most"
        f" {MOST_CPU}): {'met' if met else 'NOT MET'}",
        flush=True,
    )
    return met


def run(line: list[str]) -> float:
    """CPU seconds of a command, of its Java and of the Python processes of its tasks."""
    adapt = [str(Path(sys.executable).with_name("adapt")), "-q"]
    used: dict[int, float] = {}
    with subprocess.Popen([*adapt, *line], stdout=subprocess.DEVNULL, start_new_session=True) as process:
        while process.poll() is None:
            used |= seconds_of(process.pid)
            time.sleep(0.02)
    assert process.returncode == 0, line
    while found := seconds_of(process.pid):  # Java ends later
        used |= found
        time.sleep(0.02)
    return sum(used.values())


def seconds_of(session: int) -> dict[int, float]:
    """CPU seconds of the processes of a session so far."""
    found = {}
    for process in map(int, filter(str.isdigit, os.listdir("/proc"))):
        with suppress(OSError):
            if os.getsid(process) == session:
                fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
                if fields[0] != "Z":
                    found[process] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return found


if __name__ == "__main__":
    sys.exit(main())
