"""Splitter of a live stream: counts keys, routes them, proposes plans."""

from dataclasses import dataclass
from functools import cached_property
from threading import Lock

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.counting.frequencies import Counts, Frequencies
from adapt.core.counting.sliding import SlidingLossyCounter, SlidingWindow
from adapt.core.counting.tables import key_shown
from adapt.core.engines.names import Engine
from adapt.core.errors import UsageError
from adapt.core.keys.columns import ARROW_TYPES, one_array, type_of
from adapt.core.keys.partitioner import Channels, Partitioner
from adapt.core.keys.typed_keys import are_of, row_of
from adapt.core.partitioning.build import Recipe, build_plan
from adapt.core.partitioning.loop.saved import Saved, saved_from_text, saved_text
from adapt.core.partitioning.measures.resources import Resources, loads_at
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.problem.tracking import epsilon_for
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import COLUMN_TYPES, Key, KeyType, Weight
from adapt.core.table import Column, Kind, Table
from adapt.core.units.row_or_time_span import Length


@dataclass(frozen=True)
class Proposal:
    """A plan to adopt, and what must move for it.

    Keys that neither plan pins move only if the number of channels changes; they are in `moved_state` alone.
    """

    before: Plan  # the plan in force
    plan: Plan  # the proposed plan; its parent is the one in force
    counted: Frequencies  # the counts that it was built from
    resources: Resources

    @property
    def imbalance(self) -> float | None:
        """Predicted load of the busiest channel / mean; None without load."""
        value = self.plan.metrics["imbalance"]
        return None if value is None else float(value)

    @property
    def m(self) -> float:
        """Migration factor: state that moves / that of an average channel.

        0 without state. Source: partitioning functions, Eq. 12.
        """
        return float(self.plan.metrics["m"] or 0.0)

    @property
    def moved_state(self) -> float:
        """State that moves, in units of beta_s."""
        return float(self.plan.metrics["state_moved"] or 0.0)

    @cached_property
    def moved(self) -> tuple[pa.Array, Channels, Channels, Floats]:
        """Pinned keys whose channel changes, with both channels and state.

        Pinned before or after; by falling state, then in key order; each of shape (keys,). A key that was not counted
        has no state.
        """
        maps = self.before.explicit, self.plan.explicit
        keys = pa.chunked_array([each.column for each in maps]).unique()
        was, is_now = (plan.partitioner().channels_of(keys) for plan in (self.before, self.plan))
        state = loads_at(self.counted, self.counted.rows_of(keys), self.resources.state)
        changed = np.flatnonzero(was != is_now)
        order = changed[np.argsort(-state[changed], kind="stable")]
        return keys.take(pa.array(order)), was[order], is_now[order], state[order]

    def moves(self) -> Table:
        """The keys to move, most state first."""
        columns = (
            Column("key"),
            Column("from", Kind.COUNT, about="old channel"),
            Column("to", Kind.COUNT, about="new channel"),
            Column("state", Kind.NUMBER),
        )
        keys, was, is_now, state = self.moved
        cells = zip(map(key_shown, keys.to_pylist()), was.tolist(), is_now.tolist(), state.tolist(), strict=True)
        return Table.from_rows("Keys to move", columns, list(cells))


USUAL_WINDOW = SlidingWindow(Length(1_000_000, in_rows=True))
"""Default window: the last million rows, or up to half as many more."""

_DOMAIN = 1_000_000
"""Distinct keys expected, for the error of the counter; matters for quadratic loads alone."""

_REMEMBERED = 1 << 16
"""Most keys whose channels are remembered, as hashing a single key takes much longer than looking it up."""

_BUFFERED = 1 << 12
"""Single keys that are collected before they are counted."""


class Splitter:
    """Counts the keys of a stream, routes them, and plans anew.

    Memory is bounded by the counter, O(1/epsilon log(epsilon W)) keys for a window of W rows, and by the pinned keys
    of the plan. All calls are safe from several threads; routing takes no lock. Proposals depend on the observed rows
    alone, not on their batches.

    Source: partitioning functions, sections 3.1 and 4.1: the splitter keeps the counts and the function.
    """

    def __init__(
        self,
        channels: int,
        recipe: Recipe | None = None,
        *,
        window: SlidingWindow | str = USUAL_WINDOW,
        epsilon: float | None = None,
        key_type: KeyType = KeyType.STRING,
        weight: Weight = Weight.COUNT,
        plan: Plan | None = None,
    ) -> None:
        """Start with a plan, by default hashing alone.

        Args:
            channels: N.
            recipe: How plans are built. Default: hybrid over the ring.
            window: The recent rows that plans are built from, such as 10000rows or 1h.
            epsilon: Counting error as a share of the window. Default: a tenth of the least share of a pinned key.
            weight: What `observe` adds up: rows, or the weights that it is given.
            plan: The plan in force.

        Raises:
            UsageError: a number is out of range, the window is shorter than 1 / epsilon rows, or the plan has another
                number of channels, hash or type of keys.
        """
        window = SlidingWindow(Length.parse(window, "window")) if isinstance(window, str) else window
        self._recipe = recipe or Recipe()
        self._plan = plan or unpinned(self._recipe, channels, key_type)
        _check_plan(self._plan, self._recipe, channels, key_type)
        wanted = epsilon_for(self._recipe.resources, channels, _DOMAIN, self._recipe.max_pins)
        self._epsilon = epsilon or max(wanted, 1 / window.length.size if window.length.in_rows else 0.0)
        self._weight, self._key_type = weight, key_type
        self._counter = SlidingLossyCounter(self._epsilon, ARROW_TYPES[key_type], window, weight)
        self._single: list[tuple[Key, float, int]] = []
        self._routing: tuple[Partitioner, dict[Key, int]] = self._plan.partitioner(), {}
        self._lock = Lock()

    @classmethod
    def from_text(cls, text: bytes, recipe: Recipe | None = None) -> "Splitter":
        """Continue a splitter that `to_text` saved, here or in Java.

        Args:
            recipe: A recipe in place of the saved one.

        Raises:
            BadInput: it is not a saved splitter of this version, or is damaged.
            UsageError: the recipe has another base or hash than the saved plan.
        """
        saved = saved_from_text(text, recipe)
        splitter = cls(
            saved.plan.channels,
            saved.recipe,
            window=saved.window,
            epsilon=saved.epsilon,
            key_type=saved.plan.key_type,
            weight=saved.weight,
            plan=saved.plan,
        )
        splitter._counter.resume(saved.counted)
        return splitter

    def to_text(self) -> bytes:
        """The splitter as text, which Java reads too.

        Equal splitters give equal text. Sums of costs may round otherwise after it than without it.
        """
        with self._lock:
            self._count_single()
            window, counted = self._counter.window, self._counter.state()
            saved = Saved(self._plan, self._recipe, window, self._epsilon, self._weight, counted)
        return saved_text(saved)

    @property
    def plan(self) -> Plan:
        """The plan in force."""
        return self._plan

    @property
    def window(self) -> SlidingWindow:
        """The recent rows that plans are built from."""
        return self._counter.window

    @property
    def is_full(self) -> bool:
        """Whether a whole window was observed."""
        return self._counter.full

    def observe(
        self, keys: pa.Array | pa.ChunkedArray, weights: Counts | None = None, times_us: NDArray[np.int64] | None = None
    ) -> None:
        """Count the next rows.

        Args:
            keys: Shape (rows,); plain, or dictionary-encoded with distinct keys.
            weights: Row weights, shape (rows,), unless rows are counted.
            times_us: Row times in microseconds, in order, for a window in time; shape (rows,).

        Raises:
            BadInput: rows are not in time order, or a weight is invalid.
            UsageError: the keys are of another type.
            ValueError: weights or times are missing, unexpected, or not one per row.
        """
        column = _of_type(keys, self._key_type)
        with self._lock:
            self._count_single()
            self._counter.update(column, weights, times_us)

    def observe_key(self, key: Key, weight: float = 1, time_us: int = 0) -> None:
        """Count one row; raises as `observe` does, possibly at a later row."""
        with self._lock:
            self._single.append((key, weight, time_us))
            if len(self._single) >= _BUFFERED:
                self._count_single()

    def route(self, keys: pa.Array | pa.ChunkedArray) -> Channels:
        """The channel of each row by the plan in force; shape (rows,).

        Raises:
            UsageError: the keys are of another type.
        """
        return self._routing[0].channels_of(_of_type(keys, self._key_type))

    def route_key(self, key: Key) -> int:
        """The channel of one key; raises as `route` does."""
        partitioner, known = self._routing
        channel = known.get(key)
        if channel is None:
            kind = self._key_type
            fits = type_of(key) is kind.storage and (kind in COLUMN_TYPES or row_of(key, kind) is not None)
            if key is not None and not fits:
                raise UsageError(f"the splitter was made for {kind} keys (got {key!r}); make another one for them")
            channel = partitioner.channel_of(key)
            if len(known) >= _REMEMBERED:
                known.clear()
            known[key] = channel
        return channel

    def counted(self) -> Frequencies:
        """The keys of the window, as counted so far."""
        with self._lock:
            self._count_single()
            return self._counter.summary().frequencies(self._epsilon, self._weight, self._plan.key_type)

    def propose(self, channels: int | None = None, *, after: Plan | None = None) -> Proposal:
        """Build a plan from the window, starting from the plan in force.

        Args:
            channels: The next number of channels. Default: that of the plan before.
            after: Another plan to start from. Such a proposal cannot be adopted.

        Raises:
            UsageError: nothing was counted, or the recipe does not fit the channels.
        """
        before, counted = after or self._plan, self.counted()
        if not counted.total:
            raise UsageError(
                f"a plan needs counted {counted.weight.value} above 0 (got 0); observe rows first, or weigh by count"
            )
        plan = build_plan(counted, self._recipe, before.channels if channels is None else channels, previous=before)
        return Proposal(before, plan, counted, self._recipe.resources)

    def adopt(self, proposal: Proposal) -> None:
        """Put a proposed plan in force.

        Raises:
            UsageError: another plan was adopted since it was proposed.
        """
        partitioner = proposal.plan.partitioner()
        with self._lock:
            if proposal.plan.parent != self._plan.content_hash():
                raise UsageError(
                    "the proposal follows another plan than the one in force; propose again, and adopt in order"
                )
            self._plan, self._routing = proposal.plan, (partitioner, {})

    def _count_single(self) -> None:
        """Count the rows that came one by one."""
        if not self._single:
            return
        keys, weights, times = zip(*self._single, strict=True)
        self._single = []
        column = _of_type(pa.array(keys, ARROW_TYPES[self._key_type]), self._key_type)
        amounts = (
            None if self._weight is Weight.COUNT else np.array(weights, float if self._weight is Weight.COST else None)
        )
        in_time = not self._counter.window.length.in_rows
        self._counter.update(column, amounts, np.array(times, np.int64) if in_time else None)


def unpinned(recipe: Recipe, channels: int, key_type: KeyType) -> Plan:
    """Plan without pinned keys, as a recipe hashes."""
    return Plan(
        Scheme.HYBRID if recipe.scheme is Scheme.HYBRID else recipe.hashing,
        channels,
        key_type,
        hash=recipe.hash,
        replicas=recipe.replicas,
        max_parallelism=recipe.max_parallelism,
        base=recipe.base,
    )


def _check_plan(plan: Plan, recipe: Recipe, channels: int, key_type: KeyType) -> None:
    """Refuse a plan that the splitter cannot continue."""
    alike = plan.hashing == recipe.hashing and (isinstance(plan.hashing, Engine) or plan.hash is recipe.hash)
    for differs, what in (
        (plan.channels != channels, f"{plan.channels} workers, not {channels}"),
        (not plan.fits(key_type), f"{plan.key_type} keys, not {key_type}"),
        (not alike, f"base {plan.hashing} with hash {plan.hash}, not {recipe.hashing} with {recipe.hash}"),
    ):
        if differs:
            raise UsageError(f"the plan in force has {what}; give the splitter a plan of its own kind, or none")


def _of_type(keys: pa.Array | pa.ChunkedArray, key_type: KeyType) -> pa.Array:
    """A column of keys as it is stored, checked to be of a type."""
    column = one_array(keys)
    if str(column.type).removeprefix("large_") not in ("null", key_type, key_type.storage):
        raise UsageError(f"the splitter was made for {key_type} keys (got {column.type}); make another one for them")
    column = column.cast(ARROW_TYPES[key_type])
    if not are_of(column, key_type):
        raise UsageError(f"the splitter was made for {key_type} keys (got others); make another one for them")
    return column
