"""Drop plans made in advance."""

from pathlib import Path

from adapt.core.table import Table
from adapt.traces.reports.reported import Reported, reported_of
from adapt.traces.store.drop_plans import read_drop_plans
from adapt.traces.store.manifest import Manifest


def reported(path: Path, manifest: Manifest) -> Reported:
    """Every plan with the rates it is for and what it keeps."""
    plans = read_drop_plans(path).plans
    inputs = plans.network.inputs
    highest = ", ".join(
        f"{entering.name!r} up to {rate:,.4g}" for entering, rate in zip(inputs, plans.max_rates, strict=True)
    )
    tables = plans.shown()
    sentences = [
        f"Made for epsilon {plans.epsilon:g} and headroom {plans.headroom:g}, at these tuples/s: {highest}.",
        "A plan is for overloaded rates from its low end on: the inputs are scaled down to that, and arcs keep the"
        " shares that stand there.",
        *(f"{table.title}: {len(table.rows):,} plans{_largest_error(table)}." for table in tables if _of_plans(table)),
    ]
    return reported_of(path, manifest, sentences, tables, ())


def _of_plans(table: Table) -> bool:
    return table.columns[0].name == "plan"


def _largest_error(table: Table) -> str:
    named = any(column.name == "error" for column in table.columns)
    errors = [error for error in table.values("error") if isinstance(error, float)] if named else []
    return f", which lose at most {max(errors):.1%} of the best score" if errors else ""
