"""Sweep over loads, workers and seeds, by races."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import Any

from adapt.core.errors import BadInput
from adapt.core.mechanisms.cost_model import Terms, Wanted
from adapt.core.mechanisms.outcome import OUTCOME_COLUMNS, outcome_of_scenario, outcome_row
from adapt.core.mechanisms.race import Race, Record
from adapt.core.mechanisms.recommendation import Frame, advice_of
from adapt.core.mechanisms.scenario import simulated, staged
from adapt.core.mechanisms.scenarios import BASELINE, Scenario
from adapt.core.mechanisms.sweep import Finding, Point, Sweep, terms_at, with_seed
from adapt.core.run import SCHEMA
from adapt.core.stage.input.offered_load import Demand, bounds_of
from adapt.core.statistics.intervals import Spread
from adapt.core.table import Cell
from adapt.core.units.seals import hash_of
from adapt.traces.replay.comparing.parallel import RunAll
from adapt.traces.replay.comparing.shared_reading import EPSILON, shared_stream
from adapt.traces.spark.progress import Progress
from adapt.traces.store.disk import remove_tree
from adapt.traces.store.manifest import program_versions, read_manifest
from adapt.traces.store.trace import Trace

FOLDER, FILE = "outcomes", "outcomes.jsonl"
"""Where a comparison has its outcomes."""


def key_of(parameters: Mapping[str, Any], trace: str) -> str:
    """Hash of everything that decides an outcome.

    Args:
        trace: Content hash of the trace.
    """
    return hash_of({"schema": SCHEMA, "parameters": dict(parameters), "trace": trace, "versions": program_versions()})


class Outcomes:
    """Finished outcomes, each kept as soon as it is there."""

    def __init__(self, folder: Path, out: Path | None) -> None:
        """Read those of an interrupted or overwritten comparison.

        Args:
            folder: Folder of the unfinished comparison.
            out: The comparison.
        """
        self.folder = folder / FOLDER
        file = self.folder / FILE
        for path, is_ours in ((self.folder, self.folder.is_dir()), (file, file.is_file())):
            if path.is_symlink() or not is_ours:  # a link or a pipe
                remove_tree(path)
        self.folder.mkdir(exist_ok=True)
        self._known: dict[str, dict[str, Cell]] = {}
        self._kept = self._read(file)
        if out is not None:
            with suppress(BadInput, OSError, ValueError):  # nothing is there yet
                self._known |= self._read(read_manifest(out).file(out.absolute(), f"{FOLDER}/{FILE}"))
        self._known |= self._kept

    def get(self, key: str) -> dict[str, Cell] | None:
        """The outcome with this key, if it is finished."""
        found = self._known.get(key)
        if found is not None and key not in self._kept:
            self.add(key, found)
        return found

    def add(self, key: str, outcome: Mapping[str, Cell]) -> None:
        """Keep an outcome; an incomplete or changed line is ignored when read."""
        self._known[key] = self._kept[key] = dict(outcome)
        with (self.folder / FILE).open("a", encoding="utf-8") as file:
            text = json.dumps([key, outcome])
            file.write(f"\n{_sealed(text)} {text}")

    @staticmethod
    def _read(path: Path) -> dict[str, dict[str, Cell]]:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n") if path.is_file() else []
        parted = (line.partition(" ") for line in lines)
        return dict(json.loads(text) for seal, _, text in parted if seal == _sealed(text))


def _sealed(text: str) -> str:
    return sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Case:
    """One scenario at one point with one seed."""

    trace: Path
    content_hash: str  # content hash of the trace
    scenario: Scenario
    terms: Terms  # settings of the point and seed
    code: str  # hash of the program

    @property
    def key(self) -> str:
        """Hash of everything that decides its outcome."""
        parameters = {"scenario": self.scenario.as_data(), "terms": self.terms.as_data(), "epsilon": EPSILON}
        return key_of(parameters | {"code": self.code}, self.content_hash)


@dataclass(frozen=True, eq=False)
class Swept:
    """Start of a sweep."""

    trace: Trace
    scenarios: tuple[Scenario, ...]  # the scenarios, `BASELINE` first
    wanted: Wanted  # given settings
    demand: Demand  # offered load of the stream at its own speed, on the stage of static-uniform
    terms: Terms  # settings at the given point
    frame: Frame  # stream and stage there
    code: str  # hash of the program

    @cached_property
    def own_load(self) -> float:
        """Load of static-uniform's busiest channel at the trace's own rate."""
        return bounds_of(self.demand, self.wanted.uniform).static_load or 0.0

    @cached_property
    def base(self) -> Point:
        """The given point."""
        return Point(self.wanted.channels, self.wanted.speed.load(self.own_load))

    @cached_property
    def _known(self) -> dict[Point, Terms]:
        return {self.base: self.terms}

    def terms_of(self, point: Point) -> Terms:
        """Settings at a point."""
        if point not in self._known:
            self._known[point] = terms_at(point, self.wanted, self.demand)
        return self._known[point]

    def frame_of(self, point: Point) -> Frame:
        """Stream and stage at a point."""
        terms = self.terms_of(point)
        faster = terms.speedup / self.terms.speedup
        last_s = min(self.demand.last_s / terms.speedup, inf if terms.duration_s is None else terms.duration_s)
        work, sizes = self.frame.work * faster, (terms.channels, terms.pool)
        return replace(
            self.frame,
            channels=sizes[0],
            pool=sizes[1],
            speedup=terms.speedup,
            offered=point.offered,
            work=work,
            last_s=last_s,
        )

    def race_at(self, point: Point, seeds: int) -> Race:
        """The race at a point; droppers race at the given point only."""
        frame, known = self.frame_of(point), {each.name: each for each in self.scenarios}
        entrants = [
            each.name for each in self.scenarios if point == self.base or not (each.sheds or each.drops is not None)
        ]

        def rule(outcomes: Sequence[Record]) -> str:
            return advice_of(outcomes, known, frame).scenario or BASELINE

        return Race(tuple(entrants), rule, frame.last_s, seeds)

    def case(self, point: Point, name: str, at: int) -> Case:
        """A scenario at a point; seeds count from the given one."""
        scenario = next(each for each in self.scenarios if each.name == name)
        terms = with_seed(self.terms_of(point), self.wanted.seed + at)
        return Case(self.trace.path.absolute(), self.trace.manifest.content_hash, scenario, terms, self.code)


def sweep(
    start: Swept,
    asked: Sweep,
    first: Mapping[str, Record],
    outcomes: Outcomes,
    run_all: RunAll,
    progress: Progress,
) -> list[Finding]:
    """Race the scenarios at every point.

    Args:
        start: What is swept.
        asked: What is varied.
        first: The outcomes at the given point with the first seed, by scenario.
        outcomes: Those that are kept.
    """
    seeds = asked.seeds_of(start.frame.rows * len(start.scenarios))
    races = {point: start.race_at(point, seeds) for point in asked.points(start.base, start.own_load)}
    for name, outcome in first.items():
        races[start.base].add(name, outcome)
    _run(start, races, outcomes, run_all, progress)
    known = {each.name: each for each in start.scenarios}
    return [Finding.from_race(point, start.frame_of(point), race, known) for point, race in races.items()]


def run_case(case: Case) -> str:
    """Run one scenario and return its key and outcome as JSON."""
    stream = shared_stream(case.trace, case.content_hash)
    stage = staged(case.scenario, case.terms, stream)
    done = simulated(case.scenario, case.terms, stage, case.terms.duration_s)
    row = outcome_row(outcome_of_scenario(case.scenario, stage, done), stage.bounds, stage)
    return json.dumps([case.key, dict(zip((column.name for column in OUTCOME_COLUMNS), row, strict=True))])


def _run(start: Swept, races: Mapping[Point, Race], outcomes: Outcomes, run_all: RunAll, progress: Progress) -> None:
    """Run races to their end, a round of all at once."""
    rounds = {point: race.rounds() for point, race in races.items()}
    done = 0
    while rounds:
        asked = {point: _next(each) for point, each in rounds.items()}
        rounds = {point: each for point, each in rounds.items() if asked[point]}
        cases = [(point, name, at) for point, wanted in asked.items() for name, at in wanted]
        made = _outcomes_of([start.case(*case) for case in cases], outcomes, run_all)
        for (point, name, _), outcome in zip(cases, made, strict=True):
            races[point].add(name, outcome)
            done += 1
        progress("racing over seeds and loads", done, 0)
        spread: dict[str, Spread] = {}
        for race in races.values():
            for metric, each in race.spread().items():
                spread[metric] = spread.get(metric, Spread()).with_spread(each)
        for race in races.values():
            race.drop(spread)


def _next(rounds: Iterator[list[tuple[str, int]]]) -> list[tuple[str, int]]:
    """The next round with something to run; empty at the end."""
    return next((each for each in rounds if each), [])


def _outcomes_of(cases: Sequence[Case], outcomes: Outcomes, run_all: RunAll) -> list[Mapping[str, Cell]]:
    """The outcome of each case; only missing ones are run."""
    keys = [case.key for case in cases]
    missing = {key: case for key, case in zip(keys, cases, strict=True) if outcomes.get(key) is None}
    for text in run_all(run_case, list(missing.values())):
        outcomes.add(*json.loads(text))
    found: list[Any] = [outcomes.get(key) for key in keys]
    return found
