"""Answers of a user's policy, checked before anything is done."""

from collections.abc import Mapping
from operator import index
from typing import Any

import numpy as np

from adapt.core.errors import BadInput, listed
from adapt.core.lab.view import View

MOVES = "moves must return a mapping of partition to worker, such as {3: 0}, empty for no move"
WORKERS = "workers must return a whole number from 1"


class Impossible(BadInput):
    """An answer that cannot be carried out, in a sentence."""


def checked_moves(view: View, answer: Any) -> dict[int, int]:
    """The moves of an answer, without those that change nothing."""
    if not isinstance(answer, Mapping):
        raise Impossible(f"{MOVES} (got {_shown(answer)})")
    moves = {}
    for one, to in answer.items():
        partition, worker = _whole(one), _whole(to)
        if partition is None or worker is None:
            raise Impossible(f"{MOVES} (got {_shown({one: to})})")
        if not 0 <= partition < view.partitions:
            raise Impossible(f"moves partition {partition}, but partitions are 0 to {view.partitions - 1}")
        if not 0 <= worker < view.workers:
            raise Impossible(f"moves partition {partition} to worker {worker}, but workers are 0 to {view.workers - 1}")
        if not view.up[worker]:
            up = listed([str(each) for each in np.flatnonzero(view.up).tolist()])
            raise Impossible(
                f"moves partition {partition} to worker {worker}, which is down; workers that are up: {up}"
            )
        if worker != view.owner[partition]:
            moves[partition] = worker
    return moves


def checked_workers(answer: Any) -> int:
    """The number of workers of an answer."""
    wanted = _whole(answer)
    if wanted is None or wanted < 1:
        raise Impossible(f"{WORKERS} (got {_shown(answer)})")
    return wanted


def _whole(value: Any) -> int | None:
    """A whole number, as of Python or numpy; None for anything else."""
    if isinstance(value, (bool, np.bool_)):
        return None
    try:
        return index(value)
    except TypeError:
        return None


def _shown(value: Any) -> str:
    text = " ".join(repr(value).split())
    kind = "" if value is None or type(value) is int else f", a {type(value).__name__}"
    return f"{text[:60]}{'...' if len(text) > 60 else ''}{kind}"
