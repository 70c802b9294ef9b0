"""Synthetic work of a given cost and selectivity, sensitive to order."""

import numpy as np

from adapt.core.atomics import apart, clock_ns, fixed, load, load_atomic, put, store
from adapt.core.compiled import AtAddress, compiled, inlined
from adapt.core.ordered.chain.bound import BoundOperator, Words
from adapt.core.ordered.chain.mixing import FOLD, MASK, mixed
from adapt.core.ordered.chain.names import OperatorKind
from adapt.core.ordered.functions.function import OWN, PACE, SIGNATURE, STATE, STRIDE, Function, Row, Step
from adapt.core.random_bits import mixed as mixed_bits

_FACTOR = 0xD1342543DE82EF95
"""Multiplier of the state's update: uneven, so that no state is lost; a published constant for generators modulo
2^64."""

_STEPS, _TRIES = 100_000, 5


def _seed(bound: BoundOperator) -> int:
    """Seed of an operator, different for each in a chain."""
    return mixed(bound.number + 1)


def _outputs(bound: BoundOperator) -> tuple[int, int]:
    """Integer part of the selectivity, and the rest as a share of 2^64."""
    whole = int(bound.operator.selectivity)
    return whole, int((bound.operator.selectivity - whole) * 2**64)


@inlined
def _burnt(steps: int) -> int:
    """Run steps of arithmetic, each of which depends on the previous one."""
    word = np.uint64(steps)
    for _ in range(steps):
        word = (word ^ (word >> np.uint64(7))) * np.uint64(_FACTOR)
    return int(np.int64(word))


@compiled
def _timed_ns(steps: int) -> int:
    """Time that steps of arithmetic take."""
    start = clock_ns()
    burnt = _burnt(steps)
    # Stored, or the compiler would drop the work.
    return int(clock_ns() - start + (burnt == 1))


def fixed_loop_s() -> float:
    """Seconds that a fixed loop takes now: the noise of the machine."""
    _timed_ns(1)
    return _timed_ns(_STEPS) / 1e9


def measured_pace() -> int:
    """Steps of busy work in 1024 ns on this machine.

    The best of several tries, since other processes may interfere.
    """
    _timed_ns(1)
    return max(int(_STEPS * 1024 / min(_timed_ns(_STEPS) for _ in range(_TRIES))), 1)


@inlined
def _updated(words: int, given: int, value: np.uint64) -> np.uint64:
    """The state of a tuple's key after a value."""
    state, key, key_at = fixed(words, STATE), 0, fixed(words, OWN + 2)
    if key_at >= 0:
        key = load(given, key_at)
    value = np.uint64(load(state, key)) * np.uint64(_FACTOR) + value
    store(state, key, np.int64(value))
    return value


def _work(words: int, partition: int, given: int, outputs: int) -> int:  # noqa: ARG001 (one state per key is enough)
    if not fixed(words, OWN + 9):
        return _work_fully(words, given, outputs)
    at, field = fixed(words, OWN + 1), 0
    # A short cut for the loop below. The end is read again each round: unrolled, the loop would be slower.
    while field < load_atomic(words, OWN):
        put(outputs, field, load(given, field))
        field += 1
    value = np.uint64(load(given, at))
    if fixed(words, OWN + 3):
        value = _updated(words, given, value)
    store(outputs, at, np.int64(mixed_bits(value + np.uint64(fixed(words, OWN + 4)))))
    return 1


@inlined
def _work_fully(words: int, given: int, outputs: int) -> int:
    """The general case: a cost, a state, or more or fewer outputs than one."""
    apart()
    fields, at = fixed(words, OWN), fixed(words, OWN + 1)
    seed, whole, share = np.uint64(fixed(words, OWN + 4)), fixed(words, OWN + 5), np.uint64(fixed(words, OWN + 6))
    cost_at, cost = fixed(words, OWN + 7), fixed(words, OWN + 8)
    if cost_at >= 0:
        cost = load(given, cost_at)
    if cost > 0:
        put(outputs, 0, _burnt((cost * fixed(words, PACE)) >> 10))
    value = np.uint64(load(given, at))
    if fixed(words, OWN + 3):
        value = _updated(words, given, value)
    value = mixed_bits(value + seed)
    count = whole
    if share and mixed_bits(value ^ np.uint64(FOLD)) < share:
        count += 1
    stride = fixed(words, STRIDE)
    for copy in range(count):
        for field in range(fields):
            put(outputs, field, load(given, field))
        store(outputs, at, np.int64(mixed_bits(value + np.uint64(copy)) if copy else value))
        outputs += stride
    return int(count)


class Work(Function):
    """Changes a tuple's value, and gives copies by the selectivity.

    A stateless operator gives mixed(value + seed). One with state first sets the state to state x factor + value,
    modulo 2^64, which differs if two tuples change places. With selectivity s, a tuple has floor(s) outputs, and one
    more if its new value, mixed again, is in the lowest share s - floor(s) of all words. The cost is spent in steps of
    arithmetic that change no result."""

    compiled = AtAddress(SIGNATURE, _work)

    def most(self, bound: BoundOperator) -> int:
        """The selectivity, rounded up."""
        whole, share = _outputs(bound)
        return whole + (share > 0)

    def step(self, bound: BoundOperator) -> Step:
        """The plain-Python step."""
        at, key_at, seed = bound.value_at, bound.key_at, _seed(bound)
        whole, share = _outputs(bound)
        state = None if bound.operator.kind is OperatorKind.STATELESS else [0] * bound.keys

        def step(row: Row) -> list[Row]:
            value = row[at]
            if state is not None:
                key = row[key_at] if key_at >= 0 else 0
                value = state[key] = (state[key] * _FACTOR + value) & MASK
            value = mixed((value + seed) & MASK)
            count = whole + (mixed(value ^ FOLD) < share)
            return [(*row[:at], mixed(value + copy & MASK) if copy else value, *row[at + 1 :]) for copy in range(count)]

        return step

    def words(self, bound: BoundOperator) -> tuple[int, ...]:
        """Layout, state, seed, outputs and cost of an operator.

        Number of fields, places of value and key, whether there is state, seed, outputs, place of the cost, cost.

        The last word says whether it has no cost, and one output for each input.
        """
        whole, share = _outputs(bound)
        cost = bound.operator.cost
        has_state = bound.operator.kind is not OperatorKind.STATELESS
        cost_ns = 0 if isinstance(cost, str) else round(cost * 1000)
        of = len(bound.fields), bound.value_at, bound.key_at, has_state, _seed(bound), whole, share
        is_free = (whole, share) == (1, 0) and bound.cost_at < 0 and cost_ns == 0
        return *of, bound.cost_at, cost_ns, is_free

    def state(self, bound: BoundOperator) -> Words:
        """One word per key."""
        return np.zeros(bound.keys, np.int64)
