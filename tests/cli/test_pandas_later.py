"""pyarrow without pandas in the command, and with it in code of users."""

import subprocess
import sys
from pathlib import Path

from tests.traces.small_traces import write_trace

OWN = """
from adapt.cli.pandas_later import keep_pandas_for_later
keep_pandas_for_later()
import pyarrow as pa
pa.array([1])
import sys
assert "pandas" not in sys.modules
import pandas as pd
moments = pa.array(pd.Series(pd.to_datetime(["2020-01-01", None])))
assert moments.type == pa.timestamp("ns") and moments.null_count == 1
assert pa.array(pd.Series([1.5, None])).null_count == 1
assert pa.table({"a": [1]}).to_pandas().equals(pd.DataFrame({"a": [1]}))
"""

COMMAND = """
import sys
from adapt.cli.main import main
try:
    main(sys.argv[1:])
finally:
    print("pandas" in sys.modules, file=sys.stderr)
"""


def test_a_command_does_not_import_pandas(tmp_path: Path) -> None:
    write_trace(tmp_path / "x.trace", {"ts": [0, 1000, 2000], "key": ["a", "b", "a"]})
    command = ["replay", "flux", "x.trace", "--workers", "2", "-o", "x.flux"]
    line = [sys.executable, "-c", COMMAND, *command]
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "False"


def test_pandas_imported_later_has_its_types_in_pyarrow() -> None:
    subprocess.run([sys.executable, "-c", OWN], check=True)
