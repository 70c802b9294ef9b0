"""Random service times and outputs, by serial number, independent of the schedule."""

import numpy as np

from adapt.core.atomics import load, store
from adapt.core.compiled import inlined
from adapt.core.ordered.chain.mixing import FOLD
from adapt.core.ordered.engine.kernel.batch import fail, run_batch
from adapt.core.ordered.engine.kernel.layout import Header, Operator, Tally, slot_at
from adapt.core.ordered.engine.kernel.punctuation import count_bare, hand_on
from adapt.core.ordered.engine.kernel.tuples import BARE, MARK, PUNCTUATION, copy_of, copy_words, outputs_at, tuple_at
from adapt.core.random_bits import mixed


@inlined
def _drawn(header: Header, operator: Operator, what: int, serial: int) -> np.uint64:
    """Random bits of a tuple, for its cost (0) or its outputs (1), from SplitMix64."""
    return mixed(np.uint64(header.seed + 2 * operator.number + what) + np.uint64(serial + 1) * np.uint64(FOLD))


@inlined
def service_ns(header: Header, operator: Operator, serial: int, tuples: int) -> int:
    """Service time of a batch: tuples' costs plus contention."""
    at, share = operator.cost_at, header.jitter / 1048576.0
    crowding = header.contention_ns * (operator.working - 1)
    total = 0.0
    for number in range(serial, serial + tuples):
        given = tuple_at(operator, number)
        if load(given, MARK) >= PUNCTUATION:
            continue
        cost = float(operator.cost_ns if at < 0 else load(given, 1 + at))
        if share > 0:
            even = (float(_drawn(header, operator, 0, number) >> np.uint64(11)) + 0.5) / 9007199254740992.0
            cost *= 1.0 - share - share * np.log(even)
        total += cost + crowding
    return int(total + 0.5)


@inlined
def _put(operator: Operator, serial: int, tuples: int, outputs: int, block: int) -> None:
    """Put a batch into the ring buffer."""
    slot = slot_at(operator, serial)
    slot.tuples = tuples
    slot.outputs = outputs
    slot.block = block
    slot.ticket = serial + 1


@inlined
def _run_function(header: Header, tally: Tally, operator: Operator, partition: int, serial: int, tuples: int) -> int:
    """Run the operator's function on a batch, in as many pieces as outputs without room need; returns its outputs."""
    end, total = serial + tuples, 0
    while serial < end:
        outputs = outputs_at(operator, serial)
        done, made, block, held = run_batch(header, tally, operator, partition, serial, end - serial, outputs)
        if made < 0:
            fail(header, operator, made)
            return total
        if done:
            _put(operator, serial, done, made, 0)
        if block:
            _put(operator, serial + done, 1, held, block)
        total += made + held
        serial += done + (block != 0)
    return total


@inlined
def put_outputs(header: Header, tally: Tally, operator: Operator, partition: int, serial: int, tuples: int) -> int:
    """Put a batch's outputs into the ring buffer.

    Those of its function, or copies by drawn selectivity.
    """
    if operator.function:
        return _run_function(header, tally, operator, partition, serial, tuples)
    size, made = operator.out_words, 0
    outputs, whole, share = outputs_at(operator, serial), operator.whole, np.uint64(operator.share)
    for number in range(serial, serial + tuples):
        given = tuple_at(operator, number)
        mark = load(given, MARK)
        count = 0
        if PUNCTUATION <= mark < BARE:
            count_bare(tally, operator, partition)
            if copy_of(mark) == operator.partitions - 1:
                tally.bare_made += 1
                hand_on(given, outputs + 8 * made * size, mark, size)
                made += 1
            continue
        if mark < BARE:
            count = whole
            if share and _drawn(header, operator, 1, number) < share:
                count += 1
        else:
            count_bare(tally, operator, partition)
        for output in range(made, made + count):
            store(outputs, output * size, 0)
            copy_words(given + 8, outputs + 8 * (output * size + 1), size - 1)
        made += count
        if mark and count:
            store(outputs, (made - 1) * size, mark)
        elif mark:
            tally.bare_made += 1
            store(outputs, made * size, mark | BARE)
            made += 1
    _put(operator, serial, tuples, made, 0)
    return made
