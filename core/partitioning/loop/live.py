"""The loop on keys over a stream: route, count, decide, adopt."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.counting.exact import count_keys
from adapt.core.counting.frequencies import Counts
from adapt.core.errors import BadInput
from adapt.core.partitioning.loads.load import ResourceFunction
from adapt.core.partitioning.loop.proposal import Proposal
from adapt.core.partitioning.loop.recent import RecentSums
from adapt.core.partitioning.loop.shadows import Shadows
from adapt.core.partitioning.loop.splitter import Splitter
from adapt.core.partitioning.loop.triggers import Decided, Seen, Trigger
from adapt.core.partitioning.measures.channel_loads import channel_loads
from adapt.core.partitioning.measures.imbalance import max_over_min
from adapt.core.partitioning.measures.population import Population
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.repartition.channel_schedule import Schedule


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the loop: its decision, then its rows.

    Attributes:
        at_us: Time of the decision.
        decided: The decision, on rows before `at_us` alone.
        plan: The plan in force from then on.
        adopted: The proposal adopted at `at_us`; None if the plan is kept.
        loads: Load of each channel in the step, exact; shape (channels,).
        rows: Rows of the step.
    """

    at_us: int
    decided: Decided
    plan: Plan
    adopted: Proposal | None
    loads: Floats
    rows: int


def run_loop(
    batches: Iterable[pa.RecordBatch],
    splitter: Splitter,
    trigger: Trigger,
    schedule: Schedule,
    step_us: int,
    *,
    resources: Resources,
    weight_column: str | None = None,
) -> Iterator[Step]:
    """Drive a splitter over rows in time order.

    At the start of each step that has rows, the trigger decides from earlier rows alone; a change of the channel count
    is always adopted. So a stream cut at any row has the same decisions up to there.

    Args:
        batches: Columns `ts` (timestamp[us]), `key`, and the weight column if there is one.
        schedule: Channel counts by time since the first row; the splitter starts with the first.
        step_us: Time between decisions, in microseconds.

    Raises:
        BadInput: the rows are not in time order, or a row has no time.

    Source: partitioning functions, section 3: the splitter counts, a plan is constructed, keys migrate.
    """
    loop: _Loop | None = None
    last_us = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        times, keys = times_of(batch), batch.column("key")
        weights = None if weight_column is None else batch.column(weight_column).fill_null(0).to_numpy()
        if loop is None:
            last_us = int(times[0])
            loop = _Loop(splitter, trigger, schedule, step_us, resources, last_us)
        if (np.diff(times, prepend=last_us) < 0).any():
            raise BadInput("rows must be in time order for a live replay; a row is earlier than the one before it")
        last_us = int(times[-1])
        numbers = (times - loop.origin_us) // step_us
        for first, end in pairwise([0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]):
            if int(numbers[first]) > loop.number:
                yield from loop.begin(int(numbers[first]))
            part = None if weights is None else weights[first:end]
            loop.take(keys.slice(first, end - first), part, times[first:end])
    if loop is not None:
        yield from loop.end()


class _Loop:
    """The splitter of a stream, its open step, and what triggers remember."""

    def __init__(
        self, splitter: Splitter, trigger: Trigger, schedule: Schedule, step_us: int, resources: Resources, at_us: int
    ) -> None:
        self.origin_us = at_us
        self.number = -1
        self._splitter, self._trigger, self._schedule = splitter, trigger, schedule
        self._step_us, self._resources = step_us, resources
        self._since_us = at_us
        self._shadows = self._shadowed(at_us)
        self._recent = RecentSums(splitter.window.length, splitter.plan.channels)
        self._open: tuple[int, Decided, Proposal | None] | None = None
        self._loads = np.zeros(splitter.plan.channels)
        self._rows = 0
        self._last_us = at_us

    def begin(self, number: int) -> Iterator[Step]:
        """Close the open step, and decide on the next one."""
        yield from self.end()
        at_us, self.number = self.origin_us + number * self._step_us, number
        wanted = self._schedule.channels_at(at_us - self.origin_us)
        decided, proposal = self._decide(at_us, wanted)
        adopted = proposal if decided.fires else None
        if adopted is not None:
            self._adopt(adopted, at_us)
        if self._shadows is not None:
            self._shadows.begin(proposal if adopted is None else None)
        self._open = at_us, decided, adopted
        self._loads = np.zeros(self._splitter.plan.channels)
        self._rows = 0

    def take(self, keys: pa.Array, weights: Counts | None, times_us: NDArray[np.int64]) -> None:
        """Route and count rows of the open step."""
        self._loads += np.bincount(self._splitter.route(keys), weights, len(self._loads))
        if self._shadows is not None:
            self._shadows.take(count_keys(keys, weights))
        self._rows += len(keys)
        self._last_us = int(times_us[-1])
        self._splitter.observe(keys, weights, times_us)

    def end(self) -> Iterator[Step]:
        """Close the open step, if any."""
        if self._open is None:
            return
        at_us, decided, adopted = self._open
        self._recent.add(self._loads, self._rows, self._last_us)
        if self._shadows is not None:
            self._shadows.end(self._loads)
        self._open = None
        yield Step(at_us, decided, self._splitter.plan, adopted, self._loads, self._rows)

    def _adopt(self, adopted: Proposal, at_us: int) -> None:
        """Put a plan in force; a change of the number of channels starts new shadows."""
        before = self._splitter.plan
        self._splitter.adopt(adopted)
        self._recent.share_out(np.array(adopted.plan.predicted_loads["network"]))
        self._since_us = at_us
        if adopted.plan.channels != before.channels:
            self._shadows = self._shadowed(at_us)
        elif self._shadows is not None:
            self._shadows.adopt(adopted)

    def _shadowed(self, at_us: int) -> Shadows | None:
        period_us = self._trigger.shadow_us
        return None if period_us is None else Shadows(self._splitter.plan, period_us, at_us)

    def _decide(self, at_us: int, wanted: int) -> tuple[Decided, Proposal | None]:
        """The decision, and the proposal if one was built."""
        present = self._splitter.plan.channels
        if at_us == self.origin_us:
            return Decided(False, "nothing is counted yet"), None
        if wanted != present:
            return Decided(True, f"channels change from {present} to {wanted}"), self._splitter.propose(wanted)
        shadows, built = self._shadows, list[Proposal]()

        def proposal() -> Proposal:
            if not built:
                built.append(self._splitter.propose())
            return built[0]

        if shadows is not None and shadows.is_due(at_us):
            shadows.rebuild(self._splitter.propose(after=shadows.periodic_plan), at_us)
        decided = self._trigger.decide(self._seen(at_us, proposal))
        if decided.fires or shadows is not None:
            proposal()
        return decided, built[0] if built else None

    def _seen(self, at_us: int, proposal: Callable[[], Proposal]) -> Seen:
        return Seen(
            at_us,
            self._splitter.is_full,
            self._ratios,
            self._resources.tolerance,
            self._since_us,
            self._shadows,
            proposal,
        )

    def _ratios(self) -> list[float | None]:
        """Max/min load of each resource over the window.

        Linear loads are summed up as rows are routed; others need the counts of the keys.
        """
        if set(self._resources.loads) == {ResourceFunction.LINEAR}:
            return [max_over_min(self._recent.sums)] * len(self._resources.loads)
        counted = Population.from_counts(self._splitter.counted())
        placed = self._splitter.plan.partitioner().channels_of(counted.keys)
        loads = channel_loads(placed, counted, self._resources, self._splitter.plan.channels)
        return [max_over_min(load) for load in loads]


def times_of(batch: pa.RecordBatch) -> NDArray[np.int64]:
    """Times of rows in microseconds, shape (rows,).

    Raises:
        BadInput: a row has no time.
    """
    column = batch.column("ts")
    if column.null_count:
        raise BadInput("a row has no time; a live replay needs one for every row")
    return np.asarray(column.cast(pa.int64()).to_numpy())
