"""The example notebook runs from end to end, and its results show themselves.

It is kept without outputs, so that what a reader sees is always what the program gives now.
"""

import os
import re
from importlib.util import find_spec
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from adapt.traces.demonstration import PACKAGE

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook.ipynb"


def test_it_is_kept_without_outputs():
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in cells)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_it_runs_and_every_result_shows_itself(real_traces, tmp_path):
    if find_spec(PACKAGE) is None:
        os.environ["ADAPT_DATA"] = str(real_traces("flights").parent)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    shown = [
        output["data"].get("text/html", output["data"]["text/plain"])
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "execute_result"
    ]
    assert len(shown) == sum(cell.cell_type == "code" for cell in notebook.cells)
    assert shown[0] == "336776"
    assert all(re.match(r"<(table|p|div)>", each) for each in shown[1:])
    assert "Pin " in shown[2]
    assert "hybrid" in shown[3]
