"""What is wrong with the history of a run: it knows which rows came and which left, and nothing of the engine."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence

Row = tuple[Hashable, int]
"""A row by its key and its number; numbers of a key rise in the order of the input."""


def faults_of(came: Sequence[Row], left: Sequence[Row], lost: int | None = 0) -> list[str]:
    """Loss, doubles, rows from nowhere, and rows of a key out of order.

    Args:
        lost: Rows that the run says it has lost; None where it was cut short, so that any may not have left yet.
    """
    expected, found = Counter(came), Counter(left)
    faults = [f"{row} left {count} times" for row, count in found.items() if count > 1]
    faults += [f"{row} never came" for row in found.keys() - expected.keys()]
    missing = expected.keys() - found.keys()
    if lost is not None and len(missing) != lost:
        faults.append(f"{len(missing)} rows are missing, of which {lost} are said to be lost: {sorted(missing)[:3]}")
    last = defaultdict[Hashable, int](lambda: -1)
    for key, number in left:
        if number < last[key]:
            faults.append(f"row {number} of {key} left after {last[key]}")
        last[key] = number
    return faults


def gaps_of(came: Sequence[Row], left: Sequence[Row]) -> list[str]:
    """Rows of a key that are missing before one that left."""
    of_key = defaultdict[Hashable, list[int]](list)
    for key, number in came:
        of_key[key].append(number)
    seen = defaultdict[Hashable, list[int]](list)
    for key, number in left:
        seen[key].append(number)
    return [f"{key} lacks a row before its last" for key, rows in seen.items() if rows != of_key[key][: len(rows)]]
