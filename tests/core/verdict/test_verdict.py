"""The verdict on a stream: its evidence, what it names, how sure it is, and how it varies."""

import json

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.counting.frequencies import Frequencies
from adapt.core.engines.names import Engine
from adapt.core.engines.spark.scheme import SparkPartitioner
from adapt.core.out_of_sample.windows import CountedPane
from adapt.core.partitioning.build import Recipe
from adapt.core.stream import Weight
from adapt.core.table import Column
from adapt.core.values import human
from adapt.core.verdict.answering import answer_on
from adapt.core.verdict.goal import Goal
from adapt.core.verdict.stream_verdict import judge
from adapt.core.verdict.verdict import Verdict
from adapt.core.verdict.verdict_class import VerdictClass


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
    assert found.headline == "Nothing to do (4 workers, max imbalance 1.2)"
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
    assert found.headline.startswith("Split key key0 over at least 2 workers (")
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
    assert "too few rows" in few.sentences[2]
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
    assert answer.verdict.headline.startswith("Split key (empty) over at least 2 workers")
    assert "send null instead" in " ".join(answer.verdict.sentences)
    assert answer.verdict.as_data()["top_key"] == answer.as_data()["hot_keys"]["keys"][0]["key"] == ""
    keys = answer.hot_keys.table()
    assert human("", next(column for column in keys.columns if column.name == "key")) == "(empty)"
    assert human("", Column("plan")) == ""


def test_integer_keys_for_kafka_say_which_bytes_they_are_taken_to_be():
    counted = frequencies_of(KeyCounts(pa.array(range(30)), np.full(30, 100), 3_000))
    assert "8 bytes (LongSerializer)" in answer_on(counted, Engine.KAFKA, 3, Recipe()).caveats[0]
    assert answer_on(counted, Engine.SPARK, 3, Recipe()).caveats == []
