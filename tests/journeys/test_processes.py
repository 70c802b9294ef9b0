"""What only a process of its own can show: no Java at all, Ctrl-C amid the work, a file that cannot grow."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = "from adapt.cli.main import main; main()"


def started(arguments, folder, program=PROGRAM, **options):
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def test_ctrl_c_in_the_middle_of_ingest_is_one_line_and_leaves_nothing(tmp_path):
    with (tmp_path / "rows.csv").open("w") as file:
        file.write("t,k\n")
        file.writelines(
            f"{1_700_000_000 + number * 7919 % 1_000_003},k{number % 1000}\n" for number in range(1_500_000)
        )
    line = "ingest rows.csv --key k --time t --time-format epoch_s -o x.trace --master local[2]".split()
    staging = tmp_path / ".x.trace.partial" / "_staging"
    with started(line, tmp_path, start_new_session=True) as child:
        while not (staging.exists() or child.poll() is not None):
            time.sleep(0.02)  # for the child to get somewhere, however long it takes
        os.killpg(child.pid, signal.SIGINT)  # as a terminal does: to all that run there
        out, err = child.communicate()
    assert (child.returncode, out) == (130, "")
    assert err == "adapt: interrupted; no incomplete output was kept\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.csv"]


@pytest.mark.parametrize("out", ["x.plan", "x.plans"])
def test_a_file_that_cannot_grow_is_one_line_and_leaves_nothing(adapt, tmp_path, out):
    (tmp_path / "counts.csv").write_text("".join(f"k{number},{number}\n" for number in range(1, 2_000)))
    command = ["build", "--max-pins", "1500"] if out == "x.plan" else ["compare"]
    line = ["partition", *command, "counts.csv", "--channels", "3", "-q"]
    with contextlib.chdir(tmp_path):
        adapt.done(*line)  # compiles here, where it can be kept, what the limited one could not keep

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    with started([*line, "-o", out], tmp_path, preexec_fn=limited, env=environment) as child:
        told, err = child.communicate()
    assert (child.returncode, told, err.count("\n")) == (4, "", 1), err
    assert out in err
    assert [path.name for path in Path(tmp_path).iterdir()] == ["counts.csv"]
