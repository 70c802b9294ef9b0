"""Records that the driver and its worker processes exchange."""

import numpy as np

SENT = np.dtype(
    [
        ("partition", np.int32),
        ("group", np.int32),
        ("producer", np.int32),
        ("number", np.int64),
        ("cost", np.float64),  # seconds of work
    ]
)
"""A row on its way to a worker."""

DONE = np.dtype(
    [
        ("partition", np.int32),
        ("producer", np.int32),
        ("group", np.int32),
        ("number", np.int64),
        ("taken", np.float64),
        ("done", np.float64),
    ]
)
"""A row that a worker has processed."""

KEPT = np.dtype(
    [
        ("partition", np.int32),
        ("group", np.int32),
        ("count", np.int64),
        ("sum", np.int64),
        ("digest", np.uint64),
    ]
)
"""State of a key: count, sum, and a digest of its row numbers in their order."""

FACTOR = 6364136223846793005
"""Factor of the digest: digest * FACTOR + number, modulo 2^64."""
