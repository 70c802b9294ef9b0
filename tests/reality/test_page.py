"""The page of predictions, and its values as JSON."""

import json
from pathlib import Path

from jsonschema import Draft202012Validator

from reality.page import page, write_page
from reality.runs import Kept
from reality.scenarios import Engine, Kind, Scenario
from reality.values import Value

ROOT = Path(__file__).parent.parent.parent
NOISE = {"loop_least_s": 0.001, "loop_p50_s": 0.001, "loop_p99_s": 0.002, "wait_p50_s": 0.0, "wait_p99_s": 0.001}
VALUES = [
    Value(Engine.FLINK, "natural, saturated", "throughput", 110.0, (90.0, 100.0, 120.0), False),
    Value(Engine.FLINK, "plan, saturated", "throughput", 200.0, (180.0, 250.0, 200.0), False),
    Value(Engine.FLINK, "natural, saturated", "rows of worker 0", 7.0, (7.0, 7.0, 7.0), False),
    Value(Engine.FLINK, "natural, saturated", "rows of worker 1", 3.0, (3.0, 4.0, 3.0), False),
    Value(Engine.FLINK, "natural, 50%", "p99", 0.05, (0.04, 0.04, 0.1), False),
    Value(Engine.FLINK, "rescale, 2 to 4 workers", "downtime", None, (0.5, 0.5, 0.5), False),
    Value(Engine.FLINK, "rescale, 2 to 3 workers", "downtime", 1.0, (5.0, 5.0, 5.0), True),
]


def test_errors_are_against_the_median_and_only_exact_rows_are_exact() -> None:
    text = page(VALUES, [], {})
    assert "| throughput | 2 | 5.0% | 10.0% | 10% in the median, 20% at worst |" in text
    assert "| p99 | 1 | 25.0% | 25.0% |" in text
    assert "| rows per worker | 2 | 1 exact in every run | | exact |" in text
    assert "| natural, saturated | rows per worker | 7, 3 | 7, 3 | 7, 3; 7, 4 |  |" in text
    assert "\n| downtime |" not in text  # neither without a model nor of the calibration itself
    assert "no model" in text
    assert "| Flink | saturated | 1.82 times | 2.00 times |" in text


def test_an_engine_that_is_not_here_is_left_out_with_a_sentence() -> None:
    text = page([], [], {Engine.FLINK: "there is no Flink"})
    assert "## Flink\n\nNot run: there is no Flink." in text


def test_the_values_are_as_their_schema_says(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "runs")
    kept.keep(Scenario(Engine.FLINK, Kind.SATURATED), 0, {"noise": NOISE})
    each = dict.fromkeys(Engine, kept)
    assert write_page(tmp_path, VALUES, each, {}).read_text() == page(VALUES, json_of(tmp_path)["noise"], {})
    schema = json.loads((ROOT / "docs/schemas/reality.json").read_text())
    validator = Draft202012Validator(schema)
    validator.validate(json_of(tmp_path))
    wrong = json_of(tmp_path)
    wrong["values"][0]["foretold"] = wrong["values"][0].pop("predicted")
    assert len(list(validator.iter_errors(wrong))) == 2


def json_of(folder: Path) -> dict[str, list[dict[str, object]]]:
    """The values that were written."""
    found: dict[str, list[dict[str, object]]] = json.loads((folder / "reality.json").read_text())
    return found
