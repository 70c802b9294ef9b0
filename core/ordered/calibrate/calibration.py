"""Calibration of the ordered engine: fit, and error on held-out runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from adapt.core.ordered.calibrate.configuration import SENT_CHUNKS, Configuration, fitted, held_out, worker_counts
from adapt.core.ordered.calibrate.fit import Measured, at_one_line, contention_in, profile_of
from adapt.core.ordered.engine.cache_costs import sizes_tables
from adapt.core.ordered.engine.contention import Contention, Stalls
from adapt.core.ordered.engine.costs import TERMS, Cost, EngineCosts, EngineProfile, Term
from adapt.core.ordered.engine.costs_file import engine_profile_hash, write_engine_profile
from adapt.core.ordered.model.engine_times import queries_of
from adapt.core.ordered.model.model import run_model
from adapt.core.phrases import counted
from adapt.core.table import Column, Displayed, Kind, Table
from adapt.core.values import duration

MODELED_ROWS = 20_000
"""Rows of a prediction."""

ENOUGH_CORES = 0.85
"""Share of their cores that runs of many workers get on a free machine."""

_ABOUT = {
    Cost.FEED: "a row enters the first work queue",
    Cost.TUPLE: "a tuple is run, without the cost of its function",
    Cost.CLAIM: "a worker claims a chunk",
    Cost.HANDOVER: "a worker enters a partition (or lane of several)",
    Cost.SEND: "a chunk is sent on, one worker at a time",
    Cost.OUTPUT: "an output is sent on, one worker at a time",
    Cost.SEVERAL: "more for a tuple with several outputs",
    Cost.SPREAD: "more for a tuple, per standard deviation of the numbers of outputs",
    Cost.HIDDEN: "less for a tuple whose function takes time",
    Cost.LINE: "a cache line moves to another core; contention is in proportion",
    Cost.CONTENDED_TUPLE: "each other worker on the operator adds to a tuple",
    Cost.CONTENDED_CLAIM: "each other worker on the operator adds to a claim",
    Cost.CONTENDED_HANDOVER: "each other worker on the operator adds to a handover",
    Cost.PASSED_TUPLE: "more for a tuple while others are on other operators",
    Cost.PASSED_CLAIM: "more for a claim while others are on other operators",
    Cost.PASSED_APART: "more for a tuple without exactly one output while others are on other operators",
    Cost.QUERY: "a worker asks the scheduler, enters an operator and leaves it",
    Cost.QUERY_OPERATOR: "each operator of the chain adds to a query",
    Cost.CONTENDED_QUERY: "each other worker adds to a query",
    Cost.CONTENDED_QUERY_OPERATOR: "each other worker adds to a query by operator of the chain",
}


class Runner(Protocol):
    """What runs configurations."""

    def run(self, one: Configuration) -> Measured:
        """Run a configuration."""

    def send(self, chunk: int) -> Measured:
        """Time the sending of chunks alone."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A held-out configuration: measured, and predicted by the model.

    Attributes:
        measured_ns: CPU per row of the fastest run, and of the slowest of those that counted in a repeat.
        predicted_ns: The same by the model: with the costs, and with both ends of their intervals.
        cores: CPU seconds per second of the fastest run.
    """

    configuration: Configuration
    measured_ns: tuple[float, float]
    predicted_ns: tuple[float, float, float]
    cores: float

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        return self.predicted_ns[0] / self.measured_ns[0] - 1


@dataclass(frozen=True, slots=True, repr=False)
class OrderedCalibration(Displayed):
    """Measured costs of the ordered engine, and how well they predict.

    Attributes:
        profile: The costs.
        checks: Held-out configurations.
        sized: Configurations with payloads and states, predicted by the cache model; empty without one.
    """

    profile: EngineProfile
    checks: tuple[Checked, ...]
    sized: tuple[Checked, ...] = ()

    def as_file(self) -> str:
        """The profile as the text of its file."""
        return write_engine_profile(self.profile)

    @property
    def notes(self) -> tuple[str, ...]:
        """How far the predictions are off, in a sentence."""
        return (
            f"of {len(self.checks)} configurations held out, predicted CPU per row is off by {_error_of(self.checks)}",
            *([_cores_note(most)] if (most := [one for one in self.checks if one.configuration.workers > 1]) else []),
            f"measured with up to {self.profile.workers} worker{'s' * (self.profile.workers > 1)}; results of the model"
            " for more are extrapolated",
            *([f"with payloads and states the error is {_error_of(self.sized)}"] if self.sized else []),
            *(_rare_note(one) for one in self.profile.stalls if one.rare_us),
        )

    @property
    def said(self) -> Sequence[str]:
        """The notes."""
        return self.notes

    def found(self) -> Table:
        """Costs with their intervals."""
        columns = [
            Column("cost"),
            Column("kind"),
            Column("heuristic"),
            Column("time", Kind.NUMBER, "ns", "CPU; fitted to the fastest runs"),
            Column("time_low", Kind.NUMBER, "ns", "lowest of the fits to each repeat"),
            Column("time_high", Kind.NUMBER, "ns", "highest of these"),
            Column("meaning"),
        ]
        rows = [
            [
                *(term.cost.value, term.kind and term.kind.value, term.heuristic and term.heuristic.value),
                *(one.ns, one.low_ns, one.high_ns, _ABOUT[term.cost]),
            ]
            for term in TERMS
            if (one := self.profile.costs.get(term)) is not None
        ]
        note = f"{self.profile.measured}; profile {engine_profile_hash(self.profile)[:12]}"
        return Table.from_rows("Measured", columns, rows, note=note)

    def held(self) -> Table:
        """Held-out configurations with the error of the model."""
        return _checked_table("Held out of the fit", self.checks)

    def sizes(self) -> list[Table]:
        """The cache model, and its error; empty without one."""
        caches = self.profile.caches
        if caches is None:
            return []
        return [*sizes_tables(caches), _checked_table("Payloads and states of other sizes", self.sized)]

    def stalled(self) -> Table:
        """Stalls of the machine by number of workers."""
        columns = [
            Column("workers", Kind.COUNT, about="threads that read the clock all the time"),
            Column("rate", Kind.NUMBER, "1/s", "stalls in a second in which a thread runs"),
            Column("lost", Kind.SHARE, about="of the time, taken from a thread"),
            Column("stall_p50", Kind.SECONDS),
            Column("stall_p99", Kind.SECONDS),
            Column("longest", Kind.SECONDS, about="longest stall; the model leaves out those that most spans have not"),
            Column("late_p99", Kind.SECONDS, about="how late idle workers wake up"),
        ]
        rows = [
            [
                *(one.workers, one.per_s, one.lost, *(_seconds(one.us, p) for p in (50, 99))),
                *(_seconds((*one.us, *one.rare_us), 100), _seconds(one.late_us, 99)),
            ]
            for one in self.profile.stalls
        ]
        return Table.from_rows("Stalls of this machine", columns, rows)

    def displayed(self) -> list[Table]:
        """Costs and held-out configurations; then the same of sizes, and the stalls."""
        return [self.found(), self.held(), *self.sizes(), *([self.stalled()] if self.profile.stalls else [])]


def _error_of(checks: Sequence[Checked]) -> str:
    worst = max(checks, key=lambda one: abs(one.error))
    middle = np.median([abs(one.error) for one in checks])
    return f"{middle:.0%} in the median, and by {abs(worst.error):.0%} for {worst.configuration}"


def _checked_table(title: str, checks: Sequence[Checked]) -> Table:
    columns = [
        Column("configuration"),
        Column("cores", Kind.NUMBER, about="CPU seconds per second of the fastest run"),
        Column("measured", Kind.NUMBER, "ns", "CPU per row of the fastest run"),
        Column("measured_high", Kind.NUMBER, "ns", "of the slowest of those that counted in a repeat"),
        Column("predicted", Kind.NUMBER, "ns", "worker time per row in the model"),
        Column("predicted_low", Kind.NUMBER, "ns", "with the lower ends of all costs"),
        Column("predicted_high", Kind.NUMBER, "ns", "with the upper ends"),
        Column("error", Kind.SHARE, about="predicted over measured, less 1"),
    ]
    rows = [[str(one.configuration), one.cores, *one.measured_ns, *one.predicted_ns, one.error] for one in checks]
    return Table.from_rows(title, columns, rows)


def calibrate_engine(
    runner: Runner,
    rows: int,
    workers: int,
    repeats: int,
    told: Callable[[str, int, int], None] | None = None,
    stalls: Callable[[int], Stalls] | None = None,
) -> OrderedCalibration:
    """Fit the costs of the engine, and predict held-out runs.

    Args:
        rows: Rows of a run.
        workers: Most workers of a run.
        repeats: Times that all configurations are run.
        told: Progress callback.
        stalls: Measures the stalls of a number of workers; None for no stalls.
    """
    tell = told or (lambda *_: None)
    used, kept = fitted(workers), held_out(workers)
    repeated: list[list[Measured]] = []
    checked: list[list[Measured]] = [[] for _ in kept]
    for repeat in range(repeats):
        tell("measuring", repeat, repeats)
        repeated.append([*map(runner.run, used), *map(runner.send, SENT_CHUNKS)])
        for of_one, one in zip(checked, kept, strict=True):
            of_one.append(runner.run(one))
    tell("predicting", 0, 0)
    runs = f"{len(used)} configurations, {rows:,} rows each, {repeats} times, with up to {workers} workers"
    profile = profile_of(repeated, workers, runs)
    if stalls is not None:
        tell("measuring stalls", 0, 0)
        profile = replace(profile, stalls=tuple(map(stalls, worker_counts(workers))))
    checks = [checked_of(one, of_one, profile, one.rows_of(rows)) for one, of_one in zip(kept, checked, strict=True)]
    return OrderedCalibration(profile, tuple(checks))


def checked_of(one: Configuration, runs: Sequence[Measured], profile: EngineProfile, rows: int) -> Checked:
    """A held-out configuration with its prediction.

    At the overlap of the fastest run, and with its moves of cache lines.
    """
    line = profile.costs.get(Term(Cost.LINE))
    runs = sorted(at_one_line(runs, line.ns if line else None), key=lambda run: run.cpu_ns)
    contention = contention_in(runs[0], line.ns if line else None)
    middle, low, high = (
        predicted_ns(one, profile.costs_at(bound).contended_by(contention)) for bound in ("ns", "low_ns", "high_ns")
    )
    return Checked(one, (runs[0].cpu_ns / rows, runs[-1].cpu_ns / rows), (middle, low, high), runs[0].cores)


def _rare_note(stalls: Stalls) -> str:
    """Stalls that the model leaves out."""
    return (
        f"in {len(stalls.rare_us)} of {stalls.spans} spans the system stalled {counted(stalls.workers, 'thread')} for"
        f" up to {duration(stalls.rare_us[-1] / 1e6)}; runs with such a stall are slower than the model says"
    )


def _cores_note(checks: Sequence[Checked]) -> str:
    """How much of their cores the runs of many workers got."""
    least = min(checks, key=lambda one: one.cores / one.configuration.workers)
    most = least.configuration.workers
    advice = (
        "" if least.cores > ENOUGH_CORES * most else "; other programs took the rest, so repeat this on a free machine"
    )
    return f"held-out runs of {most} workers got {least.cores:.2g} of {most} cores or more{advice}"


def predicted_ns(one: Configuration, costs: EngineCosts, rows: int = MODELED_ROWS) -> float:
    """Worker time per row in the model, in nanoseconds."""
    settings = replace(one.settings(), adapts=True)
    run = run_model(one.chain(rows), settings, Contention(), np.random.default_rng(0), engine=costs).run
    asking = sum(count * costs.ns.get(term, 0.0) for term, count in queries_of(settings, run.operators).items())
    return (sum(tally.busy_ns for tally in run.operators) + asking) / rows


def _seconds(us: Sequence[float], percentile: float) -> float:
    return float(np.percentile(us, percentile, method="inverted_cdf")) / 1e6 if us else 0.0
