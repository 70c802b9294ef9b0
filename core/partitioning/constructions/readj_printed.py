"""The readj construction with its pseudo-code taken at its word about `u`."""

from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.constructions.readj import readjust
from adapt.core.partitioning.problem.problem import Problem


def readj_printed(problem: Problem) -> Channels:
    """Readj as Algorithm 4 prints it: the gain is counted from the last candidate kept; int32, shape (keys,).

    `u` starts at 0 and is overwritten with the utility of each candidate that becomes the best so far, within a round
    and into the next, so that what wins depends on the order in which candidates are met: (channel, other channel,
    key, other key), a move before the swaps of its key, each swap from both of its ends. Text and sense say otherwise
    (`readj`), but its migration is nearer to the numbers reported.

    Source: partitioning functions, section 4.2.4, Algorithm 4.
    """
    return readjust(problem, as_printed=True)
