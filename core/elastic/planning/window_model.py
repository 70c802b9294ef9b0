"""Fluid model of one window: late work, and backlog left."""


def late_work(backlog: float, work: float, capacity: float, limit: float) -> float:
    """Work that arrives while the backlog is above a limit.

    Work arrives and is done at even rates, so the backlog is a straight line. All are in worker seconds.

    Args:
        backlog: At the start of the window.
        work: Arrives in the window.
        capacity: Can be done in it.
        limit: Backlog that the workers take the target latency for, above 0.
    """
    ends = backlog + work - capacity
    most, least = max(backlog, ends), min(backlog, ends)
    if most <= limit:
        return 0.0
    if least >= limit:
        return work
    return work * (most - limit) / (most - least)


def backlog_after(backlog: float, work: float, capacity: float) -> float:
    """Work that is left at the end of a window."""
    return max(0.0, backlog + work - capacity)


def price_at_end(backlog: float, limit: float, late: float) -> float:
    """Price of the work that is left at the end."""
    return backlog + late * max(0.0, backlog - limit)
