"""Policies as strangers write them: good ones, and ones that each break a rule."""

from dataclasses import dataclass

import numpy as np

from adapt.core.own.own_code import OwnCode


@dataclass
class Calm:
    """Moves a partition from the busiest to the idlest worker while they are far apart."""

    threshold: float = 0.2

    def moves(self, view):
        up = np.flatnonzero(view.up)
        busy, idle = up[view.utilization[up].argmax()], up[view.utilization[up].argmin()]
        gap = view.utilization[busy] - view.utilization[idle]
        movable = (
            (view.owner == busy) & (view.load > 0) & (view.load < gap) & (view.state_bytes <= view.free_bytes[idle])
        )
        return {(view.load * movable).argmax(): idle} if gap >= self.threshold and movable.any() else {}


class Half:
    """Workers for a utilization of half."""

    def workers(self, view):
        return max(1, int(np.ceil(2 * view.utilization.sum() - 1e-9)))


class Both(Calm, Half):
    """Moves and scales."""


class UnknownPartition:
    def moves(self, view):
        return {view.partitions: 0}


class UnknownWorker:
    def moves(self, view):
        return {0: view.workers}


class Negative:
    def moves(self, view):
        return {-1: 0}


class Listed:
    def moves(self, view):
        return [(0, 1)]


class Forgotten:
    def moves(self, view):
        view.load.sum()


class Named:
    def moves(self, view):
        return {"0": 1}


class Raises:
    def moves(self, view):
        return {0: view.load[view.partitions]}


class Writes:
    def moves(self, view):
        view.load[0] = 0
        return {}


class ToTheDead:
    def moves(self, view):
        return {0: int(view.up.argmin())}


class NoWorkers:
    def workers(self, view):
        return 0


class HalfAWorker:
    def workers(self, view):
        return 1.5


def own(kind, **options):
    """A class of this file as a user's policy."""
    return OwnCode("policy", f"policies:{kind.__name__}", __file__, "", kind, tuple(options.items()))
