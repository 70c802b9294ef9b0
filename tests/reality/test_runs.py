"""Runs are kept, go on where they ended, and predictions use only the calibrating scenario."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from adapt.core.costs.profile import CostSource, Profile, Service
from adapt.core.costs.profile_file import write_profile
from adapt.core.errors import EnvironmentFailure
from reality.runs import Kept, measure
from reality.scenarios import Engine, Kind, Placement, Scenario, scenarios
from reality.values import calibrated
from reality.workload import Workload


class Counting:
    """An engine that fails after so many runs."""

    def __init__(self, lasts: int) -> None:
        self.lasts, self.starts, self.ran = lasts, 0, []

    def missing(self) -> str:
        return ""

    @contextmanager
    def started(self, workload: Workload, folder: Path) -> Iterator["Counting"]:
        self.starts += 1
        yield self

    def run(self, scenario: Scenario, rate: float) -> dict[str, Any]:
        if len(self.ran) == self.lasts:
            raise EnvironmentFailure("the engine ended")
        self.ran.append((scenario.name, rate))
        return {
            "metrics": {"throughput": 200.0 + len(self.ran), "p99": 1.0},
            "costs": {"fixed_s": float(len(self.ran))},
        }


def of_flink(kind: Kind, share: float = 0.0) -> Scenario:
    return Scenario(Engine.FLINK, kind, Placement.NATURAL, share)


WANTED = [of_flink(Kind.SATURATED), of_flink(Kind.LOAD, 0.5)]


def test_an_interrupted_set_goes_on_with_the_rates_of_its_first_runs(tmp_path: Path) -> None:
    kept, workload = Kept(tmp_path / "runs"), Workload(tmp_path / "workload")
    first = Counting(3)
    with pytest.raises(EnvironmentFailure, match="the engine ended"):
        measure(first, WANTED, 2, workload, kept, lambda _: None)
    second = Counting(10)
    measure(second, WANTED, 2, workload, kept, lambda _: None)
    assert first.ran == [("natural, saturated", 0), ("natural, 50%", 100.5), ("natural, saturated", 0)]
    assert second.ran == [("natural, 50%", 100.5)]
    assert [len(kept.runs(one)) for one in WANTED] == [2, 2]


def test_every_engine_has_one_scenario_that_calibrates_and_names_are_unique() -> None:
    for quick in (False, True):
        for engine in Engine:
            found = scenarios(engine, quick=quick)
            assert sum(one.calibrates for one in found) == 1
            assert len({one.name for one in found}) == len(found)
    assert sum(len(scenarios(engine)) for engine in Engine) - len(Engine) >= 20


def text_of(mean_s: float) -> str:
    return write_profile(Profile(CostSource.STAGE, "a test", Service(1, mean_s=mean_s)))


def test_predictions_use_medians_of_the_calibrating_runs_alone(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    calibrating = Scenario(Engine.SPARK, Kind.BATCH, calibrates=True)
    other = Scenario(Engine.SPARK, Kind.BATCH, workers=2, after=2)
    for number, cost in enumerate((5.0, 1.0, 2.0)):
        kept.keep(calibrating, number, {"metrics": {}, "costs": {"batch_s": cost, "profile": text_of(cost)}})
    kept.keep(other, 0, {"metrics": {}, "costs": {"batch_s": 100.0, "profile": text_of(100)}})
    assert calibrated(kept, [other, calibrating]) == {"batch_s": 2, "profile": text_of(2)}
    assert calibrated(kept, [other]) is None
