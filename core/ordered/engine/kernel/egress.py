"""Egress: tuples that leave the chain are counted, hashed and timed."""

import numpy as np

from adapt.core.atomics import apart, fixed, load, load_atomic, publish
from adapt.core.compiled import flattened, inlined, record_at
from adapt.core.ordered.chain.mixing import FOLD
from adapt.core.ordered.engine.kernel.feeding import current_ns
from adapt.core.ordered.engine.kernel.layout import TIMED, Header, Operator
from adapt.core.ordered.engine.kernel.tuples import COPY, MARK, PUNCTUATION, copy_words


@inlined
def _time_leaving(header: Header, mark: int) -> None:
    """Record when a timed tuple leaves."""
    apart()
    number = (mark & (COPY - 1)) - 1
    record_at(header.marks_at, TIMED, number).left = current_ns(header)


@inlined
def _keep(header: Header, left: int, fields: int, words: int) -> None:
    """Keep a tuple that leaves."""
    apart()
    copy_words(fields, fixed(header, "kept_at") + 8 * (left & fixed(header, "kept_mask")) * words, words)


@inlined
def awaits_taking(header: Header) -> bool:
    """Whether tuples cannot leave until kept ones are taken out."""
    return fixed(header, "waits") != 0 and load_atomic(header, "egress_tuples") >= load_atomic(header, "keep")


@flattened
def _folded(operator: Operator, fold: np.uint64, place: int) -> np.uint64:
    """The hash with another tuple."""
    at = 1
    # Atomic, or the loop would be unrolled, which is slower for a few words.
    while at < load_atomic(operator, "out_words"):
        fold = (fold ^ np.uint64(load(place, at))) * np.uint64(FOLD)
        fold = fold ^ (fold >> np.uint64(32))
        at += 1
    return fold


@inlined
def leave_plain(header: Header, operator: Operator, outputs: int, count: int) -> int:
    """`leave` for outputs without marks."""
    apart()
    size, left, keep = fixed(operator, "out_words"), header.egress_tuples, load_atomic(header, "keep")
    if fixed(header, "waits"):
        count = max(min(count, keep - left), 0)
    for number in range(min(count, keep - left)):
        _keep(header, left + number, outputs + 8 * (number * size + 1), size - 1)
    fold, place, end = np.uint64(header.egress_hash), outputs, outputs + 8 * count * size
    while place < end:
        fold = _folded(operator, fold, place)
        place += 8 * size
    header.egress_hash = np.int64(fold)
    publish(header, "egress_tuples", left + count)
    return count


@inlined
def leave(header: Header, operator: Operator, outputs: int, count: int) -> int:
    """Emit outputs of the last operator.

    As many as may leave; returns their number.
    """
    size = fixed(operator, "out_words")
    fold = np.uint64(header.egress_hash)
    left = header.egress_tuples
    keep, waits = load_atomic(header, "keep"), fixed(header, "waits")
    gone = 0
    while gone < count:
        place = outputs + 8 * gone * size
        mark = load(place, MARK)
        if waits and left >= keep and mark < PUNCTUATION:
            break
        gone += 1
        if mark & (COPY - 1):
            _time_leaving(header, mark)
        if mark >= PUNCTUATION:
            continue
        fold = _folded(operator, fold, place)
        if left < keep:
            _keep(header, left, place + 8, size - 1)
        left += 1
    header.egress_hash = np.int64(fold)
    publish(header, "egress_tuples", left)
    return gone
