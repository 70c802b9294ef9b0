"""Batches: an operator applied to the tuples that a worker claimed."""

from adapt.core.atomics import (
    apart,
    clock_ns,
    fetch_add,
    fixed,
    load,
    load_atomic,
    operate,
    publish,
    replace,
    short_loops,
    store,
)
from adapt.core.compiled import flattened, inlined, record_at
from adapt.core.ordered.engine.kernel.codes import FAULTY, GOES_ON, RETRY
from adapt.core.ordered.engine.kernel.layout import TIMED, Header, Operator, Tally, partition_at, slot_at
from adapt.core.ordered.engine.kernel.punctuation import count_bare, hand_on
from adapt.core.ordered.engine.kernel.reorder_buffer import drain
from adapt.core.ordered.engine.kernel.sending import send
from adapt.core.ordered.engine.kernel.tuples import BARE, COPY, MARK, PUNCTUATION, clear_marks, outputs_at, tuple_at


@inlined
def _run_marked(
    header: Header, tally: Tally, operator: Operator, partition: int, given: int, outputs: int
) -> tuple[int, int]:
    """Run the operator on a marked tuple; returns its outputs, and their block if they have one.

    The last output carries the mark on; a tuple without outputs sends a tuple without fields instead. The last copy of
    a punctuation is a separate output after the others, for which there is always room."""
    apart()
    mark, words = load(given, MARK), fixed(operator, "out_words")
    number = mark & (COPY - 1)
    if number and fixed(operator, "number") == 0 and not fixed(header, "model_workers_at"):
        record_at(fixed(header, "marks_at"), TIMED, number - 1).entered = clock_ns()
    count, called = 0, 0
    if mark < PUNCTUATION:
        called = fixed(operator, "function")
    else:
        count_bare(tally, operator, partition)
        if mark < BARE:
            called = operator.closing
    if called:
        count = operate(called, fixed(operator, "words_at"), partition, given + 8, outputs + 8)
    if count < 0:
        return count, 0
    block = load(outputs, 1) if count > fixed(operator, "most_outputs") else 0
    if block:
        outputs = block
    clear_marks(operator, outputs, count)
    if PUNCTUATION <= mark < BARE:
        if partition == fixed(operator, "partitions") - 1:
            tally.bare_made += 1
            hand_on(given, outputs + 8 * count * words, mark, words)
            count += 1
    elif count:
        store(outputs, (count - 1) * words, number)
    else:
        tally.bare_made += 1
        store(outputs, MARK, number | BARE)
        count = 1
    return count, block


@inlined
def run_batch(
    header: Header, tally: Tally, operator: Operator, partition: int, serial: int, tuples: int, outputs: int
) -> tuple[int, int, int, int]:
    """Run the operator on a batch.

    Up to a tuple whose outputs have no room in the ring buffer.

    Returns:
        The tuples before that one; their outputs, below 0 if the function failed; the block with the outputs of that
        one, 0 if all had room; the number of these outputs.
    """
    size, most, made = 8 * fixed(operator, "out_words"), fixed(operator, "most_outputs"), 0
    for number in range(tuples):
        given, place = tuple_at(operator, serial + number), outputs + made * size
        block = 0
        if load(given, MARK):
            count, block = _run_marked(header, tally, operator, partition, given, place)
        else:
            count = operate(fixed(operator, "function"), fixed(operator, "words_at"), partition, given + 8, place + 8)
            if count > most:
                block = load(place, 1)
                clear_marks(operator, block, count)
            else:
                clear_marks(operator, place, count)
        if count < 0:
            return number, count, 0, 0
        if block:
            return number, made, block, count
        made += count
    return tuples, made, 0, 0


@inlined
def _check_in(header: Header, tally: Tally, operator: Operator, partition: int, serial: int, tuples: int) -> None:
    """Count the load of a partition; in checked runs, also overlaps and tuples out of order."""
    if not operator.keeps_state:
        return
    part = partition_at(operator, partition)
    part.load += tuples
    if header.checked:
        if fetch_add(part, "inside", 1):
            tally.overlaps += 1
        if serial < part.last:
            tally.disorders += 1
        part.last = serial + tuples


@inlined
def _check_out(header: Header, operator: Operator, partition: int) -> None:
    """Leave the partition, in checked runs."""
    if operator.keeps_state and header.checked:
        fetch_add(partition_at(operator, partition), "inside", -1)


@flattened
def bit_length(number: int) -> int:
    """Bits of a number."""
    bits = 0
    while number > 0:
        number >>= 1
        bits += 1
    return bits


@flattened
def count_ahead(tally: Tally, operator: Operator, end: int) -> None:
    """Count the ring buffer's occupancy as a batch is claimed."""
    ahead = end - load_atomic(operator, "next")
    if ahead > tally.fullest:
        tally.fullest = ahead
    tally.in_use[bit_length(ahead)] += 1


@inlined
def fail(header: Header, operator: Operator, made: int) -> None:
    """End the run: the operator's function failed."""
    apart()
    header.fault_operator = operator.number
    header.fault = made
    replace(header, "stop", GOES_ON, FAULTY)


@flattened
def process_plain(header: Header, tally: Tally, operator: Operator, serial: int) -> None:
    """`process` for one unmarked tuple of a stateless operator with `CLAIM`.

    A short cut: the general case takes longer than an empty operator.
    """
    count_ahead(tally, operator, serial + 1)
    given, outputs = tuple_at(operator, serial), outputs_at(operator, serial)
    made = operate(fixed(operator, "function"), fixed(operator, "words_at"), 0, given + 8, outputs + 8)
    if made < 0:
        fail(header, operator, made)
        return
    slot = slot_at(operator, serial)
    if made > fixed(operator, "most_outputs"):
        outputs = load(outputs, 1)
        slot.block = outputs
    if made == 1:
        store(outputs, MARK, 0)
    else:
        clear_marks(operator, outputs, made)
    tally.done += 1
    tally.made += made
    slot.tuples = 1
    slot.outputs = made
    publish(slot, "ticket", serial + 1)
    drain(header, tally, operator)


@inlined
def process(
    header: Header, tally: Tally, scratch: int, operator: Operator, partition: int, serial: int, tuples: int
) -> None:
    """Run the operator on a claimed batch, and send its outputs."""
    apart()
    short_loops()
    count_ahead(tally, operator, serial + tuples)
    _check_in(header, tally, operator, partition, serial, tuples)
    end = serial + tuples
    while serial < end:
        outputs = scratch if fixed(header, "reorder") == RETRY else outputs_at(operator, serial)
        done, made, block, held = run_batch(header, tally, operator, partition, serial, end - serial, outputs)
        if made < 0:
            fail(header, operator, made)
            return
        tally.done += done + (block != 0)
        tally.made += made + held
        if done:
            send(header, tally, operator, serial, done, outputs, made, 0)
        if block:
            send(header, tally, operator, serial + done, 1, outputs, held, block)
        serial += done + (block != 0)
    _check_out(header, operator, partition)
