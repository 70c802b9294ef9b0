"""Window Drop: an aggregate's windows are kept whole or dropped whole."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.errors import BadInput
from adapt.core.fit.network.names import BATCH, OperatorKind
from adapt.core.fit.network.network import Network, Operator, Window
from adapt.core.fit.network.settings import SheddingSettings
from adapt.core.fit.network.wiring import Indices, Wiring
from adapt.core.fit.planners.direct_planners import Planner, Plans
from adapt.core.fit.running.fluid import LATE
from adapt.core.random_bits import substream, uniforms
from adapt.core.units.settings import SettingError
from adapt.core.values import duration

_HALVINGS = 60


def _refused(why: str) -> SettingError:
    """The error where windows cannot be dropped whole."""
    return SettingError(SheddingSettings, f"{why} use {{drops}}=random")


def needed_for(windows: Sequence[Window]) -> Window:
    """The window of input that one result of chained aggregates needs.

    Two windows of sizes w1 and w2 that slide by 1 need w1 + w2 - 1.

    Source: Tatbul and Zdonik, section 4.2.
    """
    if len({window.timed for window in windows}) > 1:
        raise _refused("chained aggregates mix time windows and count windows;")
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
            raise _refused(
                f"operator {operator.name!r} feeds parallel aggregates with different windows, so none can be dropped "
                "whole; give them the same window or"
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
        raise _refused(
            f"operator {operator.name!r} is an aggregate without a window; add window = {{ size = ..., slide = ... }} "
            "or"
        )
    return (operator.window,)


@dataclass(frozen=True, slots=True, eq=False)
class WindowAware:
    """A planner that drops whole windows before aggregates.

    A drop saves the load of the tuples removed. So the planner decides on shares of tuples, in which its program is
    linear, and the share of windows that keeps as many tuples follows from the curve. The output is that of the windows
    kept, which is less; hardly so where batches are much longer than windows.

    A window of streams that merge needs the tuples of all of them. Where one node or a coordinator plans for them, they
    keep the same share, the highest that overloads nothing with the other drops of the plan. Nodes that plan for
    themselves keep what they like, and a window survives if all keep it.
    """

    planner: Planner  # decides on shares of tuples
    wiring: Wiring
    # windows of the aggregates downstream of each arc, nearest first; empty where random tuples are dropped
    behind: tuple[tuple[Window, ...], ...]
    # arcs before aggregates that keep the same share, for each place where streams merge
    merged: tuple[tuple[int, ...], ...] = ()
    headroom: float = 0.0  # share of every capacity that plans leave free
    batch: int = BATCH  # consecutive windows kept or dropped together

    @classmethod
    def for_network(
        cls,
        planner: Planner,
        network: Network,
        batch: int = BATCH,
        headroom: float = 0.0,
        *,
        together: bool = True,
    ) -> "WindowAware":
        """A planner of a network, with its windows.

        Args:
            together: Whether one planner decides for all nodes.
        """
        wiring = Wiring.from_network(network)
        behind = windows_behind(wiring)
        groups = (tuple(group) for group in decided_together(wiring, behind) if _merges(wiring, group))
        merged = tuple(group for group in groups if together or len(_nodes(wiring, group)) == 1)
        return cls(planner, wiring, behind, merged, headroom, batch)

    def plan(self, rates: Floats) -> Plans:
        """Shares of windows on arcs before aggregates, of tuples elsewhere."""
        planned = self.planner.plan(rates)
        keeps, _, worth = self._passed(rates, self._merged(rates, planned.keeps), of_tuples=True)
        return Plans(keeps, self.wiring.scores(worth), planned.ids)

    def flows(self, rates: Floats, keeps: Floats) -> tuple[Floats, Floats]:
        """Flows at these shares, of windows on arcs before aggregates.

        Args:
            rates: Offered, shape (points, inputs).
            keeps: Shape (points, arcs).

        Returns:
            The tuples/s kept on each arc, which load nodes, and those that count for results: a tuple in n windows, m
                of them kept, counts m / n. An aggregate before another opens the windows that a kept window of the last
                one needs; their share is that of the tuples that the last one needs. Shape (points, arcs) each.
        """
        return self._passed(rates, keeps, of_tuples=False)[1:]

    def _merged(self, rates: Floats, keeps: Floats) -> Floats:
        """Shares of tuples, the same ones where streams merge."""
        wiring = self.wiring
        for group in self.merged:
            arcs = np.array(group)
            inputs = arcs[wiring.source[arcs] < wiring.inputs]
            whole = keeps.copy()
            whole[:, arcs] = 1.0
            without = whole.copy()
            without[:, inputs] = 0.0
            used, highest, least = (wiring.uses(wiring.flows(rates, each)) for each in (keeps, whole, without))
            free, load = np.maximum(1 - self.headroom, used) - least, highest - least
            share = np.divide(free, load, out=np.ones_like(load), where=load > free).min(axis=1)
            whole[:, inputs] = np.maximum(share, 0.0)[:, None]
            drops = (keeps[:, arcs] < 1).any(axis=1, keepdims=True)
            keeps = np.where(drops, whole, keeps)
        return keeps

    def _passed(self, rates: Floats, shares: Floats, *, of_tuples: bool) -> tuple[Floats, Floats, Floats]:
        """Shares of windows, the flows that they keep, and those that count.

        Args:
            shares: Of each arc, shape (points, arcs).
            of_tuples: Whether they are shares of tuples also where windows are dropped.
        """
        wiring = self.wiring
        sources, per_arc = (len(rates), len(wiring.network.sources)), (len(rates), len(wiring.arcs))
        whole, given, alive = np.zeros(sources), np.zeros(sources), np.ones(sources)
        whole[:, : wiring.inputs] = given[:, : wiring.inputs] = rates
        keeps, kept, worth = shares.copy(), np.empty(per_arc), np.empty(per_arc)
        for arc, (source, windows) in enumerate(zip(wiring.source, self.behind, strict=True)):
            offered, target, gain = whole[:, source], wiring.target[arc], wiring.gain[arc]
            if not windows:  # every tuple counts, even one from dropped windows
                kept[:, arc] = worth[:, arc] = given[:, source] * shares[:, arc]
                if target >= 0:
                    given[:, target] += gain * kept[:, arc]
                continue
            before, needed = alive[:, source], needed_for(windows)
            if of_tuples:
                shed = (shares[:, arc] < 1) & (offered > 0) & (before > 0)
                wanted = windows_kept(needed, self.batch, given[shed, source] * shares[shed, arc] / offered[shed])
                keeps[shed, arc] = np.minimum(wanted / before[shed], 1.0)
            through = before * keeps[:, arc]
            kept[:, arc] = offered * tuples_kept(needed, self.batch, through)
            worth[:, arc] = offered * through
            alive[:, target] = np.minimum(alive[:, target], through)
            whole[:, target] += gain * offered
            if not aggregates(wiring, arc):
                given[:, target] += gain * kept[:, arc]
            elif windows[1:]:
                given[:, target] += gain * offered * tuples_kept(needed_for(windows[1:]), self.batch, through)
            else:
                given[:, target] += gain * worth[:, arc]
        return keeps, kept, worth


def _merges(wiring: Wiring, arcs: Sequence[int]) -> bool:
    """Whether streams merge at an operator behind these arcs."""
    return len({int(wiring.target[arc]) for arc in arcs}) < len(arcs)


def _nodes(wiring: Wiring, arcs: Sequence[int]) -> set[str]:
    """Nodes of the operators behind arcs."""
    operators = (wiring.network.sources[wiring.target[arc]] for arc in arcs)
    return {operator.node for operator in operators if isinstance(operator, Operator)}


MAX_WINDOWS = 50_000_000
"""Limit of windows per aggregate; more do not fit in memory."""


def windows_of_arcs(wiring: Wiring) -> tuple[tuple[Window, ...], ...]:
    """Windows of the aggregates downstream of each arc, nearest first.

    The windows of the last of them are kept or dropped whole. Empty for arcs where random tuples are dropped.
    """
    behind = windows_behind(wiring)
    for arc, windows in enumerate(behind):
        if not windows:
            continue
        needed_for(windows)
        operator = wiring.network.sources[wiring.target[arc]]
        assert isinstance(operator, Operator)
        if operator.kind is OperatorKind.JOIN:
            raise _refused(
                f"operator {operator.name!r} joins streams before an aggregate; its windows count tuples, which drops"
                " would shift;"
            )
        if windows[0].timed:
            continue
        if len(operator.inputs) > 1:
            raise _refused(
                f"operator {operator.name!r} merges streams before a count window, so no tuple's position in it is"
                " known before; give the window durations or"
            )
        nested = aggregates(wiring, arc) and len(windows) > 1
        if (nested or not aggregates(wiring, arc)) and operator.selectivity != (1 / windows[0].slide if nested else 1):
            raise _refused(
                f"operator {operator.name!r} emits {operator.selectivity:g} tuples for one before a count window, so"
                " drops would shift that; give the window durations or"
            )
    return behind


def _entering(wiring: Wiring) -> Iterator[tuple[int, Window]]:
    """Inputs before aggregates, with the window of their tuples that a result needs."""
    for arc, windows in enumerate(windows_behind(wiring)):
        if windows and wiring.source[arc] < wiring.inputs:
            yield int(wiring.source[arc]), needed_for(windows)


def batch_ticks(wiring: Wiring, batch: int, tick_us: int) -> tuple[int, dict[int, tuple[int, int]]]:
    """Most ticks of a batch; by input, its tuples and step.

    The next batch starts a step after it.
    """
    entering = [(at, each, batch * each.slide) for at, each in _entering(wiring)]
    ends_us = (
        tick_us - math.gcd(step, tick_us) + step - each.slide + each.size for _, each, step in entering if each.timed
    )
    counted = {at: (step - each.slide + each.size, step) for at, each, step in entering if not each.timed}
    return -(-max(ends_us, default=0) // tick_us), counted


_FEW_BATCHES = 20
"""Batches below which chance decides how much is dropped."""


def doubts_of_batches(wiring: Wiring, batch: int, rates: Floats, tick_us: int) -> Iterator[str]:
    """Warnings of batches that are few, or last longer than results may.

    Args:
        rates: Tuples/s, shape (ticks, inputs).
    """
    span_s = len(rates) * tick_us / 1e6
    for at, window in dict(_entering(wiring)).items():
        tuples = rates[:, at].sum() * tick_us / 1e6
        lasts_s = batch * window.slide / 1e6 if window.timed else batch * window.slide / max(tuples, 1e-9) * span_s
        together = f"{batch:,} windows of input {wiring.network.inputs[at].name!r} are kept or dropped together, for"
        if lasts_s * _FEW_BATCHES > span_s:
            yield (
                f"{together} {duration(lasts_s)}, so chance decides how much of {duration(span_s)} is dropped; lower"
                " batch"
            )
        elif lasts_s * 1e6 > LATE * tick_us:
            yield (
                f"{together} {duration(lasts_s)}, in which a queue may grow; results later than {LATE} ticks do not"
                " count; lower batch"
            )


class LivingWindows:
    """Decides for each window, when it starts, whether it is kept.

    The decision follows the share that the arc keeps when a batch starts, and applies to windows of the last aggregate
    downstream of the arc; a kept window needs results of the aggregates before it, and these need tuples. Later plans
    do not change a window's fate. The windows of one batch share a random draw, on all arcs that operators connect: a
    window kept on an arc is kept on all before it, and of streams that merge, on the one that keeps fewest. A tuple is
    kept on an arc if a kept window needs it there. For each tuple, the last aggregate emits its usual output times the
    share of the tuple's windows that are kept; an aggregate before others opens the windows that these need, and its
    result takes the position at which its window starts. None of these windows has lost a tuple. Where an operator
    before an aggregate emits a fraction of a tuple per tuple, drops shift which tuples it emits, by less than one
    tuple. A window that loses a tuple to a full queue is withdrawn; see `withdrawal`.

    The position of a tuple is the time of its row, or its number on the arc from its input, before drops, where windows
    count tuples; a result of such a window has the window's number.

    Attributes:
        behind: Windows of the aggregates downstream of each arc, nearest first.
        windows: The window that a kept result needs on each arc, in positions on that arc; None without one.
        own: For arcs to aggregates, their window; else None.
        nested: Whether an arc leads to an aggregate with further aggregates downstream; shape (arcs,).
        numbered: Whether a tuple's position is its number on the arc; shape (arcs,).
        fate: The row of `lived` for windows kept on the arc and all before it, -1 without one. Shape (arcs,).
        given: For arcs to aggregates, the row for their own windows that are opened; else -1.
        lived: Number of kept windows before each window number; shape (rows, numbers).
        begun: Number of windows decided, shape (rows,).
        fates: Whether the batch of the last of them is kept, shape (arcs with windows,).
        tally: Results emitted for each window by the aggregate whose windows the row has; shape (rows or 0, numbers).
        batch: Consecutive windows kept or dropped together.
    """

    def __init__(self, wiring: Wiring, seed: int, batch: int = BATCH, tallies: bool = False) -> None:
        """A network in which no window has started.

        Args:
            tallies: Whether results are counted by window, so that they can be withdrawn.
        """
        self._wiring, self.behind = wiring, (behind := windows_of_arcs(wiring))
        self.windows = tuple(needed_for(windows) if windows else None for windows in behind)
        to_aggregate = [bool(windows) and aggregates(wiring, arc) for arc, windows in enumerate(behind)]
        self.own = tuple(windows[0] if inner else None for windows, inner in zip(behind, to_aggregate, strict=True))
        self.nested = np.array(
            [inner and len(windows) > 1 for windows, inner in zip(behind, to_aggregate, strict=True)]
        )
        counts = np.array([bool(windows) and not windows[0].timed for windows in behind])
        self.numbered = counts & (wiring.source < wiring.inputs)
        self.batch = batch
        self._arcs = arcs = [arc for arc, window in enumerate(self.windows) if window is not None]
        nested = np.flatnonzero(self.nested).tolist()
        self.fate, self.given = np.full(len(self.windows), -1), np.full(len(self.windows), -1)
        self.fate[arcs] = np.arange(len(arcs))
        self.given[to_aggregate] = self.fate[to_aggregate]
        self.given[nested] = len(arcs) + np.arange(len(nested))
        self._further = {arc: needed_for(behind[arc][1:]) for arc in nested}
        """What a kept window needs of an aggregate's results."""
        first = {arc: group[0] for group in decided_together(wiring, behind) for arc in group}
        self._streams = [substream(seed, first[arc]) for arc in arcs]
        self.begun = np.zeros(len(arcs) + len(nested), np.int64)
        self.lived: NDArray[np.int32] = np.zeros((len(self.begun), 1), np.int32)
        self.tally = np.zeros((len(self.begun) if tallies else 0, 1))
        self.fates = np.zeros(len(arcs), np.bool_)

    def begin(self, end_us: int, keeps: Floats, offered: Floats | None = None) -> None:
        """Decide for the windows that start before a time.

        Args:
            end_us: In microseconds since the start.
            keeps: Share kept on each arc, shape (arcs,).
            offered: Tuples of each input before that time, at least; shape (inputs,). Where windows count tuples.
        """
        through = shares_through(self._wiring, self.behind, keeps[None])[0]
        ends = self._ends(end_us, offered)
        for row, arc in enumerate(self._arcs):
            numbers = self._numbers(row, self.windows[arc], ends[arc])
            alive = uniforms(self._streams[row], numbers // self.batch) < through[arc]
            begun = int(self.begun[row])
            if begun % self.batch:  # the fate of a batch is that of its first window
                alive[: -begun % self.batch] = self.fates[row]
            if len(alive):
                self.fates[row] = alive[-1]
            self._append(row, alive)
        for arc, needed in self._further.items():
            row, own = int(self.given[arc]), self.own[arc]
            assert own is not None
            positions = self._numbers(row, own, ends[arc]) * (own.slide if own.timed else 1)
            first, last = windows_at(needed, positions)
            lived = self.lived[self.fate[arc]]
            self._append(row, lived[last + 1] > lived[first])

    def _ends(self, end_us: int, offered: Floats | None) -> list[int]:
        """The end of positions on each arc: a time, or a number of tuples."""
        ends = [end_us] * len(self.windows)
        count = np.zeros(len(self._wiring.network.sources), np.int64)
        if offered is not None:
            count[: self._wiring.inputs] = np.ceil(offered)
        for arc, windows in enumerate(self.behind):
            if windows and not windows[0].timed:
                ends[arc] = end = int(count[self._wiring.source[arc]])
                own = self.own[arc]
                count[self._wiring.target[arc]] = end if own is None else -(-end // own.slide)
        return ends

    def _numbers(self, row: int, window: Window | None, end: int) -> Indices:
        assert window is not None
        numbers = -(-end // window.slide)
        if numbers > MAX_WINDOWS:
            slide = f"{window.slide / 1e6:g} s" if window.timed else f"{window.slide:,} tuples"
            raise BadInput(
                f"a window that slides by {slide} opens more than {MAX_WINDOWS:,} times in this trace; increase the"
                " slide or use drops=random"
            )
        return np.arange(self.begun[row], max(numbers, self.begun[row]))

    def _append(self, row: int, alive: NDArray[np.bool_]) -> None:
        begun = int(self.begun[row])
        end = begun + len(alive)
        if end >= self.lived.shape[1]:
            more = np.zeros((len(self.lived), max(end + 1, 2 * self.lived.shape[1])), np.int32)
            more[:, : self.lived.shape[1]] = self.lived
            self.lived = more
            tally = np.zeros((len(self.tally), more.shape[1]))
            tally[:, : self.tally.shape[1]] = self.tally
            self.tally = tally
        self.lived[row, begun + 1 : end + 1] = self.lived[row, begun] + np.cumsum(alive)
        self.begun[row] = end
