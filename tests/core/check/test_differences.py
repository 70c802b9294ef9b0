"""Two artefacts against each other: signs, better sides, rows matched by their labels."""

from hypothesis import given
from hypothesis import strategies as st

from adapt.core.check.differences import MOST_ROWS, changes, difference_sentence, difference_table
from adapt.core.check.facts import Fact, Facts, Interval
from adapt.core.metrics import ROWS, SUMMARY, Of

NAMES = ("old", "new")


def exactly(number):
    return Interval(number, number)


def facts(kind, *rows, **summary):
    held = [Fact(where, {name: exactly(value) for name, value in values.items()}) for where, values in rows]
    whole = [Fact({}, {name: exactly(value) for name, value in summary.items()})]
    return Facts("x", kind, "", {ROWS: held, SUMMARY: whole})


def plan(scheme="uniform", **values):
    return facts(Of.PLAN, ({"scheme": scheme}, values))


def sides(before, after):
    return {change.metric.name: change.side for change in changes(before, after)}


def test_less_imbalance_is_better_and_more_keys_are_worse_and_channels_neither():
    before, after = (
        plan(imbalance=2.0, pinned_keys=0, channels=4),
        plan("hybrid", imbalance=1.5, pinned_keys=9, channels=8),
    )
    assert sides(before, after) == {"imbalance": "better", "pinned_keys": "worse", "channels": ""}
    table = difference_table(before, after, NAMES)
    assert [column.name for column in table.columns] == ["metric", "old", "new", "change", "side"]
    assert table.rows[0] == ("imbalance", "2.000", "1.500", "−25.0%", "better")
    assert ("pinned_keys", "0", "9", "+9", "worse") in table.rows
    assert "better than old in 1 and worse in 1; imbalance changes from 2.000 to 1.500" in difference_sentence(
        before, after, NAMES
    )


def test_where_intervals_overlap_nothing_is_sure():
    before, after = (
        Facts("x", Of.PLAN, "", {ROWS: [Fact({}, {"imbalance": Interval(low, high)})]})
        for low, high in ((1, 2), (1.5, 3))
    )
    assert sides(before, after) == {"imbalance": "unsure"}


def test_rounding_is_no_difference_and_many_rows_are_told_by_their_summary():
    assert changes(plan(imbalance=1.1), plan(imbalance=1.1 + 1e-12)) == []
    assert "have equal metrics" in difference_sentence(plan(imbalance=1.1), plan(imbalance=1.1), NAMES)
    periods = [({"period": str(at)}, {"imbalance": 2.0}) for at in range(MOST_ROWS + 1)]
    better = [(where, {"imbalance": 1.0}) for where, _ in periods]
    before, after = (
        facts(Of.REPARTITION, *rows, imbalance_max=worst) for rows, worst in ((periods, 2.0), (better, 1.0))
    )
    assert sides(before, after) == {"imbalance_max": "better"}


@given(st.floats(1, 1e6), st.floats(1, 1e6))
def test_the_other_way_round_the_side_turns(one, other):
    there, back = sides(plan(imbalance=one), plan(imbalance=other)), sides(plan(imbalance=other), plan(imbalance=one))
    assert there.keys() == back.keys()
    if there and there["imbalance"] != "unsure":
        assert {there["imbalance"], back["imbalance"]} == {"better", "worse"}
