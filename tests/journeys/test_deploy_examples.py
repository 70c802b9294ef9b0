"""The examples of deployed plans, run as they stand: what they place lies where the plan says."""

import runpy
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def test_every_record_lies_on_the_partition_that_the_plan_says(capsys):
    example = runpy.run_path(str(EXAMPLES / "kafka_router.py"))
    assert example["main"]() == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == "10,000 records came back, 0 of them from another partition than the plan says"
