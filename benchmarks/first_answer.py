"""First answer about a log: ingest, compare, replay and report, each as a command of its own.

Claim: ingest of 10,000 lines takes at most 1.6 times a bare Spark session with one job from the same class-data
archive, each other command at most 0.8 times, as none starts Java. By CPU seconds of all processes, median of five
rounds. ADAPT_DATA names the folder of the real streams; DuckDB counts the same keys beside, if it is installed.
"""

import ctypes
import os
import resource
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter

LOG = Path(os.environ.get("ADAPT_DATA", "../shared/data")) / "weblog-2015" / "apache_logs"
ROUNDS = 5
CLAIMS = {"ingest": 1.6, "partition compare": 0.8, "replay repartition": 0.8, "report": 0.8}

BARE = """
from adapt.traces.spark.session import SparkOptions, spark_session
spark_session(SparkOptions(brief=True)).range(1000).selectExpr("sum(id)").collect()
"""

DUCKDB = """
import duckdb, sys
lines = "read_csv(?, columns={'line': 'text'}, delim='\\x01', quote='')"
duckdb.execute(f"select split_part(line, ' ', 1), count(*) from {lines} group by 1", [sys.argv[1]]).fetchall()
"""


def main() -> int:
    """Run the story in rounds; 0 if the claims are met."""
    if not LOG.exists():
        print(f"first answer: {LOG} is not there; set ADAPT_DATA")
        return 0
    adapt = str(Path(sys.executable).with_name("adapt"))
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: Java is ours to wait for
    with tempfile.TemporaryDirectory() as folder:
        trace, plans, run, page = (f"{folder}/web.{kind}" for kind in ("trace", "plans", "run", "html"))
        commands = {
            "a bare Spark session and one job": [sys.executable, "-c", BARE],
            "ingest": [adapt, "ingest", str(LOG), "--format", "clf", "--key", "host", "--bytes", "bytes", "-o", trace],
            "partition compare": [adapt, "partition", "compare", trace, "--channels", "1:10", "-o", plans],
            "replay repartition": [
                *(adapt, "replay", "repartition", trace, "--channels", "8", "--period", "6h", "-o", run)
            ],
            "report": [adapt, "report", trace, plans, run, "--html", page],
        }
        if find_spec("duckdb"):
            commands["DuckDB counts the keys"] = [sys.executable, "-c", DUCKDB, str(LOG)]
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for number in range(-2, ROUNDS):  # the first records the archive, the second adopts it
            for name, command in commands.items():
                forced = [*command, "--force"] if command[0] == adapt else command
                seconds = _seconds(forced)
                if number >= 0:
                    taken[name].append(seconds)
    bare, *_ = taken.values()
    met = True
    for name, all_seconds in taken.items():
        cpu_s, wall_s = (median(column) for column in zip(*all_seconds, strict=True))
        ratio = median(ours[0] / theirs[0] for ours, theirs in zip(all_seconds, bare, strict=True))
        most = CLAIMS.get(name)
        met &= most is None or ratio <= most
        claim = "" if most is None else f", claimed at most {most:g}: {'met' if ratio <= most else 'NOT MET'}"
        print(f"{name}: {cpu_s:.2f} CPU s, {wall_s:.2f} s, {ratio:.2f} times the bare session{claim}")
    return 0 if met else 1


def _seconds(command: list[str]) -> tuple[float, float]:
    """CPU seconds of a command and of all that it started, and its wall time."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    subprocess.run(command, capture_output=True, check=True)
    wall_s = perf_counter() - start
    try:
        while True:
            os.wait()
    except ChildProcessError:
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall_s


if __name__ == "__main__":
    sys.exit(main())
