"""Route numbers: each is the least that the engine's hash sends to its place."""

import pytest

from adapt.core.engines.flink.routes import flink_routes
from adapt.core.engines.spark.routes import spark_routes


def test_spark_s_routes_are_those_measured():
    # users and peers, section 5.1: for 8 partitions these numbers suffice.
    assert sorted(spark_routes(8).tolist()) == [0, 1, 2, 5, 6, 12, 15, 25]


def test_flink_s_routes_are_those_measured():
    # users and peers, section 5.1: 128 groups are covered by the numbers 0 to 635.
    routes = flink_routes(128)
    assert routes.max() == 635
    assert len(set(routes.tolist())) == 128


def plain_spark(number):
    """MurmurHash3 x86 32 of one word, from seed 42."""

    def rotated(word, bits):
        return (word << bits | word >> (32 - bits)) % 2**32

    state = 42 ^ rotated(number * 0xCC9E2D51 % 2**32, 15) * 0x1B873593 % 2**32
    state = (rotated(state, 13) * 5 + 0xE6546B64) % 2**32 ^ 4
    state = (state ^ state >> 16) * 0x85EBCA6B % 2**32
    state = (state ^ state >> 13) * 0xC2B2AE35 % 2**32
    state ^= state >> 16
    return state if state < 2**31 else state - 2**32


def plain_flink(number):
    """MurmurHash3 x86 32 of one word, from seed 0, made positive."""

    def rotated(word, bits):
        return (word << bits | word >> (32 - bits)) % 2**32

    state = rotated(number * 0xCC9E2D51 % 2**32, 15) * 0x1B873593 % 2**32
    state = (rotated(state, 13) * 5 + 0xE6546B64) % 2**32 ^ 4
    state = (state ^ state >> 16) * 0x85EBCA6B % 2**32
    state = (state ^ state >> 13) * 0xC2B2AE35 % 2**32
    state ^= state >> 16
    return abs(state if state < 2**31 else state - 2**32)


@pytest.mark.parametrize(("routes", "plain"), [(spark_routes, plain_spark), (flink_routes, plain_flink)])
@pytest.mark.parametrize("places", [1, 2, 3, 7, 100])
def test_each_route_is_the_least_of_its_place(routes, plain, places):
    least = {}
    for number in range(int(routes(places).max()) + 1):
        least.setdefault(plain(number) % places, number)
    assert routes(places).tolist() == [least[place] for place in range(places)]
