"""Report of a trace: rows, keys, rates, lint findings."""

from dataclasses import replace
from math import ceil
from pathlib import Path

from adapt.core.charts.over_time import rate_over_time
from adapt.core.lint.finding import findings_table, lint_sentence
from adapt.core.lint.findings import judged
from adapt.core.report.key_charts import rank_frequency, top_keys
from adapt.core.table import Kind
from adapt.traces.reports.reported import Reported, reported_of, shown
from adapt.traces.store.manifest import Manifest
from adapt.traces.store.trace import (
    open_trace,
    overview,
    rank_table,
    rate_table,
    refused,
    streams_table,
    top_keys_table,
)


def reported(path: Path, manifest: Manifest) -> Reported:
    """Rows, keys, rejected rows and lint findings."""
    trace = open_trace(path)
    facts = overview(trace).records()[0]
    heaviest = top_keys_table(trace)
    share = facts["top_share"]
    timed = "first" in facts
    span = f"from {shown(facts['first'], Kind.TIME)} to {shown(facts['last'], Kind.TIME)}" if timed else "without times"
    sentences = [f"{shown(facts['rows'], Kind.COUNT)} rows of {shown(facts['keys'], Kind.COUNT)} keys {span}."]
    if isinstance(share, float) and share > 0:
        sentences.append(
            f"The hottest key, {heaviest.rows[0][0]}, has {shown(share, Kind.SHARE)} of all rows:"
            f" parallelism above {ceil(1 / share - 1e-9):,} buys nothing unless this key is split."
        )
    findings = judged(trace.profile)
    sentences.append(lint_sentence(findings, path.name))
    streams = streams_table(trace)
    tables = [
        overview(trace),
        *([findings_table(findings)] if findings else []),
        *([refused(trace)] if facts["rejected"] else []),
        *([streams] if streams else []),
        heaviest,
    ]
    rates = (rate_over_time(rate_table(trace)),) if timed else ()
    charts = (*rates, rank_frequency(rank_table(trace)), top_keys(heaviest))
    return replace(reported_of(path, manifest, sentences, tables, charts), findings=tuple(findings or ()))
