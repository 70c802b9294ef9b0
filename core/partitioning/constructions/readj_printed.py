"""Readj construction with `u` as in the printed pseudo-code."""

from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.constructions.readj import readjust
from adapt.core.partitioning.problem.problem import Problem


def readj_printed(problem: Problem) -> Channels:
    """Readj as Algorithm 4 prints it: gain from the last candidate.

    `u` starts at 0 and is overwritten with the utility of each candidate that becomes the best so far, within a round
    and into the next, so the winner depends on the order of candidates: (channel, other channel, key, other key), a
    move before the swaps of its key, each swap from both of its ends. The paper's text says otherwise (`readj`), but
    the migration of this variant is nearer to the reported numbers.

    Source: partitioning functions, section 4.2.4, Algorithm 4.
    """
    return readjust(problem, as_printed=True)
