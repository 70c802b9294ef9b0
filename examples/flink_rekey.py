"""A stateful Flink job that is rekeyed from a savepoint, and taken back: docs/runbook-flink.md.

    python examples/flink_rekey.py FLINK_JAR

The job counts visits by user. A third of the visits by natural keys, a stop with a savepoint; from there a third by the
keys of a rekey table, with several pinned users and one split; then the rest by natural keys again. Before each change
a one-off job reads the state of the keys that move. All counts are compared with the stream, and the rows of every
subtask with the plan. FLINK_JAR is a flink-dist-*.jar of Flink 2 (pip download --no-deps apache-flink-libraries).
"""

import os
import sys
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE, Popen, run
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from visits import ROWS, counted, show, visits

import adapt

CHANNELS, RESCALED, SPLIT_OVER = 6, 9, 3
THIRD = ROWS // 3
ROOT = Path(__file__).parent.parent


def plan_of(users: pa.ChunkedArray) -> adapt.Plan:
    """A plan over Flink's own placement, whose hottest key is split."""
    plan = adapt.build(counted(users), channels=CHANNELS, engine="flink")
    hottest = users.value_counts()[0]["values"].as_py()
    pinned = {key: channel for key, channel in plan.explicit.items() if key != hottest}
    return replace(plan, explicit=pinned, splits={hottest: tuple(range(SPLIT_OVER))})


class Job:
    """Runs the steps of CountByKey in a folder."""

    def __init__(self, folder: Path, flink: str) -> None:
        """Compile the job with the JVM parts."""
        self.folder = folder
        surroundings = os.environ | {"ADAPT_FLINK_JAR": flink}
        surroundings.pop("ADAPT_KAFKA_JAR", None)
        run([ROOT / "jvm" / "build.sh", folder / "adapt.jar"], check=True, env=surroundings, capture_output=True)
        self.path = os.pathsep.join(["classes", "adapt.jar", flink])
        source = ROOT / "examples" / "rekey" / "CountByKey.java"
        run(["javac", "-cp", self.path, "-d", "classes", source], cwd=folder, check=True)

    def run(self, step: str, *given: object, halt: int = 0) -> list[list[str]]:
        """The fields of each line that a step prints; with a halt, it stops with a savepoint after that many lines."""
        lines = []
        command = ["java", "-cp", self.path, "CountByKey", step, *map(str, given), *([str(halt)] if halt else [])]
        with (
            (self.folder / "log.txt").open("w") as log,
            Popen(command, cwd=self.folder, stdin=PIPE, stdout=PIPE, stderr=log, text=True) as job,
        ):
            for line in job.stdout:
                lines.append(line.rpartition("> ")[2].strip().split(","))
                if len(lines) == halt:
                    job.stdin.write("stop\n")
                    job.stdin.flush()
        if job.returncode:
            raise SystemExit((self.folder / "log.txt").read_text())
        return lines

    def savepoint(self) -> Path:
        """The newest savepoint."""
        return max((self.folder / "savepoints").iterdir(), key=lambda path: path.stat().st_mtime_ns)

    def hand_over(self, step: str, *given: object) -> int:
        """Read the state of the keys that move into handover.csv; how many had one."""
        lines = self.run(step, *given)
        (self.folder / "handover.csv").write_text("".join(",".join(line) + "\n" for line in lines))
        return len(lines)


def counts_of(lines: list[list[str]]) -> dict[str, int]:
    """The last count of each key."""
    found: dict[str, int] = {}
    for _, key, count in lines:
        found[key] = max(found.get(key, 0), int(count))
    return found


def continued(before: dict[str, int], lines: list[list[str]]) -> bool:
    """Whether every key went on counting from where it was."""
    expected = dict(before)
    for _, key, count in sorted(lines, key=lambda line: int(line[2])):
        expected[key] = expected.get(key, 0) + 1
        if int(count) != expected[key]:
            return False
    return True


def main(flink: str) -> int:
    """The whole runbook; 0 if every count is right and the plan was followed."""
    users = visits()["user"].fill_null("anonymous")
    plan = plan_of(users)
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "visits.csv").write_text("".join(f"{user}\n" for user in users.to_pylist()))
        adapt.export(plan, to="rekey", out=folder / "visits.rekey")
        table = folder / "visits.rekey" / "rekey.json"
        replacements = adapt.read_rekey(table).as_mapping()
        job = Job(folder, flink)

        first = job.run("natural", CHANNELS, halt=THIRD)
        before = counts_of(first)
        print(f"natural keys: {len(first):,} visits of {len(before)} users, then a savepoint")
        moved = job.hand_over("handover", CHANNELS, job.savepoint(), table)
        print(f"one-off job: the state of {moved} of {len(replacements)} keys that move")

        second = job.run("rekeyed", CHANNELS, job.savepoint(), table, halt=THIRD)
        carried = {key: count for key, count in before.items() if key not in replacements}
        carried |= {new[0]: before[key] for key, new in replacements.items() if key in before and key not in new}
        carried |= {key: before[key] for key, new in replacements.items() if key in before and key in new}
        right = continued(carried, second)
        print(f"rekeyed: every key, pinned ones too, counts on from where it was: {right}")
        came = users.slice(THIRD, THIRD).to_pylist()
        planned = [
            plan.splits[user][(THIRD + row) % SPLIT_OVER] if user in plan.splits else -1
            for row, user in enumerate(came)
        ]
        placed = adapt.route(replace(plan, splits={}), pa.array(came))
        subtasks = np.where(np.array(planned) < 0, placed, planned)
        predicted = np.bincount(subtasks, minlength=CHANNELS).tolist()
        actual = np.bincount([int(subtask) for subtask, _, _ in second], minlength=CHANNELS).tolist()
        right &= show(predicted, actual, "subtask")
        natural = {new: key for key, each in replacements.items() for new in each}
        merged: dict[str, int] = {}
        for key, count in (carried | counts_of(second)).items():
            user = natural.get(key, key)
            merged[user] = merged.get(user, 0) + count
        exact = users.slice(0, 2 * THIRD).value_counts().to_pylist()
        right &= merged == {row["values"]: row["counts"] for row in exact}
        print(f"rekeyed: counts of all users, split keys merged, correct: {right}")

        back = job.hand_over("back", RESCALED, job.savepoint(), table)
        last = job.run("undone", RESCALED, job.savepoint(), table)
        right &= continued(merged, last)
        final = merged | counts_of(last)
        right &= final == {row["values"]: row["counts"] for row in users.value_counts().to_pylist()}
        print(f"natural keys again, at parallelism {RESCALED}, with the state of {back} replacements: correct: {right}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
