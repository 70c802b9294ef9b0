"""Routes of Flink: an integer for each key group."""

import numpy as np
import pyarrow as pa

from adapt.core.engines.flink.hash import flink_hash
from adapt.core.engines.routes import Numbers, least_numbers


def flink_routes(groups: int) -> Numbers:
    """The smallest integer >= 0 that Flink maps to each key group.

    Flink maps a key whose Java hash code is the number (as of an `Integer`) to group mix(number) mod groups.

    Source: users and peers, section 5.1, with vectors from Flink's own classes.
    """
    # A long below 2^31 has itself as hash code, as an int does.
    return least_numbers(
        groups, lambda numbers: np.mod(flink_hash(pa.array(numbers.astype(np.int64))), np.int32(groups))
    )
