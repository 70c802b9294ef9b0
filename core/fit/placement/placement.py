"""A placement as a result: before and after, moves, fragments."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.control import Control
from adapt.core.fit.network.names import DropPlanner
from adapt.core.fit.network.network import Network
from adapt.core.fit.network.settings import SheddingSettings
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.placement.problem import Problem, Worth
from adapt.core.fit.placement.search import Found, search
from adapt.core.fit.registry import PlannerOptions
from adapt.core.phrases import counted
from adapt.core.table import Column, Displayed, Kind, Table

SCHEMA = "adapt.placement/1"

MOVES = (Column("operator"), Column("from", about="its node in the network file"), Column("to"))


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Placement(Displayed):
    """A placement of a network's operators, with what it is worth.

    Attributes:
        network: The network as placed.
        found: The placement, against the one before.
        summary: Both, side by side.
        moves: The operators that change their node.
        fragments: Nodes, queries, inputs and score of each fragment.
    """

    network: Network
    found: Found
    summary: Table
    moves: Table
    fragments: Table

    @property
    def said(self) -> list[str]:
        """What to do, and what it changes."""
        before, after = self.found.before, self.found.worth
        if not self.moves.rows:
            return ["Nothing to do: no better placement was found."]
        first = f"Move {counted(len(self.moves.rows), 'operator')}: the score goes"
        return [
            f"{first} from {_of(before.score, self.found.bound)} to {_of(after.score, self.found.bound)} of what no"
            f" placement can exceed; fragments have at most {counted(after.inputs, 'input')} instead of"
            f" {before.inputs}."
        ]

    def displayed(self) -> list[Table]:
        """All tables."""
        return [self.summary, self.fragments, self.moves]

    def as_data(self) -> dict[str, Any]:
        """One JSON document."""
        return {
            "schema": SCHEMA,
            "tried": self.found.tried,
            "placements": self.summary.records(),
            "fragments": self.fragments.records(),
            "moves": self.moves.records(),
        }


def place(
    problem: Problem,
    *,
    loss: float = 0.01,
    tries: int = 10_000,
    seed: int = 0,
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> Placement:
    """Place operators and shed load together; see `search`."""
    found = search(problem, loss=loss, tries=tries, seed=seed, progress=progress)
    names = [node.name for node in problem.network.nodes]
    network = problem.network_of(found.place)
    moved = [
        (operator.name, operator.node, names[at])
        for operator, at in zip(problem.network.operators, found.place, strict=True)
        if operator.node != names[at]
    ]
    return Placement(
        network,
        found,
        _summary(problem, found, network, len(moved)),
        Table.from_rows("Operators to move", MOVES, moved),
        _fragments(problem, found.place, names),
    )


def coordination(network: Network, rates: Floats, headroom: float) -> float:
    """Mean bytes that a coordinator exchanges when all rates change.

    Args:
        rates: Tuples/s, shape (points, inputs); each point differs from the one before.
    """
    settings = SheddingSettings(lag_ticks=0, headroom=headroom)
    options = PlannerOptions(headroom=headroom)
    control = Control(network, DropPlanner.EXACT, settings, options, clock=lambda: 0.0)
    control.decide(rates[0])
    known = control.sent.size
    changes = [*rates[1:], rates[0] * (1 + 1e-6)]
    for each in changes:
        control.decide(each)
    return (control.sent.size - known) / len(changes)


def _summary(problem: Problem, found: Found, network: Network, moved: int) -> Table:
    unit = "bytes/s" if problem.in_bytes else "tuples/s"
    columns = (
        Column("placement"),
        Column("score", Kind.NUMBER, "tuples/s", "weighted output rate with the best shedding, mean over the rates"),
        Column("of_bound", Kind.SHARE, about="of the score that no placement exceeds"),
        Column("traffic", Kind.NUMBER, unit, "of tuples between nodes"),
        Column("coordination", Kind.BYTES, about="messages of a coordinator when all rates change, exact planner"),
        Column("fragments", Kind.COUNT, about="parts of the network that are planned separately"),
        Column("inputs", Kind.COUNT, about="of the largest fragment, alike ones counted once"),
        Column("faults", Kind.COUNT, about="inputs beyond the limit, and nodes in circles"),
        Column("moved", Kind.COUNT, about="operators on another node than in the file"),
    )
    rates, headroom = problem.rates, problem.headroom

    def row(name: str, worth: Worth, of: Network, moved: int) -> tuple[str | float | int, ...]:
        sent = round(coordination(of, rates, headroom))
        figures = (worth.fragments, worth.inputs, worth.faults, moved)
        return (name, worth.score, _share(worth.score, found.bound), worth.traffic, sent, *figures)

    rows = [row("in the file", found.before, problem.network, 0), row("found", found.worth, network, moved)]
    return Table.from_rows("Placements", columns, rows)


def _fragments(problem: Problem, place: Indices, names: list[str]) -> Table:
    columns = (
        Column("nodes"),
        Column("queries", Kind.COUNT, about="sets of operators connected by tuples"),
        Column("operators", Kind.COUNT),
        Column("inputs", Kind.COUNT),
        Column("unlike", Kind.COUNT, about="inputs, alike ones counted once"),
        Column("score", Kind.NUMBER, "tuples/s", "with the best shedding"),
        Column("lost", Kind.NUMBER, "tuples/s", "of the score with pooled capacity"),
    )
    lost, rows = problem.lost(place), []
    for queries in problem.fragments(place):
        mine = np.isin(problem.query_of, queries)
        worth, inputs = problem.worth_of(queries, place), int(problem.inputs_of[list(queries)].sum())
        nodes = ", ".join(names[node] for node in np.unique(place[mine]))
        if nodes:
            figures = (len(queries), int(mine.sum()), inputs, worth.inputs, worth.score, float(lost[queries[0]]))
            rows.append((nodes, *figures))
    return Table.from_rows("Fragments", columns, rows)


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 1.0


def _of(part: float, whole: float) -> str:
    return f"{_share(part, whole):.1%}"
