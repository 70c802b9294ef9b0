"""Runs of configurations on this machine, in seconds of CPU."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from adapt.core.ordered.calibrate.configuration import Configuration
from adapt.core.ordered.calibrate.fit import Measured
from adapt.core.ordered.calibrate.line import line_ns
from adapt.core.ordered.calibrate.sending import timed_sending
from adapt.core.ordered.calibrate.speed import loop_ns
from adapt.core.ordered.chain.bound import BoundChain
from adapt.core.ordered.chain.names import Heuristic, OperatorKind
from adapt.core.ordered.engine.costs import Cost, Term
from adapt.core.ordered.engine.outcome import WorkersRun
from adapt.core.ordered.engine.threads import run_alone, run_by_workers
from adapt.core.ordered.functions.work import measured_pace
from adapt.core.ordered.model.engine_times import counts_of, queries_of

_TRIES = 3
"""Times that sending is timed; the shortest counts, since only a clock can time it."""

_STEADY = 0.75
"""Ratio of two measurements of one time of a cache line, at least."""

_ENOUGH, _FULL_SPEED = 0.85, 0.94
"""Share of a run that counts; and speed of the cores, as a share of the highest yet, of a good one."""

_RUNS, _LEAST_NS, _MOST_NS = 8, 50_000_000, 500_000_000
"""Most runs of a configuration, and the nanoseconds of CPU in all after which it is not run again: with a good run, and
without. A host may slow a core for milliseconds, which a short run spends wholly within."""


@dataclass(slots=True)
class Machine:
    """Runs configurations by threads.

    Attributes:
        rows: Rows of a run.
        cpu_clock: CPU seconds of this process.
        loop_ns: Time of a loop by the threads that run it at once; the shorter, the faster are the cores.
    """

    rows: int
    cpu_clock: Callable[[], float]
    loop_ns: Callable[[int], float] = loop_ns
    _chains: dict[Configuration, BoundChain] = field(default_factory=dict)
    _least_ns: dict[int, float] = field(default_factory=dict)
    _pace: int = 0

    def run(self, one: Configuration) -> Measured:
        """Run a configuration several times, more often if it was disturbed.

        That is if other programs took the cores or slowed them, or the host moved them apart. The fastest run counts,
        since what else runs on the host only adds time. A run without rows is subtracted.
        """
        runs, good, spent_ns = list[Measured](), False, 0.0
        while len(runs) < _RUNS and spent_ns < (_LEAST_NS if good else _MOST_NS):
            runs.append(self._run(one))
            spent_ns += runs[-1].cpu_ns
            good |= runs[-1].share >= _ENOUGH and runs[-1].speed >= _FULL_SPEED
        whole = [run for run in runs if run.share >= _ENOUGH]
        return min(whole, key=lambda run: run.cpu_ns) if whole else max(runs, key=lambda run: run.share)

    def _run(self, one: Configuration) -> Measured:
        chain, settings = self._chain(one), one.settings()
        self._pace = self._pace or measured_pace()
        lines_ns = [line_ns()] if one.running > 1 else []
        loops_ns = [self.loop_ns(one.running)]
        start_s = self.cpu_clock()
        self._by_threads(one, chain.part(0, 0))
        begun_s = self.cpu_clock()
        done = self._by_threads(one, chain)
        took_s = self.cpu_clock() - begun_s
        loops_ns.append(self.loop_ns(one.running))
        lines_ns += [line_ns()] if lines_ns else []
        cpu_s = max(took_s - (begun_s - start_s), took_s / 10)
        counts, work_ns = dict[Term, float](), 0.0
        for bound, tally in zip(chain.operators, done.operators, strict=True):
            for term, count in counts_of(bound, settings, tally, len(chain.operators)).items():
                counts[term] = counts.get(term, 0.0) + count
            work_ns += 1000 * one.cost_us * tally.inputs
        counts |= queries_of(settings, done.operators)
        cores = cpu_s / max(done.elapsed_s, 1e-9)
        overlap = min(max((cores - 1) / max(one.running - 1, 1), 0.0), 1.0) if one.running > 1 else 0.0
        share = overlap if one.running > 1 else min(cores, 1.0)
        known = [each for each in lines_ns if each is not None]
        moved_ns = float(np.mean(known)) if known else None
        share *= _steadiness(known)
        loop, least_ns = max(loops_ns), min(*loops_ns, self._least_ns.get(one.running, np.inf))
        self._least_ns[one.running] = least_ns
        return Measured(counts, cpu_s * 1e9, work_ns, cores, overlap, share, moved_ns, least_ns / loop)

    def _by_threads(self, one: Configuration, chain: BoundChain) -> WorkersRun:
        return (run_alone if one.alone else run_by_workers)(chain, one.settings(), self._pace)

    def send(self, chunk: int) -> Measured:
        """Time only the sections that one worker at a time may enter."""
        one = Configuration((OperatorKind.STATELESS,), chunk=chunk)
        sent = [timed_sending(self._chain(one), one.settings()) for _ in range(_TRIES)]
        tally, ns = min(sent, key=lambda each: each[1])
        return Measured({Term(Cost.SEND): float(tally.in_use.sum()), Term(Cost.OUTPUT): float(tally.outputs)}, ns)

    def _chain(self, one: Configuration) -> BoundChain:
        """The chain of a configuration; each is made once."""
        alike = replace(one, workers=1, chunk=0, heuristic=Heuristic.CT, slice_us=1.0, alone=False)
        if alike not in self._chains:
            self._chains[alike] = alike.chain(one.rows_of(self.rows))
        return self._chains[alike]


def _steadiness(lines_ns: Sequence[float]) -> float:
    """Ratio of the times of a cache line before and after a run; 1 if they differ little."""
    ratio = min(lines_ns) / max(lines_ns) if lines_ns else 1.0
    return 1.0 if ratio > _STEADY else ratio
