from adapt.core.report.move_charts import MOST_CHANNELS, migration_matrix
from adapt.core.table import Column, Kind, Table

COLUMNS = (
    *(Column("from", Kind.COUNT), Column("to", Kind.COUNT), Column("keys", Kind.COUNT), Column("state", Kind.NUMBER)),
)


def drawn(chart):
    return chart.spec["data"]["values"]


def test_each_pair_has_a_square():
    chart = migration_matrix(Table.from_rows("Moves", COLUMNS, [(0, 1, 3, 90.0), (2, 0, 1, 5.0)]))
    assert [(point["from"], point["to"], point["y"]) for point in drawn(chart)] == [(0, 1, 90.0), (2, 0, 5.0)]
    assert drawn(chart)[0]["d"] == "0 to 1: 3 keys, state 90"


def test_of_many_channels_those_with_most_are_drawn_and_it_is_said():
    rows = [(at, at + 1, 1, float(1000 - at)) for at in range(200)]
    chart = migration_matrix(Table.from_rows("Moves", COLUMNS, rows))
    assert {point["from"] for point in drawn(chart)} == set(range(MOST_CHANNELS))
    assert f"{MOST_CHANNELS} of 200 pairs" in chart.sentence
