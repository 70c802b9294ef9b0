"""Repartitioning replay of a trace on disk, without Spark."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa

from adapt.core.repartition.decisions import Replan
from adapt.core.repartition.replay import Live, RepartitionRun, replay_repartition
from adapt.core.stream import Weight
from adapt.traces.counting.count import check_window
from adapt.traces.counting.exact import WEIGHT_COLUMNS, chosen_weight
from adapt.traces.replay.operators import check_columns, encoded
from adapt.traces.replay.replay import Asked, Replayed
from adapt.traces.spark.progress import Progress
from adapt.traces.store.trace import Trace


def weighed(replan: Replan, trace: Trace, weight: Weight | None) -> Replan:
    """The replay with the keys and weights of a trace."""
    chosen = chosen_weight(trace, weight)
    if replan.window is not None:
        check_window(replan.window, trace)
    replan.check_steps(trace.rows, trace.last_us - trace.first_us)
    recipe = replace(replan.recipe, key_type=trace.key_type)
    return replace(replan, recipe=recipe, weight=chosen, weight_column=WEIGHT_COLUMNS.get(chosen))


@dataclass(frozen=True, slots=True)
class RepartitionReplay:
    """Replay with plans adopted by a trigger; see `replay_repartition`.

    Memory grows with the distinct keys of a window, and with the number of measurements.
    """

    replan: Replan  # `weighed` for the trace
    live: Live | None = None
    clock: Callable[[], float] | None = None  # seconds, for build times

    @contextmanager
    def replayed(self, trace: Trace, asked: Asked) -> Iterator[Replayed[RepartitionRun]]:
        """Replay a trace."""
        live, progress = self.live, asked.progress
        if live is not None:
            check_columns(trace, live.reading, sized=False)
            live = replace(
                live, told=lambda case, at_s, done: progress(f"{case}, {at_s:,.1f} s simulated", done, trace.rows)
            )

        def batches(columns: list[str]) -> Iterator[pa.RecordBatch]:
            if live is not None:
                return trace.batches(columns, encoded(trace, columns))
            return _with_progress(trace, columns, progress)

        yield Replayed(replay_repartition(batches, self.replan, live, clock=self.clock), [trace.as_input])


def _with_progress(trace: Trace, columns: list[str], progress: Progress) -> Iterator[pa.RecordBatch]:
    """The batches of a trace, reporting progress after each."""
    done = 0
    progress("replaying", 0, trace.rows)
    for batch in trace.batches(columns):
        yield batch
        done += batch.num_rows
        progress("replaying", done, trace.rows)
