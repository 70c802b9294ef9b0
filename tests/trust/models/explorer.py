"""Search of all interleavings of a small system, by running it again and again from its start.

A system stops before each step that another part of it may see. The search follows each choice of the next step, and
stops where a state, by its hash, was seen before. Then it asks whether an end can be reached from each state.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol


class System(Protocol):
    """A system in some state; a rule that it breaks raises an AssertionError."""

    def moves(self) -> Sequence[Hashable]:
        """The steps that may come next; none at an end."""

    def do(self, move: Hashable) -> None:
        """Take a step."""

    def state(self) -> Hashable:
        """All that decides what may happen from now on."""

    def end(self) -> None:
        """Check an end."""


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search has seen."""

    states: int
    ends: int


class Refused(AssertionError):
    """A system that breaks a rule."""


def explore(start: Callable[[], System], most: int = 10**7) -> Searched:
    """Visit all states; raises `Refused` with the steps that lead to a broken rule, or where no end can be reached."""
    seen, before, ends = dict[int, tuple[Hashable, ...]](), defaultdict[int, list[int]](list), list[int]()
    open_paths: list[tuple[tuple[Hashable, ...], int]] = [((), 0)]
    while open_paths:
        path, came_from = open_paths.pop()
        system = start()
        try:
            for move in path:
                system.do(move)
            while True:
                here = hash(system.state())
                before[here].append(came_from)
                if here in seen:
                    break
                seen[here] = path
                assert len(seen) <= most, f"more than {most} states"
                moves = system.moves()
                if not moves:
                    system.end()
                    ends.append(here)
                    break
                open_paths += [((*path, move), here) for move in moves[1:]]
                path, came_from = (*path, moves[0]), here
                system.do(moves[0])
        except AssertionError as broken:
            raise Refused(f"{broken} after {len(path)} steps: {path}") from broken
        finally:
            getattr(system, "close", bool)()
    ending = set(ends)
    left = list(ends)
    while left:
        for one in before[left.pop()]:
            if one and one not in ending:
                ending.add(one)
                left.append(one)
    for stuck in seen.keys() - ending:
        raise Refused(f"no end can be reached after {len(seen[stuck])} steps: {seen[stuck]}")
    return Searched(len(seen), len(ends))
