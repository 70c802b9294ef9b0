"""Search for the placement whose best shedding scores most, with little traffic."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from adapt.core.fit.network.wiring import Indices
from paper.fit.placement.packing import packed
from paper.fit.placement.problem import Problem, Worth

_SAME = 1e-9
"""Relative difference below which scores and traffic are equal."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A placement found by a search.

    Attributes:
        place: The number of each operator's node, shape (operators,).
        worth: What it is worth.
        before: What the first placement is worth.
        bound: Score that no placement exceeds.
        tried: Placements tried.
    """

    place: Indices
    worth: Worth
    before: Worth
    bound: float
    tried: int


def search(
    problem: Problem,
    *,
    loss: float = 0.01,
    tries: int = 10_000,
    seed: int = 0,
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> Found:
    """Look for a better placement than the first.

    It starts from the better of the first placement and the packed one, and changes it at random: an operator, or a
    query, goes to another node, or two swap theirs. The first half of the tries raises the score, the second half
    lowers the traffic at a score at most `loss` below the highest. Nodes that do not differ are then exchanged so that
    few operators move.

    Args:
        tries: Placements to try.
        progress: Called now and then with what is done, how much, and of how much.
    """
    random = np.random.default_rng(seed)
    before, bound = problem.worth(problem.first), problem.pooled[0]
    place = problem.first
    worth = before
    start = packed(problem)
    if _scores_more(problem.worth(start), worth):
        place, worth = start, problem.worth(start)
    moves = _Moves(problem, random)
    moves.weigh(place)
    for number in range(tries):
        if number % 50 == 0:
            progress("trying placements", number, tries)
        if number == tries // 2:
            floor = worth.score * (1 - loss)
        other = moves.changed(place)
        if (other == place).all():
            continue
        found = problem.worth(other)
        if _scores_more(found, worth) if number < tries // 2 else _sends_less(found, worth, floor):
            place, worth = other, found
            moves.weigh(place)
    return Found(_fewest_moves(problem, place), worth, before, bound, tries)


def _fewest_moves(problem: Problem, place: Indices) -> Indices:
    """The placement with nodes that do not differ exchanged, so that most operators stay."""
    nodes = len(problem.capacity)
    stay = np.zeros((nodes, nodes))
    np.add.at(stay, (place, problem.first), 1.0)
    alike = problem.capacity[:, None] == problem.capacity
    alike[problem.named] = alike[:, problem.named] = False
    np.fill_diagonal(alike, True)
    _, goes_to = linear_sum_assignment(np.where(alike, stay, -1.0 - len(place)), maximize=True)
    return np.asarray(goes_to[place])


def _scores_more(new: Worth, old: Worth) -> bool:
    """Whether a placement is better where score counts first."""
    if new.faults != old.faults:
        return new.faults < old.faults
    if abs(new.score - old.score) > _SAME * old.score:
        return new.score > old.score
    return new.traffic < old.traffic * (1 - _SAME)


def _sends_less(new: Worth, old: Worth, floor: float) -> bool:
    """Whether a placement is better where traffic counts first."""
    if new.faults != old.faults:
        return new.faults < old.faults and new.score >= floor
    return new.score >= floor * (1 - _SAME) and new.traffic < old.traffic * (1 - _SAME)


class _Moves:
    """Draws changes of a placement, more of them where score is lost."""

    def __init__(self, problem: Problem, random: np.random.Generator) -> None:
        self._problem, self._random = problem, random
        self._loose = np.flatnonzero(~problem.fixed)
        self._kinds = (self._near, self._near, self._far, self._query, self._swap, self._swap_nodes)
        self._chance = np.empty(0)

    def weigh(self, place: Indices) -> None:
        """Draw operators by what their fragments lose from now on."""
        lost = self._problem.lost(place)[self._problem.query_of[self._loose]]
        weights = lost + lost.sum() / max(len(lost), 1) + 1e-300
        self._chance = np.cumsum(weights / weights.sum())

    def changed(self, place: Indices) -> Indices:
        """A copy of a placement with one change."""
        place = place.copy()
        if len(self._loose):
            self._kinds[self._random.integers(len(self._kinds))](place)
        return place

    def _operator(self) -> int:
        at = int(np.searchsorted(self._chance, self._random.random()))
        return int(self._loose[min(at, len(self._loose) - 1)])

    def _node(self) -> int:
        return int(self._random.integers(len(self._problem.capacity)))

    def _near(self, place: Indices) -> None:
        """An operator goes to another node of its fragment."""
        operator = self._operator()
        query = int(self._problem.query_of[operator])
        fragment = next(each for each in self._problem.fragments(place) if query in each)
        place[operator] = self._random.choice(np.unique(place[np.isin(self._problem.query_of, fragment)]))

    def _far(self, place: Indices) -> None:
        """An operator goes to any node, half of the time to one without operators."""
        idle = np.setdiff1d(np.arange(len(self._problem.capacity)), place)
        alone = len(idle) and self._random.random() < 0.5
        place[self._operator()] = self._random.choice(idle) if alone else self._node()

    def _query(self, place: Indices) -> None:
        """A query goes to one node, or to the place of another query."""
        query = self._problem.query_of[self._operator()]
        there = self._node() if self._random.random() < 0.5 else place[self._operator()]
        place[self._loose[self._problem.query_of[self._loose] == query]] = there

    def _swap(self, place: Indices) -> None:
        """Two operators change places."""
        one, other = self._operator(), self._operator()
        place[[one, other]] = place[[other, one]]

    def _swap_nodes(self, place: Indices) -> None:
        """All movable operators of two nodes change places."""
        one, other = int(place[self._operator()]), self._node()
        loose = np.isin(np.arange(len(place)), self._loose)
        here, there = loose & (place == one), loose & (place == other)
        place[here], place[there] = other, one
