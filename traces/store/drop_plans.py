"""Precomputed drop plans on disk, with the text of their query network."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from adapt.core.fit.drop_plans import DropPlans, from_tables
from adapt.core.fit.network.names import DropPlanner, Grid, RateSteps
from adapt.core.fit.network.network_file import read_network
from adapt.core.fit.registry import PlannerOptions
from adapt.core.units.seals import hash_of
from adapt.traces.locations.run_folders import MANIFEST
from adapt.traces.read_errors import damaged
from adapt.traces.store.atomic import whole_folder
from adapt.traces.store.manifest import Manifest, Provenance, file_entry, read_manifest, verify, write_manifest
from adapt.traces.store.tables import read_table, table_facts, table_hash, write_table

KIND = "drop-plan table"
SCHEMA = "adapt.drop-plans/1"


@dataclass(frozen=True, slots=True)
class StoredDropPlans:
    """Drop plans read from disk."""

    path: Path  # the artefact's folder
    manifest: Manifest  # how they were made
    plans: DropPlans


def write_drop_plans(plans: DropPlans, network_text: str, out: Path, made: Provenance) -> Manifest:
    """Write drop plans as an artefact.

    Args:
        network_text: The text of their network file.
    """
    tables = plans.tables()
    facts = {
        "schema": SCHEMA,
        "network": network_text,
        "headroom": plans.headroom,
        "epsilon": plans.epsilon,
        "grid": plans.grid.value,
        "rate_steps": plans.rate_steps.value,
        "max_rates": plans.max_rates.tolist(),
        "planners": {name.value: {"merged": planner.merge} for name, planner in plans.planners.items()},
        "tables": {name: table_facts(table) for name, table in tables.items()},
    }
    with whole_folder(out, local=True) as folder:
        for name, table in tables.items():
            write_table(table, folder / f"{name}.parquet")
        content = hash_of([facts, {name: table_hash(table) for name, table in tables.items()}])
        manifest = Manifest(
            KIND, content, made, [file_entry(folder, folder / f"{name}.parquet") for name in tables], facts
        )
        write_manifest(folder, manifest)
    return manifest


def read_drop_plans(path: Path, asked: PlannerOptions | None = None) -> StoredDropPlans:
    """Read drop plans and verify their files.

    Args:
        asked: How d-fit nodes exchange messages during the replay; its other fields come from the artefact.
    """
    manifest = read_manifest(path, KIND)
    verify(path, manifest)
    facts = manifest.summary
    try:
        usual = asked or PlannerOptions()
        grid, rate_steps = Grid(facts["grid"]), RateSteps(facts["rate_steps"])
        options = replace(
            usual,
            settings=replace(usual.settings, headroom=facts["headroom"], epsilon=facts["epsilon"]),
            tables=replace(usual.tables, grid=grid, rate_steps=rate_steps),
            max_rates=np.array(facts["max_rates"], np.float64),
        )
        tables = {
            name: read_table(manifest.file(path, f"{name}.parquet"), table) for name, table in facts["tables"].items()
        }
        planned = {DropPlanner(name): bool(one["merged"]) for name, one in facts["planners"].items()}
        plans = from_tables(read_network(facts["network"]).network, options, planned, tables)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise damaged(path / MANIFEST, error) from error
    return StoredDropPlans(path, manifest, plans)
