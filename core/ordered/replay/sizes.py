"""Table of the time of payloads and states in the model."""

from adapt.core.ordered.chain.bound import BoundChain
from adapt.core.ordered.engine.cache_costs import ASSUMED_CACHES
from adapt.core.ordered.engine.costs import EngineProfile
from adapt.core.ordered.model.cache_times import cache_times
from adapt.core.ordered.model.operator_costs import Costs
from adapt.core.table import Column, Kind, Table


def sizes_table(chain: BoundChain, costs: Costs, engine: EngineProfile | None) -> Table:
    """Time of the model for bytes, by operator.

    Args:
        engine: Measured costs of the engine; None or without a cache model for the assumed one.
    """
    measured = engine is not None and engine.caches is not None
    caches = ASSUMED_CACHES if engine is None else engine.costs_at().caches
    columns = (
        Column("operator"),
        Column("payload", Kind.BYTES, about="that it reads of each tuple"),
        Column("state", Kind.BYTES, about="of a key"),
        Column("working_set", Kind.BYTES, about="state of all keys"),
        Column("per_tuple", Kind.SECONDS, about="for the payload that tuples carry: fed, read and copied"),
        Column("per_output", Kind.SECONDS, about="the same to send an output, one worker at a time"),
        Column("here", Kind.SECONDS, about="for the state, if this worker processed the key last"),
        Column("moved", Kind.SECONDS, about="the same if another worker did"),
    )
    rows = []
    for bound, selectivity in zip(chain.operators, costs.selectivities, strict=True):
        times, operator = cache_times(chain, bound, selectivity, caches), bound.operator
        ns = times.added, times.output, times.here, times.moved
        rows.append(
            [
                operator.name,
                operator.tuple_bytes,
                operator.state_bytes,
                times.working_bytes,
                *(1e-9 * one for one in ns),
            ]
        )
    source = "as measured with the costs of the engine" if measured else "assumed: measured on a machine with two cores"
    return Table.from_rows(f"Payloads and states in the model, {source}", columns, rows)
