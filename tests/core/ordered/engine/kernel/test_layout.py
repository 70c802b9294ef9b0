"""Records of the workers' memory: fields by name, words that workers fight over on cache lines of their own."""

import numpy as np
import pytest

from adapt.core.ordered.engine.kernel.layout import HEADER, LINE, OPERATOR, PARTITION, TALLY

ALONE = [
    (HEADER, {"stop"}),  # written seldom, and read together before each slice
    (HEADER, {"vain", "delays"}),
    (HEADER, {"fed"}),
    (HEADER, {"keep"}),
    (HEADER, {"window_start"}),
    (HEADER, {"egress_hash", "egress_tuples"}),
    (OPERATOR, {"head"}),
    (OPERATOR, {"tail", "seen_next", "copied"}),
    (OPERATOR, {"next", "sent"}),
    (OPERATOR, {"sending"}),
    (OPERATOR, {"working"}),
    (OPERATOR, {"inputs", "outputs", "time_ns"}),
    (OPERATOR, {"window_time_ns"}),
    (PARTITION, {"tail", "load"}),
]


@pytest.mark.parametrize(("kind", "fields"), ALONE)
def test_words_that_workers_fight_over_have_a_cache_line_to_themselves(
    kind: np.dtype[np.void], fields: set[str]
) -> None:
    lines = {kind.fields[name][1] // LINE for name in fields}
    assert {name for name in kind.names if kind.fields[name][1] // LINE in lines} == fields


@pytest.mark.parametrize("kind", [HEADER, OPERATOR, PARTITION, TALLY])
def test_records_of_an_array_share_no_cache_line(kind: np.dtype[np.void]) -> None:
    assert kind.itemsize % LINE == 0
