"""Compare artefacts of one kind: differences in metrics, and migration between plans."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from adapt.core.charts.chart import Chart
from adapt.core.check.differences import changes, difference_sentence, difference_table
from adapt.core.check.facts import Facts
from adapt.core.counting.frequencies import Frequencies
from adapt.core.errors import BadInput
from adapt.core.labels import distinct
from adapt.core.phrases import counted
from adapt.core.table import Table
from adapt.traces.checking import facts_of
from adapt.traces.reports.reported import Reported
from adapt.traces.store.frequencies import read_frequencies
from adapt.traces.store.plans import read_plan

_COMPARED = ("trace", "frequencies", "plan", "comparison", "run")


@dataclass(frozen=True, slots=True)
class Differences:
    """Differences between an artefact and the first of its kind."""

    heading: str  # names of both
    sentences: tuple[str, ...]  # differences in words
    tables: tuple[Table, ...]  # differences by metric; for plans, also migration
    charts: tuple[Chart, ...]  # migration between plans
    data: dict[str, Any]  # JSON data


def differences(paths: Sequence[Path], read: Sequence[Reported]) -> list[Differences]:
    """Compare every artefact with the first of its kind.

    Args:
        read: The artefacts. Counted keys among them are used to compute the migration between plans.
    """
    names = distinct([artefact.name for artefact in read])
    known = [
        (facts, path, name)
        for path, artefact, name in zip(paths, read, names, strict=True)
        if artefact.kind in _COMPARED and (facts := _facts(path)) is not None
    ]
    counts = [path for path, artefact in zip(paths, read, strict=True) if artefact.kind == "frequencies"]
    frequencies = read_frequencies(counts[0])[0] if counts else None
    found = []
    for _, held in groupby(sorted(known, key=lambda each: each[0].kind), key=lambda each: each[0].kind):
        (first, its_path, its_name), *others = held
        for facts, path, name in others:
            found.append(_between(first, facts, (its_name, name)))
            if frequencies is not None and str(facts.kind) == "plan":
                found[-1] = _with_moves(found[-1], its_path, path, frequencies)
    return found


def _facts(path: Path) -> Facts | None:
    """Metrics of an artefact; None without any."""
    try:
        return facts_of(path, [])
    except BadInput:
        return None


def _between(before: Facts, after: Facts, names: tuple[str, str]) -> Differences:
    table = difference_table(before, after, names)
    sentence = difference_sentence(before, after, names)
    changed = [change.as_data() for change in changes(before, after)]
    data = {"before": names[0], "after": names[1], "kind": str(before.kind), "changes": changed}
    return Differences(table.title, (sentence,), (table,) if table.rows else (), (), data)


def _with_moves(found: Differences, before: Path, after: Path, frequencies: Frequencies) -> Differences:
    """The difference of two plans with their migration, if the counted keys are of their type."""
    from adapt.core.partitioning.measures.resources import Resources
    from adapt.core.partitioning.plans.difference import plan_difference
    from adapt.core.report.move_charts import migration_matrix
    from adapt.core.report.verdict_charts import workers_before_after

    old, new = read_plan(before), read_plan(after)
    try:
        bill = plan_difference(old, new, frequencies, Resources())
    except BadInput:
        return found
    moves, workers = bill.moves(), bill.workers()
    keys = counted(bill.migration.keys, "key")
    moved = f"{keys} move to another worker: state moved is {bill.migration.relative:.3g} times an average worker's."
    charts = (workers_before_after(workers), *([migration_matrix(moves)] if moves.rows else []))
    data = {**found.data, "moves": moves.records()}
    return Differences(found.heading, (*found.sentences, moved), (*found.tables, workers.table(), moves), charts, data)
