"""The evidence that a trace carries in its profile, as the judge reads it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapt.core.lint.outliers import Outliers, outliers
from adapt.core.lint.thresholds import GRANULAR

LINT = "lint"
"""The part of a trace's profile that holds what only the lint needs."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a trace; plain data, as `observing` and the profile left it.

    Attributes:
        profile: See `adapt.traces.ingest.profile`.
        lint: See `merging.EvidenceMerger`; `source` in it is what `source_order` tells, or absent.
    """

    profile: Mapping[str, Any]
    lint: Mapping[str, Any]

    @property
    def rows(self) -> int:
        """Rows of the trace."""
        return int(self.profile["rows"])

    @property
    def keys(self) -> int:
        """Distinct keys, exact while they are few."""
        return int(self.profile["distinct_keys"])

    @property
    def top_keys(self) -> Sequence[tuple[str | None, int]]:
        """The heaviest keys as text, and their rows at least."""
        return [(key, int(count)) for key, count in self.profile["top_keys"]]

    @property
    def outliers(self) -> Outliers:
        """Rows far away in time from all others."""
        instants = self.lint["instants"]
        return outliers(instants["head"], instants["tail"], self.rows)

    @property
    def span_s(self) -> float:
        """Seconds from the first row to the last, outliers left out."""
        found = self.outliers
        return (found.last_us - found.first_us) / 1e6

    @property
    def chance_of_same(self) -> float:
        """The chance that two rows at random have one key: the sum of squared shares."""
        counts = self.profile["rank_counts"]
        rest = max(0, self.rows - sum(counts))
        others = max(1, self.keys - len(counts))
        return float(sum(count**2 for count in counts) + rest**2 / others) / self.rows**2

    @property
    def grain(self) -> str | None:
        """The coarsest of day, hour and minute on which nearly all times fall; None if they are finer."""
        whole = self.lint["instants"]["whole"]
        return next((name for name in ("day", "hour", "minute") if whole[name] >= GRANULAR * self.rows), None)
