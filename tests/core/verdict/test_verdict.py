"""The verdict on a stream, against all placements of small cases."""

import json
from functools import cache
from itertools import combinations, product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapt.core.counting.exact import KeyCounts, count_keys, frequencies_of
from adapt.core.counting.frequencies import Frequencies
from adapt.core.engines.names import SCHEMES_BY_NAME, Engine
from adapt.core.engines.spark.scheme import SparkPartitioner
from adapt.core.out_of_sample.windows import ROWS_A_PANE, CountedPane, CountedPanes
from adapt.core.partitioning.build import Recipe
from adapt.core.partitioning.compare import compare_schemes
from adapt.core.partitioning.measures.population import Population
from adapt.core.partitioning.measures.resources import ResourceFunction
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.schemes.names import Construction
from adapt.core.stream import KeyType, Weight
from adapt.core.table import Column
from adapt.core.values import human
from adapt.core.verdict.answering import answer_on, today_of
from adapt.core.verdict.classify import classify
from adapt.core.verdict.compared import at_channels, named
from adapt.core.verdict.goal import Goal
from adapt.core.verdict.hot_keys import HotKeys
from adapt.core.verdict.moving import moved_within
from adapt.core.verdict.packing import MOST_SEARCHED, packed, room_of, sticking_out
from adapt.core.verdict.stream_verdict import judge
from adapt.core.verdict.verdict import Verdict
from adapt.core.verdict.verdict_class import MOST_SPLIT, VerdictClass
from tests.claims.real_columns import panes_of, weblog


def stream(counts: list[int], weight: Weight = Weight.COUNT) -> Frequencies:
    """Keys with these counts."""
    keys = pa.array([f"key{at}" for at in range(len(counts))], pa.string())
    return frequencies_of(KeyCounts(keys, np.array(counts), sum(counts)), weight)


def judged(counts: list[int], channels: int, max_imbalance: float = 1.2, **more) -> Verdict:
    found = judge(stream(counts), SparkPartitioner(channels), "spark", goal=Goal(max_imbalance), **more)
    assert found is not None
    return found


def test_even_keys_need_nothing():
    found = judged([10] * 20_000, 4)
    assert found.verdict_class is VerdictClass.BALANCED
    assert found.headline.startswith("Nothing to do (4 workers): imbalance 1.010 of all rows, within the limit of 1.2")
    assert "As spark places the keys, the busiest worker has" in found.sentences[0]


def test_heavy_keys_that_fit_are_placed_and_what_moves_is_named():
    found = judged([3000, 2900, 2800, 2700, 2600, 2500] + [10] * 400, 4)
    assert found.verdict_class is VerdictClass.PINNING
    assert 0 < found.keys_to_pin < 100
    assert found.imbalance_after <= 1.2 < found.imbalance
    assert found.headline.startswith(f"Pin {found.keys_to_pin} keys (")
    assert found.sentences[0].startswith("Pinning them to other workers moves ")


def test_a_key_that_is_too_heavy_is_split():
    found = judged([900] + [10] * 110, 4)
    assert (found.verdict_class, found.keys_to_split, found.number_to_split) == (VerdictClass.SPLITTING, ("key0",), 1)
    assert found.split_share == found.top_share == pytest.approx(0.45)
    assert found.useful_workers == pytest.approx(1 / 0.45)
    assert found.headline.startswith("Keep today's placement, unless key key0 can be split over 2 workers (")
    assert [" ".join(found.sentences).count(each) for each in ("key0", "45 %")] == [0, 1]


def test_where_most_would_be_split_or_keys_are_few_another_key_is_asked_for():
    most = judged([900] + [10] * 80, 4)
    few = judged([10, 10, 10], 4)
    assert (most.verdict_class, few.verdict_class) == (VerdictClass.ANOTHER_KEY, VerdictClass.ANOTHER_KEY)
    assert "above 50 % another key is the better fix" in most.sentences[0]
    assert "Only 3 keys have any load" in few.sentences[0]


def test_few_messages_cannot_tell_and_many_can():
    few, many = judged([35] + [1] * 65, 4), judged([35_000] + [1_000] * 65, 4)
    assert (few.confidence.certain, many.confidence.certain) == (False, True)
    assert "too few rows" in " ".join(few.sentences)
    assert few.confidence.top_share_low < 0.35 < few.confidence.top_share_high
    assert few.confidence.level == 0.95


def test_panes_are_judged_by_themselves_and_the_class_may_change():
    panes = [
        CountedPane(at, stream(counts)) for at, counts in enumerate([[100] * 2000, [9000] + [100] * 110, [100] * 2000])
    ]
    found = judged([100] * 4000, 4, panes=panes)
    assert found.over_time.changes
    assert found.over_time.classes == [(VerdictClass.BALANCED, 2), (VerdictClass.SPLITTING, 1)]
    assert "in 3 windows of about 200,000 rows: nothing to do in 2, splitting is needed in 1" in found.sentences[-1]
    assert found.over_time.table().values("top_share")[1] == pytest.approx(0.45)


@pytest.mark.parametrize("counts", [[900] + [10] * 110, [10] * 20_000, [300] * 6, [1, 1]])
def test_the_verdict_is_data_and_comes_back(counts):
    panes = [CountedPane(7, stream([3, 2])), CountedPane(9, stream([2, 3]))]
    found = judged(counts, 4, panes=panes)
    data = json.loads(json.dumps(found.as_data(), allow_nan=False))
    assert Verdict.from_data(data) == found
    assert (data["class"], data["channels"], data["engine"]) == (found.verdict_class.value, 4, "spark")
    assert {"times_best_possible", "useful_workers", "top_share", "imbalance", "best_possible"} <= data.keys()


def test_without_time_the_sampling_of_rows_gives_the_interval():
    found = judged([3000, 2900, 2800, 2700, 2600, 2500] + [10] * 400, 4)
    low, high = found.sampled.today
    assert low < found.imbalance < high
    assert found.sampled.after[1] < low
    assert found.sampled.sentence in found.sentences
    assert Verdict.from_data(json.loads(json.dumps(found.as_data()))) == found


def test_where_pins_do_not_help_rows_held_out_nobody_can_tell():
    found = judged([300, 290, 280, 270, 260, 250] + [1] * 400, 4)  # only keys with a single row could be moved
    assert found.verdict_class is VerdictClass.UNKNOWN
    assert found.sampled.held_out == 1
    assert found.pins_nothing
    assert found.sentences[0].startswith("Too few rows: ")


@pytest.mark.parametrize("channels", [1, 2, 4, 40])
@pytest.mark.parametrize("weight", [Weight.COUNT, Weight.BYTES])
def test_a_few_rows_are_not_judged(weight, channels):
    for rows in (1, 2, 4, 29):
        for counts in ([1] * rows, [rows], [rows - rows // 3, rows // 3]):
            found = judge(stream(counts, weight), SparkPartitioner(channels), "spark", goal=Goal(1.2))
            assert (found.verdict_class, found.pins_nothing, found.few_rows) == (VerdictClass.UNKNOWN, True, rows)
    assert found.headline.startswith("Cannot tell: change nothing yet")
    assert found.sentences[0] == "The stream has 29 rows, too few to judge it. Take a longer sample."
    assert judge(stream([30], weight), SparkPartitioner(channels), "spark").few_rows is None


def test_the_empty_key_has_a_name_in_text_and_stays_empty_in_data():
    counted = frequencies_of(KeyCounts(pa.array(["", *(f"u{at}" for at in range(20))]), np.array([20] + [1] * 20), 40))
    answer = answer_on(counted, Engine.KAFKA, 3, Recipe())
    assert answer.verdict.headline.startswith("Keep today's placement, unless key (empty) can be split over 2 workers")
    assert "send null instead" in " ".join(answer.verdict.sentences)
    assert answer.verdict.as_data()["top_key"] == answer.as_data()["hot_keys"]["keys"][0]["key"] == ""
    keys = answer.hot_keys.table()
    assert human("", next(column for column in keys.columns if column.name == "key")) == "(empty)"
    assert human("", Column("plan")) == ""


def test_integer_keys_for_kafka_say_which_bytes_they_are_taken_to_be():
    counted = frequencies_of(KeyCounts(pa.array(range(30)), np.full(30, 100), 3_000))
    assert "8 bytes (LongSerializer)" in answer_on(counted, Engine.KAFKA, 3, Recipe()).caveats[0]
    assert answer_on(counted, Engine.SPARK, 3, Recipe()).caveats == []


counts = st.lists(st.integers(1, 40), min_size=1, max_size=5)
limits = st.sampled_from([1.0, 1.05, 1.2, 1.5, 2.0])


def population(loads: list[int]) -> Population:
    keys = pa.array([f"k{at}" for at in range(len(loads))])
    return Population.from_counts(frequencies_of(KeyCounts(keys, np.array(loads), sum(loads))))


@cache
def placements(keys: int, channels: int) -> np.ndarray:
    """Every placement of so many keys, shape (placements, keys)."""
    return np.array(list(product(range(channels), repeat=keys)), np.int64).reshape(channels**keys, keys)


def least(loads: list[float], capacities: np.ndarray, total: float) -> float:
    """The most utilised channel over the mean, of the best of all placements."""
    every = placements(len(loads), len(capacities))
    utilised = [(every == channel) @ np.array(loads, np.float64) / own for channel, own in enumerate(capacities)]
    return float(np.max(utilised, axis=0).min()) * capacities.sum() / total


def expected(loads: list[int], placed: list[int], channels: int, limit: float) -> tuple[VerdictClass, int]:
    """The class by its words, and how many keys must be split at least."""
    even, total = np.ones(channels), sum(loads)
    now = max(np.bincount(placed, loads, channels)) * channels / total
    if now <= limit * (1 + 1e-9):
        return VerdictClass.BALANCED, 0
    if least(loads, even, total) <= limit * (1 + 1e-9):
        return VerdictClass.PINNING, 0
    for number in range(1, len(loads) + 1):
        kept_sets = (
            [loads[at] for at in range(len(loads)) if at not in out] for out in combinations(range(len(loads)), number)
        )
        fitting = [kept for kept in kept_sets if least(kept, even, total) <= limit * (1 + 1e-9)]
        if fitting:
            # of equally few keys, the heaviest are split, whose share says whether it is too much
            share = sum(sorted(loads)[-number:]) / total
            is_other = len(loads) < channels or share > MOST_SPLIT
            return (VerdictClass.ANOTHER_KEY if is_other else VerdictClass.SPLITTING), number
    raise AssertionError("splitting every key is always enough")


@given(counts, st.integers(1, 3), limits, st.randoms(use_true_random=False))
@example([9] * 6, 3, 1.2, None)
@example([30, 10, 10, 10, 10, 10], 3, 1.0, None)
def test_the_class_is_that_of_all_placements_and_all_choices_of_keys_to_split(loads, channels, limit, random):
    placed = [random.randrange(channels) if random else 0 for _ in loads]
    keys = population(loads)
    falling = keys.loads(ResourceFunction.LINEAR)
    found = classify(keys, falling, np.array(placed, np.int32), np.ones(channels), limit)
    assert found is not None
    verdict_class, split = expected([int(load) for load in falling], placed, channels, limit)
    assert (found.verdict_class, len(found.split)) == (verdict_class, split)
    assert found.proved
    assert found.best_possible <= least(falling.tolist(), np.ones(channels), falling.sum()) * (1 + 1e-9)
    assert found.split_share == pytest.approx(sum(sorted(loads)[len(loads) - split :]) / sum(loads))


@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=6),
    st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=1, max_size=3),
    limits,
)
def test_keys_that_stick_out_decide_whether_all_can_be_placed(loads, capacities, limit):
    each, falling = np.array(capacities), np.sort(np.array(loads, np.float64))[::-1]
    total = float(falling.sum())
    heavy = sticking_out(falling, total, each, limit)
    packing = packed(falling[heavy], room_of(total, each, limit))
    assert packing.known
    assert (packing.channels is not None) == (least(loads, each, total) <= limit * (1 + 1e-9))
    if packing.channels is not None:
        filled = np.bincount(packing.channels, falling[heavy], len(each))
        assert (filled <= limit * total * each / each.sum() * (1 + 1e-8)).all()


@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=30),
    st.integers(1, 5),
    st.sampled_from([1.05, 1.2, 1.5]),
    st.integers(0, 2**32 - 1),
)
def test_moves_keep_the_limit_wherever_a_placement_does(loads, channels, limit, seed):
    drawn = np.random.default_rng(seed)
    values, even = np.array(loads, np.float64), np.ones(channels)
    placed = drawn.integers(0, channels, len(loads)).astype(np.int32)
    moved = moved_within(placed, values, len(loads), even, limit)
    heavy = sticking_out(values, values.sum(), even, limit)
    possible = packed(values[heavy], room_of(values.sum(), even, limit))
    assert (moved is not None) == (possible.channels is not None)
    if moved is not None:
        filled = np.bincount(moved, values, channels)
        assert filled.max() <= limit * values.sum() / channels * (1 + 1e-8)
        over = np.bincount(placed, values, channels) > limit * values.sum() / channels * (1 + 1e-8)
        assert over.any() or (moved == placed).all()


def test_what_no_search_can_settle_is_not_called_proved():
    loads = np.sort(np.random.default_rng(3).random(MOST_SEARCHED + 1))[::-1].copy()
    packing = packed(loads, np.full(20, loads.sum() / 20))
    assert packing.channels is None
    assert not packing.known


def imbalance(plan: Plan, keys: pa.Array) -> float:
    loads = np.bincount(plan.partitioner().channels_of(keys), minlength=plan.channels)
    return loads.max() / loads.mean()


@pytest.mark.parametrize("key", ["host", "path"])
@pytest.mark.parametrize("engine", [Engine.SPARK, Engine.KAFKA, Engine.FLINK])
@pytest.mark.parametrize("channels", [8, 10, 12])
def test_the_second_half_is_as_the_verdict_on_the_first_says(real_traces, key, engine, channels):
    rows, times = weblog(real_traces("weblog-2015/apache_logs"))
    keys = rows[key].take(pa.array(np.argsort(times, kind="stable"))).combine_chunks()
    middle = len(keys) // 2
    first, second = keys.slice(0, middle), keys.slice(middle)
    panes = CountedPanes(tuple(panes_of(first, middle // ROWS_A_PANE)))
    answer = answer_on(frequencies_of(count_keys(first)), engine, channels, Recipe(), panes=panes)
    verdict, plan = answer.verdict, answer.recommended
    today, _ = today_of(engine, channels, Recipe(), None, KeyType.STRING)
    low, high = verdict.out_of_sample.next_window

    later = [second.slice(at, ROWS_A_PANE) for at in range(0, len(second), ROWS_A_PANE)]
    with_plan, without = (np.array([imbalance(each, window) for window in later]) for each in (plan, today))
    assert low <= imbalance(plan, second) <= high
    assert np.mean((low <= with_plan) & (with_plan <= high)) >= 0.9
    assert np.median(with_plan / without) <= 1.02
    assert imbalance(plan, second) <= 1.02 * imbalance(today, second)
    if verdict.verdict_class is VerdictClass.UNKNOWN:
        assert imbalance(plan, second) == imbalance(today, second)
    if key == "path":  # whose heavy keys stay
        assert verdict.keys_to_pin
        assert imbalance(plan, second) < 0.9 * imbalance(today, second)


@pytest.fixture(scope="module")
def comparisons():
    """Keys that can be placed, and one that is too heavy."""
    found = []
    for counts in ([300, 290, 280, 270, 260, 250] + [1] * 400, [900] + [10] * 99):
        keys = pa.array([f"key{at}" for at in range(len(counts))])
        stream = frequencies_of(KeyCounts(keys, np.array(counts), sum(counts)))
        found.append(compare_schemes(stream, [2, 4], constructions=[Construction.LEVEL]))
    return found


@pytest.mark.parametrize(("limit", "least"), [(1.0, "imbalance"), (100.0, "m")])
def test_the_best_scheme_of_whole_keys_is_marked(comparisons, limit, least):
    compared = comparisons[0].table()
    (marked,) = (row for row in at_channels(compared, 4, limit).records() if row["scheme"].endswith(" *"))
    whole = [row for row in compared.records() if row["channels"] == 4 and row["scheme"] in SCHEMES_BY_NAME]
    best = min(whole, key=lambda row: row[least])
    assert (marked["scheme"], marked["imbalance"]) == (f"{named(best)} *", best["imbalance"])


def counted(**counts: int) -> Frequencies:
    return frequencies_of(KeyCounts(pa.array(list(counts)), np.array(list(counts.values())), sum(counts.values())))


def test_each_key_has_its_share_of_every_pane():
    panes = [CountedPane(5, counted(a=3, b=1)), CountedPane(9, counted(b=4)), CountedPane(11, counted(a=1, c=1))]
    hot = HotKeys.from_counts(counted(b=5, a=4, c=1), panes)
    assert [(key.key, key.life_line) for key in hot.keys] == [
        ("b", (0.25, 1.0, 0.0)),
        ("a", (0.75, 0.0, 0.5)),
        ("c", (0.0, 0.0, 0.5)),
    ]
    assert hot.table().values("life_line") == ["▂█ ", "█ ▆", "  █"]
    assert hot.lines_table().rows[:2] == (("b", 1, 5, 0.25), ("b", 2, 9, 1.0))


def test_without_times_there_are_no_life_lines():
    table = HotKeys.from_counts(counted(a=2, b=1)).table()
    assert [column.name for column in table.columns] == ["rank", "key", "count_low", "count_high", "share"]
    assert table.note == "Every key is listed."


def test_lossy_counts_say_above_what_no_key_is_missing():
    lossy = Frequencies(pa.array(["a"]), np.array([50]), np.array([60]), 100.0, 100, epsilon=0.1, complete_above=10.0)
    hot = HotKeys.from_counts(lossy)
    assert (hot.keys[0].count_low, hot.keys[0].count_high) == (50, 60)
    assert hot.complete == "Every key with a count above 10 is listed (1 key)."
