"""A chain and a query network that go with any trace."""

VISITS = """
[[operator]]
name = "visits"
kind = "partitioned"
key = "key"
partitions = 4
function = "count"
"""


def two_halves(tick: str, cost: float) -> str:
    """A network that takes the keys of a trace in two inputs and puts them together again, on one node.

    Args:
        tick: How often a plan is made.
        cost: CPU seconds a row.
    """
    return f"""
[settings]
tick = "{tick}"

[[node]]
name = "edge"

[[input]]
name = "some"
stream = {{ bucket = 0, of = 2 }}

[[input]]
name = "others"
stream = {{ bucket = 1, of = 2 }}

[[operator]]
name = "both"
node = "edge"
kind = "union"
inputs = ["some", "others"]
cost = {cost}

[[output]]
name = "out"
from = "both"
"""
