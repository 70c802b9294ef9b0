"""Comparing mechanisms on a trace: every scenario a run of its own, made wherever there is room, kept and made once."""

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from math import inf
from multiprocessing import active_children, get_context
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

import adapt.core
from adapt.core.counting.frequencies import Frequencies
from adapt.core.counting.lossy import LossyCounter
from adapt.core.counting.top_share import top_share
from adapt.core.errors import BadInput, EnvironmentFailure
from adapt.core.keys.columns import ARROW_TYPES
from adapt.core.mechanisms.comparison import SUSTAINED_COLUMNS, ComparisonRun, outcome_table
from adapt.core.mechanisms.cost_model import Terms, Wanted
from adapt.core.mechanisms.recommendation import Frame
from adapt.core.mechanisms.scenario import ScenarioRun, Stream, check_scenario, outcome_of_scenario, simulated, staged
from adapt.core.mechanisms.scenario_file import read_scenarios
from adapt.core.mechanisms.scenarios import Scenario
from adapt.core.mechanisms.sustainable import is_sustained, largest_sustained
from adapt.core.stage.input.keyed_rows import BYTES, KEY, Reading, bytes_by_partition
from adapt.core.stage.input.offered_load import Demand, bounds_of
from adapt.core.stream import Weight
from adapt.core.table import Table
from adapt.traces.read_errors import parsed
from adapt.traces.replay.flux import check_columns, encoded, rows_of
from adapt.traces.spark.lazy import SparkSession
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.spark.session import SparkOptions, spark_failures, spark_session
from adapt.traces.spark.spark_tasks import in_tasks
from adapt.traces.store.atomic import MANIFEST, check_folder_free
from adapt.traces.store.disk import disk_failures
from adapt.traces.store.manifest import Provenance, as_json, program_versions
from adapt.traces.store.runs import StoredRun, read_run, write_run
from adapt.traces.store.trace import Trace, open_trace

EPSILON = 1e-4
"""The error of counted keys, as a share of the rows."""

CHILD = ".run"
"""What the folder of a scenario's run ends with."""


@dataclass(frozen=True, slots=True)
class ComparingOptions:
    """What is compared, and where.

    Attributes:
        wanted: What all scenarios have in common.
        scenarios: The mechanisms, `BASELINE` first.
        sustained: The numbers of channels for which the rates that each sustains are looked for; none, they are not.
        jobs: Processes on this machine; None, one a core. Where `spark` is given it has no say.
        spark: Where Spark runs the scenarios; None, processes on this machine do.
    """

    wanted: Wanted
    scenarios: tuple[Scenario, ...]
    sustained: tuple[int, ...] = ()
    jobs: int | None = None
    spark: SparkOptions | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """One scenario to be run, wherever that is.

    Attributes:
        trace: The stream.
        content_hash: Of it.
        scenario: The mechanism.
        terms: What it has in common with others.
        sustained: The numbers of channels for which rates are looked for.
        code: Hash of the program.
        out: Where its run appears.
    """

    trace: Path
    content_hash: str
    scenario: Scenario
    terms: Terms
    sustained: tuple[int, ...]
    code: str
    out: Path

    @property
    def parameters(self) -> dict[str, Any]:
        """All that decides its result, beside the stream; JSON data."""
        return {
            "scenario": self.scenario.as_data(),
            "terms": self.terms.as_data(),
            "sustained_at": list(self.sustained),
            "epsilon": EPSILON,
            "code": self.code,
        }

    @property
    def provenance(self) -> Provenance:
        """How its run is made."""
        inputs = [{"name": self.trace.name, "content_hash": self.content_hash}]
        return Provenance("adapt.traces.replay.compare.run_scenario", self.parameters, inputs, self.terms.seed)


def compare_on_trace(
    trace: Trace,
    out: Path | None,
    options: ComparingOptions,
    *,
    force: bool = False,
    command: str = "adapt.traces.replay.compare.compare_on_trace",
    progress: Progress = silent,
) -> ComparisonRun:
    """Run several mechanisms on one trace, each by itself, and put them beside each other.

    Every scenario is a whole run, kept as soon as it is made: in a folder beside `out` until all are there, then in
    it. One that says that it was made from the same trace, with the same parameters and program, is not made again, so
    that a comparison that was interrupted goes on where it was. Where a scenario runs does not change its result.

    Args:
        out: Where the comparison appears; None keeps nothing.
        force: Replace an artefact at `out`; what still holds of it is used.

    Raises:
        UsageError: an argument is out of its range, or the trace has no such column.
        EnvironmentFailure: `out` is taken or cannot be written, or a cluster does not write where this process reads.
        BadInput: a part of the trace is damaged, or its rows are not in the order of time.
    """
    check_folder_free(out, force=force)
    wanted = options.wanted
    check_columns(trace, _reading(wanted), wanted.state if isinstance(wanted.state, Weight) else None)
    progress("reading", 0, len(options.scenarios))
    demand = Demand.from_chunks(rows_of(trace, _reading(wanted)).chunks(), wanted.uniform)
    terms = wanted.terms(demand)
    for scenario in options.scenarios:
        check_scenario(scenario, terms)
    with _kept_beside(out) as folder:
        source = (trace.path.absolute(), trace.manifest.content_hash)
        jobs = [
            Job(*source, scenario, terms, options.sustained, code_hash(), folder / f"{scenario.name}{CHILD}")
            for scenario in options.scenarios
        ]
        made = _made(jobs, out, options, progress)
        runs = [made[job.scenario.name] for job in jobs]
        chunks = rows_of(trace, _reading(wanted, terms)).chunks()
        bounds = bounds_of(Demand.from_chunks(chunks, wanted.uniform), wanted.uniform)
        share = top_share(_counted(trace))
        frame = Frame(
            rows=bounds.rows,
            channels=terms.channels,
            pool=terms.pool,
            speedup=terms.speedup,
            offered=bounds.static_load or 0.0,
            work=bounds.rows * bounds.row_s / bounds.last_s,
            last_s=bounds.last_s,
            heaviest=0.0 if share is None else share[0],
        )
        sustained = [row for run in runs if "sustained" in run.tables for row in run.tables["sustained"].rows]
        run = ComparisonRun(
            frame,
            outcome_table([row for run in runs for row in run.summary.rows]),
            Table.from_rows("Sustained", SUSTAINED_COLUMNS, sustained),
            options.scenarios,
            {
                "scenarios": {job.scenario.name: job.scenario.as_data() for job in jobs},
                **{name: value for name, value in jobs[0].parameters.items() if name != "scenario"},
                "offered": wanted.offered if wanted.speedup is None else None,
            },
        )
        if out is not None:
            parts = {run.path.name: run.path for run in runs}
            made_so = Provenance(command, dict(run.parameters), [trace.as_input], terms.seed)
            write_run(run, out, made_so, force=force, parts=parts)
    return run


def run_scenario(job: Job) -> str:
    """Run one scenario and keep its run; its name."""
    trace = open_trace(job.trace)
    if trace.manifest.content_hash != job.content_hash:
        raise BadInput(f"{job.trace} is another trace where scenario {job.scenario.name!r} runs; give all the same")
    stream = stream_of(trace)
    stage = staged(job.scenario, job.terms, stream)
    done = simulated(job.scenario, job.terms, stage, job.terms.duration_s)
    run = ScenarioRun(
        outcome_of_scenario(job.scenario, stage, done),
        bounds_of(stage.demand, stage.settings),
        stage,
        _sustained(job, stream) if job.sustained else None,
        job.parameters,
    )
    write_run(run, job.out, job.provenance, force=True)
    return job.scenario.name


def stream_of(trace: Trace) -> Stream:
    """A trace as scenarios ask for it; its keys are counted when they are first asked for."""

    @cache
    def counts() -> Frequencies:
        return _counted(trace)

    return Stream(
        rows=lambda reading: rows_of(trace, reading),
        counted=counts,
        bytes=lambda placed: bytes_by_partition(trace.batches([KEY, BYTES], encoded(trace, [KEY])), placed),
    )


@cache
def code_hash() -> str:
    """A hash of what computes: all Python files of the core, names and contents, and this one."""
    root = Path(adapt.core.__path__[0])
    digest = sha256(Path(__file__).read_bytes())
    for path in sorted(root.rglob("*.py")):
        digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _sustained(job: Job, stream: Stream) -> Table:
    """The largest rates that a scenario sustains, with each number of channels."""
    rows = []
    for channels in job.sustained:
        terms = replace(job.terms.with_channels(channels), duration_s=None)
        first = staged(job.scenario, terms, stream)
        bounds = bounds_of(first.demand, first.settings)
        full = terms.speedup / max(bounds.static_load or 0.0, 1e-12)

        def sustains(speedup: float, terms: Terms = terms) -> bool:
            stage = staged(job.scenario, terms.at(speedup), stream)
            last_s = stage.demand.last_s
            return is_sustained(simulated(job.scenario, terms.at(speedup), stage, last_s).intervals, last_s)

        found = largest_sustained(sustains, full)
        rate = first.rows_read / bounds.last_s / terms.speedup
        even = terms.workers_of(job.scenario) / bounds.row_s
        known = None if found.speedup is None else found.speedup * rate
        workers = terms.workers_of(job.scenario)
        rows.append((job.scenario.name, workers, known, found.speedup, full * rate, even, found.probes))
    return Table.from_rows("Sustained", SUSTAINED_COLUMNS, rows)


def _reading(wanted: Wanted, terms: Terms | None = None) -> Reading:
    """Of static uniform: at the speed of the trace itself, or at that of the comparison."""
    until_s = inf if terms is None or terms.duration_s is None else terms.duration_s
    speedup = 1.0 if terms is None else terms.speedup
    return Reading(wanted.placed, speedup, wanted.by_cost, wanted.by_stream, until_s)


def _counted(trace: Trace) -> Frequencies:
    """The keys of a trace, those with a share of `EPSILON` among them."""
    counter = LossyCounter(EPSILON, ARROW_TYPES[trace.key_type], Weight.COUNT)
    for batch in trace.batches([KEY]):
        counter.update(batch.column(KEY))
    return counter.summary().frequencies(EPSILON)


@contextmanager
def _kept_beside(out: Path | None) -> Iterator[Path]:
    """Where runs of scenarios are until all are there: beside `out`, from where an interrupted comparison goes on."""
    if out is None:
        with TemporaryDirectory(prefix="adapt-") as passing:
            yield Path(passing)
        return
    folder = out.absolute().parent / f".{out.name}.scenarios"
    with disk_failures(out):
        folder.mkdir(exist_ok=True)
    try:
        yield folder
    except BaseException:
        with suppress(OSError):
            folder.rmdir()  # where nothing is kept in it
        raise
    rmtree(folder)


def _made(
    jobs: Sequence[Job], out: Path | None, options: ComparingOptions, progress: Progress
) -> Mapping[str, StoredRun]:
    """The run of each scenario, by its name; only those that are not there are made."""
    found = {job.scenario.name: run for job in jobs if (run := _finished(job, out)) is not None}
    missing = [job for job in jobs if job.scenario.name not in found]
    done = len(found)
    progress(f"{done} scenarios were there" if done else "simulating", done, len(jobs))
    for name in _run_all(missing, options):
        done += 1
        progress(f"{name} is done", done, len(jobs))
    for job in missing:
        run = _finished(job, None)
        if run is None:
            raise EnvironmentFailure(
                f"{job.out} is not there, though scenario {job.scenario.name!r} was run; give an -o in a folder that"
                " every worker of the cluster shares with this machine"
            )
        found[job.scenario.name] = run
    return found


def _finished(job: Job, out: Path | None) -> StoredRun | None:
    """The run of a scenario, if it is whole and says that it was made so; in its place, or in an older comparison."""
    places = [job.out, *([] if out is None else [out.absolute() / job.out.name])]
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


def _run_all(jobs: Sequence[Job], options: ComparingOptions) -> Iterator[str]:
    """Run scenarios wherever they are to run; their names as they are done."""
    if not jobs:
        return
    if options.spark is not None:
        yield from _on_spark(jobs, options.spark)
        return
    processes = min(len(jobs), options.jobs or len(os.sched_getaffinity(0)))
    if processes == 1:
        for job in jobs:
            yield run_scenario(job)
        return
    pool = ProcessPoolExecutor(processes, get_context("spawn"), _die_of_interrupts)
    try:
        yield from _as_done([pool.submit(run_scenario, job) for job in jobs])
    except BaseException:
        for process in active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _die_of_interrupts() -> None:
    """Ctrl-C reaches every process of a command; this one has nothing to say to it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _on_spark(jobs: Sequence[Job], spark_options: SparkOptions) -> Iterator[str]:
    """A Spark task for each scenario, as many at once as there are cores."""
    spark = spark_session(spark_options)
    with ThreadPoolExecutor(spark.sparkContext.defaultParallelism) as pool, spark_failures("running scenarios"):
        try:
            yield from _as_done([pool.submit(_in_a_task, spark, job) for job in jobs])
        finally:
            pool.shutdown(cancel_futures=True)


def _in_a_task(spark: SparkSession, job: Job) -> str:
    """Run a scenario in a Spark task of its own."""

    def work(_number: int) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"name": [run_scenario(job)]})

    rows = in_tasks(spark, [[0]], work, "name string").collect()
    return str(rows[0]["name"])


def _as_done(futures: Sequence[Future[str]]) -> Iterator[str]:
    """Results as they come; the first failure ends it."""
    running = set(futures)
    while running:
        finished, running = wait(running, return_when=FIRST_COMPLETED)
        for one in finished:
            yield one.result()


def read_scenario_file(path: Path) -> tuple[Scenario, ...]:
    """Scenarios of a user's own, from their file.

    Raises:
        BadInput: there is no such file, or it has none; the sentence names it and the line.
    """
    return parsed(path, read_scenarios)
