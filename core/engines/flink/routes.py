"""Routes of Flink: an integer for each key group."""

import numpy as np
import pyarrow as pa

from adapt.core.engines.flink.hash import flink_hash
from adapt.core.engines.routes import Numbers, least_numbers


def flink_routes(groups: int) -> Numbers:
    """For each key group the least integer, from 0, that Flink puts there; shape (groups,).

    Flink puts a key whose Java hash code is the number (as that of an `Integer` is) into group mix(number) mod groups.

    Source: users and peers, section 5.1, whose vectors were made with Flink's own classes.
    """
    # A long below 2^31 has the hash code of the same int: itself.
    return least_numbers(
        groups, lambda numbers: np.mod(flink_hash(pa.array(numbers.astype(np.int64))), np.int32(groups))
    )
