"""Loads that were measured, against sums in plain Python: on keys, on channels, in metrics and floors."""

from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.counting.frequencies import Frequencies, MeasuredColumn
from adapt.core.errors import UsageError
from adapt.core.partitioning.measures.metrics import evaluate
from adapt.core.partitioning.measures.population import Population
from adapt.core.partitioning.measures.resources import (
    Measured,
    ResourceFunction,
    Resources,
    largest_shares,
    listed_loads,
    loads_at,
)
from adapt.core.partitioning.problem.problem import Problem
from adapt.core.partitioning.schemes.consistent import ConsistentHash
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner
from tests.tiers import examples

CONSTANT, LINEAR, QUADRATIC = ResourceFunction
BYTES = Measured("bytes")


@dataclass(frozen=True)
class Listed:
    """A partitioner that knows the channel of each key by heart."""

    channels: int
    channel: dict[str, int]

    def channel_of(self, key):
        return self.channel[key]

    def channels_of(self, keys):
        return np.array([self.channel[key] for key in keys.to_pylist()], dtype=np.int32)


def counted(counts: dict, total_bytes: float | None = None, **columns: dict) -> Frequencies:
    """Exact counts by key, and columns by key; of bytes there may be more than on these keys."""
    keys = pa.array(list(counts), pa.string())
    told = frequencies_of(KeyCounts(keys, np.array(list(counts.values()), np.int64), sum(counts.values())))
    measured = []
    for name, of in columns.items():
        values = np.array([of[key] for key in told.keys.to_pylist()], float)
        total = total_bytes if name == "bytes" and total_bytes is not None else values.sum()
        measured.append(MeasuredColumn(name, values, float(total)))
    return replace(told, measured=tuple(measured))


STREAM = counted({"a": 6, "b": 3, "c": 2, "d": 1}, bytes={"a": 1, "b": 40, "c": 0, "d": 9})
BY_BYTES = Resources.parse(measure=["network=bytes"])


@st.composite
def streams(draw):
    """Up to seven keys with counts, bytes and costs; two placements of them; and what measures which resource."""
    keys = [f"k{at}" for at in range(draw(st.integers(1, 7)))]
    counts = {key: draw(st.integers(1, 9)) for key in keys}
    bytes_ = {key: draw(st.integers(0, 99)) for key in keys}
    costs = {key: draw(st.integers(0, 40)) / 4 for key in keys}
    channels = draw(st.integers(1, 4))
    before, after = ({key: draw(st.integers(0, channels - 1)) for key in keys} for _ in range(2))
    letters = draw(st.text("CLQ", min_size=3, max_size=3))
    measured = tuple(draw(st.sampled_from([None, "bytes", "cost", "count"])) for _ in range(3))
    resources = replace(Resources.parse(letters), measured=measured)
    return counted(counts, bytes=bytes_, cost=costs), Listed(channels, before), Listed(channels, after), resources


def plain_loads(stream: Frequencies, resources: Resources) -> list[dict]:
    """What each key loads onto each resource, key by key."""
    counts = dict(zip(stream.keys.to_pylist(), stream.count_low.tolist(), strict=True))
    columns = {
        column.source: dict(zip(stream.keys.to_pylist(), column.values.tolist(), strict=True))
        for column in stream.measured
    } | {"count": counts}
    functions = {"C": lambda count: 1, "L": lambda count: count, "Q": lambda count: count * count}
    return [
        columns[source] if source else {key: functions[letter](count) for key, count in counts.items()}
        for letter, source in zip(resources.text, resources.measured, strict=True)
    ]


def plain_ratio(loads: dict, channel: dict, channels: int) -> float | None:
    on = defaultdict(float)
    for key, load in loads.items():
        on[channel[key]] += load
    each = [on[channel] for channel in range(channels)]
    return max(each) / min(each) if min(each) > 0 else None


@examples(40)
@given(streams())
def test_metrics_are_those_of_sums_in_plain_python(drawn):
    stream, before, after, resources = drawn
    metrics = evaluate(after, stream, resources, before)
    state, computation, network = plain_loads(stream, resources)
    for ratio, loads in ((metrics.r_s, state), (metrics.r_c, computation), (metrics.r_n, network)):
        expected = plain_ratio(loads, after.channel, after.channels)
        assert (ratio is None and expected is None) or ratio == pytest.approx(expected)
    moved = [key for key in state if before.channel[key] != after.channel[key]]
    assert metrics.keys_moved == len(moved)
    assert metrics.state_moved == pytest.approx(sum(state[key] for key in moved))


@examples(40)
@given(streams())
def test_no_placement_has_less_than_the_floors(drawn):
    stream, _, after, resources = drawn
    metrics = evaluate(after, stream, resources)
    network = plain_loads(stream, resources)[2]
    ratios = []
    for placed in product(range(after.channels), repeat=len(network)):
        ratio = plain_ratio(network, dict(zip(network, placed, strict=True)), after.channels)
        ratios.append(float("inf") if ratio is None else ratio)
    if metrics.r_best is None:
        assert min(ratios) == float("inf")
    else:
        assert metrics.r_best <= min(ratios) * (1 + 1e-12)


@examples(40)
@given(streams())
def test_a_step_has_the_loads_of_its_keys_the_heaviest_by_share_first(drawn):
    stream, before, after, resources = drawn
    ring = ConsistentHash(after.channels, 5)
    problem = Problem.from_counts(before, ring, stream, stream.keys, resources)
    plain = plain_loads(stream, resources)
    keys = problem.keys.to_pylist()
    assert problem.state.tolist() == [plain[0][key] for key in keys]
    assert problem.network.tolist() == [plain[2][key] for key in keys]
    balanced = [
        at
        for at, (letter, source) in enumerate(zip(resources.text, resources.measured, strict=True))
        if (any(plain[at].values()) if source else letter != "C")
    ]
    assert problem.loads.tolist() == [[plain[at][key] for key in keys] for at in balanced]
    if any(resources.measured):
        shares = [max((plain[k][key] / sum(plain[k].values()) for k in balanced), default=0) for key in keys]
        assert problem.weights == pytest.approx(shares)
        assert sorted(problem.weights, reverse=True) == problem.weights.tolist()
    else:
        assert problem.weights.tolist() == stream.count_low.tolist()


def test_the_residual_of_a_measured_load_is_what_untracked_keys_measure():
    resources = Resources.parse("LCL", measure=["network=bytes"])
    ring = ConsistentHash(2, 5)
    residual = Problem.from_counts(ring, ring, STREAM, pa.array(["b"]), resources).residual()
    assert residual.sum(axis=1).tolist() == [9, 3, 10]


def test_a_tracked_key_that_is_heavy_as_measured_alone_leaves_little_to_the_floor_of_the_pair():
    placed = HybridPartitioner({"b": 0, "d": 1}, ConsistentHash(2, 5))
    metrics = evaluate(placed, STREAM, BY_BYTES)
    assert metrics.r_best == pytest.approx(4)
    assert metrics.r_best_pinned >= metrics.r_best


def test_a_key_that_is_not_listed_has_nothing_measured():
    rows = STREAM.rows_of(pa.array(["b", "gone"]))
    assert loads_at(STREAM, rows, BYTES).tolist() == [40, 0]
    assert loads_at(STREAM, rows, CONSTANT).tolist() == [1, 1]
    assert loads_at(STREAM, rows, QUADRATIC).tolist() == [9, 0]


def test_exact_counts_are_a_column_too():
    assert listed_loads(STREAM, Measured("count")).tolist() == [6, 3, 2, 1]


def test_what_was_not_measured_is_refused_with_what_was():
    with pytest.raises(UsageError, match=r"column 'byte' was not measured; did you mean 'bytes'\? .*bytes, count"):
        STREAM.column("byte")


def test_the_largest_share_counts():
    assert largest_shares(STREAM, BY_BYTES) == pytest.approx([6 / 12, 40 / 50, 2 / 12, 9 / 50])
    assert largest_shares(STREAM, Resources.parse("CCC", measure=["state=bytes"])) == pytest.approx(
        [1 / 50, 40 / 50, 0, 9 / 50]
    )
    assert largest_shares(STREAM, Resources.parse("CCC")).tolist() == [0, 0, 0, 0]


def lossy(total_bytes: float, distinct: int = 14) -> Frequencies:
    """Two keys of fourteen are listed, 60 of 100 rows."""
    listed = counted({"a": 40, "b": 20}, total_bytes, bytes={"a": 10, "b": 50})
    return replace(listed, total=100.0, rows=100, epsilon=0.05, complete_above=5.0, distinct=distinct)


def test_stand_ins_share_what_is_measured_on_unlisted_keys():
    population = Population.from_counts(lossy(120))
    assert population.loads(BYTES).tolist() == [10, 50, *[5] * 12]
    assert population.heaviest(BYTES).tolist() == [50, 10]
    assert population.loads(LINEAR).sum() == pytest.approx(100)


def test_what_is_measured_adds_up_to_the_stream():
    for total in (60, 61, 1000):
        assert Population.from_counts(lossy(total)).loads(BYTES).sum() == pytest.approx(total)


def test_weight_on_no_unlisted_key_may_still_leave_bytes_there():
    """Costs may all be on listed keys while another key has bytes: it has a stand-in."""
    told = replace(lossy(75), total=60.0, complete_above=0.0, distinct=2)
    assert Population.from_counts(told).loads(BYTES).tolist() == [10, 50, 15]
    assert Population.from_counts(replace(told, measured=())).unlisted == 0


def test_fewer_keys_keep_their_columns():
    kept = lossy(120).first(1)
    assert kept.keys.to_pylist() == ["a"]
    assert kept.column("bytes").values.tolist() == [10]
    assert kept.column("bytes").unlisted == 110


def test_columns_must_fit_the_keys():
    with pytest.raises(ValueError, match="4 keys do not fit 1 values of 'x'"):
        replace(STREAM, measured=(MeasuredColumn("x", np.zeros(1), 0.0),))
