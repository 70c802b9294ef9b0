"""Report of precomputed drop plans."""

from pathlib import Path

from adapt.core.fit.network.names import DropPlanner
from adapt.core.fit.registry import proof_of
from adapt.core.phrases import percent
from adapt.core.table import Table
from adapt.traces.reports.reported import Reported, reported_of
from adapt.traces.store.drop_plans import read_drop_plans
from adapt.traces.store.manifest import Manifest


def reported(path: Path, manifest: Manifest) -> Reported:
    """Every drop plan with its rates and keep shares."""
    plans = read_drop_plans(path).plans
    inputs = plans.network.inputs
    highest = ", ".join(
        f"{entering.name!r} up to {rate:,.4g}" for entering, rate in zip(inputs, plans.max_rates, strict=True)
    )
    tables = plans.shown()
    sentences = [
        f"Drop plans for epsilon {plans.epsilon:g} and headroom {plans.headroom:g}; input rates in tuples/s:"
        f" {highest}.",
        "A plan covers overloaded rates from its lower bound: inputs are scaled down to that, and arcs keep the shares"
        " in the table.",
        *(
            f"Plans of {name} lose at most {percent(proof.epsilon or 0.0)} of the best possible score"
            f"{' on average' if name is DropPlanner.SOLVER_W else ''}."
            for name, proof in ((name, proof_of(planner)) for name, planner in plans.planners.items())
        ),
        *(f"{table.title}: {len(table.rows):,} plans." for table in tables if _of_plans(table)),
    ]
    return reported_of(path, manifest, sentences, tables, ())


def _of_plans(table: Table) -> bool:
    return table.columns[0].name == "plan"
