"""How many salts bring a key under its limit, against salting one more until it is."""

from collections import Counter
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.advice.tables import salts_needed
from adapt.core.engines.flink.scheme import FlinkPartitioner
from adapt.core.engines.kafka.scheme import KafkaPartitioner
from adapt.core.engines.spark.scheme import SparkPartitioner


@settings(max_examples=40)
@given(
    st.sampled_from([SparkPartitioner, KafkaPartitioner, FlinkPartitioner]),
    st.text(max_size=5).filter(lambda text: text.isprintable()),
    st.integers(0, 1000),
    st.integers(1, 12),
    st.fractions(1, 3, max_denominator=20),
)
def test_salts_are_the_least_that_do(engine, key, load, channels, tolerance):
    partitioner = engine(channels)
    found = salts_needed(key, load, 1000, partitioner, tolerance)
    most = tolerance / channels * 1000

    def fullest(salts: int, at: list[int]) -> Fraction:
        return Fraction(load, salts) * max(Counter(at).values())

    placed = next(s for s in range(1, 99) if fullest(s, [salt % channels for salt in range(s)]) <= most)
    assert found.placed == placed
    if found.hashed is None:
        return
    at = [partitioner.channel_of(f"{key}#{salt}") for salt in range(found.hashed)]
    if found.hashed > 1:
        assert fullest(found.hashed, at) <= most
        assert all(fullest(salts, at[:salts]) > most for salts in range(2, found.hashed))
        assert found.partials == len(set(at))
    else:
        assert load <= most


def test_a_key_of_half_the_load_over_ten_channels():
    found = salts_needed("amazon", 50, 100, KafkaPartitioner(10), Fraction(5, 4))
    assert found.placed == 4  # 12.5 % each, which is 1.25 times the mean of 10 %
    assert found.hashed >= 4


def test_a_limit_that_no_hash_keeps_is_said_to_be_none():
    whole = salts_needed("all", 1, 1, SparkPartitioner(1000), Fraction(1))
    assert (whole.placed, whole.hashed, whole.partials) == (1000, None, None)
