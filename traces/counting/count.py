"""Counting the keys of a trace: which way, how exactly, and for what."""

from dataclasses import dataclass, field
from typing import Any

from adapt.core.counting.frequencies import Frequencies, check_support
from adapt.core.counting.lossy import check_epsilon
from adapt.core.counting.names import CountMethod
from adapt.core.counting.sliding import SlidingWindow
from adapt.core.errors import UsageError
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.problem.tracking import SERVED, epsilon_for
from adapt.core.stream import Weight
from adapt.traces.counting.exact import count_exactly
from adapt.traces.counting.lossy import count_lossy
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.spark.session import Spark
from adapt.traces.store.trace import Trace

DEFAULT_CHANNELS = 10


@dataclass(frozen=True, slots=True)
class Counting:
    """How the keys of a trace are to be counted.

    Attributes:
        method: Lossy, exact, or lossy over a sliding window.
        epsilon: The error of a lossy counter as a share of the total; None derives it from the three below.
        channels: The most channels that the counts are to serve.
        resources: What keys are tracked by.
        track: How many keys are to be tracked beside those that reach delta; None, `SERVED`, or none of a window, which
            may be too short for so small an error.
        support: List only keys that may have this share or more; None lists all that are known.
        window: What a sliding counter holds.
        weight: What a row weighs; None is cost where the trace has costs, else 1.

    Raises:
        UsageError: an option does not go with the method, epsilon is not in (0, 1), or support not above it.
    """

    method: CountMethod = CountMethod.LOSSY
    epsilon: float | None = None
    channels: int = DEFAULT_CHANNELS
    resources: Resources = field(default_factory=Resources)
    track: int | None = None
    support: float | None = None
    window: SlidingWindow | None = None
    weight: Weight | None = None

    def __post_init__(self) -> None:
        if self.epsilon is not None:
            if self.method is CountMethod.EXACT:
                raise UsageError("--epsilon goes with lossy counting; exact counts have no error")
            check_epsilon(self.epsilon)
        if self.support is not None:
            check_support(self.support, self.epsilon or 0.0)
        if (self.window is not None) != (self.method is CountMethod.SLIDING):
            raise UsageError("--method sliding and --window go together: the window says how much is held, e.g. 1h")

    def epsilon_on(self, trace: Trace) -> float:
        """The error with which a trace is counted: the one that was given, or what serves its channels; 0 if exact."""
        if self.method is CountMethod.EXACT:
            return 0.0
        served = SERVED if self.window is None else None
        track = served if self.track is None else self.track
        return self.epsilon or epsilon_for(self.resources, self.channels, int(trace.profile["distinct_keys"]), track)

    def parameters(self, frequencies: Frequencies) -> dict[str, Any]:
        """What a manifest records of it."""
        made: dict[str, Any] = {"method": self.method.value, "weight": frequencies.weight.value}
        if self.method is not CountMethod.EXACT:
            made["epsilon"] = frequencies.epsilon
        if self.support is not None:
            made["support"] = self.support
        if self.window is not None:
            made |= {"window": str(self.window.length), "counters": self.window.counters}
        return made


def count_trace(
    trace: Trace, counting: Counting | None = None, *, spark_options: Spark = None, progress: Progress = silent
) -> Frequencies:
    """Count the keys of a trace on Spark, lossily if nothing is said.

    Raises:
        UsageError: the trace has no such weight, or a window is smaller than a bucket.
        BadInput: the trace has no rows, a part of it is damaged, or its weights cannot be added up.
    """
    how = counting or Counting()
    if how.method is CountMethod.EXACT:
        counted = count_exactly(trace, weight=how.weight, spark_options=spark_options, progress=progress)
    else:
        epsilon = how.epsilon_on(trace)
        if how.support is not None:
            check_support(how.support, epsilon)
        counted = count_lossy(
            trace, epsilon, weight=how.weight, window=how.window, spark_options=spark_options, progress=progress
        )
    return counted if how.support is None else counted.above(how.support)
