"""Lists of spilled tuples."""

import numpy as np

from adapt.core.stage.records.arrays import Arrays
from adapt.core.stage.records.codes import NONE, UNUSED
from adapt.core.stage.records.tuples import SPILLED


def spilled_groups(arrays: Arrays, worker: int) -> list[int]:
    """Group of each spilled tuple of a worker's partitions."""
    owned = np.flatnonzero(arrays["partition"]["owner"] == worker).tolist()
    found: list[int] = arrays["spilled"]["group"][places_of(arrays, owned)].tolist()
    return found


def places_of(arrays: Arrays, partitions: list[int]) -> list[int]:
    """Places of the spilled tuples of partitions."""
    links, found = arrays["spilled"]["link"], []
    for place in arrays["partition"]["spill_head"][partitions].tolist():
        while place != NONE:
            found.append(place)
            place = int(links[place])
    return found


def forget_spilled(arrays: Arrays, partition: int) -> int:
    """Drop the spilled input of a partition; returns the number of tuples."""
    record, spilled = arrays["partition"][partition], arrays["spilled"]
    count = int(record["spilled"])
    if record["spill_head"] != NONE:
        spilled["number"][places_of(arrays, [partition])] = UNUSED
        spilled["link"][record["spill_tail"]] = arrays.world["spill_free"]
        arrays.world["spill_free"] = record["spill_head"]
    record["spill_head"] = record["spill_tail"] = NONE
    record["spilled"] = 0
    return count


def enlarge_spill(arrays: Arrays) -> None:
    """Double the capacity for spilled tuples."""
    old = arrays["spilled"]
    more = max(1024, len(old))
    enlarged = np.concatenate([old, np.zeros(more, SPILLED)])
    enlarged["number"][len(old) :] = UNUSED
    enlarged["link"][len(old) :] = np.arange(len(old) + 1, len(old) + more + 1)
    enlarged["link"][-1] = NONE
    arrays.put("spilled", enlarged)
    arrays.world["spill_free"] = len(old)
