"""What a rescale costs, by the workers before and after."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from adapt.core.elastic.planning.prices import GIB, Prices
from adapt.core.stage.conditions.names import Migrating
from adapt.core.stage.conditions.settings import Network, StageSettings
from adapt.core.stage.control.workers import Migration

Floats = NDArray[np.float64]

Taken: TypeAlias = Callable[[Floats], tuple[Floats, Floats, Floats]]
"""Stop, delay and state moved of each rescale between numbers of workers, as `known_moves` gives them."""


@dataclass(frozen=True, slots=True, eq=False)
class MoveCosts:
    """Costs of rescales, shape (before, after) each.

    Attributes:
        counts: Numbers of workers, ascending; shape (counts,).
        lost: Work that is not done because of the rescale, in worker seconds.
        price: Worker seconds that are paid, without what is late.
    """

    counts: Floats
    lost: Floats
    price: Floats

    @classmethod
    def priced(
        cls,
        counts: Floats,
        stop_s: Floats,
        delay_s: Floats,
        moved_bytes: Floats,
        prices: Prices,
        busy: Floats | None = None,
    ) -> "MoveCosts":
        """Costs of rescales from what they take.

        Args:
            counts: Numbers of workers, ascending; shape (counts,).
            stop_s: Time in which all partitions stop, or the same in parts; shape (before, after), as all below.
            delay_s: Time until the rescale is over; new workers are paid and do nothing, workers that go are paid.
            moved_bytes: State that changes its worker.
            busy: Workers that can be busy with each count, shape (counts,); None, all.
        """
        return cls._priced(counts, counts[:, None] != counts[None, :], (stop_s, delay_s, moved_bytes), prices, busy)

    @classmethod
    def of_options(
        cls, counts: Floats, stop_s: Floats, delay_s: Floats, moved_bytes: Floats, prices: Prices, busy: Floats
    ) -> "MoveCosts":
        """Costs of moves between options.

        The first option is to stay. Nothing goes back to it, and it does not go to a new placement on as many workers.

        Args:
            counts: Workers of each option; shape (options,).
        """
        changes = ~np.eye(len(counts), dtype=bool)
        made = cls._priced(counts, changes, (stop_s, delay_s, moved_bytes), prices, busy)
        made.price[1:, 0] = np.inf
        made.price[0, 1:][counts[1:] == counts[0]] = np.inf
        return made

    @classmethod
    def _priced(
        cls,
        counts: Floats,
        changes: NDArray[np.bool_],
        taken: tuple[Floats, Floats, Floats],
        prices: Prices,
        busy: Floats | None,
    ) -> "MoveCosts":
        before, after = counts[:, None], counts[None, :]
        stop_s, delay_s, moved_bytes = taken
        able = counts if busy is None else busy
        lost = stop_s * np.minimum(able[:, None], able[None, :])
        lost += delay_s * np.maximum(0.0, able[None, :] - able[:, None])
        price = delay_s * np.maximum(0.0, before - after) + prices.pause * stop_s + prices.moved * moved_bytes / GIB
        price += prices.rescale
        return cls(counts, lost * changes, price * changes)


def moves_of_stage(settings: StageSettings, migration: Migration, start_s: float) -> Taken:
    """What rescales of a stage take, by its settings; see `known_moves`."""
    state_bytes = float(settings.state_sizes().sum()) * settings.costs.tuple_bytes
    return lambda counts: known_moves(counts, migration, settings.network, state_bytes, start_s, settings.partitions)


def known_moves(
    counts: Floats, migration: Migration, network: Network, state_bytes: float, start_s: float, partitions: int
) -> tuple[Floats, Floats, Floats]:
    """Stop, delay and state moved of each rescale.

    A rescale moves the share of the state that an ideal plan moves, evenly over the workers.

    Args:
        start_s: Start-up time of a worker.
    """
    before, after = counts[:, None], counts[None, :]
    share = np.abs(after - before) / np.maximum(before, after)
    moved = share * state_bytes
    if migration.how is Migrating.RESTART:
        how = migration.restart
        delay_s = np.empty_like(share)
        for (i, j), part in np.ndenumerate(share):
            saved, restored = np.full(int(counts[i]), state_bytes / counts[i]), np.full(int(counts[j]), 1 / counts[j])
            restored *= state_bytes * (1.0 if how.restores_all else part)
            delay_s[i, j] = how.downtime_s(saved.astype(np.int64), restored.astype(np.int64), _one_flow(network))
        stop_s = delay_s if how.is_whole else share * delay_s
    else:
        flow = float(np.min(network.flow_bits_per_s)) * np.minimum(before, after)
        delay_s = 8 * moved / np.minimum(flow, network.state_bits_per_s)
        batch = {Migrating.ALL: partitions, Migrating.ONE: 1}.get(migration.how, migration.batch)
        stop_s = delay_s * np.minimum(share, batch / partitions)
    return stop_s, delay_s + start_s * (after > before), moved


def _one_flow(network: Network) -> Network:
    return replace(network, flow_bits_per_s=float(np.min(network.flow_bits_per_s)))
