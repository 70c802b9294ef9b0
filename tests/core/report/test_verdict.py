import numpy as np
import pyarrow as pa
import pytest

from adapt.core.frequencies.exact import KeyCounts, frequencies_of
from adapt.core.frequencies.frequencies import Frequencies
from adapt.core.partitioners.compare import compare_schemes
from adapt.core.partitioners.names import Construction, Scheme
from adapt.core.report.verdict import Cure, verdict


def stream(counts: list[int]) -> Frequencies:
    """Keys with these counts."""
    keys = pa.array([f"key{at}" for at in range(len(counts))], pa.string())
    return frequencies_of(KeyCounts(keys, np.array(counts), sum(counts)))


def judged(counts: list[int], channels: int, **asked):
    compared = compare_schemes(stream(counts), [2, channels], constructions=[Construction.LEVEL], **asked)
    return verdict(compared.table(), 1.2, "key0")


def test_even_keys_need_nothing():
    found = judged([10] * 20_000, 4)
    assert (found.cure, found.channels) == (Cure.NONE_NEEDED, 4)
    assert "hashing alone (uniform)" in found.sentence


def test_heavy_keys_that_fit_are_placed():
    found = judged([300, 290, 280, 270, 260, 250] + [1] * 400, 4)
    assert found.cure is Cure.PLACEMENT
    assert "(hybrid (level), 406 keys mapped one by one)" in found.sentence


def test_a_key_that_is_too_heavy_is_split_or_few_channels_taken():
    found = judged([900] + [10] * 99, 4)
    assert found.cure is Cure.SPLITTING
    assert "key0, alone is 47.6% of the load" in found.sentence
    assert "2 channels can be even, or more if keys are split: w-choices reaches 1.00" in found.sentence


def test_without_splitting_compared_the_key_is_named_all_the_same():
    found = judged([900] + [10] * 9, 3, schemes=[Scheme.UNIFORM])
    assert found.cure is Cure.SPLITTING
    assert "They can only be even if that key is split" in found.sentence


def test_too_few_messages_to_split_need_another_key():
    assert judged([4, 1], 4).cure is Cure.ANOTHER_KEY


def test_where_only_bad_schemes_are_compared_better_ones_are_asked_for():
    found = judged([100] * 9, 4, schemes=[Scheme.UNIFORM])
    assert found.cure is Cure.NOT_COMPARED
    assert "whole keys could reach 1.000" in found.sentence


def test_nothing_is_said_of_no_load():
    assert judged([], 4) is None


@pytest.mark.parametrize("counts", [[900] + [10] * 99, [10] * 20_000])
def test_the_verdict_is_data_too(counts):
    found = judged(counts, 4)
    assert found.as_data() == {"class": found.cure.value, "channels": 4, "sentence": found.sentence}
