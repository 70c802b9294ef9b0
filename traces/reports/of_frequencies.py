"""Report of counted keys: verdict, hot keys, Zipf law."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from adapt.core.charts.chart import Chart
from adapt.core.counting.frequencies import Frequencies
from adapt.core.counting.tables import NULL_KEY, counts_table, heaviest_table, rank_share_table
from adapt.core.counting.zipf_fit import zipf_table
from adapt.core.keys.key_text import key_to_text
from adapt.core.out_of_sample.windows import start_column
from adapt.core.report.key_charts import keys_over_time, rank_frequency, top_keys
from adapt.core.table import Table
from adapt.core.verdict.answer import Answer
from adapt.core.verdict.hot_keys import HotKeys
from adapt.traces.counting.counts_table import CountsTable, read_counts
from adapt.traces.reports.reported import Reported, reported_of
from adapt.traces.store.answers import found_in
from adapt.traces.store.frequencies import facts_of, read_frequencies
from adapt.traces.store.manifest import Manifest, Provenance


def of_counts(path: Path) -> Reported:
    """The hot keys and the Zipf law of a table of counts."""
    table = read_counts(path)
    made = Provenance("", {}, table.inputs)
    manifest = Manifest("frequencies", table.content_hash, made, [], facts_of(table.frequencies))
    found = reported(path, manifest, table.frequencies)
    return replace(found, charts=(*found.charts, _over_time(table))) if len(table.panes) > 1 else found


def _over_time(table: CountsTable) -> Chart:
    """Load of the hottest keys in each window."""
    keys, starts = table.frequencies.keys, [pane.start_us for pane in table.panes]
    loads = np.zeros((len(keys), len(starts)))
    for window, pane in enumerate(table.panes):
        rows = pane.frequencies.rows_of(keys)
        loads[:, window] = np.where(rows >= 0, pane.frequencies.count_low[rows], 0.0)
    over = loads * len(keys) / np.maximum(loads.sum(axis=0), 1.0)
    names = [NULL_KEY if key is None else key_to_text(key) for key in keys.to_pylist()]
    return keys_over_time(names, Table.from_rows("", (start_column(starts),), [(start,) for start in starts]), over)


def reported(path: Path, manifest: Manifest, frequencies: Frequencies | None = None) -> Reported:
    """The verdict, if any, the hot keys and the Zipf law."""
    frequencies = frequencies or read_frequencies(path)[0]
    counts, heaviest, law = counts_table(frequencies), heaviest_table(frequencies), zipf_table(frequencies)
    exact = "exact" if frequencies.exact else f"within {frequencies.epsilon:.3g} of the total"
    about = "" if frequencies.exact or not frequencies.complete_above else "About "
    sentences = [
        f"{about}{frequencies.distinct:,} keys, weighted by {frequencies.weight}; counts are {exact}.",
        law.note,
    ]
    answer = found_in(manifest.summary, str(path))
    ranks = rank_frequency(rank_share_table(frequencies), law=law, thresholds=_thresholds(frequencies, answer))
    charts = (ranks, top_keys(heaviest))
    hot = (HotKeys.from_counts(frequencies) if answer is None else answer.hot_keys).table()
    said = reported_of(path, manifest, sentences, [hot, counts, law, heaviest], charts)
    return replace(said, lead=() if answer is None else tuple(answer.lead), first=(hot,), answer=answer)


def _thresholds(frequencies: Frequencies, answer: Answer | None) -> dict[str, float]:
    """Shares to mark in the chart: the fair share of a worker, and the threshold of complete listing."""
    marked = {}
    if answer is not None and answer.verdict is not None:
        channels = answer.verdict.channels
        marked[f"the fair share of a worker, 1/{channels:,}"] = 1 / channels
    if frequencies.complete_above and frequencies.total:
        marked["the share above which every key is listed"] = frequencies.complete_above / frequencies.total
    return marked
