"""Every typed result of a public function shows itself in a notebook, its keys escaped."""

import pyarrow as pa
import pytest

from adapt import notebook
from adapt.core.check.outcome import Verdict as Held
from adapt.core.counting.exact import count_keys, frequencies_of
from adapt.core.elastic.replay.replay import ElasticRun
from adapt.core.engines.names import Engine
from adapt.core.fit.replay.replay import FitRun
from adapt.core.flux.replay.replay import FluxRun
from adapt.core.mechanisms.comparison import ComparisonRun
from adapt.core.ordered.replay.tables import OrderedRun
from adapt.core.partitioning.build import Recipe, build_plan
from adapt.core.partitioning.compare import Comparison, compare_schemes
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.plans.difference import Difference, plan_difference
from adapt.core.partitioning.plans.evaluation import Evaluation
from adapt.core.partitioning.plans.registry import make_partitioner
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.repartition.replay import RepartitionRun
from adapt.core.table import Table
from adapt.core.verdict.answer import Answer
from adapt.core.verdict.answering import answer_on
from adapt.core.verdict.hot_keys import HotKeys
from adapt.core.verdict.stream_verdict import judge
from adapt.traces.advising import Advice
from adapt.traces.counting.survey import Surveyed
from adapt.traces.deploy.export import Deployment
from adapt.traces.ingest.ingest import Ingested
from adapt.traces.lint import Linted
from adapt.traces.store.comparisons import StoredComparison
from adapt.traces.store.runs import StoredRun
from adapt.traces.store.trace import Trace

RESULTS = [
    *(Advice, Answer, Comparison, Deployment, Difference, ElasticRun, Evaluation, FitRun, FluxRun, Held, HotKeys),
    *(Ingested, Linted, ComparisonRun, OrderedRun, RepartitionRun, StoredComparison, StoredRun, Surveyed),
    *(Table, Trace),
]
HOSTILE = "<script>alert(1)</script>"


@pytest.mark.parametrize("kind", RESULTS, ids=lambda kind: kind.__name__)
def test_a_result_shows_itself(kind):
    assert notebook.shows(kind)


def test_hostile_keys_are_escaped_wherever_they_are_shown():
    counted = frequencies_of(count_keys(pa.array([HOSTILE] * 50 + list("abcdefgh") * 5)))
    plan, wider = build_plan(counted, Recipe(Scheme.HYBRID), 2), build_plan(counted, Recipe(Scheme.HYBRID), 3)
    verdict = judge(counted, make_partitioner(Engine.SPARK, 3), "spark")
    answer = answer_on(counted, Engine.SPARK, 3, Recipe())
    shown = [counted, plan, verdict, answer, answer.hot_keys, compare_schemes(counted, [1, 2])]
    shown.append(plan_difference(plan, wider, counted, Resources()))
    pages = [notebook.html_of(each) for each in shown]
    assert all("<script" not in page for page in pages)
    assert sum("&lt;script&gt;" in page for page in pages) >= 3
