"""No command imports a module of the current folder unasked."""

import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.tiers import soak
from tests.traces.small_traces import write_trace

PROGRAM = Path(sys.executable).with_name("adapt")
TRAP = "from pathlib import Path\nPath({!r}, __name__).touch()\n"
POLICY = "class Calm:\n    def moves(self, view):\n        return {}\n"
OPERATOR = "def odd(ts: int) -> bool:\n    return ts % 2 == 1\n"
CHAIN = '[[operator]]\nname = "odd"\nkind = "stateless"\nfunction = "mine:odd"\n'
COMPARE = "replay compare x.trace --channels 2 --scenario rebuild --scenario flux-load --seeds 1 --format json"


@pytest.fixture
def trapped(tmp_path, monkeypatch):
    """A folder with modules of the names of Python's and installed ones, which leave a file when they run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ran").mkdir()
    for name in {*sys.stdlib_module_names, *packages_distributions(), "sitecustomize", "usercustomize"}:
        (tmp_path / f"{name}.py").write_text(TRAP.format(str(tmp_path / "ran")))
    (tmp_path / "mine.py").write_text(POLICY + OPERATOR)
    (tmp_path / "mine.toml").write_text(CHAIN)
    (tmp_path / "x.csv").write_text("ts,key\n" + "".join(f"{at},k{at % 7}\n" for at in range(200)))
    write_trace(
        tmp_path / "x.trace", {"ts": np.arange(2000) * 1000, "key": pa.array([f"k{at % 7}" for at in range(2000)])}
    )
    return tmp_path


@pytest.mark.parametrize(
    "line",
    [
        "ingest x.csv --key key --time ts --time-format epoch_s -o y.trace",
        "replay flux x.trace --workers 2 --policy mine:Calm",
        f"{COMPARE} --jobs 2",
        "replay ordered x.trace --chain mine.toml --workers 1",
        *(
            pytest.param(line, marks=soak)
            for line in (
                f"{COMPARE} --master local[*]",
                "replay flux x.trace --workers 2 --policy load",
                "replay elastic x.trace --workers 1 --pool 2",
                "verdict x.csv --key key --time ts --time-format epoch_s --channels 4 -o y.trace",
                "partition compare x.trace --channels 2:4",
                "partition count x.trace --method exact --master local[*]",
                "replay repartition x.trace --channels 2",
                "demo -o demo",
                "cluster pack -o packages.tar.gz",
                "cluster check --master local[1]",
            )
        ),
    ],
)
def test_no_command_imports_a_module_of_the_current_folder_unasked(trapped, line):
    done = subprocess.run([PROGRAM, *line.split()], capture_output=True, text=True, check=False)
    assert (done.returncode, list((trapped / "ran").iterdir())) == (0, []), done.stderr


def test_tasks_of_spark_search_no_current_folder(spark):
    assert spark.sparkContext.environment["PYTHONSAFEPATH"] == "1"
