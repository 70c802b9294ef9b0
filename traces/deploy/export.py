"""Exporting a plan to a folder that an engine or program reads."""

from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from adapt.core.engines.any_language.plan_text import has_text, plan_text
from adapt.core.engines.exporter import Bundle, Program
from adapt.core.engines.names import Engine, Target
from adapt.core.engines.registry import definition_of, exporter_of
from adapt.core.errors import BadInput
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.phrases import counted
from adapt.core.table import Column, Displayed, Kind, Table
from adapt.core.units.seals import hash_of
from adapt.traces.store import disk
from adapt.traces.store.atomic import whole_folder
from adapt.traces.store.manifest import Manifest, Provenance, file_entry, write_manifest
from adapt.traces.store.plans import write_plan
from adapt.traces.store.tables import packed

KIND = "deployment"
SCHEMA = "adapt.deployment/1"
PLAN = "plan.json"
TEXT = "plan.txt"
README = "README.md"


@dataclass(frozen=True, slots=True, repr=False)
class Deployment(Displayed):
    """An exported plan."""

    target: Target  # the engine, or `plan` for any program
    manifest: Manifest  # its files, and how it was made
    about: dict[str, str]  # what each file is, by name

    def table(self) -> Table:
        """The files as a table."""
        columns = (Column("file"), Column("bytes", Kind.BYTES), Column("about"))
        rows = [(entry["name"], entry["bytes"], self.about[entry["name"]]) for entry in self.manifest.files]
        return Table.from_rows(f"Exported for {self.target}", columns, rows)

    def as_data(self) -> dict[str, object]:
        """The same as JSON data."""
        return {"schema": SCHEMA, **self.manifest.summary, "files": self.table().records()}

    def displayed(self) -> list[Table]:
        """The files."""
        return [self.table()]


def export_plan(
    plan: Plan,
    target: Target,
    out: Path,
    made: Provenance,
    *,
    max_parallelism: int | None = None,
    bundle: Bundle | None = None,
    force: bool = False,
) -> Deployment:
    """Write a plan for a target, atomically; equal plans give equal folders.

    Args:
        max_parallelism: Key groups of the Flink job (default: Flink's default).
        bundle: The files of the target (default: those of its exporter).
        force: Overwrite an earlier export.
    """
    if plan.splits and target is not Target.REKEY:
        raise BadInput(f"the plan splits {counted(len(plan.splits), 'key')}; export it --to rekey")
    if bundle is None:
        bundle = exporter_of(target)(plan, max_parallelism)
    about = {PLAN: "the plan, for adapt"}
    if has_text(plan) and not plan.splits:
        about[TEXT] = "the plan as text, for any language"
    about |= {name: file.about for name, file in bundle.files.items()}
    about |= {name: program.about for name, program in bundle.programs.items()}
    with whole_folder(out, force=force, local=True) as folder:
        write_plan(plan, folder / PLAN, made)
        if TEXT in about:
            disk.write_bytes(folder / TEXT, plan_text(plan))
        for name, file in bundle.files.items():
            disk.write_bytes(folder / name, file.content if isinstance(file.content, bytes) else packed(file.content))
        for name, program in bundle.programs.items():
            disk.write_bytes(folder / name, source_of(program))
        written = [path for path in sorted(folder.iterdir()) if not path.name.startswith("_")]
        about |= {path.name: "pinned keys of the plan" for path in written if path.name not in about}
        about[README] = "how to use it"
        disk.write_bytes(folder / README, _readme(plan, target, bundle, about, out.name).encode())
        entries = [file_entry(folder, path) for path in sorted([*written, folder / README])]
        facts = {"target": target.value, "plan": plan.content_hash(), "channels": plan.channels}
        content = hash_of([facts, [entry["sha256"] for entry in entries if entry["name"] != PLAN]])
        manifest = Manifest(KIND, content, made, entries, facts)
        write_manifest(folder, manifest)
    return Deployment(target, manifest, about)


def source_of(program: Program) -> bytes:
    """The source of a program exported with plans."""
    return resources.files(program.package).joinpath(program.file).read_bytes()


def _readme(plan: Plan, target: Target, bundle: Bundle, about: dict[str, str], folder: str) -> str:
    files = "\n".join(f"- `{name}`: {what}" for name, what in sorted(about.items()))
    readers = {Target.PLAN: "any language", Target.REKEY: "the engine's own hash"}
    reader = readers.get(target) or definition_of(Engine(target.value)).title
    keys = f"{len(plan.explicit):,} pinned keys" if plan.explicit else "no pinned keys"
    keys += f", {counted(len(plan.splits), 'split key')}" if plan.splits else ""
    base = f" over {plan.base}" if plan.is_based else ""
    return (
        f"# A plan for {reader}\n\n"
        f"Scheme {plan.scheme}{base}, {plan.channels} channels, {plan.key_type} keys, {keys}.\n"
        f"Content hash {plan.content_hash()}.\n`_manifest.json` records how it was made.\n\n"
        f"{bundle.use.replace('{folder}', folder)}\n## Files\n\n{files}\n"
    )
