"""The flink scheme against Flink's own class, where its jar is at hand."""

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.engines.flink.scheme import FlinkPartitioner
from adapt.core.partitioning.schemes.key_groups import default_max_parallelism

KEYS = 2_000
"""Of each kind."""
SHAPES = ((1, 128), (7, 128), (16, 128), (100, 128), (128, 128), (10, 32_768), (1_000, 32_768))
"""Subtasks and key groups."""


@pytest.fixture(scope="module")
def flink(flink_jar, spark):
    """Places Java objects with Flink's `KeyGroupRangeAssignment`, loaded beside Spark's own classes."""
    context = spark.sparkContext
    jvm, gateway = context._jvm, context._gateway
    urls = gateway.new_array(jvm.java.net.URL, 1)
    urls[0] = jvm.java.net.URI(flink_jar.as_uri()).toURL()
    loader = jvm.java.net.URLClassLoader(urls)
    assignment = loader.loadClass("org.apache.flink.runtime.state.KeyGroupRangeAssignment")
    arguments = gateway.new_array(jvm.java.lang.Class, 3)
    arguments[0] = jvm.java.lang.Class.forName("java.lang.Object")
    arguments[1] = arguments[2] = jvm.java.lang.Integer.TYPE
    method = assignment.getMethod("assignKeyToParallelOperator", arguments)
    given = gateway.new_array(jvm.java.lang.Object, 3)

    def channels_of(boxed, keys, channels, groups):
        """The subtask of each object of a Java array, which never leaves Java: here all numbers are alike."""
        given[1], given[2] = groups, channels
        placed = []
        for at in range(keys):
            jvm.java.lang.System.arraycopy(boxed, at, given, 0, 1)
            placed.append(method.invoke(None, given))
        return placed

    yield jvm, gateway, assignment, channels_of
    loader.close()


def texts():
    """ASCII, Unicode of every width, empty; of all lengths."""
    random = np.random.default_rng(5)
    alphabets = ["abcXYZ019 _-/", "éüßñ", "ключ日本語", "\N{GRINNING FACE}\N{MATHEMATICAL BOLD CAPITAL A}", "\0\n\x7f"]
    found = {"", *(f"user{number:06}" for number in range(KEYS // 2))}
    while len(found) < KEYS:
        letters = alphabets[int(random.integers(len(alphabets)))] + alphabets[int(random.integers(len(alphabets)))]
        found.add("".join(random.choice(list(letters), int(random.integers(40)))))
    return sorted(found)


def longs():
    """Small and large, negative, and the ends."""
    drawn = np.random.default_rng(6).integers(-(2**63), 2**63 - 1, KEYS // 2)
    return [*range(-KEYS // 4, KEYS // 4 - 2), *drawn.tolist(), -(2**63), 2**63 - 1]


@pytest.mark.parametrize(("channels", "groups"), SHAPES)
def test_strings_go_where_flink_sends_them(flink, channels, groups):
    jvm, gateway, _, channels_of = flink
    keys = texts()
    boxed = gateway.new_array(jvm.java.lang.Object, len(keys))
    for at, key in enumerate(keys):
        boxed[at] = key
    ours = FlinkPartitioner(channels, groups).channels_of(pa.array(keys))
    assert ours.tolist() == channels_of(boxed, len(keys), channels, groups)


@pytest.mark.parametrize(("channels", "groups"), SHAPES)
def test_longs_go_where_flink_sends_them(flink, channels, groups):
    jvm, gateway, _, channels_of = flink
    keys = longs()
    numbers = gateway.new_array(jvm.long, len(keys))
    for at, key in enumerate(keys):
        numbers[at] = key
    boxed = jvm.java.util.stream.LongStream.of(numbers).boxed().toArray()
    ours = FlinkPartitioner(channels, groups).channels_of(pa.array(keys, pa.int64()))
    assert ours.tolist() == channels_of(boxed, len(keys), channels, groups)


@pytest.mark.parametrize(("channels", "groups"), SHAPES)
def test_integers_from_0_up_go_where_flink_sends_them_as_integers_too(flink, channels, groups):
    """A negative `Integer` has another code than the same number as a `Long`, which is what keys of a trace are."""
    jvm, _, _, channels_of = flink
    boxed = jvm.java.util.stream.IntStream.range(0, KEYS).boxed().toArray()
    ours = FlinkPartitioner(channels, groups).channels_of(pa.array(range(KEYS)))
    assert ours.tolist() == channels_of(boxed, KEYS, channels, groups)


def test_as_many_key_groups_are_taken_by_default(flink):
    jvm, gateway, assignment, _ = flink
    kinds = gateway.new_array(jvm.java.lang.Class, 1)
    kinds[0] = jvm.java.lang.Integer.TYPE
    method = assignment.getMethod("computeDefaultMaxParallelism", kinds)
    given = gateway.new_array(jvm.java.lang.Object, 1)
    for channels in (1, 2, 85, 86, 100, 128, 171, 1_000, 20_000, 32_768):
        given[0] = channels
        assert default_max_parallelism(channels) == method.invoke(None, given), channels
