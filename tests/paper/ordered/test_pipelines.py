"""Pipelines are what Table 1 says, and runs of them are kept as they were."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from adapt.core.ordered.chain.names import OperatorKind, Reorder, WorkQueue
from adapt.core.ordered.engine.reference import run_serially
from adapt.core.ordered.engine.settings import Contention, RunSettings
from adapt.core.ordered.model.model import run_model
from paper.experiments import described
from paper.ordered.figures.choices import work_us
from paper.ordered.figures.shown import peaks, said
from paper.ordered.measured import Pipeline, Ran, Simulated
from paper.ordered.pipelines import CATEGORIES, QUERIES, one_partitioned, one_stateless, query, retail, retail_costs
from paper.ordered.scope import Scope

SHORT = {OperatorKind.STATELESS: "SL", OperatorKind.PARTITIONED: "PS", OperatorKind.STATEFUL: "SF"}


def test_queries_have_the_kinds_of_table_1():
    kinds = {name: [SHORT[operator.kind] for operator in operators] for name, operators in QUERIES.items()}
    assert kinds == {
        "Q1": ["SL", "PS", "PS", "SF"],
        "Q2": ["SL", "PS", "SL", "PS", "SF"],
        "Q3": ["SL", "PS", "PS"],
        "Q4": ["SL", "PS", "SL", "SF"],
        "Q15": ["SL", "SL", "PS"],
    }
    assert all(1 <= operator.cost <= 4 for operators in QUERIES.values() for operator in operators)


def test_categories_have_a_partition_each():
    last = query("Q15", 1000, 0).operators[-1]
    assert sorted(last.partition_of.tolist()) == list(range(CATEGORIES))
    assert query("Q15", 1000, 0, partitions=4).operators[-1].partitions == 4


def test_costs_are_multiplied_and_partitions_set():
    chain = query("Q1", 100, 0, partitions=7, heavier=10.0)
    assert [bound.operator.cost for bound in chain.operators] == [10, 20, 10, 40]
    assert [bound.partitions for bound in chain.operators] == [1, 7, 7, 1]


def test_skewed_keys_are_drawn_by_zipfs_law():
    chain = query("Q3", 20_000, 0, skew=1.0)
    keys = np.sort(np.bincount(chain.tuples[:, 0]))[::-1]
    assert keys[0] / keys[9] == pytest.approx(10, rel=0.3)


def test_normal_keys_fall_into_ranges_from_minus_1_to_1():
    (operator,) = one_partitioned(20_000, 0, 10.0, 2, sigma=0.3).operators
    counts = np.bincount(operator.partition_of[one_partitioned(20_000, 0, 10.0, 2, sigma=0.3).tuples[:, 0]])
    assert counts / 20_000 == pytest.approx([0.5, 0.5], abs=0.02)


def test_the_work_of_a_tuple_counts_what_operators_give():
    assert work_us() == pytest.approx(1 + 2 + 2.3 * 1 + 2.3 * 0.02 * 4)


@pytest.mark.parametrize("name", ["Q3", "Q15"])
def test_the_functions_of_retail_chains_run_in_the_model_in_order(name: str) -> None:
    chain, costs_us = retail(400, 1, name, 7), retail_costs(name)
    assert [bound.partitions for bound in chain.operators if bound.operator.key] == [7] * (2 if name == "Q3" else 1)
    settings = RunSettings(4, Reorder.RETRY)
    run = run_model(chain, settings, Contention(0.3), np.random.default_rng(0), costs_us).run
    serial = run_serially(chain)
    assert run.egress == serial.egress
    assert tuple(tally.inputs for tally in run.operators) == serial.inputs
    assert tuple(tally.outputs for tally in run.operators) == serial.outputs


def test_a_retail_chain_costs_what_its_operators_are_stated_to_cost() -> None:
    pipeline = Pipeline.of(retail, 300, name="Q15", partitions=10)
    kept = Ran.from_data(Simulated(pipeline, RunSettings(mark_every=1), Contention(), 0.0, 3).measure([]))
    assert kept.rate * 6e-6 == pytest.approx(1.0, rel=0.01)  # 1 + 1 + 4 us; each sale passes all three


def test_a_run_of_one_worker_takes_its_work_and_is_kept():
    pipeline = Pipeline.of(one_stateless, 500, cost_us=10.0)
    run = Simulated(pipeline, RunSettings(mark_every=1), Contention(), 0.0, 3)
    kept = Ran.from_data(json.loads(json.dumps(run.measure([]))))
    assert kept.rate == pytest.approx(1e5)
    assert kept.latency_ms == kept.p99_ms == pytest.approx(0.01)
    assert kept.cost_us == pytest.approx(10.0)
    assert kept.shares == [1.0]
    assert kept.end_to_end_ms == pytest.approx(2.5, rel=0.05)


def test_a_run_is_described_by_plain_data():
    run = Scope.quick().query_runs("Q1", 8, work_queue=WorkQueue.PARTITIONED, skew=0.6)[1]
    told = json.loads(json.dumps(described(run)))
    assert told["pipeline"]["arguments"] == [["name", "Q1"], ["partitions", 8], ["skew", 0.6]]
    assert told["settings"]["work_queue"] == "partitioned"
    assert told["contention"] == asdict(Contention(0.3, 0.3))
    assert told["seed"] == 1


def test_constants_are_said_with_every_one_of_them():
    assert said(Contention(0.1, 0.2, 0.3, 0.4, 0.5)) == "kappa 0.2, d 0.3, e 0.4, h 0.5; jitter 0.1"


def test_a_peak_is_where_most_tuples_pass_on_average():
    def ran(rate):
        return Ran(rate, 1.0, 1.0, 1.0, [1.0], 1.0, 1, 0.0)

    runs = {("a", 2): [ran(1.0), ran(5.0)], ("a", 4): [ran(4.0), ran(4.0)], ("b", 2): [ran(1.0), ran(1.0)]}
    best = peaks(runs)
    assert {case: workers for case, (workers, _) in best.items()} == {("a",): 4, ("b",): 2}
    assert best[("a",)][1] == runs["a", 4]
