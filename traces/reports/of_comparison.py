"""Report of a comparison: verdict and schemes."""

from dataclasses import replace
from pathlib import Path

from adapt.core.report.scheme_charts import comparison
from adapt.core.verdict.compared import at_channels
from adapt.traces.reports.reported import Reported, reported_of
from adapt.traces.store.answers import found_in
from adapt.traces.store.comparisons import RECOMMENDED, read_comparison
from adapt.traces.store.manifest import Manifest


def reported(path: Path, manifest: Manifest) -> Reported:
    """The verdict and the schemes compared."""
    stored = read_comparison(path)
    answer = found_in(manifest.summary, str(path))
    said = reported_of(path, manifest, [], [stored.table], comparison(stored.table))
    if answer is None:
        return replace(
            said, sentences=("This comparison has no verdict; run `adapt partition compare` again to get one.",)
        )
    verdict = answer.verdict
    shown = (0, None) if verdict is None else (verdict.channels, verdict.max_imbalance)
    first = (at_channels(stored.table, *shown), *answer.channels_tables())
    return replace(
        said, lead=tuple(answer.lead), first=first, answer=answer, plan=str(stored.plan_files.get(RECOMMENDED, ""))
    )
