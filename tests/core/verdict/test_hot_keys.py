"""Hot keys with intervals, what is sure to be listed, and life-lines by pane."""

import numpy as np
import pyarrow as pa

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.counting.frequencies import Frequencies
from adapt.core.out_of_sample.windows import CountedPane
from adapt.core.verdict.hot_keys import HotKeys


def counted(**counts: int) -> Frequencies:
    return frequencies_of(KeyCounts(pa.array(list(counts)), np.array(list(counts.values())), sum(counts.values())))


def test_each_key_has_its_share_of_every_pane():
    panes = [CountedPane(5, counted(a=3, b=1)), CountedPane(9, counted(b=4)), CountedPane(11, counted(a=1, c=1))]
    hot = HotKeys.from_counts(counted(b=5, a=4, c=1), panes)
    assert [(key.key, key.life_line) for key in hot.keys] == [
        ("b", (0.25, 1.0, 0.0)),
        ("a", (0.75, 0.0, 0.5)),
        ("c", (0.0, 0.0, 0.5)),
    ]
    assert hot.table().values("life_line") == ["▂█ ", "█ ▆", "  █"]
    assert hot.lines_table().rows[:2] == (("b", 1, 5, 0.25), ("b", 2, 9, 1.0))


def test_without_times_there_are_no_life_lines():
    table = HotKeys.from_counts(counted(a=2, b=1)).table()
    assert [column.name for column in table.columns] == ["rank", "key", "count_low", "count_high", "share"]
    assert table.note == "Every key is listed."


def test_lossy_counts_say_above_what_no_key_is_missing():
    lossy = Frequencies(pa.array(["a"]), np.array([50]), np.array([60]), 100.0, 100, epsilon=0.1, complete_above=10.0)
    hot = HotKeys.from_counts(lossy)
    assert (hot.keys[0].count_low, hot.keys[0].count_high) == (50, 60)
    assert hot.complete == "Every key with a count above 10 is listed (1 key)."
