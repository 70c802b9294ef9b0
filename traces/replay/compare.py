"""Comparison of scenarios on a trace, each a run of its own."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import adapt.core
from adapt.core.counting.frequencies import top_share
from adapt.core.errors import BadInput, EnvironmentFailure
from adapt.core.mechanisms.comparison import SUSTAINED_COLUMNS, ComparisonRun, outcome_table
from adapt.core.mechanisms.cost_model import Terms, Wanted
from adapt.core.mechanisms.outcome import ScenarioRun, outcome_of_scenario
from adapt.core.mechanisms.recommendation import Frame, is_sustained, largest_sustained
from adapt.core.mechanisms.scenario import Stream, check_scenario, simulated, staged
from adapt.core.mechanisms.scenarios import Scenario, read_scenarios
from adapt.core.mechanisms.sweep import Sweep
from adapt.core.own.own_code import OwnCode
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.input.keyed_rows import Reading
from adapt.core.stage.input.offered_load import Demand, bounds_of, network_s
from adapt.core.stage.outcome import SHED
from adapt.core.stream import Weight
from adapt.core.table import Table
from adapt.core.units.seals import as_json
from adapt.traces.locations.location import is_stored
from adapt.traces.locations.run_folders import MANIFEST
from adapt.traces.own.modules import own_code, ship
from adapt.traces.read_errors import parsed
from adapt.traces.replay.comparing.parallel import RunAll, runner_of_scenarios
from adapt.traces.replay.comparing.shared_reading import EPSILON, counted, one_reading, shared_stream
from adapt.traces.replay.comparing.sweeping import FILE, FOLDER, Outcomes, Swept, sweep
from adapt.traces.replay.length import Length
from adapt.traces.replay.operators import check_columns
from adapt.traces.replay.replay import Asked, Replayed
from adapt.traces.replay.stage import rows_of
from adapt.traces.spark.names import RunnerName
from adapt.traces.spark.progress import Progress
from adapt.traces.spark.runner import runs_on_spark
from adapt.traces.spark.session import Spark
from adapt.traces.store.atomic import check_folder_free, claim
from adapt.traces.store.disk import disk_failures, make_folder, remove_tree
from adapt.traces.store.manifest import Provenance, program_versions, read_manifest
from adapt.traces.store.runs import StoredRun, read_run, write_run
from adapt.traces.store.trace import Trace, open_trace

CHILD = ".run"
"""File extension of a scenario's run."""

PROBES = 12
"""About how many rates are tried to find the one that a scenario sustains."""


@dataclass(frozen=True, slots=True)
class Job:
    """One scenario to run."""

    trace: Path
    source: Mapping[str, Any]  # the trace as an input of the run
    scenario: Scenario
    terms: Terms  # settings that all scenarios share
    sustained: tuple[int, ...]  # numbers of channels for which sustained rates are measured
    code: str  # hash of the program
    out: Path  # path of the run
    runner: RunnerName  # where it runs

    @property
    def parameters(self) -> dict[str, Any]:
        """Everything that decides the result except the stream; JSON data."""
        return {
            "scenario": self.scenario.as_data(),
            "terms": self.terms.as_data(),
            "sustained_at": list(self.sustained),
            "epsilon": EPSILON,
            "code": self.code,
        }

    @property
    def provenance(self) -> Provenance:
        """How the run is made, for its manifest."""
        command = "adapt.traces.replay.compare.run_scenario"
        return Provenance(command, self.parameters, [self.source], self.terms.seed, self.runner.value)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Several scenarios on one trace, compared.

    Every scenario is a run of its own, kept as soon as it is finished: in a folder next to the comparison until all are
    finished, then in it. A run with the same trace, parameters and program is reused, so an interrupted comparison
    resumes; overwriting one reuses its runs where they are still valid. Where a scenario runs does not change its
    result.
    """

    wanted: Wanted  # settings that all scenarios share
    scenarios: tuple[Scenario, ...]  # the scenarios, `BASELINE` first
    sustained: tuple[int, ...] = ()  # numbers of channels for which sustained rates are measured; empty for none
    sweep: Sweep | None = None  # loads, workers and seeds to vary; None, one run of each scenario
    jobs: int | None = None  # processes on this machine; None, one per core. Ignored on Spark
    spark: Spark = None  # where scenarios run: on Spark only if requested

    @property
    def runner(self) -> RunnerName:
        """Where scenarios run."""
        return RunnerName.SPARK if runs_on_spark(0, self.spark) else RunnerName.IN_PROCESS

    @contextmanager
    def replayed(self, trace: Trace, asked: Asked) -> Iterator[Replayed[ComparisonRun]]:
        """Compare the scenarios on a trace."""
        wanted = self.wanted
        check_columns(trace, reading_of(wanted), sized=wanted.state is Weight.BYTES)
        asked.progress("reading", 0, len(self.scenarios))
        demand = Demand.from_chunks(rows_of(trace, reading_of(wanted)).chunks(), wanted.uniform)
        terms = wanted.terms(demand)
        for scenario in self.scenarios:
            check_scenario(scenario, terms)
        if self.runner is RunnerName.SPARK:
            for own in (own for each in self.scenarios for own in (each.flux, each.elastic, each.plan)):
                if isinstance(own, OwnCode):
                    ship(own)
        place = runner_of_scenarios(self.runner, self.jobs, self.spark)
        with one_reading(), _unfinished(asked.out, force=asked.force) as folder, place as run_all:
            source = (trace.path.absolute(), trace.as_input)
            jobs = [
                Job(*source, scenario, terms, self.sustained, code_hash(), folder / f"{name}{CHILD}", self.runner)
                for name, scenario in ((each.name, each) for each in self.scenarios)
            ]
            made = _made(
                jobs, asked.out, run_all, asked.progress, self.sweep, _least_s(demand, wanted.uniform, trace.rows)
            )
            runs = [made[job.scenario.name] for job in jobs]
            chunks = rows_of(trace, reading_of(wanted, terms)).chunks()
            bounds = bounds_of(Demand.from_chunks(chunks, wanted.uniform), wanted.uniform)
            share = top_share(counted(trace))
            frame = Frame(
                rows=bounds.rows,
                channels=terms.channels,
                pool=terms.pool,
                speedup=terms.speedup,
                offered=bounds.static_load or 0.0,
                work=bounds.rows * bounds.row_s / bounds.last_s,
                last_s=bounds.last_s,
                top_share=0.0 if share is None else share[0],
                own=bounds.own_rate(terms.speedup),
            )
            sustained = [row for run in runs if "sustained" in run.tables for row in run.tables["sustained"].rows]
            parts = {f"{run.path.name}/{name}": path for run in runs for name, path in run.files.items()}
            findings = []
            if self.sweep is not None:
                outcomes = Outcomes(folder, asked.out)
                start = Swept(trace, self.scenarios, wanted, demand, terms, frame, code_hash())
                first = {job.scenario.name: run.summary.records()[0] for job, run in zip(jobs, runs, strict=True)}
                findings = sweep(start, self.sweep, first, outcomes, run_all, asked.progress)
                parts |= {f"{FOLDER}/{FILE}": path for path in [outcomes.folder / FILE] if path.is_file()}
            run = ComparisonRun(
                frame,
                outcome_table([row for run in runs for row in run.summary.rows]),
                Table.from_rows("Sustained", SUSTAINED_COLUMNS, sustained),
                self.scenarios,
                {
                    "scenarios": {job.scenario.name: job.scenario.as_data() for job in jobs},
                    **{name: value for name, value in jobs[0].parameters.items() if name != "scenario"},
                    "offered": wanted.speed.offered,
                    **({} if self.sweep is None else {"sweep": self.sweep.as_data()}),
                },
                findings,
            )
            yield Replayed(run, [trace.as_input], terms.seed, self.runner.value, parts)


def run_scenario(job: Job) -> str:
    """Run one scenario, keep its run and return its name."""
    stream = shared_stream(job.trace, job.source["content_hash"])
    stage = staged(job.scenario, job.terms, stream)
    done = simulated(job.scenario, job.terms, stage, job.terms.duration_s)
    run = ScenarioRun(
        outcome_of_scenario(job.scenario, stage, done),
        stage.bounds,
        stage,
        _sustained(job, stream) if job.sustained else None,
        job.parameters,
    )
    write_run(run, job.out, job.provenance, force=True)
    return job.scenario.name


@cache
def code_hash() -> str:
    """Hash of the Python files that decide results."""
    root = Path(adapt.core.__path__[0])
    digest = sha256(Path(__file__).read_bytes())
    own = Path(__file__).with_name("comparing")
    for folder in (root, own):
        for path in sorted(folder.rglob("*.py")):
            digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _sustained(job: Job, stream: Stream) -> Table:
    """The sustained rates of a scenario for each number of channels."""
    rows = []
    for channels in job.sustained:
        terms = replace(job.terms.with_channels(channels), duration_s=None)
        first = staged(job.scenario, terms, stream)
        bounds = first.bounds
        full = terms.speedup / max(bounds.static_load or 0.0, 1e-12)

        def sustains(speedup: float, terms: Terms = terms) -> bool:
            stage = staged(job.scenario, terms.at(speedup), stream)
            last_s = stage.demand.last_s
            if stage.drop_rate > SHED:
                return False
            return is_sustained(simulated(job.scenario, terms.at(speedup), stage, last_s).intervals, last_s)

        found = largest_sustained(sustains, full)
        rate = (first.rows_read + first.dropped) / bounds.last_s / terms.speedup
        even = terms.workers_of(job.scenario) / bounds.row_s
        known = None if found.speedup is None else found.speedup * rate
        workers = terms.workers_of(job.scenario)
        rows.append((job.scenario.name, workers, known, found.speedup, full * rate, even, found.probes))
    return Table.from_rows("Sustained", SUSTAINED_COLUMNS, rows)


def reading_of(wanted: Wanted, terms: Terms | None = None) -> Reading:
    """Reading of static-uniform, at the trace's speed or the comparison's."""
    until_s = inf if terms is None or terms.duration_s is None else terms.duration_s
    speedup = 1.0 if terms is None else terms.speedup
    return Reading(wanted.placed, speedup, wanted.row_costs, wanted.by_stream, until_s)


@contextmanager
def _unfinished(out: Path | None, *, force: bool) -> Iterator[Path]:
    """The folder of finished runs next to `out`, from which an interrupted comparison resumes.

    On a disk no other run has it, nor does `adapt clean` remove it.
    """
    if out is None:
        with TemporaryDirectory(prefix="adapt-") as passing:
            yield Path(passing)
        return
    folder = out.absolute().with_name(f".{out.name}.scenarios")
    with ExitStack() as locks:
        if not is_stored(out):
            with disk_failures(out):
                claim(folder, out, make_folder, locks, resumed=True)
                check_folder_free(out, force=force)  # another run may have finished it before
        try:
            yield folder
        except BaseException:
            with suppress(OSError):
                folder.rmdir()  # if it is empty
            raise
        remove_tree(folder)


def _made(
    jobs: Sequence[Job],
    out: Path | None,
    run_all: RunAll,
    progress: Progress,
    sweep: Sweep | None,
    least_s: float,
) -> Mapping[str, StoredRun]:
    """The run of each scenario by name; only missing ones are made."""
    found = {job.scenario.name: run for job in jobs if (run := _finished(job, out)) is not None}
    missing = [job for job in jobs if job.scenario.name not in found]
    done = len(found)
    if missing:
        _check_length(missing, sweep, least_s)
    progress(f"resuming after {done} finished scenarios" if done else "simulating", done, len(jobs))
    for name in run_all(run_scenario, missing):
        done += 1
        progress(f"{name} finished", done, len(jobs))
    for job in missing:
        run = _finished(job, None)
        if run is None:
            raise EnvironmentFailure(
                f"scenario {job.scenario.name!r} ran, but {job.out} does not exist here; give -o in a folder that all"
                " machines of the cluster share"
            )
        found[job.scenario.name] = run
    return found


def _least_s(demand: Demand, uniform: StageSettings, rows: int) -> float:
    """Time that the busiest channel of uniform hashing and the network need for all rows."""
    bounds = bounds_of(demand, uniform)
    return max((bounds.static_load or 0.0) * bounds.last_s, network_s(uniform, rows))


def _check_length(jobs: Sequence[Job], sweep: Sweep | None, least_s: float) -> None:
    """Refuse scenarios that would take hours; of a sweep, if none is dropped."""
    trace, terms = open_trace(jobs[0].trace), jobs[0].terms
    counts = PROBES * len(jobs[0].sustained) + (1 if sweep is None else sweep.most_runs)
    lasts_s = (trace.last_us - trace.first_us) / 1e6 / terms.speedup
    ends_s = min(max(lasts_s, least_s, terms.period_s), inf if terms.duration_s is None else terms.duration_s)
    rows = max(1, round(trace.rows * min(1.0, ends_s / lasts_s)))
    length = Length(rows, ends_s / terms.period_s, len(jobs) * counts)
    length.check("choose fewer scenarios with --scenario, a higher --offered, or set --duration")


def _finished(job: Job, out: Path | None) -> StoredRun | None:
    """The finished run of a scenario with the same provenance, if there is one."""
    places = [job.out]
    with suppress(BadInput, ValueError):  # nothing is there yet, or it is damaged
        if out is not None:
            places.append(read_manifest(out).file(out.absolute(), f"{job.out.name}/{MANIFEST}").parent)
    for place in places:
        if not (place / MANIFEST).is_file():
            continue
        with suppress(BadInput):
            run = read_run(place)
            made = run.manifest.made
            same = (as_json(dict(made.parameters)), list(made.inputs), dict(made.versions))
            if same == (as_json(job.parameters), list(job.provenance.inputs), program_versions()):
                return run
    return None


def read_scenario_file(path: Path) -> tuple[Scenario, ...]:
    """Read own scenarios from a TOML file."""
    return parsed(path, lambda text: read_scenarios(text, own_code))
