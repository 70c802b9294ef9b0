"""Counted keys as tables: all of them, or said to be cut."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from adapt.core.counting.exact import count_keys, frequencies_of
from adapt.core.counting.frequencies import Frequencies
from adapt.core.counting.tables import asked_keys_table, counts_table, heaviest_table, rank_share_table


def test_every_key_is_listed_or_the_rest_is_counted():
    frequencies = frequencies_of(count_keys(pa.array([f"k{at}" for at in range(50)])))
    whole = heaviest_table(frequencies)
    assert (len(whole.rows), whole.note) == (50, "")
    cut = heaviest_table(frequencies, 20)
    assert (cut.rows, cut.note) == (whole.rows[:20], "and 30 more keys")


def test_ranks_end_where_a_key_that_is_not_listed_might_come_in():
    counted = Frequencies(pa.array(["a", "b", "c"]), np.array([50, 20, 9]), np.array([50, 22, 14]), 100, 100)
    assert rank_share_table(counted).values("share") == [0.5, 0.2, 0.09]
    lossy = replace(counted, epsilon=0.1, complete_above=10, distinct=9)
    assert rank_share_table(lossy).values("share") == [0.5, 0.2]


def test_keys_asked_for_are_told_with_what_they_may_weigh():
    lossy = Frequencies(pa.array(["a", None]), np.array([50, 20]), np.array([55, 22]), 100, 100, epsilon=0.1)
    table = asked_keys_table(replace(lossy, complete_above=10), pa.array([None, "z", "a"]))
    assert table.values("key") == ["(null)", "z", "a"]
    assert table.values("count_low") == [20, 0, 50]
    assert table.values("count_high") == [22, 10, 55]


def test_what_a_lossy_counter_promises_stands_below_the_counts():
    lossy = Frequencies(pa.array(["a"]), np.array([50]), np.array([55]), 100, 100, epsilon=0.1, complete_above=10)
    table = counts_table(lossy)
    assert (table.values("counts"), table.values("listed_share")) == (["lossy"], [0.5])
    assert "above 10 is listed" in table.note
    assert "no key was dropped" in counts_table(replace(lossy, complete_above=0)).note
    assert counts_table(replace(lossy, epsilon=0.0)).note == ""
