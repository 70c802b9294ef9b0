"""Work of a given cost and selectivity, whose results depend on the order of all that went before in its state."""

import numpy as np

from adapt.core.atomics import apart, clock_ns, fixed, load, load_atomic, put, store
from adapt.core.compiled import AtAddress, compiled, inlined
from adapt.core.ordered.chain.bound import BoundOperator, Words
from adapt.core.ordered.chain.mixing import FOLD, MASK, mixed
from adapt.core.ordered.chain.names import OperatorKind
from adapt.core.ordered.functions.function import OWN, PACE, SIGNATURE, STATE, STRIDE, Function, Row, Step
from adapt.core.random_bits import mixed as mixed_bits

_FACTOR = 0xD1342543DE82EF95
"""Of the state's update, odd, so that no state is lost; of the published constants for generators modulo 2^64."""

_STEPS, _TRIES = 100_000, 5


def _seed(bound: BoundOperator) -> int:
    """Different for each operator of a chain."""
    return mixed(bound.number + 1)


def _outputs(bound: BoundOperator) -> tuple[int, int]:
    """The whole part of the selectivity, and the rest as a share of 2^64."""
    whole = int(bound.operator.selectivity)
    return whole, int((bound.operator.selectivity - whole) * 2**64)


@inlined
def _burnt(steps: int) -> int:
    """Steps of arithmetic, none of which can begin before the one before it has ended."""
    word = np.uint64(steps)
    for _ in range(steps):
        word = (word ^ (word >> np.uint64(7))) * np.uint64(_FACTOR)
    return int(np.int64(word))


@compiled
def _timed_ns(steps: int) -> int:
    """How long steps of arithmetic take."""
    start = clock_ns()
    burnt = _burnt(steps)
    # Written so that the work is not left out.
    return int(clock_ns() - start + (burnt == 1))


def measured_pace() -> int:
    """Steps of work that take 1024 ns here: the best of some tries, as others may use the machine meanwhile."""
    _timed_ns(1)
    return max(int(_STEPS * 1024 / min(_timed_ns(_STEPS) for _ in range(_TRIES))), 1)


def _work(words: int, partition: int, given: int, outputs: int) -> int:  # noqa: ARG001 (a state a key is enough)
    if not fixed(words, OWN + 9):
        return _work_fully(words, given, outputs)
    at, field = fixed(words, OWN + 1), 0
    # As below, by a short way. The end is read anew each round, or the loop would be unrolled, which takes longer.
    while field < load_atomic(words, OWN):
        put(outputs, field, load(given, field))
        field += 1
    store(outputs, at, np.int64(mixed_bits(np.uint64(load(given, at)) + np.uint64(fixed(words, OWN + 4)))))
    return 1


@inlined
def _work_fully(words: int, given: int, outputs: int) -> int:
    """What costs, keeps a state, or gives more or fewer outputs than one."""
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
        state, key, key_at = fixed(words, STATE), 0, fixed(words, OWN + 2)
        if key_at >= 0:
            key = load(given, key_at)
        value = np.uint64(load(state, key)) * np.uint64(_FACTOR) + value
        store(state, key, np.int64(value))
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
    """Changes the value of a tuple, and keeps as many copies of it as its selectivity says.

    A stateless operator gives mixed(value + seed). One with state first makes that state x factor + value, modulo 2^64:
    a number that differs if two tuples change places. Of a selectivity s, each tuple has floor(s) outputs, and one more
    if its new value, mixed again, lies in the lowest share s - floor(s) of all words. The cost is steps of arithmetic
    that change no result.
    """

    compiled = AtAddress(SIGNATURE, _work)

    def most(self, bound: BoundOperator) -> int:
        """The whole part of the selectivity, and one if there is a rest."""
        whole, share = _outputs(bound)
        return whole + (share > 0)

    def step(self, bound: BoundOperator) -> Step:
        """The plain form."""
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
        """Number of fields, value's and key's places, whether there is state, seed, outputs, cost's place and cost.

        The last tells whether it costs nothing, has no state, and gives one output for each input.
        """
        whole, share = _outputs(bound)
        cost = bound.operator.cost
        has_state = bound.operator.kind is not OperatorKind.STATELESS
        cost_ns = 0 if isinstance(cost, str) else round(cost * 1000)
        of = len(bound.fields), bound.value_at, bound.key_at, has_state, _seed(bound), whole, share
        is_empty = not has_state and (whole, share) == (1, 0) and bound.cost_at < 0 and cost_ns == 0
        return *of, bound.cost_at, cost_ns, is_empty

    def state(self, bound: BoundOperator) -> Words:
        """A word a key."""
        return np.zeros(bound.keys, np.int64)
