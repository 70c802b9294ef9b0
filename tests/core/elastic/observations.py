"""Observations of workers, made by hand."""

import numpy as np

from adapt.core.stage.control.workers import Seen


def seen(at_s=1.0, workers=4, **given):
    """A period of a second in which every worker worked for half of it and did 100 tuples, unless said otherwise.

    `held` and `offered` are of each worker, or of all together and spread evenly.
    """
    given |= {
        name: np.broadcast_to(np.divide(rows, workers if np.ndim(rows) == 0 else 1), workers)
        for name, rows in given.items()
        if name in ("held", "offered")
    }
    plain = {
        "collected_s": 1.0,
        "busy_s": np.full(workers, 0.5),
        "processed": np.full(workers, 100),
        "loads": np.ones(workers),
        "arrived": 100 * workers,
        "waiting": 0,
    }
    return Seen(at_s=at_s, workers=workers, **plain | given)
