"""Pipelines are what Table 1 says, and runs of them are kept as they were."""

import numpy as np
import pytest

from adapt.core.ordered.chain.names import OperatorKind, Reorder
from adapt.core.ordered.engine.reference import run_serially
from adapt.core.ordered.engine.settings import Contention, RunSettings
from adapt.core.ordered.model.model import run_model
from paper.ordered.figures.shown import peaks
from paper.ordered.measured import Pipeline, Ran, Simulated
from paper.ordered.pipelines import QUERIES, one_partitioned, query, retail, retail_costs

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


def test_skewed_keys_are_drawn_by_zipfs_law():
    chain = query("Q3", 20_000, 0, skew=1.0)
    keys = np.sort(np.bincount(chain.tuples[:, 0]))[::-1]
    assert keys[0] / keys[9] == pytest.approx(10, rel=0.3)


def test_normal_keys_fall_into_ranges_from_minus_1_to_1():
    (operator,) = one_partitioned(20_000, 0, 10.0, 2, sigma=0.3).operators
    counts = np.bincount(operator.partition_of[one_partitioned(20_000, 0, 10.0, 2, sigma=0.3).tuples[:, 0]])
    assert counts / 20_000 == pytest.approx([0.5, 0.5], abs=0.02)


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


def test_a_peak_is_where_most_tuples_pass_on_average():
    def ran(rate):
        return Ran(rate, 1.0, 1.0, 1.0, [1.0], 1.0, 1, 0.0)

    runs = {("a", 2): [ran(1.0), ran(5.0)], ("a", 4): [ran(4.0), ran(4.0)], ("b", 2): [ran(1.0), ran(1.0)]}
    best = peaks(runs)
    assert {case: workers for case, (workers, _) in best.items()} == {("a",): 4, ("b",): 2}
    assert best[("a",)][1] == runs["a", 4]
