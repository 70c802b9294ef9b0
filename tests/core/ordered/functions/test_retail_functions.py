"""Functions of the retail chains: compiled and plain-Python steps agree, also at punctuations."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from adapt.core.atomics import load, operate, release
from adapt.core.ordered.chain.bound import END, BoundOperator
from adapt.core.ordered.chain.chain import CHUNKED, COUNTED, ROLES, VALUE, Operator, Passes
from adapt.core.ordered.chain.names import FunctionName, OperatorKind
from adapt.core.ordered.engine.kernel.worker import release_all
from adapt.core.ordered.functions.baskets import PAIR
from adapt.core.ordered.functions.function import MOST, OWN, STATE, STRIDE, Row, Windowed
from adapt.core.ordered.functions.registry import FUNCTIONS

KEYS, PARTITIONS = 6, 3
MINUTE = 60_000_000

RANGES = {
    "key": KEYS - 1,
    "item": 40,
    "page": 3,
    "kinds": 15,
    "hour": 0,  # set from the time
    "pages": 2**40,
    "category": 0,  # set from the key
    "day": 0,  # set from the time
    "revenue": 2**30,
    "cents": 2**31 - 1,
    "qty": 2**31 - 1,
    COUNTED: 30,
    VALUE: 2**64 - 1,
    "within": 3,
}

Event = tuple[int, dict[str, int]] | int
"""A time and the other fields of a tuple, or the time of a punctuation."""


@njit
def called(function: int, words: int, partition: int, given: int, outputs: int) -> int:
    return operate(function, words, partition, given, outputs)


@njit
def word_at(address: int, place: int) -> int:
    return load(address, place)


@njit
def given_back(address: int) -> None:
    release(address)


def bound_of(name: FunctionName, kind: OperatorKind) -> BoundOperator:
    role = ROLES[name]
    keyed = kind is OperatorKind.PARTITIONED
    key = (COUNTED if role.made_key else "k") if keyed else None
    operator = Operator("it", kind, key, PARTITIONS if keyed else None, function=name)
    own = [] if role.made_key or not keyed else ["key k"]
    fields = tuple(dict.fromkeys([*own, *role.reads, "other"]))
    gives = role.makes if role.passes is Passes.NONE else (*fields[-1:], *fields[:-1], *role.makes)
    of = np.arange(KEYS) % PARTITIONS if own else None
    return BoundOperator(operator, 0, fields, gives, of, PARTITIONS if keyed else 1)


class Compiled:
    """The compiled form with its state, driven one tuple at a time."""

    def __init__(self, bound: BoundOperator) -> None:
        self.bound, self.function = bound, FUNCTIONS[bound.operator.function]
        self.state = self.function.state(bound)
        self.stride = 1 + len(bound.gives)
        self.most = max(self.function.most(bound), 1)
        self.room = np.zeros((self.most + 1, self.stride), np.int64)
        words = [0] * OWN + [word % 2**64 for word in self.function.words(bound)]
        words[STATE], words[STRIDE], words[MOST] = self.state.ctypes.data, 8 * self.stride, self.most
        self.words = np.array(words, np.uint64)

    def __call__(self, address: int, partition: int, row: Sequence[int]) -> list[Row]:
        given = np.array(row, np.uint64)
        place = self.room.ctypes.data + 8
        count = called(address, self.words.ctypes.data, partition, given.ctypes.data, place)
        assert count >= 0
        if count <= self.most:
            return [tuple(words) for words in self.room[:count, 1:].view(np.uint64).tolist()]
        block = word_at(place, 0)
        words = [word_at(block, at) % 2**64 for at in range(count * self.stride)]
        given_back(block)
        return [tuple(words[at * self.stride + 1 : (at + 1) * self.stride]) for at in range(count)]

    def end(self) -> None:
        for blocks in self.function.blocks(self.bound):
            release_all(self.state.ctypes.data + 8 * blocks.first, blocks.step, blocks.count)


def outputs(bound: BoundOperator, events: Sequence[Event]) -> tuple[list[list[Row]], list[list[Row]]]:
    """By the plain form, and by the compiled one."""
    function = FUNCTIONS[bound.operator.function]
    step, compiled = function.step(bound), Compiled(bound)
    plain: list[list[Row]] = []
    found: list[list[Row]] = []
    for event in events:
        if not isinstance(event, int):
            time, more = event
            fields = {**more, "ts": time, "hour": time // (60 * MINUTE), "day": time // (1440 * MINUTE)}
            fields |= {"key k": more["key"], "category": 7 * more["key"], "other": time}
            row = tuple(fields[name] for name in bound.fields)
            plain.append(list(step(row)))
            found.append(compiled(function.compiled.address, bound.partition(row), row))
        elif function.closing is not None:
            assert isinstance(step, Windowed)
            for partition in range(bound.partitions):
                row = (event, *[0] * (len(bound.fields) - 1))
                plain.append(list(step.close(partition, event)))
                found.append(compiled(function.closing.address, partition, row))
    compiled.end()
    return plain, found


FIELDS = st.fixed_dictionaries(
    {name: st.integers(0, most) for name, most in RANGES.items()} | {name: st.just(0) for name in CHUNKED}
)
STEPS = st.lists(
    st.tuples(st.sampled_from([0, 1, MINUTE, 30 * MINUTE, 61 * MINUTE, 900 * MINUTE]), st.none() | FIELDS), max_size=40
)


def in_time(steps: Sequence[tuple[int, dict[str, int] | None]]) -> list[Event]:
    """Events one after the other, and the end of the stream behind them."""
    events: list[Event] = []
    now = 1_700_000_000_000_000
    for later, fields in steps:
        now += later
        events.append(now if fields is None else (now, fields))
    return [*events, END]


OF_WORK = (FunctionName.WORK, FunctionName.COUNT)
FORMS = [(name, kind) for name in FunctionName if name not in OF_WORK for kind in sorted(ROLES[name].kinds)]


@pytest.mark.parametrize(("name", "kind"), FORMS)
@settings(max_examples=settings().max_examples * 2 // 10)
@given(steps=STEPS)
def test_the_compiled_form_gives_what_the_plain_one_gives(
    name: FunctionName, kind: OperatorKind, steps: list[tuple[int, dict[str, int] | None]]
) -> None:
    plain, compiled = outputs(bound_of(name, kind), in_time(steps))
    assert compiled == plain


@pytest.mark.parametrize("name", [FunctionName.SESSION_ITEMS, FunctionName.BASKET_PAIRS])
@pytest.mark.parametrize("items", [1, 8, 9, 16, 17, 100])
def test_each_two_items_of_a_long_session_or_basket_are_paired_once(name: FunctionName, items: int) -> None:
    bound = bound_of(name, OperatorKind.PARTITIONED)
    zero = dict.fromkeys([*RANGES, *CHUNKED], 0)
    start = 1_700_000_000_000_000 // (60 * MINUTE) * 60 * MINUTE
    events: list[Event] = [(start + at, {**zero, "item": item}) for at, item in enumerate([*range(items), 0])]
    plain, compiled = outputs(bound, [*events, END])
    assert compiled == plain
    rows = [row for rows in compiled for row in rows]
    if name is FunctionName.SESSION_ITEMS:
        pairing = bound_of(FunctionName.ITEM_PAIRS, OperatorKind.STATELESS)
        step, of = FUNCTIONS[FunctionName.ITEM_PAIRS].step(pairing), Compiled(pairing)
        given = [(*row, 0) for row in rows]
        rows = [pair for row in given for pair in step(row)]
        assert [pair for row in given for pair in of(of.function.compiled.address, 0, row)] == rows
    assert sorted(divmod(pair, PAIR) for pair, _ in rows) == [
        (one, other) for one in range(items) for other in range(one + 1, items)
    ]


def test_a_table_grows_and_begins_anew_after_a_window() -> None:
    bound = bound_of(FunctionName.WINDOW_TOP_100, OperatorKind.STATEFUL)
    zero = dict.fromkeys([*RANGES, *CHUNKED], 0)
    random = np.random.default_rng(1)
    events: list[Event] = []
    for window, words in ((10, 5000), (20, 10), (30, 3000)):
        events += [
            (window, {**zero, COUNTED: int(word), VALUE: 1}) for word in random.integers(0, 2**62, words).repeat(2)
        ]
        events.append(window)
    plain, compiled = outputs(bound, events)
    assert compiled == plain
    assert [len(rows) for rows in plain if rows] == [100, 10, 100]
