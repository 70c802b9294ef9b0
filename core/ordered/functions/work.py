"""Synthetic work of a given cost and selectivity, and running counts."""

import numpy as np

from adapt.core.atomics import apart, clock_ns, fixed, load, load_atomic, put, store
from adapt.core.compiled import AtAddress, compiled, flattened, inlined
from adapt.core.errors import UsageError
from adapt.core.ordered.chain.bound import BoundOperator
from adapt.core.ordered.chain.chain import WORD
from adapt.core.ordered.chain.layouts import payload_fields
from adapt.core.ordered.chain.mixing import FOLD, mixed
from adapt.core.ordered.chain.names import OperatorKind
from adapt.core.ordered.functions.function import OWN, PACE, SIGNATURE, STATE, STRIDE, Function
from adapt.core.random_bits import mixed as mixed_bits

_FACTOR = 0xD1342543DE82EF95
"""Multiplier of the state's update: uneven, so that no state is lost; a published constant for generators modulo
2^64."""

_TURN = 7
"""Bits by which the words of a state are rotated."""

MOST_BYTES = 1 << 34
"""State of all keys of an operator."""

_STEPS, _TRIES = 100_000, 5


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


@flattened
def touched(state: int, words: int, value: np.uint64) -> np.uint64:
    """Update each word of a state by a value; returns their sum."""
    total = np.uint64(0)
    for at in range(words):
        word = np.uint64(load(state, at))
        word = ((word << np.uint64(_TURN)) | (word >> np.uint64(64 - _TURN))) + value + np.uint64(at)
        store(state, at, np.int64(word))
        total += word
    return total


@inlined
def _summed(given: int, first: int, words: int) -> np.uint64:
    """Sum of the words of a payload, each times an odd number."""
    apart()
    total = np.uint64(0)
    for at in range(words):
        total += np.uint64(load(given, first + at)) * np.uint64(2 * at + 1)
    return total


@inlined
def _updated(words: int, given: int, value: np.uint64) -> np.uint64:
    """The state of a tuple's key after a value."""
    state, key, key_at = fixed(words, STATE), 0, fixed(words, OWN + 2)
    if key_at >= 0:
        key = load(given, key_at)
    value = np.uint64(load(state, key)) * np.uint64(_FACTOR) + value
    store(state, key, np.int64(value))
    return value


@inlined
def _updated_at_length(words: int, given: int, value: np.uint64) -> np.uint64:
    """The same for a state of a given size."""
    apart()
    size, key, key_at = fixed(words, OWN + 10), 0, fixed(words, OWN + 2)
    if key_at >= 0:
        key = load(given, key_at)
    return touched(fixed(words, STATE) + 8 * key * size, size, value)


def _work(words: int, partition: int, given: int, outputs: int) -> int:  # noqa: ARG001 (one state per key is enough)
    if not fixed(words, OWN + 9):
        return _work_fully(words, given, outputs)
    at, field, fields = fixed(words, OWN + 1), 0, fixed(words, OWN)
    if fields > 2:  # the end is read again each round: unrolled, the loop would be slower
        while field < load_atomic(words, OWN):
            put(outputs, field, load(given, field))
            field += 1
    elif fields == 2:  # the other one, as the value is written below
        put(outputs, 1 - at, load(given, 1 - at))
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
    value, payload = np.uint64(load(given, at)), fixed(words, OWN + 12)
    if payload:
        value += _summed(given, fixed(words, OWN + 11), payload)
    if fixed(words, OWN + 10):
        value = _updated_at_length(words, given, value)
    elif fixed(words, OWN + 3):
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


_WORK = AtAddress(SIGNATURE, _work)


def work(bound: BoundOperator) -> Function:
    """Changes a tuple's value, and gives copies by the selectivity.

    A stateless operator gives mixed(value + seed). One with state first sets the state to state x factor + value,
    modulo 2^64, which differs if two tuples change places. With selectivity s, a tuple has floor(s) outputs, and one
    more if its new value, mixed again, is in the lowest share s - floor(s) of all words. The cost is spent in steps of
    arithmetic that change no result.

    With `tuple_bytes`, the sum of the words of the payload, times 1, 3, 5 and so on, is first added to the value. With
    `state_bytes`, each word of the key's state is rotated left by 7 bits, the value and the word's place are added, and
    the sum of all words is the value from then on.
    """
    operator, cost = bound.operator, bound.operator.cost
    whole = int(operator.selectivity)
    share = int((operator.selectivity - whole) * 2**64)
    cost_ns, size = 0 if isinstance(cost, str) else round(cost * 1000), operator.state_bytes // WORD
    if bound.keys * (size or 1) * WORD > MOST_BYTES:
        raise UsageError(
            f"operator {operator.name!r}: {bound.keys:,} keys with state_bytes = {size * WORD} need "
            f"{bound.keys * size * WORD / 2**30:.0f} GiB; at most {MOST_BYTES >> 30} GiB are allowed"
        )
    read = payload_fields(operator.tuple_bytes)
    payload = (bound.fields.index(read[0]), len(read)) if read else (0, 0)
    is_free = (whole, share) == (1, 0) and bound.cost_at < 0 and cost_ns == 0
    is_free = is_free and not size and payload_fields(WORD)[0] not in bound.fields
    # Fields, places of value and key, whether there is state, seed, outputs, place of the cost, cost; whether it has no
    # cost, no sizes, and one output for each input; words of a key's state if given, place and words of the payload.
    words = (
        *(len(bound.fields), bound.value_at, bound.key_at, operator.kind is not OperatorKind.STATELESS),
        *(mixed(bound.number + 1), whole, share, bound.cost_at, cost_ns, is_free, size, *payload),
    )
    return Function(_WORK, words, most=whole + (share > 0), state=np.zeros(bound.keys * (size or 1), np.int64))


def _count(words: int, partition: int, given: int, outputs: int) -> int:  # noqa: ARG001 (one state per key is enough)
    fields, at, key_at = load(words, OWN), load(words, OWN + 1), load(words, OWN + 2)
    counts, key = load(words, STATE), load(given, key_at)
    count = load(counts, key) + 1
    store(counts, key, count)
    for field in range(fields):
        store(outputs, field, load(given, field))
    store(outputs, at, count)
    return 1


_COUNT = AtAddress(SIGNATURE, _count)


def count(bound: BoundOperator) -> Function:
    """Running count of a key's tuples, as the value."""
    words = len(bound.fields), bound.value_at, bound.key_at
    return Function(_COUNT, words, state=np.zeros(bound.keys, np.int64))
