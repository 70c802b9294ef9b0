"""Order of rows in a source: lateness, grouping by key."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.lint.outliers import outliers
from adapt.core.lint.thresholds import OUTLIERS

Ints = NDArray[np.int64]


MOST_ROWS = 1 << 21
"""Of a longer source, only the first lines of each file are examined, to bound memory."""


def source_evidence(file: Ints, line: Ints, time_us: Ints, key: Ints) -> dict[str, Any] | None:
    """Order of the first rows of a source; None without rows.

    A row is late if a row before it in the source has a later time.

    Args:
        file, line: Position of each row; rows come in any order. Shape (rows,).
        key: Hash of each key.

    Returns:
        Statistics of all these rows and, if there are outlier dates, of the rows without them; see `_order`.
    """
    if not len(time_us):
        return None
    order = np.lexsort((line, file))
    rows = tuple(column[order] for column in (file, line, time_us, key))
    rising = np.sort(time_us)
    found = outliers(rising[: OUTLIERS + 1].tolist(), rising[-OUTLIERS - 1 :].tolist(), len(rising))
    within = (rows[2] >= found.first_us) & (rows[2] <= found.last_us)
    return {
        "all": _order(*rows),
        "without_outliers": _order(*(column[within] for column in rows)) if found.rows else None,
    }


def _order(file: Ints, line: Ints, times: Ints, keys: Ints) -> dict[str, Any]:
    """Numbers of rows, files, late rows, backward steps and runs of one key, and the maximum lateness."""
    latest = np.maximum.accumulate(times)
    behind = latest - times
    rises = np.flatnonzero(np.diff(latest, prepend=latest[0] - 1))
    stretches = 1 + int(np.count_nonzero(keys[1:] != keys[:-1]))
    return {
        "rows": len(times),
        "files": _distinct(file),
        "late": int(np.count_nonzero(behind)),
        "latest_us": int(behind.max()),
        "last_rise": int(line[rises[-1]]),
        "steps_back": int(np.count_nonzero(np.diff(times) < 0)),
        "stretches": stretches,
        "keys": _distinct(keys),
    }


def _distinct(values: Ints) -> int:
    """Number of different values, sorted, since NumPy's hashing takes fifteen times as long."""
    return 1 + int(np.count_nonzero(np.diff(np.sort(values))))
