"""Runs of configurations on this machine, in seconds of CPU."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from adapt.core.ordered.calibrate.configuration import Configuration
from adapt.core.ordered.calibrate.fit import Measured
from adapt.core.ordered.calibrate.sending import timed_sending
from adapt.core.ordered.chain.bound import BoundChain
from adapt.core.ordered.chain.names import Heuristic, OperatorKind
from adapt.core.ordered.engine.costs import Cost, Term
from adapt.core.ordered.engine.threads import run_by_workers
from adapt.core.ordered.functions.work import measured_pace
from adapt.core.ordered.model.engine_times import counts_of, queries_of

_TRIES = 3
"""Times that sending is timed; the shortest counts, since only a clock can time it."""


@dataclass(slots=True)
class Machine:
    """Runs configurations by threads.

    Attributes:
        rows: Rows of a run.
        cpu_clock: CPU seconds of this process.
    """

    rows: int
    cpu_clock: Callable[[], float]
    _chains: dict[Configuration, BoundChain] = field(default_factory=dict)
    _pace: int = 0

    def run(self, one: Configuration) -> Measured:
        """Run a configuration; a run without rows is subtracted."""
        chain, settings = self._chain(one), one.settings()
        self._pace = self._pace or measured_pace()
        start_s = self.cpu_clock()
        run_by_workers(chain.part(0, 0), settings, self._pace)
        begun_s = self.cpu_clock()
        done = run_by_workers(chain, settings, self._pace)
        took_s = self.cpu_clock() - begun_s
        cpu_s = max(took_s - (begun_s - start_s), took_s / 10)
        counts: dict[Term, float] = {}
        for bound, tally in zip(chain.operators, done.operators, strict=True):
            for term, count in counts_of(bound, settings, tally).items():
                counts[term] = counts.get(term, 0.0) + count
        counts |= queries_of(settings, done.operators)
        return Measured(counts, cpu_s * 1e9)

    def send(self, chunk: int) -> Measured:
        """Time only the sections that one worker at a time may enter."""
        one = Configuration((OperatorKind.STATELESS,), chunk=chunk)
        sent = [timed_sending(self._chain(one), one.settings()) for _ in range(_TRIES)]
        tally, ns = min(sent, key=lambda each: each[1])
        return Measured({Term(Cost.SEND): float(tally.in_use.sum()), Term(Cost.OUTPUT): float(tally.outputs)}, ns)

    def _chain(self, one: Configuration) -> BoundChain:
        """The chain of a configuration; each is made once."""
        alike = replace(one, workers=1, chunk=0, heuristic=Heuristic.CT, slice_us=1.0)
        if alike not in self._chains:
            self._chains[alike] = alike.chain(one.rows_of(self.rows))
        return self._chains[alike]
