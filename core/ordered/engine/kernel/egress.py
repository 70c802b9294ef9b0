"""Egress: tuples that leave the chain are counted, hashed and timed."""

import numpy as np

from adapt.core.atomics import apart, fixed, load, load_atomic
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
    """Keep one of the first tuples that leave."""
    apart()
    copy_words(fields, header.kept_at + 8 * left * words, words)


@flattened
def leave(header: Header, operator: Operator, outputs: int, count: int) -> None:
    """Emit the outputs of the last operator."""
    size = fixed(operator, "out_words")
    fold = np.uint64(header.egress_hash)
    left = header.egress_tuples
    keep = fixed(header, "keep")
    for output in range(count):
        place = outputs + 8 * output * size
        mark = load(place, MARK)
        if mark & (COPY - 1):
            _time_leaving(header, mark)
        if mark >= PUNCTUATION:
            continue
        at = 1
        # Atomic, or the loop would be unrolled, which is slower for a few words.
        while at < load_atomic(operator, "out_words"):
            fold = (fold ^ np.uint64(load(place, at))) * np.uint64(FOLD)
            fold = fold ^ (fold >> np.uint64(32))
            at += 1
        if left < keep:
            _keep(header, left, place + 8, size - 1)
        left += 1
    header.egress_hash = np.int64(fold)
    header.egress_tuples = left
