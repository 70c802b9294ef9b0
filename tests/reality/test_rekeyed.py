"""The same job by natural, pinned and split keys: rows as planned, equal results, and a page of both."""

import json
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from jsonschema import Draft202012Validator
from pyspark.sql import SparkSession

from adapt.core.engines.names import Engine as Placing
from adapt.core.engines.registry import definition_of
from reality import service
from reality.rekeyed import flink
from reality.rekeyed import spark as batch
from reality.rekeyed.page import write_page
from reality.rekeyed.run import Run
from reality.rekeyed.values import Job
from reality.rekeyed.workload import WORKERS, Keys, Skewed
from reality.scenarios import Engine
from reality.workload import MAX_PARALLELISM
from tests.tiers import soak
from tests.traces.small_traces import write_trace

ROOT = Path(__file__).parent.parent.parent
ROWS = 500
ENGINES = (Engine.FLINK, Engine.SPARK)


class Small(Skewed):
    """A small stream, whose rows hardly wait; the hottest key has a third of it."""

    @cached_property
    def trace(self) -> Path:
        out = self.folder / "small.trace"
        if not out.exists():
            chance = np.random.default_rng(1)
            keys = np.minimum(chance.zipf(1.5, ROWS), 40)
            costs = chance.integers(1, 300, ROWS).astype(float)
            write_trace(out, {"ts": np.arange(ROWS), "key": [f"user {key}" for key in keys], "cost_us": costs})
        return out


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    return Small(tmp_path_factory.mktemp("small"))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("keys", Keys)
def test_the_engine_s_hash_of_replaced_keys_gives_the_planned_rows(small: Small, engine: Engine, keys: Keys) -> None:
    groups = MAX_PARALLELISM if engine is Engine.FLINK else None
    place = definition_of(Placing(engine.value)).placement(WORKERS, groups)
    rows = np.bincount(place.channels_of(pa.array(small.sent(engine, keys))), minlength=WORKERS).tolist()
    assert rows == small.planned_rows(engine, keys)
    assert sum(rows) == ROWS


@pytest.mark.parametrize("engine", ENGINES)
def test_pinning_cannot_balance_the_hottest_key_and_splitting_can(small: Small, engine: Engine) -> None:
    natural, pinned, split = (max(small.planned_rows(engine, keys)) * WORKERS / ROWS for keys in Keys)
    assert split < 1.4 < 2 < pinned <= natural


def check(found: Run, workload: Small, engine: Engine, keys: Keys) -> None:
    """A run has the planned rows and messages, and exact results."""
    assert found.rows == workload.planned_rows(engine, keys)
    assert found.messages == len(workload.messages(engine, keys))
    assert found.results_are_right
    assert found.wall_s > 0


def test_spark_follows_the_plans_and_its_results_are_exact(small: Small, spark: SparkSession) -> None:
    with service.running() as port:
        running = batch.Running(small, spark.newSession(), port)  # of settings of its own
        for keys in Keys:
            check(running.run(keys), small, Engine.SPARK, keys)


@soak
def test_flink_follows_the_plans_and_its_results_are_exact(
    small: Small, flink_jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADAPT_FLINK_JAR", str(flink_jar))
    with flink.started(small, tmp_path) as running:
        for keys in Keys:
            check(running.run(keys), small, Engine.FLINK, keys)


def run(wall_s: float, rows: list[int]) -> Run:
    return Run(wall_s, rows, 0, True, "", noise={"loop_least_s": 0.001, "loop_p99_s": 0.002, "wait_p99_s": 0.001})


NATURAL = Job(Engine.SPARK, Keys.NATURAL, 0, 0, 3.0, [9, 1], 0, 0, 0, 8.0, True, [run(8.0, [9, 1]), run(10.0, [9, 1])])
PINNED = Job(Engine.SPARK, Keys.PINNED, 4, 0, 2.0, [6, 4], 0, 0, 0, 4.4, False, [run(4.0, [6, 4]), run(5.0, [5, 5])])


def test_the_page_has_errors_gains_and_what_is_not_exact(tmp_path: Path) -> None:
    text = write_page(tmp_path, [NATURAL, PINNED], {Engine.FLINK: "there is no Flink"}).read_text()
    assert "In 1 of 2 jobs, every run had exactly the planned rows" in text
    assert "| natural* | 3.00 | 8 s | 9 s | 8 s, 10 s | -11.1% |" in text
    assert "| natural* | 9, 1 (exact) | none | none |" in text
    assert "| pinned (4 pinned) | 6, 4 | none | none |" in text
    assert "| pinned | 1.82 times | 2.00 times |" in text
    assert "Not run: there is no Flink." in text
    schema = json.loads((ROOT / "docs/schemas/rekeyed.json").read_text())
    validator = Draft202012Validator(schema)
    data = json.loads((tmp_path / "reality-rekeyed.json").read_text())
    validator.validate(data)
    data["jobs"][0]["runs"][0]["wall"] = data["jobs"][0]["runs"][0].pop("wall_s")
    assert len(list(validator.iter_errors(data))) == 2
