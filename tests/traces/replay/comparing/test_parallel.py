"""Processes of a comparison end with it."""

import subprocess
import sys

COMMAND = """
import ctypes
from adapt.traces.replay.comparing.parallel import runner_of_scenarios
from adapt.traces.spark.names import RunnerName

def work(number):
    print("began", flush=True)
    ctypes.PyDLL(None).sleep(3600)  # keeps the interpreter's lock, as compiled code does

if __name__ == "__main__":
    with runner_of_scenarios(RunnerName.IN_PROCESS, 2, None) as run_all:
        list(run_all(work, [1, 2]))
"""


def test_no_worker_outlives_a_command_that_is_killed(tmp_path):
    """They have the output of the command open, which ends with the last of them."""
    (tmp_path / "command.py").write_text(COMMAND)
    with subprocess.Popen([sys.executable, tmp_path / "command.py"], stdout=subprocess.PIPE) as command:
        assert command.stdout is not None
        assert [command.stdout.readline() for _ in range(2)] == [b"began\n"] * 2
        command.kill()
        assert command.communicate(timeout=60)[0] == b""


def test_a_worker_watches_its_command_before_it_loads_what_takes_long():
    code = "import sys, adapt.traces.replay.comparing.worker; print({'numpy', 'pyarrow'} & {*sys.modules})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"
