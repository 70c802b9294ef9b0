"""Claims of tuples from a work queue by compare-and-swap."""

from adapt.core.atomics import fixed, load, load_atomic, replace, short_loops
from adapt.core.compiled import flattened, inlined, record_after
from adapt.core.ordered.engine.kernel.batch import process, process_plain
from adapt.core.ordered.engine.kernel.codes import CLAIM, RETRY
from adapt.core.ordered.engine.kernel.layout import Header, Operator, Tally
from adapt.core.ordered.engine.kernel.tuples import MARK, tuple_at


@flattened
def claimable_before(header: Header, operator: Operator) -> int:
    """The first serial number that may not be claimed yet.

    Later tuples have not arrived or have no room in the ring buffer.

    With `RETRY` the ring buffer does not matter, but no tuple may be claimed while the next operator has enough.
    """
    end = load_atomic(operator, "tail")
    if fixed(header, "reorder") != RETRY:
        return min(end, load_atomic(operator, "next") + fixed(header, "ring"))
    if fixed(operator, "number") < fixed(header, "operators") - 1:
        down = record_after(operator, 1)
        if load_atomic(down, "tail") - load_atomic(down, "next") >= operator.enough:
            return 0
    return end


@flattened
def until_wrap(operator: Operator, serial: int) -> int:
    """Tuples from this one to the end of the ring buffer."""
    mask = fixed(operator, "ring_mask")
    return mask + 1 - (serial & mask)


@inlined
def run_length(header: Header, operator: Operator, queue: int, head: int, most: int) -> int:
    """Consecutive tuples at the head of a partition's queue.

    At most a batch.
    """
    mask = operator.queue_mask
    first = load(queue, head & mask)
    most = min(most, header.batch, until_wrap(operator, first))
    tuples = 1
    while tuples < most and load(queue, (head + tuples) & mask) == first + tuples:
        tuples += 1
    return tuples


@inlined
def take_shared(header: Header, tally: Tally, scratch: int, operator: Operator, quota: int) -> int:
    """Process tuples of an operator without partitions; returns their number."""
    short_loops()
    plain = fixed(header, "reorder") == CLAIM and not fixed(operator, "keeps_state")
    done = 0
    while done < quota and not load_atomic(header, "stop"):
        head = load_atomic(operator, "head")
        tuples = min(claimable_before(header, operator) - head, fixed(header, "batch"), until_wrap(operator, head))
        if tuples <= 0:
            break
        if not replace(operator, "head", head, head + tuples):
            continue
        if plain and tuples == 1 and not load(tuple_at(operator, head), MARK):
            process_plain(header, tally, operator, head)
        else:
            process(header, tally, scratch, operator, 0, head, tuples)
        done += tuples
    return done
