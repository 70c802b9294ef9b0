"""The compiled worker of the real engine: takes tuples of one operator after the other and sends outputs in order.

Workers share one block of memory by its address: the header of a run, then a record an operator, a record a partition,
and what no two write at once. Each word that one worker writes while others read stands on a line of the cache with no
other such word. Addresses are of bytes, and places in records count words of 8.

A tuple is its mark and its fields. The mark is 0, or the number of a timed tuple plus 1; a timed tuple that a filter
drops goes on without fields (`BARE`), so that selective chains are timed too. A punctuation is a tuple that says by its
first field until when all has come. Each partition of an operator gets a copy of it, with serial numbers one after the
other, and the last copy hands it on: behind all that the partitions give for it.

A serial number is the number of a tuple in the input of its operator. A batch has that of its first tuple, and the ring
moves on by as many as it holds; so batches may be as large as the moment allows. The slots of a tuple in the queue and
in the ring are used again only after its outputs were sent.

Outputs for which a slot of the ring has no room stand in a block of memory of their own until they are sent.

The model of the engine stands in the same file, since it is made of the same parts: its workers are events, and all
else is as it is for threads.

Source: ordered streams, sections 3 (Figure 4), 4 (Figure 7) and 6.
"""

import numpy as np

from adapt.core.atomics import (
    apart,
    clock_ns,
    exchange,
    fetch_add,
    fixed,
    give_way,
    load,
    load_atomic,
    operate,
    publish,
    put,
    release,
    replace,
    rest_us,
    short_loops,
    store,
)
from adapt.core.compiled import compiled, flattened, inlined

MARK, BARE, PUNCTUATION, COPY = 0, 1 << 62, 1 << 61, 1 << 40
"""Where a mark stands; of a mark, that there are no fields, that they are those of a punctuation, and the unit in which
it counts the partition that has the copy. Timed tuples are numbered below that unit."""

STOP, IDLE, FED, FEEDING = 0, 8, 16, 24
"""Of the header: why the run ends, workers that rest, tuples taken in, whether somebody takes in more."""
PUNCTUATION_ROW, PUNCTUATION_ROWS = 25, 26
"""The next row that is a punctuation, and where the row of the one after it stands; for the one who takes in."""
OPERATORS, CHAIN, WORKERS, ROWS, INGRESS, TALLIES, REORDER, BATCH = 32, 33, 34, 35, 36, 37, 38, 39
RING, QUEUE_TUPLES, HEURISTIC, SLICE_NS, WINDOW_NS, QUEUE_SIZE, MARK_EVERY, MARKS = 40, 41, 42, 43, 44, 45, 46, 47
CHECKED, PATIENCE, SCRATCH, SCRATCH_WORDS, KEPT, KEEP = 48, 49, 50, 51, 52, 53
WINDOW_START, EGRESS_HASH, EGRESS_TUPLES, AT_FAULT, FAULT = 56, 64, 65, 72, 73
SEED, JITTER, CROWDING_NS, SEND_NS, OUTPUT_NS, HAND_OVER_NS, GAP_NS, MODELLED = 80, 81, 82, 83, 84, 85, 86, 87
NOW_NS, EVENTS, IDLERS, DUES = 88, 89, 90, 91
"""Of the model: see `Contention`; its workers; its clock, events so far, workers that wait for work, and when the next
event of each worker is."""
HEADER_WORDS = 96

GOES_ON, FINISHED, STALLED, FAULTY, DEAD = 0, 1, 2, 3, 4
"""Why a run ends: it does not; all tuples are out; nothing can go on; a function failed; a worker died."""

SHARED_QUEUE, HYBRID, PARTITIONED, LOCKED_TOO_LATE = 0, 1, 2, 3
CLAIM, RETRY, LOCK = 0, 1, 2
CT, LP, ET, QST, CT_LITERAL = 0, 1, 2, 3, 4

WORKLIST, FUNCTION, WORDS, IN_WORDS, OUT_WORDS, MOST_WORKERS, NUMBER, STATE_KEPT = 0, 1, 2, 3, 4, 5, 6, 7
"""Of an operator: what never changes."""
QUEUE, QUEUE_MASK, RING_MASK, SLOTS, OUTPUTS, SLOT_OUTPUT_WORDS, ENOUGH, GUESSED_NS = 8, 9, 10, 11, 12, 13, 14, 15
PARTITIONS, KEY_AT, PARTITION_OF, MASTER, PARTITION_QUEUES, PARTS, GUESSED_OUTPUTS = 16, 17, 18, 19, 20, 21, 22
CLOSING, MOST = 23, 87
"""What a punctuation has called, if anything; the outputs that a tuple has room for."""
HEAD, TAIL, SEEN_NEXT, COPIED, NEXT, SENT, FLAG, WORKING = 24, 32, 33, 34, 40, 41, 48, 56
"""Tuples claimed; tuples that came, what their sender last knew of `NEXT`, and the copies of a punctuation that came if
not all did; tuples sent on, and outputs sent of the batch that is half sent; whether somebody sends; workers inside."""
INPUTS, GIVEN, TIME_NS, WINDOW_TIME_NS = 64, 65, 66, 72
"""What its cost and selectivity are estimated from: tuples that carry something, their outputs, and the time of
workers; the same time in this window."""
COST_NS, COST_AT, WHOLE, SHARE, LOCK_QUEUE, LOCK_HEAD, LOCK_TAIL = 80, 81, 82, 83, 84, 85, 86
"""Of the model: what a tuple costs, or the field that says it; its outputs; workers that wait for the lock."""
OPERATOR_WORDS = 88

TICKET, COVERED, HELD, BLOCK = 0, 1, 2, 3
"""Of a slot of the ring: the serial number of its batch plus 1, its tuples, their outputs, and the block in which these
stand if not in the ring."""
SLOT_WORDS = 4

WAITING, PART_HEAD, INSIDE, LAST, LOAD, OWNER, PART_TAIL = 0, 1, 2, 3, 4, 5, 8
"""Of a partition: tuples claimed and not done; tuples taken from its queue; workers inside; the serial number after the
last; tuples in all; whether it is owned; tuples put into its queue."""
PART_WORDS = 16

MARK_FED, MARK_ENTERED, MARK_LEFT = 0, 1, 2
MARK_WORDS = 4

DONE, MADE, BUSY_NS, DELEGATED, RETRIES, BLOCKED, OVERLAPS, DISORDERS, FULLEST, CURSOR = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
BARE_DONE, BARE_MADE = 10, 11
"""What a worker counts of an operator; tuples without fields, among those done and made, once more by themselves."""
DUE, STATE, PLACE, PARTITION, SERIAL, TUPLES, LEFT, START_NS = 0, 1, 2, 3, 4, 5, 6, 7
WORKED_BEFORE, GAVE_BEFORE, HAS = 8, 9, 10
"""Of a worker of the model: where it is said when its next event is, and what that is; the operator and
partition it is in; its batch; the quota left; when the slice began, and what it had done of the operator before;
whether it is in a partition."""
MODELLED_WORDS = 16

IDLE_STATE, ASKS, SERVED, SENT_ON, DRAINED, LOCKED, LOCKED_OUT = 0, 1, 2, 3, 4, 5, 6
"""Nothing to do; asks for work; its batch is done; a batch is sent, of its own operator or on the way to ask for work;
it has been given the lock; it waits for the lock."""

FILLED = 16
"""Batches by the bit length of the tuples between them and the next to be sent."""
TALLY_WORDS = 48

_FEED = 1024
_REST_AFTER, _REST_US = 50, 50
_FOLD = 0x9E3779B97F4A7C15
_LEAST = 1e-9
_REMEMBERED = 64
"""Inputs that estimates are made from at least: of fewer, none is forgotten."""


@inlined
def _operator(header: int, number: int) -> int:
    return fixed(header, OPERATORS) + 8 * OPERATOR_WORDS * number


@inlined
def _count(tally: int, what: int, more: int) -> None:
    store(tally, what, load(tally, what) + more)


@flattened
def _copy(source: int, place: int, words: int) -> None:
    for at in range(words):
        put(place, at, load(source, at))


@inlined
def _part(operator: int, partition: int) -> int:
    return fixed(operator, PARTS) + 8 * PART_WORDS * partition


@inlined
def _partition_queue(operator: int, partition: int) -> int:
    return fixed(operator, PARTITION_QUEUES) + 8 * partition * (fixed(operator, QUEUE_MASK) + 1)


@inlined
def _given(operator: int, serial: int) -> int:
    """Where a tuple stands in the queue."""
    return fixed(operator, QUEUE) + 8 * (serial & fixed(operator, QUEUE_MASK)) * fixed(operator, IN_WORDS)


# Into a worklist


@inlined
def _mixed(word: np.uint64) -> np.uint64:
    """All bits of a word depend on all (SplitMix64's end)."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@inlined
def _copy_of(mark: int) -> int:
    """The partition that has this copy of a punctuation."""
    return (mark & (PUNCTUATION - 1)) // COPY


@inlined
def _partition_of(operator: int, serial: int, mark: int, fields: int) -> int:
    """Of a key of the stream by its number, or else by the word that is the key; in a model, which has none such, by
    the serial number."""
    if mark >= BARE:
        return 0
    if mark >= PUNCTUATION:
        return _copy_of(mark)
    at, table = fixed(operator, KEY_AT), fixed(operator, PARTITION_OF)
    if table:
        return load(table, load(fields, at))
    word = serial if at < 0 else load(fields, at)
    return int(np.int64(_mixed(np.uint64(word)) % np.uint64(fixed(operator, PARTITIONS))))


@flattened
def _enqueue(operator: int, serial: int, mark: int, fields: int) -> None:
    """Write a tuple into its slot; it has come when the tail is published."""
    slot = serial & fixed(operator, QUEUE_MASK)
    size = fixed(operator, IN_WORDS)
    place = fixed(operator, QUEUE) + 8 * slot * size
    store(place, MARK, mark)
    _copy(fields, place + 8, size - 1)
    if not fixed(operator, MASTER):
        return
    partition = _partition_of(operator, serial, mark, place + 8)
    part = _part(operator, partition)
    tail = load(part, PART_TAIL)
    mask = fixed(operator, QUEUE_MASK)
    store(_partition_queue(operator, partition), tail & mask, serial)
    store(fixed(operator, MASTER), slot, partition)
    publish(part, PART_TAIL, tail + 1)


@inlined
def _room(operator: int, wanted: int) -> int:
    """How many tuples the worklist can take, at least where that is fewer than wanted; for its one sender."""
    tail = load(operator, TAIL)
    capacity = load(operator, QUEUE_MASK) + 1
    room = load(operator, SEEN_NEXT) + capacity - tail
    if room < wanted:
        store(operator, SEEN_NEXT, load_atomic(operator, NEXT))
        room = load(operator, SEEN_NEXT) + capacity - tail
    return room


@inlined
def _enqueue_copies(operator: int, serial: int, mark: int, fields: int) -> int:
    """Write a punctuation for every partition, or for as many more as there is room, at least one; how many that are.

    What times it goes with the last copy.
    """
    apart()
    copied, copies = load(operator, COPIED), load(operator, PARTITIONS)
    written = serial - load(operator, TAIL)
    more = min(copies - copied, _room(operator, copies + written) - written)
    for copy in range(copied, copied + more):
        number = mark & (COPY - 1) if copy == copies - 1 else 0
        _enqueue(operator, serial + copy - copied, PUNCTUATION | copy * COPY | number, fields)
    store(operator, COPIED, (copied + more) % copies)
    return more


@inlined
def _now_ns(header: int) -> int:
    """By the machine's clock, or the model's in a model."""
    return load(header, NOW_NS) if fixed(header, MODELLED) else clock_ns()


@flattened
def _take_in(header: int, operator: int, row: int, serial: int) -> int:
    """A row of the ingress, for which there is room; how many tuples it becomes."""
    fields = fixed(header, INGRESS) + 8 * row * (fixed(operator, IN_WORDS) - 1)
    every, mark = fixed(header, MARK_EVERY), 0
    if every and row % every == 0:
        mark = row // every + 1
        gap_ns = load(header, GAP_NS)
        fed_ns = row * gap_ns if gap_ns else _now_ns(header)
        store(fixed(header, MARKS), MARK_WORDS * (mark - 1) + MARK_FED, fed_ns)
    if row < load(header, PUNCTUATION_ROW):
        _enqueue(operator, serial, mark, fields)
        return 1
    copies = _enqueue_copies(operator, serial, mark, fields)
    if load(operator, COPIED) == 0:
        rows = load(header, PUNCTUATION_ROWS)
        store(header, PUNCTUATION_ROW, load(rows, 0))
        store(header, PUNCTUATION_ROWS, rows + 8)
    return copies


@inlined
def _feed(header: int, least: int) -> bool:
    """Take tuples of the ingress in, if there is room for at least so many and nobody else does."""
    rows = fixed(header, ROWS)
    first = _operator(header, 0)
    if load_atomic(header, FED) >= rows or exchange(header, FEEDING, 1):
        return False
    fed = load(header, FED)
    room = _room(first, max(least, _FEED))
    fits = room >= min(least, rows - fed)
    taken = 0
    if fits and room > 0:
        taken = _feed_rows(header, first, min(rows - fed, _FEED), min(room, _FEED))
    exchange(header, FEEDING, 0)
    return taken > 0


@inlined
def _feed_rows(header: int, first: int, rows: int, room: int) -> int:
    """Take in so many rows, but for those after which the first operator has no more room; how many tuples that are.

    Where rows of a model come after each other, they are timed from then on; else from when they are taken in.
    """
    apart()
    short_loops()
    tail, row = load(first, TAIL), load(header, FED)
    serial, end = tail, row + rows
    while row < end and serial < tail + room:
        serial += _take_in(header, first, row, serial)
        if load(first, COPIED):
            break
        row += 1
    publish(first, TAIL, serial)
    publish(header, FED, row)
    return serial - tail


# Out of the ring, in order


@inlined
def _time_leaving(header: int, mark: int) -> None:
    """A timed tuple leaves the chain."""
    apart()
    number = (mark & (COPY - 1)) - 1
    store(load(header, MARKS), MARK_WORDS * number + MARK_LEFT, _now_ns(header))


@inlined
def _keep(header: int, left: int, fields: int, words: int) -> None:
    """One of the first tuples that leave is kept."""
    apart()
    _copy(fields, load(header, KEPT) + 8 * left * words, words)


@flattened
def _leave(header: int, operator: int, outputs: int, count: int) -> None:
    """Outputs of the last operator leave the chain."""
    size = fixed(operator, OUT_WORDS)
    fold = np.uint64(load(header, EGRESS_HASH))
    left = load(header, EGRESS_TUPLES)
    keep = fixed(header, KEEP)
    for output in range(count):
        place = outputs + 8 * output * size
        mark = load(place, MARK)
        if mark & (COPY - 1):
            _time_leaving(header, mark)
        if mark >= PUNCTUATION:
            continue
        at = 1
        # The end is read anew each round: a loop whose end is known is unrolled, and that takes longer than two words.
        while at < load_atomic(operator, OUT_WORDS):
            fold = (fold ^ np.uint64(load(place, at))) * np.uint64(_FOLD)
            fold = fold ^ (fold >> np.uint64(32))
            at += 1
        if left < keep:
            _keep(header, left, place + 8, size - 1)
        left += 1
    store(header, EGRESS_HASH, np.int64(fold))
    store(header, EGRESS_TUPLES, left)


@inlined
def _pass_on(operator: int, outputs: int, count: int) -> int:
    """Put outputs into the worklist of the next operator, as many as there is room for; how many those are."""
    apart()
    short_loops()
    down = operator + 8 * OPERATOR_WORDS
    size = 8 * fixed(operator, OUT_WORDS)
    room = _room(down, count)
    sent, tail = 0, load(down, TAIL)
    serial, end = tail, tail + room
    while sent < count and serial < end:
        output = outputs + sent * size
        mark = load(output, MARK)
        if mark < PUNCTUATION or mark >= BARE:
            _enqueue(down, serial, mark, output + 8)
            serial += 1
        else:
            serial += _enqueue_copies(down, serial, mark, output + 8)
            if load(down, COPIED):
                break
        sent += 1
    if serial > tail:
        publish(down, TAIL, serial)
    return sent


@flattened
def _send_down(header: int, operator: int, outputs: int, count: int) -> int:
    """Hand outputs on, as many as there is room for; how many those are."""
    number = fixed(operator, NUMBER)
    if number == fixed(header, CHAIN) - 1:
        _leave(header, operator, outputs, count)
        return count
    return _pass_on(operator, outputs, count)


@inlined
def _slot(operator: int, serial: int) -> int:
    return fixed(operator, SLOTS) + 8 * SLOT_WORDS * (serial & fixed(operator, RING_MASK))


@inlined
def _outputs(operator: int, serial: int) -> int:
    """Where the outputs of a serial number stand in the ring."""
    slot = serial & fixed(operator, RING_MASK)
    return fixed(operator, OUTPUTS) + 8 * slot * fixed(operator, SLOT_OUTPUT_WORDS)


@flattened
def _send_ready(header: int, tally: int, operator: int) -> bool:
    """Send what is next for as long as it is there; whether the next operator is full. For the one who has the flag."""
    while True:
        serial = load(operator, NEXT)
        slot = _slot(operator, serial)
        if load_atomic(slot, TICKET) != serial + 1:
            return False
        held, sent, block = load(slot, HELD), load(operator, SENT), load(slot, BLOCK)
        outputs = (block if block else _outputs(operator, serial)) + 8 * sent * fixed(operator, OUT_WORDS)
        sent += _send_down(header, operator, outputs, held - sent)
        if sent < held:
            store(operator, SENT, sent)
            _count(tally, BLOCKED, 1)
            return True
        if load(operator, SENT):
            store(operator, SENT, 0)
        if block:
            store(slot, BLOCK, 0)
            release(block)
        covered = load(slot, COVERED)
        store(slot, TICKET, 0)
        publish(operator, NEXT, serial + covered)


@flattened
def _drain(header: int, tally: int, operator: int) -> None:
    """Send what is ready, unless somebody does; nothing ready is left when nobody is inside and the next has room."""
    while not exchange(operator, FLAG, 1):
        full = _send_ready(header, tally, operator)
        # An exchange, so that it is in one order with that of who stored a batch and found the flag set.
        exchange(operator, FLAG, 0)
        serial = load_atomic(operator, NEXT)
        if full or load_atomic(_slot(operator, serial), TICKET) != serial + 1:
            return


@inlined
def _drain_apart(header: int, tally: int, operator: int) -> None:
    """The same as a call, for wherever one more is not felt."""
    apart()
    _drain(header, tally, operator)


@inlined
def _drain_if_ready(header: int, tally: int, operator: int) -> None:
    serial = load_atomic(operator, NEXT)
    if load_atomic(_slot(operator, serial), TICKET) == serial + 1:
        _drain_apart(header, tally, operator)


@inlined
def _progress(header: int) -> int:
    """A number that only grows, and grows whenever a tuple goes anywhere."""
    moved = load_atomic(header, FED)
    for number in range(load(header, CHAIN)):
        operator = _operator(header, number)
        moved += load_atomic(operator, HEAD) + load_atomic(operator, TAIL) + load_atomic(operator, NEXT)
    return moved


@inlined
def _rest(header: int, moved: int, rounds: int) -> tuple[int, int]:
    """Give way; when all workers rest and no tuple moves for long, the run has stalled.

    Given and returned are the progress last seen and the rounds since. A worker is counted as resting only here, where
    it holds nothing; one that is merely not run by the machine is none.
    """
    idle = fetch_add(header, IDLE, 1) + 1
    now = _progress(header)
    if now != moved:
        moved, rounds = now, 0
    elif idle == load(header, WORKERS):
        rounds += 1
        if rounds > load(header, PATIENCE):
            replace(header, STOP, GOES_ON, STALLED)
    if rounds < _REST_AFTER:
        give_way()
    else:
        rest_us(_REST_US)
    fetch_add(header, IDLE, -1)
    return moved, rounds


@inlined
def _await_room(header: int, tally: int, operator: int, end: int) -> None:
    """Until the serial numbers before `end` have room in the ring: the paper's blocked worker."""
    apart()
    moved, rounds = -1, 0
    while end > load_atomic(operator, NEXT) + load(header, RING) and not load_atomic(header, STOP):
        _count(tally, RETRIES, 1)
        _drain_apart(header, tally, operator)
        moved, rounds = _rest(header, moved, rounds)


@inlined
def _send(
    header: int, tally: int, operator: int, serial: int, tuples: int, outputs: int, held: int, block: int
) -> None:
    """Put a batch into the ring, or the address of the block that its outputs stand in, and send what is ready."""
    reorder = fixed(header, REORDER)
    if reorder == RETRY:
        _await_room(header, tally, operator, serial + tuples)
        if load_atomic(header, STOP):
            release(block)
            return
        if not block:
            _copy(outputs, _outputs(operator, serial), held * fixed(operator, OUT_WORDS))
    if reorder == LOCK:
        while exchange(operator, FLAG, 1):
            if load_atomic(header, STOP):
                release(block)
                return
            give_way()
    slot = _slot(operator, serial)
    store(slot, COVERED, tuples)
    store(slot, HELD, held)
    store(slot, BLOCK, block)
    publish(slot, TICKET, serial + 1)
    if reorder == LOCK:
        _send_ready(header, tally, operator)
        exchange(operator, FLAG, 0)
    else:
        _drain_apart(header, tally, operator)


# One batch


@flattened
def _unmarked(operator: int, outputs: int, count: int) -> None:
    size = fixed(operator, OUT_WORDS)
    for output in range(count):
        put(outputs, output * size, 0)


@inlined
def _count_bare(tally: int, operator: int, partition: int) -> None:
    """A tuple that carries nothing is no load of the partition that its batch was counted for."""
    _count(tally, BARE_DONE, 1)
    if load(operator, STATE_KEPT):
        _count(_part(operator, partition), LOAD, -1)


@inlined
def _hand_on(given: int, output: int, mark: int, words: int) -> None:
    """Write a punctuation as an output: of its fields, the time."""
    store(output, MARK, PUNCTUATION | mark & (COPY - 1))
    store(output, 1, load(given, 1))
    for at in range(2, words):
        store(output, at, 0)


@inlined
def _run_marked(header: int, tally: int, operator: int, partition: int, given: int, outputs: int) -> tuple[int, int]:
    """A tuple with a mark, which goes on with its last output, or alone; the outputs and the block they stand in.

    The last copy of a punctuation is an output of its own, behind the others; room for it there always is.
    """
    apart()
    mark, words = load(given, MARK), fixed(operator, OUT_WORDS)
    number = mark & (COPY - 1)
    if number and fixed(operator, NUMBER) == 0:
        store(fixed(header, MARKS), MARK_WORDS * (number - 1) + MARK_ENTERED, clock_ns())
    count, called = 0, 0
    if mark < PUNCTUATION:
        called = fixed(operator, FUNCTION)
    else:
        _count_bare(tally, operator, partition)
        if mark < BARE:
            called = load(operator, CLOSING)
    if called:
        count = operate(called, fixed(operator, WORDS), partition, given + 8, outputs + 8)
    if count < 0:
        return count, 0
    block = load(outputs, 1) if count > fixed(operator, MOST) else 0
    if block:
        outputs = block
    _unmarked(operator, outputs, count)
    if PUNCTUATION <= mark < BARE:
        if partition == fixed(operator, PARTITIONS) - 1:
            _count(tally, BARE_MADE, 1)
            _hand_on(given, outputs + 8 * count * words, mark, words)
            count += 1
    elif count:
        store(outputs, (count - 1) * words, number)
    else:
        _count(tally, BARE_MADE, 1)
        store(outputs, MARK, number | BARE)
        count = 1
    return count, block


@inlined
def _run(
    header: int, tally: int, operator: int, partition: int, serial: int, tuples: int, outputs: int
) -> tuple[int, int, int, int]:
    """Run the operator over a batch, up to a tuple whose outputs have no room in the ring.

    How many tuples were done before it; their outputs, below 0 if the function failed; the block of that tuple, 0 if
    there is none, and its outputs.
    """
    size, most, made = 8 * fixed(operator, OUT_WORDS), fixed(operator, MOST), 0
    for number in range(tuples):
        given, place = _given(operator, serial + number), outputs + made * size
        block = 0
        if load(given, MARK):
            count, block = _run_marked(header, tally, operator, partition, given, place)
        else:
            count = operate(fixed(operator, FUNCTION), fixed(operator, WORDS), partition, given + 8, place + 8)
            if count > most:
                block = load(place, 1)
                _unmarked(operator, block, count)
            else:
                _unmarked(operator, place, count)
        if count < 0:
            return number, count, 0, 0
        if block:
            return number, made, block, count
        made += count
    return tuples, made, 0, 0


@inlined
def _check_in(header: int, tally: int, operator: int, partition: int, serial: int, tuples: int) -> None:
    """Count the load of a partition; and, in checked runs, that nobody else is inside and nothing later was."""
    if not load(operator, STATE_KEPT):
        return
    part = _part(operator, partition)
    _count(part, LOAD, tuples)
    if load(header, CHECKED):
        if fetch_add(part, INSIDE, 1):
            _count(tally, OVERLAPS, 1)
        if serial < load(part, LAST):
            _count(tally, DISORDERS, 1)
        store(part, LAST, serial + tuples)


@inlined
def _check_out(header: int, operator: int, partition: int) -> None:
    if load(operator, STATE_KEPT) and load(header, CHECKED):
        fetch_add(_part(operator, partition), INSIDE, -1)


@flattened
def _bits(number: int) -> int:
    bits = 0
    while number > 0:
        number >>= 1
        bits += 1
    return bits


@flattened
def _count_ahead(tally: int, operator: int, end: int) -> None:
    """How much of the ring is in use, as a batch that ends there is claimed."""
    ahead = end - load_atomic(operator, NEXT)
    if ahead > load(tally, FULLEST):
        store(tally, FULLEST, ahead)
    _count(tally, FILLED + _bits(ahead), 1)


@inlined
def _fail(header: int, operator: int, made: int) -> None:
    """Its function failed, and the run ends."""
    apart()
    store(header, AT_FAULT, load(operator, NUMBER))
    store(header, FAULT, made)
    replace(header, STOP, GOES_ON, FAULTY)


@flattened
def _process_plain(header: int, tally: int, operator: int, serial: int) -> None:
    """`_process` for one tuple without a mark, of an operator without state, ordered by `CLAIM`.

    It does the same by a short way: an empty operator takes less time than what the general one asks and puts aside.
    """
    _count_ahead(tally, operator, serial + 1)
    given, outputs = _given(operator, serial), _outputs(operator, serial)
    made = operate(fixed(operator, FUNCTION), fixed(operator, WORDS), 0, given + 8, outputs + 8)
    if made < 0:
        _fail(header, operator, made)
        return
    slot = _slot(operator, serial)
    if made > fixed(operator, MOST):
        outputs = load(outputs, 1)
        store(slot, BLOCK, outputs)
    if made == 1:
        store(outputs, MARK, 0)
    else:
        _unmarked(operator, outputs, made)
    _count(tally, DONE, 1)
    _count(tally, MADE, made)
    store(slot, COVERED, 1)
    store(slot, HELD, made)
    publish(slot, TICKET, serial + 1)
    _drain(header, tally, operator)


@inlined
def _process(header: int, tally: int, scratch: int, operator: int, partition: int, serial: int, tuples: int) -> None:
    """Run the operator over a batch that this worker has claimed, and send its outputs."""
    apart()
    short_loops()
    _count_ahead(tally, operator, serial + tuples)
    _check_in(header, tally, operator, partition, serial, tuples)
    end = serial + tuples
    while serial < end:
        outputs = scratch if fixed(header, REORDER) == RETRY else _outputs(operator, serial)
        done, made, block, held = _run(header, tally, operator, partition, serial, end - serial, outputs)
        if made < 0:
            _fail(header, operator, made)
            return
        _count(tally, DONE, done + (block != 0))
        _count(tally, MADE, made + held)
        if done:
            _send(header, tally, operator, serial, done, outputs, made, 0)
        if block:
            _send(header, tally, operator, serial + done, 1, outputs, held, block)
        serial += done + (block != 0)
    _check_out(header, operator, partition)


# Out of a worklist


@flattened
def _may_claim_before(header: int, operator: int) -> int:
    """The first serial number that no worker may take yet: what has not come, or would have no room in the ring.

    With `retry` the ring does not count, but tuples are left alone while the next operator has enough.
    """
    end = load_atomic(operator, TAIL)
    if fixed(header, REORDER) != RETRY:
        return min(end, load_atomic(operator, NEXT) + fixed(header, RING))
    if fixed(operator, NUMBER) < fixed(header, CHAIN) - 1:
        down = operator + 8 * OPERATOR_WORDS
        if load_atomic(down, TAIL) - load_atomic(down, NEXT) >= load(operator, ENOUGH):
            return 0
    return end


@flattened
def _until_wrap(operator: int, serial: int) -> int:
    """How many tuples from this one on stand in the ring without a break."""
    mask = fixed(operator, RING_MASK)
    return mask + 1 - (serial & mask)


@inlined
def _take_shared(header: int, tally: int, scratch: int, operator: int, quota: int) -> int:
    """Work on the one queue of an operator without partitions."""
    short_loops()
    plain = fixed(header, REORDER) == CLAIM and not fixed(operator, STATE_KEPT)
    done = 0
    while done < quota and not load_atomic(header, STOP):
        head = load_atomic(operator, HEAD)
        tuples = min(_may_claim_before(header, operator) - head, fixed(header, BATCH), _until_wrap(operator, head))
        if tuples <= 0:
            break
        if not replace(operator, HEAD, head, head + tuples):
            continue
        if plain and tuples == 1 and not load(_given(operator, head), MARK):
            _process_plain(header, tally, operator, head)
        else:
            _process(header, tally, scratch, operator, 0, head, tuples)
        done += tuples
    return done


@inlined
def _take_too_late(header: int, tally: int, scratch: int, operator: int, quota: int) -> int:
    """The shared queue for an operator with partitions, as the paper rejects it.

    Between taking a tuple and locking its partition a worker can be overtaken. It gives way there, so that what is rare
    is seen.
    """
    done = 0
    while done < quota and not load_atomic(header, STOP):
        head = load_atomic(operator, HEAD)
        if _may_claim_before(header, operator) <= head:
            break
        if not replace(operator, HEAD, head, head + 1):
            continue
        given = load(operator, QUEUE) + 8 * (head & load(operator, QUEUE_MASK)) * load(operator, IN_WORDS)
        partition = _partition_of(operator, head, load(given, MARK), given + 8)
        part = _part(operator, partition)
        give_way()
        while exchange(part, OWNER, 1):
            give_way()
        _process(header, tally, scratch, operator, partition, head, 1)
        exchange(part, OWNER, 0)
        done += 1
    return done


@inlined
def _run_length(header: int, operator: int, queue: int, head: int, most: int) -> int:
    """How many tuples at the head of a partition's queue follow each other in the stream, at most a batch."""
    mask = load(operator, QUEUE_MASK)
    first = load(queue, head & mask)
    most = min(most, load(header, BATCH), _until_wrap(operator, first))
    tuples = 1
    while tuples < most and load(queue, (head + tuples) & mask) == first + tuples:
        tuples += 1
    return tuples


@inlined
def _work_off(header: int, tally: int, scratch: int, operator: int, partition: int, waiting: int) -> int:
    """Work in a partition until none of its claimed tuples is left, those that others claim meanwhile included.

    Its end is that of the claims: with a claim window, at most a ring's worth.
    """
    part = _part(operator, partition)
    queue, mask = _partition_queue(operator, partition), load(operator, QUEUE_MASK)
    done = 0
    while waiting > 0 and not load_atomic(header, STOP):
        head = load(part, PART_HEAD)
        tuples = _run_length(header, operator, queue, head, waiting)
        serial = load(queue, head & mask)
        store(part, PART_HEAD, head + tuples)
        _process(header, tally, scratch, operator, partition, serial, tuples)
        done += tuples
        waiting = fetch_add(part, WAITING, -tuples) - tuples
    return done


@inlined
def _take_hybrid(header: int, tally: int, scratch: int, operator: int, quota: int) -> int:
    """Take partitions from the master queue; work in those that nobody works in, leave the tuple to who does else."""
    done, master, mask = 0, load(operator, MASTER), load(operator, QUEUE_MASK)
    while done < quota and not load_atomic(header, STOP):
        head = load_atomic(operator, HEAD)
        most = min(_may_claim_before(header, operator) - head, load(header, BATCH))
        if most <= 0:
            break
        # Read before it is claimed: afterwards the slot may be used again.
        partition = load(master, head & mask)
        tuples = 1
        while tuples < most and load(master, (head + tuples) & mask) == partition:
            tuples += 1
        if not replace(operator, HEAD, head, head + tuples):
            continue
        part = _part(operator, partition)
        if fetch_add(part, WAITING, tuples):
            _count(tally, DELEGATED, tuples)
        else:
            done += _work_off(header, tally, scratch, operator, partition, tuples)
    return done


@inlined
def _work_in(header: int, tally: int, scratch: int, operator: int, partition: int, quota: int) -> int:
    """Work in a partition that this worker owns, until its queue is empty, the quota is used, or the ring is full."""
    part = _part(operator, partition)
    queue, mask = _partition_queue(operator, partition), load(operator, QUEUE_MASK)
    done = 0
    while done < quota and not load_atomic(header, STOP):
        head = load(part, PART_HEAD)
        most = load_atomic(part, PART_TAIL) - head
        if most <= 0:
            break
        serial = load(queue, head & mask)
        end = _may_claim_before(header, operator)
        if serial >= end:
            break
        tuples = min(_run_length(header, operator, queue, head, most), end - serial)
        publish(part, PART_HEAD, head + tuples)
        fetch_add(operator, HEAD, tuples)
        _process(header, tally, scratch, operator, partition, serial, tuples)
        done += tuples
    return done


@inlined
def _take_partitions(header: int, tally: int, scratch: int, operator: int, quota: int) -> int:
    """Own one partition after the other, from where this worker was last."""
    partitions = load(operator, PARTITIONS)
    cursor, done = load(tally, CURSOR), 0
    for step in range(partitions):
        partition = (cursor + step) % partitions
        part = _part(operator, partition)
        if load_atomic(part, PART_HEAD) >= load_atomic(part, PART_TAIL):
            continue
        if exchange(part, OWNER, 1):
            continue
        done += _work_in(header, tally, scratch, operator, partition, quota - done)
        exchange(part, OWNER, 0)
        if done >= quota or load_atomic(header, STOP):
            store(tally, CURSOR, partition)
            break
    return done


@inlined
def _take(header: int, tally: int, scratch: int, operator: int, quota: int) -> int:
    """Work on an operator's input; how many tuples were done."""
    worklist = load(operator, WORKLIST)
    if worklist == HYBRID:
        return _take_hybrid(header, tally, scratch, operator, quota)
    if worklist == PARTITIONED:
        return _take_partitions(header, tally, scratch, operator, quota)
    if worklist == LOCKED_TOO_LATE:
        return _take_too_late(header, tally, scratch, operator, quota)
    return _take_shared(header, tally, scratch, operator, quota)


# Which operator next


@inlined
def _worked(tally: int) -> int:
    """Tuples that a worker has done of an operator. Those that carry nothing take no time and are not among them."""
    return load(tally, DONE) - load(tally, BARE_DONE)


@inlined
def _gave(tally: int) -> int:
    """Their outputs."""
    return load(tally, MADE) - load(tally, BARE_MADE)


@inlined
def _cost_ns(operator: int) -> float:
    """Of a tuple: as measured, or as given while nothing is."""
    inputs = load_atomic(operator, INPUTS)
    if inputs > 0:
        return max(load_atomic(operator, TIME_NS) / inputs, 1.0)
    return float(load(operator, GUESSED_NS))


@inlined
def _selectivity(operator: int) -> float:
    inputs = load_atomic(operator, INPUTS)
    if inputs > 0:
        return load_atomic(operator, GIVEN) / inputs
    return load(operator, GUESSED_OUTPUTS) / 1048576.0


@inlined
def _quota(header: int, operator: int) -> int:
    """Tuples of a slice; a batch of an operator that was not measured yet, whose slices could last for any time."""
    if not load_atomic(operator, INPUTS):
        return load(header, BATCH)
    return max(int(load(header, SLICE_NS) / _cost_ns(operator)), load(header, BATCH))


@inlined
def _waiting(operator: int) -> int:
    return load_atomic(operator, TAIL) - load_atomic(operator, HEAD)


@inlined
def _schedulable(header: int, operator: int) -> bool:
    """Whether a worker more could do something here."""
    if load_atomic(operator, WORKING) >= load(operator, MOST_WORKERS):
        return False
    if load(operator, WORKLIST) == PARTITIONED:
        return _waiting(operator) > 0
    return load_atomic(operator, HEAD) < _may_claim_before(header, operator)


@inlined
def _choose(header: int, passed: int) -> int:
    """The operator that the heuristic names among those that are schedulable and not passed over; -1 if there is none.

    Of equals it is the earliest. `passed` has a bit for each operator.
    """
    heuristic, chain = load(header, HEURISTIC), load(header, CHAIN)
    shares = 0.0
    if heuristic == QST:
        through = 1.0
        for number in range(chain):
            through *= _selectivity(_operator(header, number))
            shares += through
    chosen, best, upstream = -1, np.inf, 1.0
    for number in range(chain):
        operator = _operator(header, number)
        through = upstream * _selectivity(operator)
        if not (passed >> number) & 1 and _schedulable(header, operator):
            if heuristic == LP:
                score = -float(number)
            elif heuristic == ET:
                working = load_atomic(operator, WORKING)
                score = -_waiting(operator) * _cost_ns(operator) / (working + 1.0)
            elif heuristic == QST:
                score = float(number)
                if number < chain - 1 and shares > 0:
                    size = load(header, QUEUE_SIZE) * through / shares
                    if _waiting(operator + 8 * OPERATOR_WORDS) > size:
                        score = np.inf
            else:
                working = load_atomic(operator, WORKING)
                spent = load_atomic(operator, WINDOW_TIME_NS) + working * float(load(header, SLICE_NS))
                of = upstream if heuristic == CT else through
                score = spent / (_cost_ns(operator) * max(of, _LEAST))
            if score < best:
                chosen, best = number, score
        upstream = through
    return chosen


@inlined
def _enter(operator: int) -> bool:
    """Become one of an operator's workers, if it may have one more."""
    while True:
        working = load_atomic(operator, WORKING)
        if working >= load(operator, MOST_WORKERS):
            return False
        if replace(operator, WORKING, working, working + 1):
            return True


@inlined
def _new_window(header: int, now: int) -> None:
    """When a window is over, forget its worker time, and half of what costs and selectivities are estimated from.

    A tuple costs more, the more workers are on its operator, and streams change: estimates are of the last windows.
    """
    start = load_atomic(header, WINDOW_START)
    if now - start > load(header, WINDOW_NS) and replace(header, WINDOW_START, start, now):
        for number in range(load(header, CHAIN)):
            operator = _operator(header, number)
            exchange(operator, WINDOW_TIME_NS, 0)
            if load_atomic(operator, INPUTS) >= 2 * _REMEMBERED:
                for what in (TIME_NS, GIVEN, INPUTS):
                    fetch_add(operator, what, -(load_atomic(operator, what) // 2))


@inlined
def _spend(header: int, tally: int, scratch: int, operator: int) -> bool:
    """A slice of time on an operator that this worker has entered; whether any tuple was done."""
    start = clock_ns()
    _new_window(header, start)
    quota = _quota(header, operator)
    worked, gave = _worked(tally), _gave(tally)
    done = _take(header, tally, scratch, operator, quota)
    took = clock_ns() - start
    _count(tally, BUSY_NS, took)
    if done:
        fetch_add(operator, TIME_NS, took)
        fetch_add(operator, WINDOW_TIME_NS, took)
        fetch_add(operator, GIVEN, _gave(tally) - gave)
        fetch_add(operator, INPUTS, _worked(tally) - worked)
    return done > 0


@inlined
def _finished(header: int) -> bool:
    """Whether every tuple is out. An operator is done for good if all before it are and it has sent all that came."""
    if load_atomic(header, FED) < load(header, ROWS):
        return False
    for number in range(load(header, CHAIN)):
        operator = _operator(header, number)
        if load_atomic(operator, NEXT) != load_atomic(operator, TAIL):
            return False
    return True


@compiled
def work(header: int, worker: int) -> None:
    """Work until the run is over. Every worker of a run is in here."""
    chain = load(header, CHAIN)
    tallies = load(header, TALLIES) + 8 * TALLY_WORDS * chain * worker
    scratch = load(header, SCRATCH) + 8 * load(header, SCRATCH_WORDS) * worker
    half = (load(header, QUEUE_TUPLES) + 1) // 2
    passed, moved, rounds = 0, -1, 0
    while not load_atomic(header, STOP):
        _feed(header, half)
        number = _choose(header, passed)
        if number >= 0:
            operator, tally = _operator(header, number), tallies + 8 * TALLY_WORDS * number
            if not _enter(operator):
                passed |= 1 << number
                continue
            done = _spend(header, tally, scratch, operator)
            fetch_add(operator, WORKING, -1)
            if number > 0:
                _drain_if_ready(header, tally - 8 * TALLY_WORDS, operator - 8 * OPERATOR_WORDS)
            if done:
                passed, rounds = 0, 0
            else:
                passed |= 1 << number
            continue
        passed = 0
        _feed(header, 1)
        for before in range(chain):
            last = chain - 1 - before
            _drain_if_ready(header, tallies + 8 * TALLY_WORDS * last, _operator(header, last))
        if _finished(header):
            replace(header, STOP, GOES_ON, FINISHED)
        else:
            moved, rounds = _rest(header, moved, rounds)


@compiled
def release_all(record: int, step: int, records: int) -> None:
    """Give back the blocks whose addresses stand at one place of records that are so many words long."""
    for number in range(records):
        release(load(record, step * number))
        store(record, step * number, 0)


@compiled
def now_ns() -> int:
    """The clock by which runs are timed."""
    return clock_ns()


# The model: the same memory, with workers that are events


_NEVER = 1 << 62
_GOLDEN = 0x9E3779B97F4A7C15


@inlined
def _drawn(seed: int, number: int) -> np.uint64:
    """A word for each number, as if drawn (SplitMix64 at a place)."""
    return _mixed(np.uint64(seed) + np.uint64(number + 1) * np.uint64(_GOLDEN))


@inlined
def _drawn_for(header: int, operator: int, what: int, serial: int) -> np.uint64:
    """The same for a tuple of an operator whatever the schedule."""
    return _drawn(load(header, SEED) + 2 * load(operator, NUMBER) + what, serial)


@inlined
def _model_worker(header: int, worker: int) -> int:
    return load(header, MODELLED) + 8 * MODELLED_WORDS * worker


@inlined
def _due(me: int, state: int, when: int) -> None:
    store(me, STATE, state)
    store(load(me, DUE), 0, when)


@inlined
def _wake(header: int) -> None:
    """All workers that wait for work ask again."""
    if not load(header, IDLERS):
        return
    now = load(header, NOW_NS)
    for worker in range(load(header, WORKERS)):
        me = _model_worker(header, worker)
        if load(me, STATE) == IDLE_STATE:
            _due(me, ASKS, now)
    store(header, IDLERS, 0)


@inlined
def _arrived(header: int) -> int:
    """How many tuples have come to the ingress by now."""
    gap = load(header, GAP_NS)
    if not gap:
        return load(header, ROWS)
    return min(load(header, ROWS), load(header, NOW_NS) // gap + 1)


@inlined
def _model_feed(header: int) -> None:
    """Take in what has come and has room."""
    first = _operator(header, 0)
    rows, room = _arrived(header) - load(header, FED), min(_room(first, _FEED), _FEED)
    if rows > 0 and room > 0:
        _feed_rows(header, first, min(rows, _FEED), room)


@inlined
def _service_ns(header: int, operator: int, serial: int, tuples: int) -> int:
    """How long a batch takes here and now: by tuple, its cost and what each other worker on the operator adds."""
    at, share = load(operator, COST_AT), load(header, JITTER) / 1048576.0
    crowding = load(header, CROWDING_NS) * (load(operator, WORKING) - 1)
    total = 0.0
    for number in range(serial, serial + tuples):
        given = _given(operator, number)
        if load(given, MARK) >= PUNCTUATION:
            continue
        cost = float(load(operator, COST_NS) if at < 0 else load(given, 1 + at))
        if share > 0:
            even = (float(_drawn_for(header, operator, 0, number) >> np.uint64(11)) + 0.5) / 9007199254740992.0
            cost *= 1.0 - share - share * np.log(even)
        total += cost + crowding
    return int(total + 0.5)


@inlined
def _model_outputs(header: int, tally: int, operator: int, partition: int, serial: int, tuples: int) -> int:
    """Put the outputs of a batch into the ring: as many copies of each tuple as its selectivity and the draw say."""
    size, made = load(operator, OUT_WORDS), 0
    outputs, whole, share = _outputs(operator, serial), load(operator, WHOLE), np.uint64(load(operator, SHARE))
    for number in range(serial, serial + tuples):
        given = _given(operator, number)
        mark = load(given, MARK)
        count = 0
        if PUNCTUATION <= mark < BARE:
            _count_bare(tally, operator, partition)
            if _copy_of(mark) == load(operator, PARTITIONS) - 1:
                _count(tally, BARE_MADE, 1)
                _hand_on(given, outputs + 8 * made * size, mark, size)
                made += 1
            continue
        if mark < BARE:
            count = whole
            if share and _drawn_for(header, operator, 1, number) < share:
                count += 1
        else:
            _count_bare(tally, operator, partition)
        for output in range(made, made + count):
            store(outputs, output * size, 0)
            _copy(given + 8, outputs + 8 * (output * size + 1), size - 1)
        made += count
        if mark and count:
            store(outputs, (made - 1) * size, mark)
        elif mark:
            _count(tally, BARE_MADE, 1)
            store(outputs, made * size, mark | BARE)
            made += 1
    slot = _slot(operator, serial)
    store(slot, COVERED, tuples)
    store(slot, HELD, made)
    store(slot, TICKET, serial + 1)
    return made


@inlined
def _begin_batch(header: int, me: int, operator: int, partition: int, serial: int, tuples: int) -> None:
    now = load(header, NOW_NS)
    store(me, PARTITION, partition)
    store(me, SERIAL, serial)
    store(me, TUPLES, tuples)
    if load(operator, NUMBER) == 0 and load(header, MARK_EVERY):
        for number in range(serial, serial + tuples):
            mark = load(_given(operator, number), MARK) & (COPY - 1)
            if mark:
                store(load(header, MARKS), MARK_WORDS * (mark - 1) + MARK_ENTERED, now)
    if load(operator, STATE_KEPT):
        part = _part(operator, partition)
        _count(part, LOAD, tuples)
    _due(me, SERVED, now + _service_ns(header, operator, serial, tuples))


@inlined
def _next_in_partition(header: int, me: int, operator: int, partition: int, most: int) -> None:
    """Begin with what is at the head of a partition's queue."""
    part, queue = _part(operator, partition), _partition_queue(operator, partition)
    head = load(part, PART_HEAD)
    tuples = _run_length(header, operator, queue, head, most)
    serial = load(queue, head & load(operator, QUEUE_MASK))
    store(part, PART_HEAD, head + tuples)
    _begin_batch(header, me, operator, partition, serial, tuples)


@inlined
def _obtain_hybrid(header: int, tally: int, me: int, operator: int) -> bool:
    while load(me, LEFT) > 0:
        head = load(operator, HEAD)
        most = min(_may_claim_before(header, operator) - head, load(header, BATCH))
        if most <= 0:
            return False
        master, mask = load(operator, MASTER), load(operator, QUEUE_MASK)
        partition, tuples = load(master, head & mask), 1
        while tuples < most and load(master, (head + tuples) & mask) == partition:
            tuples += 1
        store(operator, HEAD, head + tuples)
        part = _part(operator, partition)
        waiting = load(part, WAITING)
        store(part, WAITING, waiting + tuples)
        if waiting:
            _count(tally, DELEGATED, tuples)
        else:
            store(me, HAS, 1)
            _next_in_partition(header, me, operator, partition, tuples)
            return True
    return False


@inlined
def _claimable_in(header: int, operator: int, partition: int) -> int:
    """How many tuples at the head of a partition may be claimed."""
    part = _part(operator, partition)
    head = load(part, PART_HEAD)
    waiting = load(part, PART_TAIL) - head
    if waiting <= 0:
        return 0
    serial = load(_partition_queue(operator, partition), head & load(operator, QUEUE_MASK))
    return min(waiting, max(_may_claim_before(header, operator) - serial, 0))


@inlined
def _obtain_in_partitions(header: int, tally: int, me: int, operator: int) -> bool:
    """Go on in the partition that is owned, or else own the next that has tuples."""
    partitions = load(operator, PARTITIONS)
    cursor = load(tally, CURSOR)
    for step in range(partitions):
        partition = (cursor + step) % partitions
        part = _part(operator, partition)
        mine = step == 0 and load(me, HAS) == 1
        if load(part, PART_HEAD) >= load(part, PART_TAIL) or (load(part, OWNER) and not mine):
            continue
        tuples = _claimable_in(header, operator, partition)
        if not tuples:
            continue
        if not mine:
            if load(me, HAS):
                store(_part(operator, cursor), OWNER, 0)
            store(part, OWNER, 1)
            store(me, HAS, 1)
            store(tally, CURSOR, partition)
        before = load(part, PART_HEAD)
        _next_in_partition(header, me, operator, partition, tuples)
        store(operator, HEAD, load(operator, HEAD) + load(part, PART_HEAD) - before)
        return True
    return False


@inlined
def _obtain(header: int, tally: int, me: int, operator: int) -> bool:
    """Begin with the next batch of the slice, if there is one."""
    worklist = load(operator, WORKLIST)
    if worklist == HYBRID:
        if load(me, HAS):
            waiting = load(_part(operator, load(me, PARTITION)), WAITING)
            _next_in_partition(header, me, operator, load(me, PARTITION), waiting)
            return True
        return _obtain_hybrid(header, tally, me, operator)
    if load(me, LEFT) <= 0:
        return False
    if worklist == PARTITIONED:
        return _obtain_in_partitions(header, tally, me, operator)
    head = load(operator, HEAD)
    tuples = min(_may_claim_before(header, operator) - head, load(header, BATCH), _until_wrap(operator, head))
    if tuples <= 0:
        return False
    store(operator, HEAD, head + tuples)
    _begin_batch(header, me, operator, 0, head, tuples)
    return True


@inlined
def _model_leave(header: int, tally: int, me: int, operator: int) -> None:
    """The slice is over: report it, and let go of the partition."""
    took = load(header, NOW_NS) - load(me, START_NS)
    _count(tally, BUSY_NS, took)
    worked = _worked(tally) - load(me, WORKED_BEFORE)
    if worked:
        _count(operator, TIME_NS, took)
        _count(operator, WINDOW_TIME_NS, took)
        _count(operator, GIVEN, _gave(tally) - load(me, GAVE_BEFORE))
        _count(operator, INPUTS, worked)
    if load(me, HAS) and load(operator, WORKLIST) == PARTITIONED:
        store(_part(operator, load(tally, CURSOR)), OWNER, 0)
    store(me, HAS, 0)
    _count(operator, WORKING, -1)


@inlined
def _ready(operator: int) -> bool:
    serial = load(operator, NEXT)
    return load(_slot(operator, serial), TICKET) == serial + 1


@inlined
def _begin_send(header: int, me: int, operator: int, state: int) -> bool:
    """Send the next batch, if it is there, and the next worklist has room; for the one who has the flag."""
    if not _ready(operator):
        return False
    if load(operator, NUMBER) < load(header, CHAIN) - 1 and _room(operator + 8 * OPERATOR_WORDS, 1) <= 0:
        return False
    held = load(_slot(operator, load(operator, NEXT)), HELD) - load(operator, SENT)
    _due(me, state, load(header, NOW_NS) + load(header, SEND_NS) + held * load(header, OUTPUT_NS))
    return True


@inlined
def _let_go(header: int, operator: int) -> None:
    """Clear the flag, or hand the lock to who has waited longest."""
    head = load(operator, LOCK_HEAD)
    if head == load(operator, LOCK_TAIL):
        store(operator, FLAG, 0)
        return
    store(operator, LOCK_HEAD, head + 1)
    next_one = _model_worker(header, load(load(operator, LOCK_QUEUE), head % load(header, WORKERS)))
    _due(next_one, LOCKED, load(header, NOW_NS) + load(header, HAND_OVER_NS))


@inlined
def _model_send_down(header: int, tally: int, operator: int) -> bool:
    """The batch that is next goes on, or as much of it as has room; whether all of it did."""
    serial = load(operator, NEXT)
    slot = _slot(operator, serial)
    held, sent = load(slot, HELD), load(operator, SENT)
    outputs = _outputs(operator, serial) + 8 * sent * load(operator, OUT_WORDS)
    sent += _send_down(header, operator, outputs, held - sent)
    _wake(header)
    if sent < held:
        store(operator, SENT, sent)
        _count(tally, BLOCKED, 1)
        return False
    store(operator, SENT, 0)
    store(slot, TICKET, 0)
    store(operator, NEXT, serial + load(slot, COVERED))
    return True


@inlined
def _after_batch(header: int, tally: int, me: int, operator: int) -> bool:
    """The batch is in the ring and this worker is free of it; whether the slice goes on."""
    tuples = load(me, TUPLES)
    store(me, LEFT, load(me, LEFT) - tuples)
    if load(operator, WORKLIST) == HYBRID:
        part = _part(operator, load(me, PARTITION))
        waiting = load(part, WAITING) - tuples
        store(part, WAITING, waiting)
        store(me, HAS, waiting > 0)
    if _obtain(header, tally, me, operator):
        return True
    _model_leave(header, tally, me, operator)
    _wake(header)
    return False


@inlined
def _drain_some(header: int, me: int, operator: int) -> bool:
    """Send what was left when the next worklist was full, if nobody does."""
    if load(operator, FLAG) or not _begin_send(header, me, operator, DRAINED):
        return False
    store(operator, FLAG, 1)
    store(me, PLACE, load(operator, NUMBER))
    return True


@inlined
def _ask(header: int, tallies: int, me: int, worker: int) -> None:
    """Take the operator that the heuristic names; or send on what was left; or wait."""
    chain, passed = load(header, CHAIN), 0
    _model_feed(header)
    _new_window(header, load(header, NOW_NS))
    while True:
        number = _choose(header, passed)
        if number < 0:
            break
        operator, tally = _operator(header, number), tallies + 8 * TALLY_WORDS * (chain * worker + number)
        _count(operator, WORKING, 1)
        store(me, PLACE, number)
        store(me, START_NS, load(header, NOW_NS))
        store(me, WORKED_BEFORE, _worked(tally))
        store(me, GAVE_BEFORE, _gave(tally))
        store(me, LEFT, _quota(header, operator))
        if _obtain(header, tally, me, operator):
            return
        _model_leave(header, tally, me, operator)
        passed |= 1 << number
    for before in range(chain):
        if _drain_some(header, me, _operator(header, chain - 1 - before)):
            return
    when = _NEVER
    if load(header, FED) == _arrived(header) and load(header, FED) < load(header, ROWS):
        when = load(header, FED) * load(header, GAP_NS)
    _due(me, IDLE_STATE, when)
    _count(header, IDLERS, 1)


@inlined
def _happen(header: int, tallies: int, me: int, worker: int) -> None:
    """The event that a worker is due for."""
    state = load(me, STATE)
    if state == IDLE_STATE:
        _count(header, IDLERS, -1)
        state = ASKS
    if state == ASKS:
        _ask(header, tallies, me, worker)
        return
    number = load(me, PLACE)
    operator, tally = _operator(header, number), tallies + 8 * TALLY_WORDS * (load(header, CHAIN) * worker + number)
    sends = state
    if state == SERVED:
        serial, tuples = load(me, SERIAL), load(me, TUPLES)
        ahead = serial + tuples - load(operator, NEXT)
        store(tally, FULLEST, max(load(tally, FULLEST), ahead))
        _count(tally, FILLED + _bits(ahead), 1)
        made = _model_outputs(header, tally, operator, load(me, PARTITION), serial, tuples)
        _count(tally, DONE, tuples)
        _count(tally, MADE, made)
        if load(operator, FLAG):
            if load(header, REORDER) == LOCK:
                tail = load(operator, LOCK_TAIL)
                store(load(operator, LOCK_QUEUE), tail % load(header, WORKERS), worker)
                store(operator, LOCK_TAIL, tail + 1)
                _due(me, LOCKED_OUT, _NEVER)
                return
            sends = IDLE_STATE
        else:
            store(operator, FLAG, 1)
            sends = SENT_ON
    elif state == LOCKED:
        sends = SENT_ON
    elif not _model_send_down(header, tally, operator):
        _let_go(header, operator)
        sends = IDLE_STATE
    while sends != IDLE_STATE:
        begun = _begin_send(header, me, operator, sends)
        if begun and load(load(me, DUE), 0) > load(header, NOW_NS):
            return
        if not begun or not _model_send_down(header, tally, operator):
            _let_go(header, operator)
            sends = IDLE_STATE
    if (state == DRAINED or not _after_batch(header, tally, me, operator)) and (
        number == 0 or not _drain_some(header, me, operator - 8 * OPERATOR_WORDS)
    ):
        _due(me, ASKS, load(header, NOW_NS))


@compiled
def simulate(header: int) -> None:
    """Run the model to its end. Of events at one time, that of the lowest worker is first."""
    workers, tallies, dues = load(header, WORKERS), load(header, TALLIES), load(header, DUES)
    while True:
        soonest, worker = _NEVER, -1
        for number in range(workers):
            due = load(dues, number)
            if due < soonest:
                soonest, worker = due, number
        if worker < 0:
            store(header, STOP, FINISHED if _finished(header) else STALLED)
            return
        store(header, NOW_NS, soonest)
        _count(header, EVENTS, 1)
        _happen(header, tallies, _model_worker(header, worker), worker)
