"""Lint a trace from its profile, or by reading it; or counts."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adapt.core.keys.columns import ARROW_TYPES
from adapt.core.lint.evidence import LINT
from adapt.core.lint.finding import SCHEMA, Finding, findings_columns, findings_table
from adapt.core.lint.findings import ON_KEYS, ON_ROWS, RULES, judged, judged_counts
from adapt.core.lint.merging import EvidenceMerger
from adapt.core.lint.observing import BlockObserver
from adapt.core.lint.time_rules import ClockGrid
from adapt.core.phrases import counted
from adapt.core.table import Displayed, Table
from adapt.traces.counting.counts_table import read_counts
from adapt.traces.locations.run_folders import is_table
from adapt.traces.read_errors import readable
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.store.manifest import file_sha256
from adapt.traces.store.trace import Trace, open_trace, read_pieces
from adapt.traces.units.reading import units_of
from adapt.traces.units.samples import FINDINGS, loads_of

OBSERVED = ("ts", "key", "stream", "cost_us", "bytes")
"""The columns that lint reads."""


@dataclass(frozen=True, slots=True, repr=False)
class Linted(Displayed):
    """Lint findings of a trace, or of counts."""

    path: Path
    content_hash: str  # empty for a folder of metrics
    findings: tuple[Finding, ...]  # worst first
    knows_source: bool  # whether the order of rows in the source is known
    rules: tuple[str, ...] = tuple(RULES)  # those that were checked

    @property
    def table(self) -> Table:
        """The findings for people."""
        return findings_table(self.findings, f"Lint of {self.path.name}")

    @property
    def columns(self) -> Table:
        """The findings with one column per part."""
        return findings_columns(self.findings)

    @property
    def sentence(self) -> str:
        """Number of findings and rules, and what could not be checked."""
        unknown = "" if self.knows_source else "; the order of the source is unknown"
        unknown = unknown if len(self.rules) == len(RULES) else "; the others need rows with times"
        return f"{counted(len(self.findings), 'finding')}, {len(self.rules)} rules checked{unknown}"

    def as_data(self) -> dict[str, Any]:
        """The findings as one JSON document."""
        return {
            "schema": SCHEMA,
            "trace": self.path.name,
            "content_hash": self.content_hash,
            "rules": list(self.rules),
            "source_order_known": self.knows_source,
            "findings": [finding.as_data() for finding in self.findings],
        }

    def displayed(self) -> list[Table]:
        """The findings."""
        return [self.table]


def lint(path: Path, progress: Progress = silent) -> Linted:
    """Lint a trace, counts, or metrics by unit."""
    with readable(path):
        if is_table(path):
            table = read_counts(path)
            return Linted(path, table.content_hash, tuple(judged_counts(table.frequencies)), False, ON_KEYS)
    samples = units_of(str(path))
    if samples is not None:
        found = tuple(loads_of(samples).findings)
        content = file_sha256(path) if path.is_file() else ""
        return Linted(path, content, found, False, tuple(FINDINGS))
    trace = open_trace(path)
    profile = trace.profile
    if LINT not in profile:
        profile[LINT] = _observed(trace, progress)
    findings = tuple(judged(profile) or ())
    rules = tuple(RULES) if "ts" in trace.columns else (*ON_KEYS, *ON_ROWS)
    return Linted(trace.path, trace.manifest.content_hash, findings, bool(profile[LINT].get("source")), rules)


def _observed(trace: Trace, progress: Progress) -> dict[str, Any]:
    """Evidence of a trace without it, except for the order of its source."""
    grid = ClockGrid.over(trace.first_us, trace.last_us)
    names = [name for name in OBSERVED if name in trace.columns]
    blocks = trace.blocks()
    merger = EvidenceMerger(grid, ARROW_TYPES[trace.key_type], "stream" in names)
    for block in blocks:
        progress("linting", block.index, len(blocks))
        observer = BlockObserver(names, block.first_row, trace.rows // 2, grid)
        for batch in read_pieces(block.pieces, names):
            observer.see(batch)
        merger.add(observer.as_data())
    return merger.evidence()
