"""Window Drop: an aggregate's windows are kept whole or dropped whole."""

from collections.abc import Sequence

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError
from adapt.core.fit.network.names import OperatorKind
from adapt.core.fit.network.network import Operator, Window
from adapt.core.fit.network.wiring import Indices, Wiring

_HALVINGS = 60


def needed_for(windows: Sequence[Window]) -> Window:
    """The window of input that one result of chained aggregates needs.

    Two windows of sizes w1 and w2 that slide by 1 need w1 + w2 - 1.

    Source: Tatbul and Zdonik, section 4.2.
    """
    if len({window.timed for window in windows}) > 1:
        raise UsageError("chained aggregates mix time windows and count windows; use --network drops=random")
    needed = windows[-1]
    for inner in reversed(windows[:-1]):
        if inner.timed:
            needed = Window(inner.size + needed.size - 1, needed.slide, True)
        else:
            size = inner.size + (needed.size - 1) * inner.slide
            needed = Window(size, inner.slide * needed.slide, False)
    return needed


def aggregates(wiring: Wiring, arc: int) -> bool:
    """Whether an arc within the network leads to an aggregate."""
    operator = wiring.network.sources[wiring.target[arc]]
    return isinstance(operator, Operator) and operator.kind is OperatorKind.AGGREGATE


def windows_at(window: Window, positions: Indices) -> tuple[Indices, Indices]:
    """Numbers of the first and last window that hold each position."""
    return np.maximum((positions - window.size) // window.slide + 1, 0), positions // window.slide


def tuples_kept(window: Window, batch: int, keep: Floats) -> Floats:
    """The mean share of tuples kept at each share of windows.

    A tuple in n windows is dropped if all batches of these windows are dropped. The share of tuples is far above the
    share of windows unless a batch is much longer than n.

    Source: the expectation over the position of a tuple in its slide, and of its first window in its batch.
    """
    drop = 1 - np.asarray(keep, np.float64)
    most = (window.size - 1) // window.slide + 1
    with_most = (window.size - (most - 1) * window.slide) / window.slide
    removed = np.zeros_like(drop)
    for windows, share in ((most, with_most), (most - 1, 1 - with_most)):
        if share > 0:
            batches = (np.arange(batch) + windows - 1) // batch + 1
            spans, times = np.unique(batches, return_counts=True)
            removed += share * (drop[..., None] ** spans @ (times / batch))
    return np.asarray(1 - removed)


def windows_kept(window: Window, batch: int, kept: Floats) -> Floats:
    """The share of windows that keeps a share of tuples; inverts `tuples_kept`."""
    kept = np.asarray(kept, np.float64)
    low, high = np.zeros_like(kept), np.ones_like(kept)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above = tuples_kept(window, batch, middle) > kept
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.where(kept >= 1, 1.0, low)


def windows_behind(wiring: Wiring) -> tuple[tuple[Window, ...], ...]:
    """Windows of the aggregates downstream of each arc, nearest first."""
    behind: dict[int, tuple[Window, ...]] = {}
    for arc in reversed(range(len(wiring.arcs))):
        target = int(wiring.target[arc])
        if target < 0:
            behind[arc] = ()
            continue
        operator = wiring.network.sources[target]
        assert isinstance(operator, Operator)
        out = wiring.arcs_of(target)
        further = {behind[at] for at in range(out.start, out.stop)} - {()}
        if len(further) > 1:
            raise UsageError(
                f"operator {operator.name!r} feeds parallel aggregates with different windows, so none can be dropped "
                "whole; give them the same window or use --network drops=random"
            )
        behind[arc] = (*_own(operator), *next(iter(further), ()))
    return tuple(behind[arc] for arc in range(len(wiring.arcs)))


def shares_through(wiring: Wiring, behind: Sequence[tuple[Window, ...]], keeps: Floats) -> Floats:
    """Share of windows kept on each arc and on all before it.

    Where streams merge, a window needs the tuples of all of them: as many are kept as in the one that keeps fewest.

    Args:
        behind: Of `windows_behind`; arcs without windows have the share 1.
        keeps: Share of windows kept on each arc of those that arrive, shape (points, arcs).
    """
    through, arriving = np.ones_like(keeps), np.ones((len(keeps), len(wiring.network.sources)))
    for arc, windows in enumerate(behind):
        if windows:
            target = wiring.target[arc]
            through[:, arc] = arriving[:, wiring.source[arc]] * keeps[:, arc]
            arriving[:, target] = np.minimum(arriving[:, target], through[:, arc])
    return through


def decided_together(wiring: Wiring, behind: Sequence[tuple[Window, ...]]) -> list[list[int]]:
    """Arcs whose windows share random draws, as operators connect them; ascending."""
    groups: list[list[int]] = []
    for arc in (arc for arc, windows in enumerate(behind) if windows):
        ends = {int(wiring.source[arc]), int(wiring.target[arc])} - set(range(wiring.inputs))
        near = [
            group for group in groups if any({int(wiring.source[at]), int(wiring.target[at])} & ends for at in group)
        ]
        groups = [group for group in groups if group not in near]
        groups.append(sorted([*(at for group in near for at in group), arc]))
    return sorted(groups)


def _own(operator: Operator) -> tuple[Window, ...]:
    if operator.kind is not OperatorKind.AGGREGATE:
        return ()
    if operator.window is None:
        raise UsageError(
            f"operator {operator.name!r} is an aggregate without a window; add window = {{ size = ..., slide = ... }} "
            "or use --network drops=random"
        )
    return (operator.window,)
