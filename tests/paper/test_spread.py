"""Experiments are measured once, spread over Spark, and kept."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pytest

from adapt.core.partitioning.schemes.names import Construction, Scheme
from paper.experiments import Kept, program_version
from paper.partitioning.chains import Recipe
from paper.partitioning.measured import ChainsBuilt, hashed_parts
from paper.spread import measure_missing


@dataclass(frozen=True, slots=True)
class Counted:
    """Counts how often it is measured."""

    alone: ClassVar[bool] = True
    times: ClassVar[list[str]] = []
    name: str
    needs: tuple["Counted", ...] = ()

    @property
    def label(self) -> str:
        return self.name

    def measure(self, given: Sequence[str]) -> str:
        self.times.append(self.name)
        return self.name + "".join(given)


def no_spark():
    raise AssertionError("there is nothing for Spark to do")


def no_progress(_label: str, _done: int, _total: int) -> None:
    pass


@pytest.fixture(autouse=True)
def fresh():
    Counted.times.clear()


def test_a_second_run_measures_nothing(tmp_path):
    wanted = [Counted("a"), Counted("b")]
    measure_missing(wanted, Kept(tmp_path, "v"), no_spark, no_progress)
    assert measure_missing(wanted, Kept(tmp_path, "v"), no_spark, no_progress) == 0
    assert Counted.times == ["a", "b"]


def test_an_interrupted_run_goes_on_where_it_was(tmp_path):
    kept = Kept(tmp_path, "v")

    def interrupted(_label: str, done: int, _total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    wanted = [Counted(name) for name in "abcd"]
    with pytest.raises(KeyboardInterrupt):
        measure_missing(wanted, kept, no_spark, interrupted)
    told = []
    assert measure_missing(wanted, kept, no_spark, lambda *said: told.append(said)) == 2
    assert told == [("c", 1, 2), ("d", 2, 2)]
    assert Counted.times == ["a", "b", "c", "d"]


def test_the_version_of_a_program_is_its_source(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.py").write_text("x = 1")
    before = program_version(tmp_path, ["a"])
    assert before == program_version(tmp_path, ["a"])
    (tmp_path / "a" / "x.py").write_text("x = 2")
    assert before != program_version(tmp_path, ["a"])


def test_results_are_the_same_from_spark_and_from_here_whatever_the_split(spark, tmp_path):
    parts = hashed_parts(3000, 1, (0.5, 1.0), Scheme.CONSISTENT, tuple(range(1, 5)), ranks=1100)
    assert [(part.first, part.last) for part in parts] == [(0, 1100), (1100, 2200), (2200, 3000)]
    recipes = (Recipe(Construction.READJ, "LQL"), Recipe(Construction.LEVEL, track=20))
    cut = ChainsBuilt(3000, 1.0, 1, 4, recipes, parts)
    whole = ChainsBuilt(3000, 1.0, 1, 4, recipes, hashed_parts(3000, 1, (0.5, 1.0), Scheme.CONSISTENT, (1, 2, 3, 4)))
    kept = Kept(tmp_path, "v")
    assert measure_missing([cut, whole], kept, lambda: spark, no_progress) == 6
    here = whole.measure([part.measure([]) for part in whole.needs])
    assert kept[cut] == kept[whole] == json.loads(json.dumps(here))
