"""Messages of a key column."""

import numpy as np
import pyarrow as pa

from adapt.core.partitioning.splitting.split import Messages


def messages_of(keys, weights=None, periods=None):
    """One message per key of a column, each of weight 1 and in one period unless given."""
    encoded = pa.array(keys, pa.string()).dictionary_encode(null_encoding="encode")
    rows = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return Messages(
        encoded.dictionary,
        rows,
        np.ones(len(rows)) if weights is None else np.array(weights, np.float64),
        np.zeros_like(rows) if periods is None else np.array(periods, np.int64),
    )
