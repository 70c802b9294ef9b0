"""What the chains by name ask, answered from rows without operators, keys or windows of the runtime."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import combinations
from statistics import fmean
from typing import Any

Row = dict[str, Any]
HOUR = timedelta(hours=1)


def impossible_moves(calls: Iterable[Row]) -> list[tuple[int, int, int]]:
    """Of each hour with some, moves above 300 km/h between calls from area 3: hour, moves, the fastest phone."""
    seen: dict[int, tuple[datetime, complex]] = {}
    moves: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for row in calls:
        if row["area"] != 3:
            continue
        for who in ("caller", "callee"):
            place = complex(row[f"{who}_x"], row[f"{who}_y"])
            before = seen.get(row[who])
            seen[row[who]] = (row["ts"], place)
            if before is None:
                continue
            hours = (row["ts"] - before[0]) / HOUR
            km = abs(place - before[1]) / 1000
            if km > 300 * hours:
                moves[hour_of(row["ts"])].append((km / hours if hours else math.inf, row[who]))
    return [(hour, len(found), max(found)[1]) for hour, found in sorted(moves.items())]


def pairs_by_hour(sales: Iterable[Row]) -> list[tuple[int, int, int, int]]:
    """Of each hour, the hundred pairs of different items that are on most tickets: hour, items, tickets."""
    baskets: dict[tuple[int, Any], set[int]] = defaultdict(set)
    for row in sales:
        baskets[hour_of(row["ts"]), row["key"]].add(row["item"])
    counts: dict[int, Counter[tuple[int, int]]] = defaultdict(Counter)
    for (hour, _), items in baskets.items():
        counts[hour].update(combinations(sorted(items), 2))
    return [(hour, *pair, count) for hour in sorted(counts) for pair, count in most_frequent(counts[hour], 100)]


def pairs_of_sessions(clicks: Iterable[Row]) -> list[tuple[int, int, int]]:
    """The thirty pairs of different items that are looked at in most sessions, searches apart: items, sessions."""
    counts: Counter[tuple[int, int]] = Counter()
    for session in sessions(row for row in clicks if row["page"] != "search"):
        counts.update(combinations(sorted({row["item"] for row in session}), 2))
    return [(*pair, count) for pair, count in most_frequent(counts, 30)]


def last_views(clicks: Iterable[Row]) -> list[tuple[int, int]]:
    """The thirty items that are most often among the last five views of a user in the ten days before a checkout."""
    viewed: dict[Any, list[Row]] = defaultdict(list)
    counts: Counter[int] = Counter()
    for row in clicks:
        views = viewed[row["key"]]
        if row["page"] == "view":
            views.append(row)
        if row["page"] == "checkout":
            counts.update(view["item"] for view in views[-5:] if row["ts"] - view["ts"] <= timedelta(days=10))
    return most_frequent(counts, 30)


def abandoned_carts(clicks: Iterable[Row]) -> tuple[int, Fraction]:
    """How many sessions have a cart and no checkout, and the mean of their pages."""
    pages = [
        len(session)
        for session in sessions(clicks)
        if "cart" in (kinds := {row["page"] for row in session}) and "checkout" not in kinds
    ]
    return len(pages), Fraction(sum(pages), max(len(pages), 1))


def slopes(sales: Iterable[Row]) -> dict[int, float]:
    """The least-squares slope of the daily revenue of each category that sold on more days than one."""
    daily: dict[int, Counter[int]] = defaultdict(Counter)
    for row in sales:
        daily[row["category"]][row["ts"].date().toordinal()] += row["cents"] * row["qty"]
    return {category: slope(revenue) for category, revenue in daily.items() if len(revenue) > 1}


def slope(revenue: dict[int, int]) -> float:
    day, money = fmean(revenue), fmean(revenue.values())
    return sum((d - day) * (y - money) for d, y in revenue.items()) / sum((d - day) ** 2 for d in revenue)


def sessions(clicks: Iterable[Row]) -> Iterator[list[Row]]:
    """The clicks of a user until there is none for more than an hour."""
    by_user: dict[Any, list[Row]] = defaultdict(list)
    for row in clicks:
        by_user[row["key"]].append(row)
    for rows in by_user.values():
        begun = 0
        for at in range(1, len(rows) + 1):
            if at == len(rows) or rows[at]["ts"] - rows[at - 1]["ts"] > HOUR:
                yield rows[begun:at]
                begun = at


def most_frequent(counts: Counter[Any], most: int) -> list[tuple[Any, int]]:
    """The highest counts, of equal ones the lowest first."""
    return sorted(counts.items(), key=lambda counted: (-counted[1], counted[0]))[:most]


def hour_of(time: datetime) -> int:
    return int(time.timestamp()) // 3600
