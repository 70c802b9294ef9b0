"""Panes that are kept beside a trace; counting them is tested with `partition count`."""

import numpy as np
import pyarrow as pa

from adapt.core.counting.frequencies import Frequencies
from adapt.core.out_of_sample.windows import CountedPane
from adapt.core.stream import KeyType, Weight
from adapt.traces.block_cache import keep
from adapt.traces.counting.count_cache import EPSILON, _packed, _place, _unpacked, kept_panes


def pane(start_us, keys, counts):
    counts = np.array(counts)
    total = float(counts.sum())
    return CountedPane(start_us, Frequencies(keys, counts, counts + 1, total, 7, epsilon=EPSILON, distinct=len(keys)))


def test_kept_panes_come_back_and_damaged_ones_are_counted_anew(tmp_path):
    panes = (pane(3, pa.array(["b", None, "a"]), [5, 4, 1]), pane(9, pa.array(["c"]), [2]))
    place = _place(tmp_path, "hash", Weight.COUNT)
    assert kept_panes(tmp_path, "hash", Weight.COUNT, KeyType.STRING) == ()
    keep(place, _packed(panes))
    back = kept_panes(tmp_path, "hash", Weight.COUNT, KeyType.STRING)
    assert [each.start_us for each in back] == [3, 9]
    for told, made in zip(back, panes, strict=True):
        assert told.frequencies.keys.equals(made.frequencies.keys)
        assert told.frequencies.count_low.tolist() == made.frequencies.count_low.tolist()
        assert told.frequencies.count_high.tolist() == made.frequencies.count_high.tolist()
        assert (told.frequencies.total, told.frequencies.rows) == (made.frequencies.total, 7)
    assert kept_panes(tmp_path, "hash", Weight.BYTES, KeyType.STRING) == ()
    place.write_bytes(place.read_bytes()[:-40])
    assert kept_panes(tmp_path, "hash", Weight.COUNT, KeyType.STRING) == ()


def test_keys_of_a_pane_in_two_row_groups_have_the_type_of_the_others():
    panes = (pane(3, pa.array(["b", "a"]), [5, 4]), pane(9, pa.array(["c"]), [2]))
    kept = _packed(panes)
    apart = pa.Table.from_batches([*kept.slice(0, 1).to_batches(), *kept.slice(1).to_batches()])
    assert [each.frequencies.keys for each in _unpacked(apart, KeyType.STRING)] == [
        pa.array(["b", "a"]),
        pa.array(["c"]),
    ]
