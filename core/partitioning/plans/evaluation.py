"""Plans measured on every key of a stream, against their predictions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapt.core.arrays import Floats
from adapt.core.engines.names import AnyScheme, Engine
from adapt.core.partitioning.measures.imbalance import max_over_mean
from adapt.core.partitioning.measures.metrics import METRIC_COLUMNS, Metrics
from adapt.core.partitioning.measures.resources import RESOURCES, Resources
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.schemes.split_map import SplitPartitioner
from adapt.core.stream import Weight
from adapt.core.table import Column, Displayed, Kind, Table

SCHEMA = "adapt.evaluation/2"

_WEIGHED = ("resources", "tolerance", "measured")
_OF_MIGRATION = ("m", "b(1+m)", "keys_moved", "state_moved")

_DIGITS = 9
"""Decimals of the error of a prediction; smaller ones are rounding."""


MERGING = (
    Column("plan"),
    Column("split_keys", Kind.COUNT),
    Column("merge_messages", Kind.COUNT, about="messages of one merge: one per replacement"),
    Column("imbalance_merge", Kind.RATIO, about="merge messages of the busiest worker / mean"),
    Column("imbalance_both", Kind.RATIO, about="imbalance of rows and the messages of one merge together"),
)


@dataclass(frozen=True, slots=True)
class EvaluatedPlan:
    """A plan with its measured metrics."""

    name: str
    plan: Plan
    measured: Metrics  # its metrics, with the migration from the plan before it, if there is one
    loads: Floats  # the loads of its channels: state, computation, network; shape (3, channels)
    # the plan's own predictions of these metrics. Empty if it was built for other resources; without migration if it
    # was built to follow another plan than the one before it
    predicted: Mapping[str, Any]


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation(Displayed):
    """Plans measured on every key of one stream, in order."""

    plans: tuple[EvaluatedPlan, ...]
    keys: int
    weight: Weight
    resources: Resources  # the loads and tolerances that they were measured by

    def table(self) -> Table:
        """One row per plan."""
        columns = (Column("plan"), Column("scheme"), Column("construction"), Column("channels", Kind.COUNT))
        rows = [
            (
                each.name,
                each.plan.scheme.value,
                each.plan.construction and each.plan.construction.value,
                each.plan.channels,
                *(each.measured.as_data()[column.name] for column in METRIC_COLUMNS),
            )
            for each in self.plans
        ]
        note = f"All {self.keys:,} keys, weighed by {self.weight}; resources {self._weighed_by()}."
        return Table.from_rows("Plans measured on every key", (*columns, *METRIC_COLUMNS), rows, note)

    def predictions(self) -> Table:
        """Predictions next to measurements, one row per metric and plan."""
        columns = (
            Column("plan"),
            Column("metric"),
            Column("predicted", Kind.NUMBER),
            Column("measured", Kind.NUMBER),
            Column("error", Kind.SHARE, about="measured / predicted - 1"),
        )
        rows = [
            (
                each.name,
                name,
                predicted,
                measured,
                round(measured / predicted - 1, _DIGITS) + 0.0 if predicted and measured is not None else None,
            )
            for each in self.plans
            for name, predicted in each.predicted.items()
            for measured in (each.measured.as_data()[name],)
        ]
        without = [each.name for each in self.plans if not each.predicted and each.plan.metrics]
        note = f"No prediction for resources {self._weighed_by()}: {', '.join(without)}." if without else ""
        return Table.from_rows("Predicted and measured", columns, rows, note)

    def merging(self) -> Table | None:
        """What merging partial results costs; None without split keys."""
        rows = []
        for each in self.plans:
            dealer = each.plan.dealer()
            if isinstance(dealer, SplitPartitioner):
                messages, load = dealer.merge_messages(), each.loads[RESOURCES.index("network")]
                both = max_over_mean(load + messages)
                rows.append((each.name, len(each.plan.splits), int(messages.sum()), max_over_mean(messages), both))
        note = (
            "Step 1 aggregates by the replaced key, at the imbalance above. Step 2 merges by the original key: each"
            " merge takes a message from every replacement."
        )
        return Table.from_rows("Merging split keys", MERGING, rows, note) if rows else None

    def _weighed_by(self) -> str:
        """The loads of the resources, and the measured columns."""
        measured = zip(RESOURCES, self.resources.measured, strict=True)
        named = [f"{resource} by {source}" for resource, source in measured if source is not None]
        return ", ".join([self.resources.text, *named])

    def as_data(self) -> dict[str, Any]:
        """The evaluation as JSON data."""
        table = self.merging()
        merging = {row.pop("plan"): {"merging": row} for row in ([] if table is None else table.records())}
        return {
            "schema": SCHEMA,
            "keys": self.keys,
            "weight": self.weight.value,
            **self.resources.as_data(),
            "plans": [
                {
                    "plan": each.name,
                    "content_hash": each.plan.content_hash(),
                    "scheme": each.plan.scheme.value,
                    "construction": each.plan.construction and each.plan.construction.value,
                    "channels": each.plan.channels,
                    "measured": each.measured.as_data(),
                    "predicted": dict(each.predicted),
                    "loads": dict(zip(RESOURCES, each.loads.tolist(), strict=True)),
                    **merging.get(each.name, {}),
                }
                for each in self.plans
            ],
        }

    def displayed(self) -> list[Table]:
        """All tables."""
        return [each for each in (self.table(), self.merging(), self.predictions()) if each is not None]


def doing_nothing(plans: Sequence[Plan], today: AnyScheme | None = None) -> Plan | None:
    """Today's placement on the channels of the first plan.

    None if the first plan is that itself.

    Args:
        plans: Plans in the order of their deployment.
        today: What places keys now. Default: the engine under the first plan, else Spark.
    """
    first = plans[0]
    placing = today or (first.hashing if isinstance(first.hashing, Engine) else Engine.SPARK)
    if first.hashing is placing and not first.explicit and not first.splits:
        return None
    capacities = {name: value for name, value in first.parameters.items() if name == "capacities"}
    return Plan(
        placing,
        first.channels,
        first.key_type,
        hash=first.hash,
        max_parallelism=first.max_parallelism,
        parameters=capacities,
    )


def resources_of(plans: Sequence[Plan]) -> Resources:
    """The resources that the first plan was built for."""
    default = Resources()
    said = plans[0].parameters
    measured = [f"{resource}={source}" for resource, source in said.get("measured", {}).items()]
    loads, tolerance = said.get("resources", default.text), said.get("tolerance", default.tolerance)
    return Resources.parse(loads, tolerance, measure=measured)


def predicted_metrics(plan: Plan, before: Plan | None, resources: Resources) -> dict[str, Any]:
    """The metrics that a plan predicted for these resources, if any."""
    if {name: plan.parameters.get(name) for name in _WEIGHED} != {**dict.fromkeys(_WEIGHED), **resources.as_data()}:
        return {}
    follows = before is not None and plan.parent == before.content_hash()
    known = [column.name for column in METRIC_COLUMNS if column.name != "pinned_keys"]
    names = [name for name in known if follows or name not in _OF_MIGRATION]
    return {name: plan.metrics[name] for name in names if name in plan.metrics}
