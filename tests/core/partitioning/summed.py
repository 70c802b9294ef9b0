"""Lossy counts whose rest is summed by cell, from exact counts in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.counting.frequencies import Frequencies
from adapt.core.partitioning.measures.cells import WEIGHT, Cells, Hashers, RestSums, cells_of
from adapt.core.partitioning.measures.population import Population


def lossy_of(exact: Frequencies, listed: int) -> Frequencies:
    """What is left of exact counts if only the hottest are listed."""
    above = float(exact.count_low[listed]) if listed < len(exact.keys) else 0.0
    return replace(
        exact,
        keys=exact.keys[:listed],
        count_low=exact.count_low[:listed],
        count_high=exact.count_low[:listed],
        measured=tuple(replace(each, values=each.values[:listed]) for each in exact.measured),
        epsilon=0.01,
        complete_above=above,
    )


def summed(exact: Frequencies, lossy: Frequencies, wanted: Sequence[Hashers] = ()) -> Population:
    """The population of lossy counts, the listed keys and the cells of the others counted exactly."""
    rows = exact.rows_of(lossy.keys)
    order = np.argsort(-exact.count_low[rows], kind="stable")
    counts = exact.count_low[rows][order]
    known = replace(lossy, keys=lossy.keys.take(pa.array(order)), count_low=counts, count_high=counts)
    others = ~np.asarray(pc.is_in(exact.keys, value_set=lossy.keys).to_numpy(zero_copy_only=False))
    keys = exact.keys.filter(pa.array(others))
    loads: Mapping[str, np.ndarray] = {
        WEIGHT: exact.count_low[others],
        **{each.source: each.values[others] for each in exact.measured},
    }

    def route(groups: Sequence[Hashers]) -> list[Cells]:
        found = []
        for group in groups:
            at, of = np.unique(
                cells_of([each.channels_of(keys) for each in group], group, len(keys)), return_inverse=True
            )
            found.append(Cells(group, at, {name: np.bincount(of, each, len(at)) for name, each in loads.items()}))
        return found

    sums = RestSums(route)
    sums.ask([(), *wanted])
    return Population.with_sums(known, sums)
