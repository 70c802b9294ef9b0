"""Records of drawn costs, counts and the event tournament."""

import numpy as np

SERVICE = np.dtype([("seconds", np.float64)])

PAUSE = np.dtype([("lasts", np.float64), ("gap", np.float64)])
"""A pause of a worker, and the time from its end to the next."""

PART = np.dtype([("shed", np.float64)])

LATENCY = np.dtype([("count", np.int64), ("sum", np.float64), ("max", np.float64)])

BIN = np.dtype([("count", np.int64)])

REFUSAL = np.dtype([("count", np.int64)])

DUE = np.dtype([("at", np.float64)])

WINNER = np.dtype([("slot", np.int32)])
