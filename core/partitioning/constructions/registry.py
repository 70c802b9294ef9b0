"""Constructions of the hybrid scheme by name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.constructions.level import budgeted_step, level
from adapt.core.partitioning.constructions.readj import readj, readj_printed, unlocked
from adapt.core.partitioning.constructions.redist import redist, scan
from adapt.core.partitioning.problem.problem import Problem
from adapt.core.partitioning.problem.tracking import SERVED
from adapt.core.partitioning.schemes.names import Construction

Construct: TypeAlias = Callable[[Problem], Channels]
"""Assigns each key of a problem a channel, in the order of `problem.keys`: int32, shape (keys,).

Source: partitioning functions, section 4.2.
"""

CONSTRUCTIONS: Mapping[Construction, Construct] = MappingProxyType(
    {
        Construction.SCAN: scan,
        Construction.REDIST: redist,
        Construction.READJ: readj,
        Construction.READJ_PRINTED: readj_printed,
        Construction.UNLOCKED: unlocked,
        Construction.LEVEL: level,
    }
)


def assigned(construction: Construction, *problems: Problem) -> tuple[Problem, Channels]:
    """The channel of each key of a problem.

    Int32, shape (keys,); of several problems, the one of least b.

    Where migration is limited, the channels at the start are tried too: the paper's constructions balance tracked keys
    alone, and may end at a higher b (Eq. 11) over all keys.
    """
    tried = [(problem, CONSTRUCTIONS[construction](problem)) for problem in problems]
    if problems[0].budget is None:
        return tried[0]
    at_start = [(problem, problem.start) for problem in problems]
    return min((*at_start, *tried), key=lambda each: budgeted_step(each[0]).log_b(each[1][each[0].pinned < 0]))


LEAST_TRACKED: Mapping[Construction, int] = MappingProxyType({Construction.LEVEL: SERVED})
"""Least number of keys that a construction pins by default; the others pin those that reach delta. The level
construction is cheap per key, and each pinned key improves the balance."""
