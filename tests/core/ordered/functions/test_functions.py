"""Operator functions: the compiled step gives the same outputs as the plain-Python step."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from adapt.core.atomics import operate
from adapt.core.errors import UsageError
from adapt.core.ordered.chain.bound import BoundOperator, bind
from adapt.core.ordered.chain.chain import ROLES, Chain, Operator, Punctuations
from adapt.core.ordered.chain.mixing import mixed
from adapt.core.ordered.chain.names import FunctionName, OperatorKind
from adapt.core.ordered.engine.reference import run_serially
from adapt.core.ordered.functions.function import OWN
from adapt.core.ordered.functions.own import function_of
from adapt.core.ordered.functions.sales import PAIR
from tests.core.ordered.functions.twins import step_of
from tests.core.ordered.walk import walked

OF_WORK = (FunctionName.WORK, FunctionName.COUNT)
KEYS = 5
PACE = 700


@njit
def called(function: int, words: int, given: int, outputs: int) -> int:
    return operate(function, words, 0, given, outputs)


def operator_of(name: FunctionName, kind: OperatorKind, selectivity: float, cost: float) -> BoundOperator:
    keyed = kind is OperatorKind.PARTITIONED
    of_work = {"selectivity": selectivity, "cost": cost} if name is FunctionName.WORK else {}
    operator = Operator(
        "it", kind, key="k" if keyed else None, partitions=2 if keyed else None, function=name, **of_work
    )
    fields = ("other", "key k", "value")
    return BoundOperator(operator, 3, fields, fields, np.arange(KEYS) % 2 if keyed else None, 2 if keyed else 1)


def compiled_outputs(bound: BoundOperator, rows: list[tuple[int, ...]]) -> list[list[tuple[int, ...]]]:
    function = function_of(bound)
    width = len(bound.fields)
    state, room = function.state, np.zeros((max(function.most, 1), width + 1), np.uint64)
    words = np.array([0] * OWN + [word % 2**64 for word in function.words], np.uint64)
    words[:OWN] = state.ctypes.data, 8 * (width + 1), PACE, len(room), 0
    outputs = []
    for row in rows:
        words_of_row = np.array(row, np.uint64)
        count = called(function.compiled.address, words.ctypes.data, words_of_row.ctypes.data, room.ctypes.data)
        outputs.append([tuple(output[:width]) for output in room[:count].tolist()])
    return outputs


WORD = st.integers(0, 2**64 - 1)
ROWS = st.lists(st.tuples(WORD, st.integers(0, KEYS - 1), WORD), max_size=20)


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name in OF_WORK for kind in sorted(ROLES[name].kinds)])
@given(rows=ROWS, selectivity=st.one_of(st.floats(0, 3), st.sampled_from([0.0, 1.0, 2.0])), cost=st.floats(0, 3))
def test_the_compiled_form_gives_what_the_plain_one_gives(
    name: FunctionName, kind: OperatorKind, rows: list[tuple[int, int, int]], selectivity: float, cost: float
) -> None:
    bound = operator_of(name, kind, selectivity, cost)
    step = step_of(bound)
    plain = [list(step(row)) for row in rows]
    assert compiled_outputs(bound, list(rows)) == plain
    assert max((len(outputs) for outputs in plain), default=0) <= function_of(bound).most


@given(
    rows=st.lists(st.tuples(st.integers(0, KEYS - 1), *[WORD] * 4), max_size=12),
    kind=st.sampled_from(sorted(OperatorKind)),
    payload=st.integers(0, 3),
    state=st.integers(0, 9),
)
def test_work_reads_its_payload_and_updates_each_word_of_its_state(
    rows: list[tuple[int, ...]], kind: OperatorKind, payload: int, state: int
) -> None:
    keyed, size = kind is OperatorKind.PARTITIONED, 0 if kind is OperatorKind.STATELESS else state
    of_kind = {"key": "k", "partitions": 2} if keyed else {}
    operator = Operator("it", kind, **of_kind, tuple_bytes=8 * payload, state_bytes=8 * size)
    fields = ("key k", "value", "payload 0", "payload 1", "payload 2")
    bound = BoundOperator(operator, 0, fields, fields, np.arange(KEYS) % 2 if keyed else None, 2 if keyed else 1)
    states = [[0] * max(size, 1) for _ in range(KEYS)]
    expected = []
    for key, value, *words in rows:
        value += sum(word * odd for word, odd in zip(words[:payload], (1, 3, 5), strict=False))
        mine = states[key if keyed else 0]
        if size:
            turned = [int(f"{word:064b}"[7:] + f"{word:064b}"[:7], 2) for word in mine]
            mine[:] = [(word + value + place) % 2**64 for place, word in enumerate(turned)]
            value = sum(mine)
        elif kind is not OperatorKind.STATELESS:
            value = mine[0] = (mine[0] * 0xD1342543DE82EF95 + value) % 2**64
        expected.append([(key, mixed((value + mixed(1)) % 2**64), *words)])
    assert compiled_outputs(bound, rows) == expected
    step = step_of(bound)
    assert [list(step(row)) for row in rows] == expected


def test_a_state_that_memory_cannot_hold_is_refused() -> None:
    operator = Operator("it", OperatorKind.PARTITIONED, "k", 2, state_bytes=1 << 30)
    bound = BoundOperator(operator, 0, ("key k", "value"), ("key k", "value"), np.zeros(20, np.int64), 2)
    with pytest.raises(UsageError, match="20 keys with state_bytes = 1073741824 need 20 GiB; at most 16 GiB"):
        function_of(bound)


def test_mixing_is_the_published_end_of_splitmix64() -> None:
    # The first output of SplitMix64 from seed 0 is the mixed golden ratio; published with the generator.
    assert mixed(0x9E3779B97F4A7C15) == 0xE220A8397B1DCDAF


HOURLY = Punctuations(every_us=3_600_000_000)


@pytest.mark.parametrize("name", [FunctionName.SESSION_ITEMS, FunctionName.BASKET_PAIRS])
@pytest.mark.parametrize("items", [1, 8, 9, 16, 17, 100])
def test_each_two_items_of_a_long_session_or_basket_are_paired_once(name: FunctionName, items: int) -> None:
    pairs = Operator("pairs", OperatorKind.PARTITIONED, "key", 3, function=name)
    hours, behind = (
        Operator(str(each), OperatorKind.STATELESS, function=each)
        for each in (FunctionName.HOUR, FunctionName.ITEM_PAIRS)
    )
    chain = Chain((hours, pairs) if name is FunctionName.BASKET_PAIRS else (pairs, behind), HOURLY)
    bound = bind(
        chain,
        {"ts": pa.array(range(items + 1)), "key": pa.array([0] * (items + 1)), "item": pa.array([*range(items), 0])},
    )
    kept = run_serially(bound, keep=9999).kept
    assert sorted(divmod(pair, PAIR) for pair, _ in kept) == [
        (one, other) for one in range(items) for other in range(one + 1, items)
    ]


def test_a_table_grows_and_begins_anew_after_a_window() -> None:
    random, hour = np.random.default_rng(1), 3_600_000_000
    words = [random.integers(0, 2**62, count).repeat(2) for count in (5000, 10, 3000)]
    ts = np.repeat(np.arange(3) * hour, [len(each) for each in words])
    top = Operator("top", OperatorKind.STATEFUL, function=FunctionName.WINDOW_TOP_100)
    bound = bind(Chain((top,), HOURLY), {"ts": pa.array(ts), "counted": pa.array(np.concatenate(words))})
    done = run_serially(bound, keep=999)
    assert [sum(end == at * hour for end, *_ in done.kept) for at in (1, 2, 3)] == [100, 10, 100]
    assert done == walked(bound, keep=999)
