"""Chunks: an operator's function in a loop over tuples, compiled with it.

The loop writes the outputs of a tuple to its own place in the ring buffer, and then its ticket, so that whoever sends
sees complete outputs: the ticket is written with release order and read with acquire order. Tuples in serial order
share a ticket, which is written at the end of their run: at the latest at the end of the chunk. Their outputs follow
each other from the place of the first. There is room, as no tuple of a run has more outputs than its place takes.
"""

from functools import cache

from adapt.core.atomics import fixed, load, publish, store
from adapt.core.compiled import AtAddress, record_at
from adapt.core.ordered.engine.kernel.layout import OPERATOR
from adapt.core.ordered.engine.kernel.work_queue import IN_BLOCK, MARK, MOST_IN_RUN, clear_marks, run_ticket, ticket_of

MADE = 12
"""Bits of the result of a loop that hold its tuples; the bits above hold their outputs."""

_SIGNATURE = "int64(int64, int64, int64, int64, int64, int64)"


def step(words: int, partition: int, given: int, outputs: int) -> int:
    """The operator's function; it replaces this when the loop is compiled."""
    raise NotImplementedError


def chunk(operator_at: int, partition: int, serials: int, first: int, tuples: int, room: int) -> int:
    """Run the function on tuples up to the next marked one.

    Or up to where a ring buffer begins anew.

    The tuples are those from the serial number `first` on or, with an address `serials`, those of a lane whose serial
    numbers are there from the place `first` on. With an address `room`, it runs on the one tuple whose address is
    `first`, marked or not, and leaves the outputs there without a ticket.

    Returns:
        The tuples and their outputs (`MADE`), or the result of the function that failed, below 0.
    """
    operator = record_at(operator_at, OPERATOR, 0)
    words, slots, partitions = fixed(operator, "words_at"), fixed(operator, "slots_at"), fixed(operator, "master_at")
    queue, mask, size = fixed(operator, "queue_at"), fixed(operator, "queue_mask"), 8 * fixed(operator, "in_words")
    places, ring_mask = fixed(operator, "outputs_at"), fixed(operator, "ring_mask")
    place_size, output_size = 8 * fixed(operator, "slot_output_words"), 8 * fixed(operator, "out_words")
    most_outputs, made, done = fixed(operator, "most_outputs"), 0, 0
    most_run = tuples if tuples * most_outputs <= MOST_IN_RUN else 1
    if not serials and not room:
        tuples = min(tuples, mask + 1 - (first & mask), ring_mask + 1 - (first & ring_mask))
    while done < tuples:
        serial, most = first + done, min(tuples - done, most_run)
        if serials:
            serial, most = load(serials, serial & mask), 1
        given, outputs = queue + (serial & mask) * size, places + (serial & ring_mask) * place_size
        if room:
            given, outputs = first, room
        held, run, more = 1, 0, 0
        while run < most and (not load(given, MARK) or room):
            if partitions and not room:
                partition = load(partitions, (serial + run) & mask)
            held = step(words, partition, given + 8, outputs + 8)
            if held == 1:
                store(outputs, MARK, 0)
                outputs += output_size
            elif 0 <= held <= most_outputs:
                for _ in range(held):
                    store(outputs, MARK, 0)
                    outputs += output_size
                more += held - 1
            else:
                break
            run += 1
            given += size
        if run and not room:
            publish(slots, serial & ring_mask, run_ticket(serial, run, run + more))
        made += run + more
        done += run
        if 0 <= held <= most_outputs:
            if run < most:
                break
            continue
        if held < 0:
            return held
        clear_marks(operator, load(outputs, 1), held)
        if not room:
            store(places + ((serial + run) & ring_mask) * place_size, 1, load(outputs, 1))
            publish(slots, (serial + run) & ring_mask, ticket_of(serial + run) | held | IN_BLOCK)
        made += held
        done += 1
    return made << MADE | done


@cache
def chunk_form(function: AtAddress) -> AtAddress:
    """The loop over chunks of an operator's function."""
    return function.within(_SIGNATURE, chunk, "step")
