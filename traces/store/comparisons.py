"""Comparisons on disk: rows, and the last plan of each chain."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from adapt.core.counting.frequencies import Frequencies
from adapt.core.counting.tables import heaviest_key
from adapt.core.errors import BadInput, did_you_mean
from adapt.core.partitioning.compare import SCHEMA, Comparison
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.splitting.names import PlannedSplitting
from adapt.core.partitioning.splitting.split import WHOLE
from adapt.core.table import Displayed, Table
from adapt.core.units.seals import hash_of
from adapt.core.verdict.answer import Answer
from adapt.traces.locations.run_folders import MANIFEST
from adapt.traces.read_errors import damaged
from adapt.traces.store.answers import kept
from adapt.traces.store.atomic import whole_folder
from adapt.traces.store.manifest import Manifest, Provenance, file_entry, read_manifest, verify, write_manifest
from adapt.traces.store.plans import read_plan, write_plan
from adapt.traces.store.tables import FILE, read_rows, table_facts, table_hash, write_table

RECOMMENDED = "recommended"
"""Name of the plan that the verdict speaks of."""


@dataclass(frozen=True, slots=True, repr=False)
class StoredComparison(Displayed):
    """A comparison read from disk."""

    path: Path  # the artefact's folder
    manifest: Manifest  # how it was made
    table: Table  # one row per plan and channel count, each ratio with its floor
    frequencies: Mapping[str, Any]  # facts about the counted keys
    plan_files: Mapping[str, Path]  # the last plan of each chain, by name

    def plan(self, name: str) -> Plan:
        """Read one of the plans."""
        if name not in self.plan_files:
            raise BadInput(f"{self.path} has no plan {name!r}{did_you_mean(name, self.plan_files)}")
        return read_plan(self.plan_files[name])

    def as_data(self) -> dict[str, Any]:
        """The comparison as JSON data, as `Comparison.as_data` returned it."""
        rows = [asdict(WHOLE) | row for row in self.table.records()]
        return {"schema": SCHEMA, "estimate": bool(self.manifest.summary.get("estimate")), "rows": rows}

    def displayed(self) -> list[Table]:
        """The table."""
        return [self.table]


def plan_name(plan: Plan) -> str:
    """A plan's name in a comparison: scheme and construction."""
    if plan.splits:
        return PlannedSplitting.SPLIT_HOT.value
    return plan.scheme.value if plan.built_by is None else f"{plan.scheme.value}-{plan.built_by.replace(':', '.')}"


def write_comparison(
    comparison: Comparison,
    frequencies: Frequencies,
    out: Path,
    made: Provenance,
    *,
    answer: Answer | None = None,
    force: bool = False,
) -> Manifest:
    """Write a comparison as an artefact, its plans as `NAME.plan`.

    The plan of the answer is `recommended.plan`.

    Args:
        frequencies: The counted keys; facts about them are stored.
        made: How it was made; stored in the plans too.
        answer: The verdict on the stream; not part of the content hash.
    """
    table = comparison.table()
    with whole_folder(out, force=force, local=True) as folder:
        write_table(table, folder / FILE)
        named = {plan_name(plan): plan for plan in comparison.plans}
        if answer is not None and answer.recommended is not None:
            named[RECOMMENDED] = answer.recommended
        plans = {name: write_plan(plan, folder / f"{name}.plan", made) for name, plan in named.items()}
        counted = {"frequencies": _facts(frequencies), **({"estimate": True} if comparison.estimate else {})}
        facts = {"schema": SCHEMA, **counted, "plans": plans, "rows": table_facts(table)}
        files = [path for path in sorted(folder.iterdir()) if not path.name.startswith("_")]
        entries = [file_entry(folder, path) for path in files]
        content = hash_of([facts, table_hash(table)])
        manifest = Manifest("comparison", content, made, entries, facts | kept(answer))
        write_manifest(folder, manifest)
    return manifest


def read_comparison(path: Path) -> StoredComparison:
    """Read a comparison and verify its files; plans are read on demand."""
    manifest = read_manifest(path, "comparison")
    verify(path, manifest)
    facts = manifest.summary
    try:
        table = read_rows(path, manifest)
        plans = {str(name): manifest.file(path, f"{name}.plan") for name in facts["plans"]}
        return StoredComparison(path, manifest, table, facts["frequencies"], plans)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise damaged(path / MANIFEST, error) from error


def _facts(frequencies: Frequencies) -> dict[str, Any]:
    return {
        "weight": frequencies.weight.value,
        "key_type": frequencies.key_type.value,
        "rows": frequencies.rows,
        "total": frequencies.total,
        "distinct": frequencies.distinct,
        "top_key": heaviest_key(frequencies),
        "epsilon": frequencies.epsilon,
    }
