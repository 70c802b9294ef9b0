"""A stateful Flink job whose rows and state are on the planned subtasks, also after a restart and a rescale.

    python examples/flink_job.py [FLINK_JAR]

It generates a skewed stream of visits, builds a plan, exports it for Flink, and computes the hash code of every user
with the exported classes, then the subtask by Flink's formula; this needs only a JDK (17 or later). With Flink's jar, a
flink-dist-*.jar of Flink 2, it also runs the job of examples/flink in Flink's local cluster: half of the visits, a stop
with a savepoint, and from there the other half, once at the same parallelism and once at a larger one. The rows of
every subtask are compared with the plan, and the final count of every user with the stream. A second job there plans
anew as it runs, with the plan in broadcast state; a splitter here counts the same visits, and has the same plans.
"""

import os
import sys
from pathlib import Path
from subprocess import PIPE, Popen, run
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
from visits import ROWS, counted, show, visits

import adapt
from adapt.core.engines.any_language.export import SPLITTER
from adapt.core.engines.flink.planned_groups import group_plan
from adapt.core.engines.flink.scheme import FlinkPartitioner
from adapt.core.engines.hexadecimal import hex_of
from adapt.traces.deploy.export import source_of

CHANNELS, RESCALED = 6, 9
MAX_PARALLELISM = 128
PLAN_EVERY = 2_500
JOB = Path(__file__).parent / "flink"


def export(users: pa.ChunkedArray, folder: Path) -> adapt.Plan:
    """A plan for these users, exported for Flink; on the command line, `adapt partition build` and `export`."""
    plan = adapt.build(counted(users), channels=CHANNELS, engine="consistent")
    adapt.export(plan, to="flink", out=folder / "visits.flink", max_parallelism=MAX_PARALLELISM)
    return plan


def subtasks(plan: adapt.Plan, users: pa.ChunkedArray, parallelism: int) -> np.ndarray:
    """The subtask of each user: the channel of the plan, or at another parallelism that of the key group."""
    if parallelism == plan.channels:
        return adapt.route(plan, users)
    return group_plan(plan, MAX_PARALLELISM).subtasks_of(users, parallelism)


def show_rows(plan: adapt.Plan, users: pa.ChunkedArray, actual: np.ndarray, parallelism: int) -> bool:
    """Print planned and actual rows per subtask; whether they are equal."""
    predicted = np.bincount(subtasks(plan, users, parallelism), minlength=parallelism)
    return show(predicted.tolist(), actual.astype(int).tolist(), "subtask")


def compile_java(folder: Path, sources: list[Path], jar: str = "") -> None:
    """Compile into `classes`."""
    path = os.pathsep.join(filter(None, ["classes", jar]))
    run(["javac", "-cp", path, "-d", "classes", *sources], cwd=folder, check=True)


def with_java_alone(plan: adapt.Plan, users: pa.ChunkedArray, folder: Path) -> bool:
    """Whether the exported classes give each user a hash code that Flink maps to the planned subtask."""
    found = counted(users)
    keys, rows = found["key"].combine_chunks(), found["count"].to_numpy()
    asked = [
        "null" if absent else text
        for text, absent in zip(hex_of(keys).to_pylist(), keys.is_null().to_pylist(), strict=True)
    ]
    compile_java(folder, sorted((folder / "visits.flink").glob("*.java")))
    command = ["java", "-cp", "classes", "FlinkGroups", "visits.flink"]
    output = run(command, cwd=folder, input="\n".join(asked), capture_output=True, text=True, check=True).stdout
    codes = (
        np.array([line.split()[1] for line in output.splitlines()], np.int64) & 0xFFFFFFFF
    )  # a Long of this hash code
    followed = True
    for parallelism in (CHANNELS, RESCALED):
        found = FlinkPartitioner(parallelism, MAX_PARALLELISM).channels_of(pa.array(codes))
        print(f"By Flink's formula, parallelism {parallelism}:")
        followed &= show_rows(plan, users, np.bincount(found, rows, parallelism), parallelism)
        followed &= np.array_equal(found, subtasks(plan, keys, parallelism))
    return followed


def run_job(folder: Path, jar: str, parallelism: int, *, halt: int = 0, savepoint: str = "") -> pa.Table:
    """The subtask, the user and the user's count so far of each row that a run counts.

    With a `halt` it stops with a savepoint after that many rows; with a `savepoint` it continues from there.
    """
    path = os.pathsep.join(["classes", jar])
    command = ["java", "-cp", path, "CountVisits", str(parallelism), str(halt), *filter(None, [savepoint])]
    lines = []
    with (
        (folder / "log.txt").open("w") as log,
        Popen(command, cwd=folder, stdin=PIPE, stdout=PIPE, stderr=log, text=True) as job,
    ):
        for line in job.stdout:
            lines.append(line.partition("> ")[2].strip().split(","))
            if len(lines) == halt:
                job.stdin.write("stop\n")
                job.stdin.flush()
    if job.returncode:
        raise SystemExit((folder / "log.txt").read_text())
    places, found, counts = zip(*lines, strict=True)
    columns = {"user": [user or None for user in found], "count": list(map(int, counts))}
    return pa.table({"subtask": list(map(int, places)), **columns})


def with_flink(plan: adapt.Plan, users: pa.ChunkedArray, folder: Path, jar: str) -> bool:
    """Whether the rows of every subtask match the plan, and a restart loses no count."""
    splitter = folder / SPLITTER.file
    splitter.write_bytes(source_of(SPLITTER))
    compile_java(folder, [*sorted(JOB.glob("*.java")), splitter], jar)

    def followed(came: pa.ChunkedArray, found: pa.Table, parallelism: int) -> bool:
        rows = np.bincount(found["subtask"], minlength=parallelism)
        every = np.array_equal(found["subtask"], subtasks(plan, found["user"], parallelism))
        return show_rows(plan, came, rows, parallelism) and every

    print(f"In Flink, parallelism {CHANNELS}, until a savepoint:")
    half = run_job(folder, jar, CHANNELS, halt=ROWS // 2)
    right = followed(users.slice(0, len(half)), half, CHANNELS)
    (savepoint,) = (folder / "savepoints").iterdir()
    exact = {row["values"]: row["counts"] for row in users.value_counts().to_pylist()}
    for parallelism in (CHANNELS, RESCALED):
        print(f"In Flink, parallelism {parallelism}, from the savepoint:")
        rest = run_job(folder, jar, parallelism, savepoint=str(savepoint))
        right &= followed(users.slice(len(half)), rest, parallelism)
        last = pa.concat_tables([half, rest]).group_by("user").aggregate([("count", "max")])
        reached = dict(zip(last["user"].to_pylist(), last["count_max"].to_pylist(), strict=True))
        print(f"counts of all users correct: {reached == exact}")
        right &= reached == exact
    return right


def with_broadcast_plans(users: pa.ChunkedArray, folder: Path, jar: str) -> bool:
    """Whether each row arrived where the plan says that it followed, and no row was lost."""
    splitter = adapt.Splitter(CHANNELS)
    adapt.write_splitter(splitter, folder / "visits.splitter")
    command = ["java", "-cp", os.pathsep.join(["classes", jar]), "RouteVisits", str(CHANNELS), str(PLAN_EVERY)]
    job = run(command, cwd=folder, capture_output=True, text=True, check=False)
    if job.returncode:
        raise SystemExit(job.stderr)
    plans = {splitter.plan.content_hash(): splitter.plan}
    for first in range(0, ROWS, PLAN_EVERY):
        splitter.observe(users.slice(first, PLAN_EVERY))
        splitter.adopt(splitter.propose())
        plans[splitter.plan.content_hash()] = splitter.plan
    rows = [line.partition("> ")[2].split(",") for line in job.stdout.splitlines()]
    found = pa.array([user or None for _, user, _ in rows], pa.string())
    right = sorted(found.to_pylist(), key=str) == sorted(users.to_pylist(), key=str)
    places = np.array([int(place) for place, _, _ in rows])
    followed = np.array([plan for _, _, plan in rows])
    for content, plan in plans.items():
        of_plan = followed == content
        right &= np.array_equal(places[of_plan], adapt.route(plan, found.filter(pa.array(of_plan))))
    right &= set(followed) <= set(plans)
    print(f"{len(rows):,} rows under {len(set(followed))} broadcast plans, each where its plan says: {right}")
    return bool(right)


def main(jar: str) -> int:
    """Without Flink and, if there is a jar, with it; 0 if the plan was followed and every user counted once."""
    table = visits()
    with TemporaryDirectory() as name:
        folder = Path(name)
        pc.write_csv(table, folder / "visits.csv", pc.WriteOptions(include_header=False, quoting_style="none"))
        plan = export(table["user"], folder)
        right = with_java_alone(plan, table["user"], folder)
        if jar:
            right &= with_flink(plan, table["user"], folder, str(Path(jar).absolute()))
            right &= with_broadcast_plans(table["user"], folder, str(Path(jar).absolute()))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))
