"""The registry of metrics agrees with the tables that hold them."""

import pytest

from adapt.core.check.metrics import metric_named
from adapt.core.elastic.replay import tables as elastic_tables
from adapt.core.errors import UsageError
from adapt.core.fit.replay import tables as fit_tables
from adapt.core.flux.replay import tables as flux_tables
from adapt.core.metrics import METRICS, RENAMED, ROWS, SUMMARY, Better, Of, column_now
from adapt.core.partitioning import compare
from adapt.core.repartition import outcome as live_outcome
from adapt.core.repartition import periods
from adapt.core.stage.simulate import CRASH_COLUMNS
from adapt.core.table import Column, Kind

COLUMNS = {
    (Of.COMPARISON, ROWS): compare.COLUMNS,
    (Of.REPARTITION, ROWS): periods.PERIOD_COLUMNS,
    (Of.REPARTITION, SUMMARY): (*periods.SUMMARY_COLUMNS, *live_outcome.LIVE_COLUMNS),
    (Of.FLUX, ROWS): (*flux_tables.CASE_COLUMNS, *CRASH_COLUMNS),
    (Of.FLUX, SUMMARY): flux_tables.SUMMARY_COLUMNS,
    (Of.ELASTIC, ROWS): (*elastic_tables.CASE_COLUMNS, *elastic_tables.JOIN_COLUMNS),
    (Of.FIT, ROWS): fit_tables.PLANNER_COLUMNS,
    (Of.FIT, SUMMARY): fit_tables.SUMMARY_COLUMNS,
}
DERIVED = {"times_best_possible", "top_share", "useful_workers"}


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_a_metric_is_a_column_of_its_tables(metric):
    for kind, table in metric.places.items():
        if (kind, table) in COLUMNS and metric.name not in DERIVED:
            assert metric.column in COLUMNS[kind, table], kind


def test_a_name_of_an_earlier_version_tells_the_new_one():
    assert set(RENAMED.values()) <= METRICS.keys()
    assert not RENAMED.keys() & METRICS.keys()
    for old, new in RENAMED.items():
        with pytest.raises(UsageError, match=f"metric '{old}' is now {new}"):
            metric_named(old)


def test_a_column_of_an_earlier_version_is_read_under_todays_name():
    assert column_now(Column("gap", Kind.RATIO)) is METRICS["times_best_possible"].column
    assert column_now(Column("idle", Kind.NUMBER, "s")) is METRICS["idle_time"].column
    tuples = Column("dropped", Kind.COUNT, "tuples")  # of a table in which it is no share
    assert column_now(tuples) is tuples


def test_what_is_better_lower_is_not_what_is_better_higher():
    higher = {metric.name for metric in METRICS.values() if metric.better is Better.HIGHER}
    assert {"useful_workers", "throughput", "capacity_share", "optimum_share", "score", "processed"} <= higher
    assert not higher & {
        "imbalance",
        "times_best_possible",
        "top_share",
        "m",
        "latency_p99",
        "rows_dropped",
        "moves",
        "drop_rate",
    }


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("imbalence", "did you mean 'imbalance'?"),
        ("Imbalance", "did you mean 'imbalance'?"),
        ("p99_ms", "is now latency_p99, and takes a unit, as in latency_p99<=500ms"),
        ("zzz", "adapt check --metrics"),
    ],
)
def test_an_unknown_metric_is_refused_with_what_was_meant(name, told):
    with pytest.raises(UsageError) as refused:
        metric_named(name)
    assert told in str(refused.value)
