"""Load shedding by a FIT planner where workers share memory."""

from functools import partial

import numpy as np

from adapt.core.fit.network.names import DropPlanner
from adapt.core.mechanisms.ordered.chain_drops import kept_shares
from adapt.core.mechanisms.ordered.stage import chain_of
from adapt.core.mechanisms.planned_drops import rows_that_stay
from adapt.core.ordered.replay.shedding import Shed, Shedding
from adapt.core.stage.conditions.arrivals import Rows
from adapt.core.stage.conditions.settings import StageSettings


def kept_in_order(planner: DropPlanner, rows: Rows, settings: StageSettings, tick_s: float) -> Rows:
    """The rows that a planner keeps; arguments as in `shed_in_order`."""
    shed = shed_in_order(planner, rows, settings, tick_s)
    is_kept = np.zeros(shed.rows, bool)
    for places in shed.kept():
        is_kept[places] = True
    return rows_that_stay(rows, lambda _, numbers: is_kept[numbers])


def shed_in_order(planner: DropPlanner, rows: Rows, settings: StageSettings, tick_s: float) -> Shed:
    """Which rows a planner keeps, as in `adapt replay ordered --shed`.

    The workers are one node. Its capacity is theirs, or less where one worker at a time has more to do in the largest
    partition. All is decided on one machine, so no messages are sent.

    Args:
        settings: The stage, whose owners of partitions are ignored.
        tick_s: Planning interval.

    Raises:
        UsageError: the planner cannot plan for this stage.
    """
    chain, due_ns = chain_of(rows, settings)
    mean_us = float(chain.tuples[:, 1].mean()) / 1e3
    shedding = Shedding(planner.value, partial(kept_shares, planner), tick_s)
    return shedding.shed(chain, due_ns, ([mean_us], [1.0]), settings.workers, settings.seed)
