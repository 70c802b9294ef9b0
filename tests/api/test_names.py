"""What is written for users imports `adapt` and nothing below it."""

import json
import re

import pytest

from tests.docs.pages import PAGES, ROOT, blocks

BELOW = {
    "examples/flink_job.py": {
        "adapt.core.engines.any_language.export",
        "adapt.core.engines.flink.planned_groups",
        "adapt.core.engines.flink.scheme",
        "adapt.core.engines.hexadecimal",
        "adapt.traces.deploy.export",
    },
    "examples/spark_batch.py": {"adapt.traces.spark.session"},
    "examples/spark_streaming.py": {"adapt.traces.spark.session"},
}
"""Examples that import more, for what only they need: a list that shrinks."""


def programs():
    """Python that users read, by file."""
    found = {f"examples/{path.name}": path.read_text() for path in (ROOT / "examples").glob("*.py")}
    cells = json.loads((ROOT / "examples" / "notebook.ipynb").read_text())["cells"]
    found["examples/notebook.ipynb"] = "\n".join("".join(cell["source"]) for cell in cells)
    for page in PAGES:
        found[page] = "\n".join(block.text for block in blocks(page) if block.kind == "python")
    return found


@pytest.mark.parametrize("name", programs())
def test_a_program_for_users_imports_adapt_alone(name):
    imports = re.findall(r"^\s*(?:from|import) (adapt\.[\w.]+)", programs()[name], re.MULTILINE)
    assert {*imports} == BELOW.get(name, set())
