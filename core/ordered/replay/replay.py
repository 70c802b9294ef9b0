"""Ordered replay of a trace through a chain of operators."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np

from adapt.core.errors import UsageError
from adapt.core.ordered.chain.bound import BoundChain
from adapt.core.ordered.chain.names import Backend, Reorder, WorkQueue
from adapt.core.ordered.engine.contention import MEASURED, Contention
from adapt.core.ordered.engine.queue_sizes import queue_sizes
from adapt.core.ordered.engine.serial import Egress, run_serially
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.engine.threads import run_by_workers
from adapt.core.ordered.functions.work import measured_pace
from adapt.core.ordered.model.model import run_model
from adapt.core.ordered.model.operator_costs import (
    Costs,
    fitted_costs,
    given_costs,
    interpreted_costs,
    is_given,
    is_python,
)
from adapt.core.ordered.replay.outcome import WorkersOutcome
from adapt.core.ordered.replay.tables import (
    OPERATORS_FIRST,
    WORKERS_FIRST,
    constants_table,
    costs_table,
    occupancy_table,
    of_most_workers,
    operators_table,
    ordered_summary,
    partitions_table,
    with_columns,
    workers_table,
)
from adapt.core.run import run_as_data, verdict_under
from adapt.core.table import Displayed, Table

TIMED = 10_000
"""Default number of timed tuples in a run."""

Told: TypeAlias = Callable[[str, int, int], None]
"""Progress callback: the step, the rows done, and the total rows or 0."""

Clock: TypeAlias = Callable[[], float]
"""A clock in seconds."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """Options of an ordered replay.

    Attributes:
        workers: Numbers of workers to run with.
        backend: Threads or the model.
        settings: Settings of every run, whose number of workers is ignored; without `mark_every`, about `TIMED` tuples
            are timed.
        contention: Contention between workers of the model.
        seed: Random seed of the model.
        cores: Cores of the machine.
        serial: Whether to compare the output with a serial run.

    Raises:
        UsageError: no number of workers, one out of range, or a setting that the model does not support.
    """

    workers: tuple[int, ...]
    backend: Backend = Backend.THREADS
    settings: RunSettings = field(default_factory=RunSettings)
    contention: Contention = MEASURED
    seed: int = 0
    cores: int = 1
    serial: bool = True

    def __post_init__(self) -> None:
        if not self.workers:
            raise UsageError("workers must name at least one number of workers, such as 1,2,4")
        for workers in self.workers:
            replace(self.settings, workers=workers)
        if self.settings.work_queue is WorkQueue.SHARED:
            raise UsageError(f"work queue {WorkQueue.SHARED} loses the order of partitions; it is for tests only")
        if self.backend is Backend.SIM and self.settings.reorder is Reorder.RETRY:
            raise UsageError(
                f"the model supports reorder {Reorder.CLAIM} and {Reorder.LOCK}; {Reorder.RETRY} needs "
                f"--backend {Backend.THREADS}"
            )

    def settings_of(self, workers: int, rows: int) -> RunSettings:
        """Settings of one run."""
        every = self.settings.mark_every or max(rows // TIMED, 1)
        return replace(self.settings, workers=workers, mark_every=every)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OrderedRun(Displayed):
    """Result of an ordered replay.

    Attributes:
        outcomes: One per number of workers, in their order.
        egress: Output of the serial run, or of the first run without one.
        costs: Costs that the model used; None for real workers.
        parameters: Everything that determines the result, except the trace; JSON data.
    """

    mechanism: ClassVar[str] = "ordered"

    chain: BoundChain
    ordered: Ordered
    outcomes: tuple[WorkersOutcome, ...]
    egress: Egress
    costs: Costs | None
    parameters: Mapping[str, Any]

    def summary(self) -> Table:
        """Summary of the run in one row, with its verdict."""
        ordered = self.ordered
        return ordered_summary(
            self.chain, self.outcomes, self.egress, ordered.backend, ordered.cores, self.costs, ordered.contention
        )

    def tables(self) -> dict[str, Table]:
        """Tables of the run by name.

        `workers`, `operators`, `occupancy`, `partitions`; for a model also `costs` and `constants`.
        """
        tables = {
            "workers": workers_table(self.outcomes),
            "operators": operators_table(self.chain.operators, self.outcomes),
            "occupancy": occupancy_table(self.outcomes),
            "partitions": partitions_table(self.chain.operators, self.outcomes[0]),
        }
        if self.costs is not None:
            tables["costs"] = costs_table(self.chain.operators, self.costs)
            tables["constants"] = constants_table(self.ordered.contention)
        return tables

    def shown(self) -> tuple[Table, ...]:
        """Tables shown first: workers, operators, a model's assumptions."""
        tables = self.tables()
        workers, summary = verdict_under(tables["workers"], self.summary())
        return (
            with_columns(workers, WORKERS_FIRST),
            with_columns(of_most_workers(tables["operators"]), OPERATORS_FIRST),
            *(tables[name] for name in ("costs", "constants") if name in tables),
            summary,
        )

    def as_data(self) -> dict[str, Any]:
        """Run as JSON data."""
        return run_as_data(self.mechanism, self.parameters, self.summary(), self.tables())

    def displayed(self) -> list[Table]:
        """Summary and workers."""
        return [self.summary(), workers_table(self.outcomes)]


def replay_ordered(
    chain: BoundChain,
    ordered: Ordered,
    *,
    clock: Clock,
    cpu_clock: Clock,
    parameters: Mapping[str, Any] | None = None,
    told: Told | None = None,
) -> OrderedRun:
    """Run a chain by each number of workers.

    The output of threads is compared with that of the serial run in plain Python; that of the model, which moves copies
    of input tuples, with its own run by one worker. Costs that the chain does not give are measured with one real
    worker, or with the plain-Python steps if an operator runs a Python function.

    Args:
        clock: Clock in seconds, for timing Python functions.
        cpu_clock: CPU seconds of this process.
        parameters: Further parameters to record.
        told: Progress callback.

    Raises:
        UsageError: an argument is out of range, the run would hang, or threads would have to run a Python function.
        BadInput: a Python function fails on a tuple.
        RuntimeError: a bug in the program.
    """
    tell = told or (lambda *_: None)
    check_chain(chain, ordered)
    decisive = {**ordered_parameters(ordered, chain.rows), **(parameters or {})}
    if ordered.backend is Backend.SIM:
        costs = costs_of(chain, ordered, clock, tell)
        outcomes, egress = _by_model(chain, ordered, costs, tell)
        return OrderedRun(chain, ordered, outcomes, egress, costs, decisive)
    outcomes, serial = _by_threads(chain, ordered, cpu_clock, tell)
    return OrderedRun(chain, ordered, outcomes, serial or outcomes[0].run.egress, None, decisive)


def check_chain(chain: BoundChain, ordered: Ordered) -> None:
    """Check a chain and its options before a run.

    Raises:
        UsageError: the run would hang, or threads would have to run a Python function.
    """
    for workers in ordered.workers:
        queue_sizes(chain, replace(ordered.settings, workers=workers))
    if ordered.backend is Backend.THREADS and is_python(chain):
        warm_up(chain)


def warm_up(chain: BoundChain) -> None:
    """Run without tuples, to exclude compilation from measurements.

    Raises:
        UsageError: an operator runs a Python function.
    """
    run_by_workers(replace(chain, tuples=chain.tuples[:0]), RunSettings(), pace=1)


def costs_of(chain: BoundChain, ordered: Ordered, clock: Clock, told: Told | None = None) -> Costs:
    """Operator costs for the model, from the chain or measured."""
    if is_given(chain):
        return given_costs(chain)
    tell = told or (lambda *_: None)
    if is_python(chain):
        tell("timing Python functions", 0, 0)
        return interpreted_costs(chain, clock)
    tell("measuring costs with one worker", 0, 0)
    settings = replace(ordered.settings, workers=1, reorder=Reorder.CLAIM, work_queue=WorkQueue.HYBRID, mark_every=0)
    warm_up(chain)
    measured = run_by_workers(chain, settings)
    return fitted_costs(chain, measured.operators, ordered.contention)


def _by_model(
    chain: BoundChain, ordered: Ordered, costs: Costs, tell: Told
) -> tuple[tuple[WorkersOutcome, ...], Egress]:
    rows = chain.rows

    def run(workers: int) -> WorkersOutcome:
        tell(f"{workers} workers", 0, 0)
        random = np.random.default_rng(ordered.seed)
        settings = ordered.settings_of(workers, rows)
        done = run_model(chain, settings, ordered.contention, random, costs.us, costs.selectivities)
        return WorkersOutcome(workers, rows, done.run, None, None)

    outcomes = {workers: run(workers) for workers in ordered.workers}
    if not ordered.serial:
        return tuple(outcomes.values()), outcomes[ordered.workers[0]].run.egress
    alone = (outcomes.get(1) or run(1)).run.egress
    return tuple(replace(one, is_ordered=one.run.egress == alone) for one in outcomes.values()), alone


def _by_threads(
    chain: BoundChain, ordered: Ordered, cpu_clock: Clock, tell: Told
) -> tuple[tuple[WorkersOutcome, ...], Egress | None]:
    rows = chain.rows
    serial = run_serially(chain, told=lambda done: tell("serial run", done, rows)).egress if ordered.serial else None
    warm_up(chain)
    pace = measured_pace()
    outcomes = []
    for workers in ordered.workers:
        tell(f"{workers} workers", 0, 0)
        settings = ordered.settings_of(workers, rows)
        start_s = cpu_clock()
        done = run_by_workers(chain, settings, pace)
        cpu_s = cpu_clock() - start_s
        outcomes.append(WorkersOutcome(workers, rows, done, None if serial is None else done.egress == serial, cpu_s))
    return tuple(outcomes), serial


def ordered_parameters(ordered: Ordered, rows: int) -> dict[str, Any]:
    """Parameters that determine a replay, as JSON data.

    Except the chain and the trace.
    """
    settings = ordered.settings_of(ordered.workers[0], rows)
    named = {name: value for name, value in asdict(settings).items() if name not in ("workers", "checked")}
    told = {"workers": list(ordered.workers), "backend": ordered.backend.value, **named}
    if ordered.backend is Backend.SIM:
        return {**told, "contention": asdict(ordered.contention), "seed": ordered.seed}
    return {**told, "cores": ordered.cores}
