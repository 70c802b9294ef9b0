"""Ordered replay of a trace through a chain of operators."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from adapt.core.errors import UsageError
from adapt.core.ordered.chain.bound import BoundChain
from adapt.core.ordered.chain.columns import Words
from adapt.core.ordered.chain.names import Backend, Parallelism, Reorder, Spacing, WorkQueue
from adapt.core.ordered.engine.memory import degrees_of, has_own, runs_functions
from adapt.core.ordered.engine.reference import Egress, Marks, OperatorTally, WorkersRun, check_sample, run_serially
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.engine.threads import run_by_workers
from adapt.core.ordered.functions.own import obstacles
from adapt.core.ordered.functions.work import fixed_loop_s, measured_pace
from adapt.core.ordered.model.model import Costs, given_costs, is_given, measured_costs, run_model
from adapt.core.ordered.replay.arrivals import Arrivals, Ordered, Paced
from adapt.core.ordered.replay.outcome import WorkersOutcome, median_of
from adapt.core.ordered.replay.sustainable import Probe, Search, searched, searched_workers
from adapt.core.ordered.replay.tables import OrderedRun

Told: TypeAlias = Callable[[str, int, int], None]
"""Progress callback: the step, the rows done, and the total rows or 0."""

Clock: TypeAlias = Callable[[], float]
"""A clock in seconds."""


def replay_ordered(
    chain: BoundChain,
    ordered: Ordered,
    *,
    clock: Clock,
    cpu_clock: Clock,
    parameters: Mapping[str, Any] | None = None,
    told: Told | None = None,
    taken: Callable[[Words], None] | None = None,
    times_us: Words | None = None,
) -> OrderedRun:
    """Run a chain by each number of workers.

    The output of threads is compared with that of a serial run by the compiled functions, of which own ones are
    compared with plain Python on all rows, or on the first ones. The model runs own functions on the stream likewise;
    of built-in ones it moves copies of input tuples, and is compared with its own run by one worker.
    Costs that the chain does not give are measured with one real worker. A chain with a function that cannot be
    compiled runs serially, in plain Python.

    Args:
        clock: Clock in seconds, for a serial run.
        cpu_clock: CPU seconds of this process.
        parameters: Further parameters to record.
        told: Progress callback.
        taken: Called with the output tuples of the run with the most workers, in order, some at a time.
        times_us: Times of the rows in microseconds, ascending; needed if they arrive by the times of the trace.
    """
    tell = told or (lambda *_: None)
    check_chain(chain, ordered)
    decisive = {**ordered_parameters(ordered, chain.rows), **(parameters or {})}
    if ordered.backend is Backend.SIM:
        costs = costs_of(chain, ordered, cpu_clock, tell)
        return _model_run(chain, ordered, costs, decisive, tell, times_us)
    why = tuple(obstacles(chain.operators))
    if why:
        alone = _alone(chain, clock, tell, taken)
        return OrderedRun(chain, ordered, (alone,), alone.run.egress, None, decisive, why)
    serial = _checked(chain, ordered, tell)

    warm_up(chain)
    threads = _Threads(chain, measured_pace(), cpu_clock, tell, serial)
    (*lower, paced), probes = _paced(ordered, chain, times_us, threads.run)
    below = [one for each in lower for one in threads.run(ordered, each)]
    outcomes = threads.run(ordered, paced, taken)
    egress = serial or outcomes[0].run.egress
    return OrderedRun(chain, ordered, outcomes, egress, None, decisive, lower=tuple(below), probes=probes)


def _model_run(
    chain: BoundChain,
    ordered: Ordered,
    costs: Costs,
    parameters: Mapping[str, Any],
    tell: Told,
    times_us: Words | None,
) -> OrderedRun:
    """A run of the model at each rate of arrivals."""
    unchecked = replace(ordered, check=0)

    def run(how: Ordered, paced: Mapping[int, Paced]) -> tuple[WorkersOutcome, ...]:
        return _by_model(chain, replace(how, check=0), costs, tell, paced)[0]

    (*lower, paced), probes = _paced(ordered, chain, times_us, run)
    outcomes, egress = _by_model(chain, ordered, costs, tell, paced)
    below = [one for each in lower for one in _by_model(chain, unchecked, costs, tell, each)[0]]
    if ordered.check != 0:
        below = [replace(one, is_ordered=one.run.egress == egress) for one in below]
    return OrderedRun(chain, ordered, outcomes, egress, costs, parameters, lower=tuple(below), probes=probes)


_Runs: TypeAlias = Callable[[Ordered, Mapping[int, Paced]], tuple[WorkersOutcome, ...]]
"""Runs a chain, with arrivals by number of workers."""


def _paced(
    ordered: Ordered, chain: BoundChain, times_us: Words | None, run: _Runs
) -> tuple[Sequence[Mapping[int, Paced]], tuple[Probe, ...]]:
    """Arrivals by number of workers for each rate, and the searches."""
    arrivals, searches = ordered.arrivals, dict[int, Search]()
    if not arrivals:
        return [{}], ()
    capacities = dict[int, float | None]()
    if any(each.needs_capacity for each in arrivals):
        capacities = {one.workers: one.throughput for one in run(ordered, {})}
    if any(each.sustained for each in arrivals):
        searches = {
            workers: _searched(ordered, chain, times_us, run, workers, capacities[workers] or 0.0)
            for workers in ordered.workers
        }

    def paced(each: Arrivals, workers: int) -> Paced:
        found = searches[workers].found if workers in searches else None
        return each.paced(chain, capacities.get(workers), times_us, ordered.seed, found)

    rates = [{workers: paced(each, workers) for workers in ordered.workers} for each in arrivals]
    return rates, tuple(probe for search in searches.values() for probe in search.probes)


def _searched(
    ordered: Ordered, chain: BoundChain, times_us: Words | None, run: _Runs, workers: int, capacity: float
) -> Search:
    """Search of the sustainable rate of a number of workers."""
    spacing = ordered.arrivals[0].spacing

    def at(rate: float, number: int) -> WorkersOutcome:
        arriving = Arrivals(rate=rate, spacing=spacing).paced(chain, capacity, times_us, ordered.seed + number)
        return run(replace(ordered, workers=(workers,), repeats=1), {workers: arriving})[0]

    return searched(capacity, ordered.target, at, is_steady=spacing is not Spacing.TRACE)


def check_chain(chain: BoundChain, ordered: Ordered) -> None:
    """Check a chain and its options before a run."""
    degrees_of(chain.operators, ordered.settings)
    if ordered.arrivals:
        for why in obstacles(chain.operators):
            raise UsageError(f"{why}; without that it runs serially, where rows have no arrival times")
    if ordered.backend is Backend.SIM:
        for why in obstacles(chain.operators):
            raise UsageError(
                f"{why}; without that it runs serially (--backend threads), and the model has no speed-up to show"
            )


def warm_up(chain: BoundChain) -> None:
    """Run without tuples, to exclude compilation from measurements."""
    run_by_workers(chain.part(0, 0), RunSettings(), pace=1)


def costs_of(chain: BoundChain, ordered: Ordered, cpu_clock: Clock, told: Told | None = None) -> Costs:
    """Operator costs for the model, from the chain or measured."""
    if is_given(chain):
        return given_costs(chain)
    if told is not None:
        told("measuring costs with one worker", 0, 0)
    settings = replace(
        ordered.settings,
        workers=1,
        reorder=Reorder.CLAIM,
        work_queue=WorkQueue.HYBRID,
        mark_every=0,
        parallelism=Parallelism.DYNAMIC,
        degrees=(),
        batch=0,
    )
    settings = replace(settings, chunk=settings.chunk or (None if ordered.arrivals else 1))  # as in the model
    warm_up(chain)
    pace = measured_pace()

    def run() -> Sequence[OperatorTally]:
        return run_by_workers(chain, settings, pace).operators

    return measured_costs(chain, run, ordered.contention, cpu_clock, ordered.min_time_s)


def _by_model(
    chain: BoundChain, ordered: Ordered, costs: Costs, tell: Told, paced: Mapping[int, Paced] | None = None
) -> tuple[tuple[WorkersOutcome, ...], Egress]:
    rows = chain.rows
    reference = _checked(chain, ordered, tell) if runs_functions(chain) else None

    def run(workers: int) -> WorkersOutcome:
        tell(f"{workers} workers", 0, 0)
        settings, pace = ordered.settings_of(workers, rows), (paced or {}).get(workers)
        arrivals_ns = None if pace is None else pace.arrivals_ns
        random = np.random.default_rng(ordered.seed)
        done = run_model(chain, settings, ordered.contention, random, costs.us, costs.selectivities, arrivals_ns).run
        return WorkersOutcome(workers, rows, done, None, None, paced=pace)

    outcomes = (
        searched_workers(run) if ordered.finds_workers else {workers: run(workers) for workers in ordered.workers}
    )
    if ordered.check == 0:
        return tuple(outcomes.values()), outcomes[ordered.workers[0]].run.egress
    alone = reference or (outcomes.get(1) or run(1)).run.egress
    return tuple(replace(one, is_ordered=one.run.egress == alone) for one in outcomes.values()), alone


def _checked(chain: BoundChain, ordered: Ordered, tell: Told) -> Egress | None:
    """Compare compiled functions with plain Python; returns the egress of a serial run, None if nothing is checked."""
    rows = chain.rows if ordered.check is None else ordered.check
    if not rows:
        return None
    if has_own(chain):
        total = len(chain.tuples) if rows >= chain.rows else rows
        check_sample(chain, total, lambda done: tell("checking against plain Python", done, total))
    return run_serially(chain, told=lambda done: tell("serial run", done, chain.rows), compiled=True).egress


def _alone(chain: BoundChain, clock: Clock, tell: Told, taken: Callable[[Words], None] | None) -> WorkersOutcome:
    """A serial run in plain Python, as a run by one worker."""
    start_s = clock()
    done = run_serially(chain, told=lambda rows: tell("serial run", rows, chain.rows), taken=taken)
    elapsed_s = clock() - start_s
    none = np.zeros(0, np.int64)
    tallies = tuple(
        OperatorTally(bound.operator.name, inputs, gave, np.zeros(bound.partitions, np.int64))
        for bound, inputs, gave in zip(chain.operators, done.inputs, done.outputs, strict=True)
    )
    run = WorkersRun(done.egress, elapsed_s, tallies, Marks(none, none, none), none.reshape(0, len(chain.gives)))
    return WorkersOutcome(1, chain.rows, run, None, None)


@dataclass(frozen=True, slots=True, eq=False)
class _Threads:
    """Runs of a chain on threads."""

    chain: BoundChain
    pace: int  # steps of busy work in 1024 ns
    cpu_clock: Clock
    tell: Told
    serial: Egress | None  # output of the serial run; None if it was not checked

    def run(
        self, ordered: Ordered, paced: Mapping[int, Paced], taken: Callable[[Words], None] | None = None
    ) -> tuple[WorkersOutcome, ...]:
        """The median run by each number of workers.

        `taken` gets the output of one with the most.
        """
        rows = self.chain.rows
        runs: dict[int, list[WorkersOutcome]] = {workers: [] for workers in ordered.workers}
        loops_s: list[float] = []
        for repeat, workers in product(range(ordered.repeats), ordered.workers):
            self.tell(f"{workers} workers{'' if ordered.repeats == 1 else f', run {repeat + 1}'}", 0, 0)
            loops_s.append(fixed_loop_s())
            last = repeat + 1 == ordered.repeats and workers == max(ordered.workers)
            start_s = self.cpu_clock()
            arriving = paced.get(workers)
            arrivals_ns = None if arriving is None else arriving.arrivals_ns
            settings, take = ordered.settings_of(workers, rows), taken if last else None
            done = run_by_workers(self.chain, settings, self.pace, taken=take, arrivals_ns=arrivals_ns)
            cpu_s = self.cpu_clock() - start_s
            is_ordered = None if self.serial is None else done.egress == self.serial
            runs[workers].append(WorkersOutcome(workers, rows, done, is_ordered, cpu_s, paced=arriving))
        of_each = [loops_s[at :: len(ordered.workers)] for at in range(len(ordered.workers))]
        return tuple(median_of(each, loops) for each, loops in zip(runs.values(), of_each, strict=True))


def ordered_parameters(ordered: Ordered, rows: int) -> dict[str, Any]:
    """Parameters that determine a replay, as JSON data.

    Except the chain and the trace.
    """
    settings = ordered.settings_of(ordered.workers[0], rows)
    named = {name: value for name, value in asdict(settings).items() if name not in ("workers", "checked", "adapts")}
    if settings.parallelism is Parallelism.DYNAMIC:
        named = {name: value for name, value in named.items() if name not in ("degrees", "batch")}
    workers = "auto" if ordered.finds_workers else list(ordered.workers)
    told = {"workers": workers, "backend": ordered.backend.value, **named}
    told["chunk"] = settings.chunk or ("auto" if ordered.backend is Backend.THREADS or ordered.arrivals else 1)
    if ordered.arrivals:
        told["arrivals"] = {"seed": ordered.seed, "rates": [asdict(each) for each in ordered.arrivals]}
        if any(each.sustained for each in ordered.arrivals):
            told["arrivals"]["target"] = asdict(ordered.target)
    if ordered.backend is Backend.SIM:
        return {**told, "contention": asdict(ordered.contention), "seed": ordered.seed}
    return {**told, "cores": ordered.cores, "repeats": ordered.repeats}
