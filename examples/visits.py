"""Shared by the examples: a skewed stream, and its predicted and actual rows per partition."""

import numpy as np
import pyarrow as pa

import adapt

ROWS = 10_000


def visits(rows: int = ROWS, seed: int = 1) -> pa.Table:
    """A skewed stream: a user and the bytes of a visit; one visit in a hundred has no user."""
    random = np.random.default_rng(seed)
    users = [None if row % 100 == 99 else f"user{rank % 300}" for row, rank in enumerate(random.zipf(1.3, rows))]
    return pa.table({"user": pa.array(users, pa.string()), "bytes": random.integers(1, 5_000, rows)})


def counted(keys: pa.ChunkedArray) -> pa.Table:
    """The rows of each key, which a plan is built from."""
    found = keys.value_counts()
    return pa.table({"key": found.field("values"), "count": found.field("counts")})


def predicted_rows(plan: adapt.Plan, users: pa.ChunkedArray) -> list[int]:
    """The rows of each channel by the plan, without an engine."""
    return np.bincount(adapt.route(plan, users), minlength=plan.channels).tolist()


def show(predicted: list[int], actual: list[int], place: str = "partition") -> bool:
    """Print predicted and actual rows per partition; whether they are equal."""
    print(f"{place:9}  predicted   actual")
    for partition, (expected, found) in enumerate(zip(predicted, actual, strict=True)):
        print(f"{partition:9}  {expected:9,}  {found:7,}")
    print(f"predicted equals actual on every {place}" if predicted == actual else "THE PLAN WAS NOT FOLLOWED")
    return predicted == actual
