"""The registry of metrics agrees with the tables that hold them."""

import pytest

from adapt.core.check.metrics import METRICS, ROWS, SUMMARY, Better, Of, metric_named, metrics_tables
from adapt.core.elastic.replay import tables as elastic_tables
from adapt.core.errors import UsageError
from adapt.core.fit.replay import tables as fit_tables
from adapt.core.flux.replay import tables as flux_tables
from adapt.core.partitioning import compare
from adapt.core.partitioning.measures.metrics import METRIC_COLUMNS
from adapt.core.repartition import outcome as live_outcome
from adapt.core.repartition import period_tables
from adapt.core.stage.simulate import CRASH_COLUMNS
from adapt.core.table import Kind

COLUMNS = {
    (Of.COMPARISON, ROWS): compare.COLUMNS,
    (Of.REPARTITION, ROWS): period_tables.PERIOD_COLUMNS,
    (Of.REPARTITION, SUMMARY): (*period_tables.SUMMARY_COLUMNS, *live_outcome.LIVE_COLUMNS),
    (Of.FLUX, ROWS): (*flux_tables.CASE_COLUMNS, *CRASH_COLUMNS),
    (Of.FLUX, SUMMARY): flux_tables.SUMMARY_COLUMNS,
    (Of.ELASTIC, ROWS): (*elastic_tables.CASE_COLUMNS, *elastic_tables.JOIN_COLUMNS),
    (Of.FIT, ROWS): fit_tables.PLANNER_COLUMNS,
    (Of.FIT, SUMMARY): fit_tables.SUMMARY_COLUMNS,
}
DERIVED = {"gap", "top_share", "useful_workers"}


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_a_metric_is_of_the_kind_of_its_column(metric):
    for kind, (table, name) in metric.places.items():
        if (kind, table) in COLUMNS and name not in DERIVED:
            (column,) = [each for each in COLUMNS[kind, table] if each.name == name]
            assert column.kind is metric.kind, (kind, name)


def test_every_metric_of_design_section_5_is_there():
    for column in METRIC_COLUMNS:
        assert METRICS[column.name].kind is column.kind
        assert {Of.PLAN, Of.COMPARISON, Of.EVALUATION, Of.REPARTITION} <= METRICS[column.name].places.keys()
    assert METRICS.keys() >= DERIVED


def test_a_length_of_time_names_the_unit_of_a_bare_number():
    for metric in METRICS.values():
        assert (metric.kind is Kind.SECONDS) == metric.name.endswith(("_s", "_ms")) or metric.name == "r_s"
        if metric.kind is Kind.SECONDS:
            assert metric.name.endswith(f"_{metric.unit}")


def test_what_is_better_lower_is_not_what_is_better_higher():
    higher = {metric.name for metric in METRICS.values() if metric.better is Better.HIGHER}
    assert {"useful_workers", "throughput", "capacity_share", "optimum_share", "score", "processed"} <= higher
    assert not higher & {"imbalance", "gap", "top_share", "m", "p99_ms", "shed", "lag", "moves", "dropped"}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("imbalence", "did you mean 'imbalance'?"),
        ("Imbalance", "did you mean 'imbalance'?"),
        ("latency_p99", "the metric of that column is p99_ms"),
        ("zzz", "adapt check --metrics"),
    ],
)
def test_an_unknown_metric_is_refused_with_what_was_meant(name, told):
    with pytest.raises(UsageError) as refused:
        metric_named(name)
    assert told in str(refused.value)


def test_the_tables_list_every_metric_once():
    assert sorted(row["metric"] for table in metrics_tables() for row in table.records()) == sorted(METRICS)
