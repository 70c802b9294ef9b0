"""The same counts from a small cluster, whose executors are processes of their own, as from this machine's threads."""

import subprocess
import sys

import pytest

from adapt.traces.generators.keyed import zipf_stream
from adapt.traces.generators.write import generate
from tests.tiers import soak

pytestmark = soak

PROGRAM = "from adapt.cli.main import main; main()"


def told_by(master: str, *arguments: str) -> str:
    """What the program writes to stdout, in a process of its own, as there is one Spark a process."""
    line = [sys.executable, "-c", PROGRAM, "partition", "count", *arguments, "--format", "json", "--master", master]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("options", ["", "--method exact", "--epsilon 0.0001 --weight count"])
def test_a_cluster_counts_what_one_machine_counts(spark, tmp_path, options):
    trace = generate(zipf_stream(rows=2_500_000, domain=100_000, seed=3), tmp_path / "z.trace").trace
    arguments = [str(trace.path), *options.split()]
    assert told_by("local-cluster[2,1,1024]", *arguments) == told_by("local[2]", *arguments)
