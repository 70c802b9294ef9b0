"""Rescales of the ordered runtime, as those of a stage."""

from itertools import pairwise

from adapt.core.ordered.engine.scaling import WorkerControl
from adapt.core.stage.control.elasticity import Step


def sizes_until(control: WorkerControl, end_s: float) -> list[tuple[float, int]]:
    """Times and numbers of active workers before the end."""
    return [size for size in control.scaled.sizes if size[0] < end_s]


def steps_of(control: WorkerControl, end_s: float) -> list[Step]:
    """Rescales before the end; nothing moves, so each is done at once."""
    known = [period for period in control.scaled.periods if period.end_s < end_s]
    waiting = {period.end_s: period.waiting for period in known}
    calm_s = [period.end_s for period in known if period.waiting <= round(period.rate * control.period_s)]
    steps = []
    for (_, before), (at_s, after) in pairwise(sizes_until(control, end_s)):
        caught_up_s = next((each for each in calm_s if each > at_s), None)
        steps.append(Step(at_s, before, after, waiting[at_s], done_s=at_s, caught_up_s=caught_up_s))
    return steps
