"""The recommended plan: the verdict's keys, state and imbalance are those of evaluate and diff."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.counting.frequencies import Frequencies
from adapt.core.engines.names import Engine
from adapt.core.out_of_sample.walk_forward import MUCH
from adapt.core.out_of_sample.windows import CountedPane, CountedPanes
from adapt.core.partitioning.build import Recipe, build_plan
from adapt.core.partitioning.frontier.today import NO_LIMITS, Budget
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.plans.difference import plan_difference
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.phrases import percent
from adapt.core.report.first_screen import first_screen
from adapt.core.verdict.answer import Answer
from adapt.core.verdict.answering import answer_on
from adapt.core.verdict.first_screen import first_tables
from adapt.core.verdict.goal import Goal
from adapt.core.verdict.remedies import Remedy, Way
from adapt.core.verdict.verdict_class import VerdictClass
from adapt.traces.counting.evaluating import evaluate_counts
from tests.tiers import examples

NULL_TOO = pa.array([None, *(f"key{at}" for at in range(399))])


def counted(counts: np.ndarray, keys: pa.Array) -> Frequencies:
    held = counts > 0
    return frequencies_of(KeyCounts(keys.filter(pa.array(held)), counts[held], int(counts.sum())))


def stream(seed: int, windows: int, skew: float, kind: pa.DataType) -> tuple[Frequencies, CountedPanes]:
    """A stream of 400 keys and its windows."""
    chance = np.random.default_rng(seed)
    keys = NULL_TOO if kind == pa.string() else pa.array([None, *range(399)], pa.int64())
    weights = 1 / np.arange(1, 401) ** skew
    counts = np.array([chance.multinomial(2_000, weights / weights.sum()) for _ in range(max(windows, 1))])
    panes = [CountedPane(at, counted(own, keys)) for at, own in enumerate(counts)]
    return counted(counts.sum(axis=0), keys), CountedPanes(tuple(panes) if windows else ())


def check(found: Answer, frequencies: Frequencies, today: Plan) -> None:
    """The plan says what the verdict says."""
    plan, verdict = found.recommended, found.verdict
    evaluated = evaluate_counts([("today", today), ("recommended", plan)], frequencies)
    was, is_now = (each.measured for each in evaluated.plans)
    assert was.imbalance == pytest.approx(verdict.imbalance)
    diff = plan_difference(today, plan, frequencies, Resources())
    if verdict.pins_nothing:
        assert (is_now.imbalance, diff.migration.keys) == (was.imbalance, 0)
        return
    assert is_now.imbalance == pytest.approx(verdict.imbalance_after)
    assert diff.migration.keys == verdict.keys_to_pin == plan.metrics["keys_moved"]
    assert diff.migration.state / frequencies.total == pytest.approx(verdict.state_to_move)


@examples(20)
@given(
    st.integers(0, 10_000),
    st.sampled_from([0, 6, 12]),
    st.sampled_from([0.4, 0.9, 1.2]),
    st.sampled_from([pa.string(), pa.int64()]),
    st.sampled_from([Engine.SPARK, Engine.KAFKA, Engine.FLINK]),
    st.integers(2, 9),
)
def test_verdict_plan_evaluate_and_diff_agree(seed, windows, skew, kind, engine, channels):
    frequencies, panes = stream(seed, windows, skew, kind)
    found = answer_on(frequencies, engine, channels, Recipe(), panes=panes)
    today = Plan(engine, channels, frequencies.key_type)
    check(found, frequencies, today)
    assert found.recommended.base is engine


@examples(6)
@given(
    st.integers(0, 10_000),
    st.sampled_from([0, 6, 12]),
    st.sampled_from([0.9, 1.2]),
    st.sampled_from([Engine.SPARK, Engine.KAFKA, Engine.FLINK]),
    st.integers(2, 9),
    st.sampled_from([(0.03, None), (None, 2), (0.2, 7), (1.0, 400)]),
)
def test_with_limits_they_agree_too_and_the_limits_hold(seed, windows, skew, engine, channels, limits):
    frequencies, panes = stream(seed, windows, skew, pa.string())
    budget = Budget(*limits)
    found = answer_on(frequencies, engine, channels, Recipe(), panes=panes, goal=Goal(1.05, budget, True))
    check(found, frequencies, Plan(engine, channels, frequencies.key_type))
    verdict = found.verdict
    assert verdict.limits == budget
    assert (verdict.keys_to_pin or 0) <= budget.pins
    assert (verdict.state_to_move or 0) <= (1 if limits[0] is None else limits[0]) * (1 + 1e-9)
    assert all(word in verdict.headline for word in budget.words)
    if verdict.keys_to_pin is not None:
        point = found.frontier.recommended
        assert (point.pins, point.state_moved) == (verdict.keys_to_pin, pytest.approx(verdict.state_to_move))
        assert point.imbalance == pytest.approx(verdict.imbalance_after)
    assert Answer.from_data(json.loads(json.dumps(found.as_data()))).frontier == found.frontier


@pytest.mark.parametrize("windows", [0, 12])
def test_the_frontier_is_evidence_and_changes_nothing(windows):
    frequencies, panes = stream(3, windows, 1.2, pa.string())
    asked, bare = (
        answer_on(frequencies, Engine.KAFKA, 8, Recipe(), panes=panes, goal=Goal(1.05, shows_frontier=shown))
        for shown in (True, False)
    )
    assert asked.verdict == bare.verdict
    assert bare.frontier is None
    assert asked.recommended.content_hash() == bare.recommended.content_hash()
    assert asked.frontier.is_tested == (windows > 0)
    assert asked.frontier.recommended.pins == (asked.verdict.keys_to_pin or 0)
    after = asked.verdict.imbalance_after or asked.verdict.imbalance
    assert asked.frontier.recommended.imbalance == pytest.approx(after)


def test_limits_within_which_nothing_helps_leave_the_placement_as_it_is():
    frequencies, panes = stream(3, 0, 1.2, pa.string())
    found = answer_on(frequencies, Engine.KAFKA, 8, Recipe(), panes=panes, goal=Goal(1.05, Budget(1e-9)))
    assert found.verdict.headline.startswith(("Change nothing: no plan within the limits helps", "Split", "Partition"))
    assert (found.verdict.pins_nothing, len(found.recommended.explicit)) == (True, 0)


@examples(20)
@given(st.integers(0, 10_000), st.sampled_from([0, 8]), st.integers(2, 6), st.sampled_from([NO_LIMITS, Budget(0.1, 4)]))
def test_a_current_plan_is_what_is_judged_and_kept(seed, windows, channels, limits):
    frequencies, panes = stream(seed, windows, 1.0, pa.string())
    current = build_plan(frequencies, Recipe(max_pins=3, base=Engine.KAFKA), channels)
    found = answer_on(
        frequencies, Engine.SPARK, channels, Recipe(), panes=panes, current=current, goal=Goal(1.01, limits)
    )
    assert (found.verdict.engine, found.recommended.base) == ("the current plan", Engine.KAFKA)
    assert found.recommended.parent == current.content_hash()
    evaluated = evaluate_counts([("a", current), ("b", found.recommended)], frequencies).plans
    assert evaluated[0].measured.imbalance == pytest.approx(found.verdict.imbalance)
    if not found.verdict.pins_nothing:
        assert evaluated[1].measured.imbalance == pytest.approx(found.verdict.imbalance_after)


@examples(20)
@given(
    st.integers(0, 10_000),
    st.sampled_from([0, 8]),
    st.sampled_from([0.4, 0.9, 1.4]),
    st.sampled_from([Engine.SPARK, Engine.KAFKA, Engine.FLINK]),
    st.integers(2, 9),
    st.sampled_from([1.02, 1.2, 2.0]),
    st.booleans(),
    st.booleans(),
)
def test_headline_table_page_json_and_plan_say_the_same(
    seed, windows, skew, engine, channels, limit, is_mergeable, is_pinned
):
    """With and without a current plan that pins the hottest key; the remedy is that of the rule."""
    frequencies, panes = stream(seed, windows, skew, pa.string())
    current = None
    if is_pinned:
        hottest = frequencies.keys[0].as_py()
        current = Plan(Scheme.HYBRID, channels, frequencies.key_type, base=engine, explicit={hottest: 0})
    goal, most = Goal(limit, mergeable=is_mergeable), limit * (1 + 1e-9)
    found = answer_on(frequencies, engine, channels, Recipe(), panes=panes, current=current, goal=goal)
    verdict, plan = found.verdict, found.recommended
    chosen = verdict.recommended
    data = json.loads(json.dumps(verdict.as_data()))
    assert json.loads(json.dumps(type(verdict).from_data(data).as_data())) == data
    assert [each["recommended"] for each in data["remedies"]].count(True) == 1

    assert (len(plan.splits), len(plan.splits) > 0) == (chosen.splits, chosen.splits > 0)
    assert not set(plan.splits) & set(plan.explicit)
    evaluated = evaluate_counts([("recommended", plan)], frequencies).plans[-1].measured
    assert evaluated.imbalance == pytest.approx(chosen.imbalance)
    assert chosen.judged == pytest.approx(verdict.judged[0])
    if windows:
        assert chosen.later == verdict.out_of_sample.plan.median

    today, *others = (each for each in verdict.remedies if each.way not in (Way.WORKERS, Way.KEY))
    able = [each for each in others if (is_mergeable or each.way is not Way.SPLIT) and (each.certain or not windows)]
    able = [each for each in able if each.judged < today.judged]
    even = [each for each in able if each.judged <= most]
    if today.judged <= most or not able or verdict.few_rows is not None:
        assert chosen is today
    elif verdict.verdict_class is VerdictClass.UNKNOWN:
        assert chosen is today
        assert not windows
    else:
        assert chosen is (min(even, key=cost) if even else min(able, key=weighed))
        assert not windows or 2 * chosen.helped > len(verdict.out_of_sample.rows)

    said = f"imbalance {chosen.judged:.3f} {'in the median later window' if windows else 'of all rows'}"
    above = f"{percent(chosen.judged / limit - 1)} above the limit of {limit:g}"
    assert verdict.headline.endswith(f"{said}, {f'within the limit of {limit:g}' if chosen.judged <= most else above}")
    (row,) = (row for row in first_tables(found, "")[0].records() if row["remedy"].endswith("*"))
    assert row["remedy"] == f"{chosen.words} *"
    assert (row["all_rows"], row["state_moved"]) == (chosen.imbalance, chosen.state_moved)
    screen = first_screen(found, "a.trace", "a.plan")
    assert (screen.status, screen.sentence.lower()) == (verdict.action, f"{verdict.met}.")
    assert screen.numbers[1].name == ("Best possible" if chosen is today else "Imbalance after")
    assert chosen is today or screen.numbers[1].value == f"{chosen.judged:.3f}"
    assert screen.command.startswith("adapt partition export") == (chosen is not today)


def cost(remedy: Remedy) -> tuple[float, int]:
    """State moved, without what rounding adds, then keys."""
    return round(remedy.cost[0], 9), remedy.cost[1]


def weighed(remedy: Remedy) -> float:
    """Where no remedy keeps the limit, rebuilding has to be much better."""
    return remedy.judged / (MUCH if remedy.way is Way.REBUILD else 1.0)
