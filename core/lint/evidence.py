"""Lint evidence in the profile of a trace."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapt.core.lint.outliers import Outliers, outliers
from adapt.core.lint.thresholds import GRANULAR

OF_TIMES = ("instants", "minutes", "clocks", "same_as_before", "halves", "again")
"""Evidence that a trace without times has not."""

LINT = "lint"
"""The section of a trace's profile for lint evidence."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Profile and lint evidence of a trace, as plain data."""

    profile: Mapping[str, Any]  # see `adapt.traces.ingest.profile`
    # see `merging.EvidenceMerger`. Of the source, where known: `source` as in `source_order`, `sample` with the
    # `share` of its keys and the rows `left_out`, `null_text`, which it prints for a null key, and `local_times`: by
    # stream, its `zone` and the rows `doubled`, `second`, `undecided` and `skipped`
    lint: Mapping[str, Any]

    @property
    def rows(self) -> int:
        """Rows of the trace."""
        return int(self.profile["rows"])

    @property
    def keys(self) -> int:
        """Distinct keys; exact for small numbers."""
        return int(self.profile["distinct_keys"])

    @property
    def top_keys(self) -> Sequence[tuple[str | None, int]]:
        """The hottest keys as text, with lower bounds of their row counts."""
        return [(key, int(count)) for key, count in self.profile["top_keys"]]

    @property
    def outliers(self) -> Outliers:
        """Rows with outlier dates."""
        instants = self.lint["instants"]
        return outliers(instants["head"], instants["tail"], self.rows)

    @property
    def span_s(self) -> float:
        """Seconds from the first row to the last, without outliers."""
        found = self.outliers
        return (found.last_us - found.first_us) / 1e6

    @property
    def chance_of_same(self) -> float:
        """Probability that two random rows have the same key."""
        counts = self.profile["rank_counts"]
        rest = max(0, self.rows - sum(counts))
        others = max(1, self.keys - len(counts))
        return float(sum(count**2 for count in counts) + rest**2 / others) / self.rows**2

    @property
    def grain(self) -> str | None:
        """Granularity of timestamps: day, hour or minute; None if finer."""
        whole = self.lint["instants"]["whole"]
        return next((name for name in ("day", "hour", "minute") if whole[name] >= GRANULAR * self.rows), None)


def sample_effect(profile: Mapping[str, Any]) -> float | None:
    """Design effect of a trace's sample of records; None without a sample."""
    sample = profile.get(LINT, {}).get("record_sample")
    return None if sample is None else float(sample.get("effect", 1.0))
