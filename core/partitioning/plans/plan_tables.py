"""Tables of a plan."""

from adapt.core.counting.tables import key_shown
from adapt.core.engines.names import Engine
from adapt.core.metrics import column_named
from adapt.core.partitioning.measures.metrics import METRIC_COLUMNS
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.problem.constraints import recorded_capacities
from adapt.core.table import Cell, Column, Kind, Table


def plan_tables(plan: Plan) -> list[Table]:
    """A plan's predictions and channel loads, for a notebook."""
    return [plan_first_table(plan), load_table(plan)]


def plan_table(plan: Plan) -> Table:
    """A plan and all its predicted metrics, in one row."""
    columns = [
        Column("scheme"),
        Column("construction"),
        column_named("channels"),
        Column("hash"),
        Column("key_type"),
        *(column for column in METRIC_COLUMNS if column.name in plan.metrics),
    ]
    facts = {
        "scheme": plan.scheme.value,
        "construction": plan.built_by,
        "channels": plan.channels,
        "hash": None if isinstance(plan.hashing, Engine) else plan.hash.value,
        "key_type": plan.key_type.value,
    }
    row = [{**plan.metrics, **facts}[column.name] for column in columns]
    return Table.from_rows("Plan", columns, [row])


def plan_first_table(plan: Plan) -> Table:
    """A plan's scheme, imbalance and migration, in one row."""
    metrics = {**plan.metrics, "scheme": _scheme(plan), "channels": plan.channels}
    floor, imbalance = plan.metrics.get("best_possible"), plan.metrics.get("imbalance")
    metrics["times_best_possible"] = None if not floor or imbalance is None else imbalance / floor
    known = {column.name: column for column in METRIC_COLUMNS}
    gap = column_named("times_best_possible")
    columns = [
        Column("scheme"),
        column_named("channels"),
        *(known.get(name, gap) for name in _FIRST if known.get(name, gap).name in metrics),
    ]
    row = [metrics[column.name] for column in columns]
    return Table.from_rows(
        "Plan", columns, [row], "--all shows every metric, the load of each worker, and the pinned keys."
    )


_FIRST = ("imbalance", "best_possible", "times_best_possible", "keys_moved", "state_moved", "m", "pinned_keys")


def _scheme(plan: Plan) -> str:
    details = [*([plan.built_by] if plan.built_by else []), *([f"base {plan.base}"] if plan.is_based else [])]
    return f"{plan.scheme} ({', '.join(details)})" if details else plan.scheme.value


def load_table(plan: Plan) -> Table:
    """The predicted load of each channel, busiest first.

    With capacities, highest utilization first.
    """
    loads, capacities = plan.predicted_loads, recorded_capacities(plan.parameters, plan.channels)
    columns = _LOAD_COLUMNS if capacities is None else (*_LOAD_COLUMNS, *_CAPACITY_COLUMNS)
    if not loads:
        return Table.from_rows(_LOAD_TITLE, columns, [])
    network = loads["network"]
    total = sum(network)
    used = network if capacities is None else [load / own for load, own in zip(network, capacities, strict=True)]
    rows: list[tuple[Cell, ...]] = []
    for at in sorted(range(plan.channels), key=lambda channel: (-used[channel], channel)):
        share = network[at] / total if total else None
        utilization = used[at] * sum(capacities or ()) / total if total else None
        own = () if capacities is None else (capacities[at], utilization)
        rows.append((at, network[at], share, loads["state"][at], loads["computation"][at], *own))
    return Table.from_rows(_LOAD_TITLE, columns, rows)


_LOAD_TITLE = "Predicted load of each channel"

_LOAD_COLUMNS = (
    Column("channel", Kind.COUNT),
    Column("network", Kind.NUMBER),
    Column("share", Kind.SHARE, about="share of the network load"),
    Column("state", Kind.NUMBER),
    Column("computation", Kind.NUMBER),
)

_CAPACITY_COLUMNS = (
    Column("capacity", Kind.NUMBER, about="relative capacity"),
    Column("utilization", Kind.RATIO, about="network load / capacity; 1 is the mean of all channels"),
)


def pinned_keys_table(plan: Plan) -> Table:
    """All pinned keys, in key order."""
    columns = (Column("key"), Column("channel", Kind.COUNT))
    rows = [(key_shown(key), channel) for key, channel in plan.explicit.items()]
    return Table.from_rows("Pinned keys", columns, rows)
