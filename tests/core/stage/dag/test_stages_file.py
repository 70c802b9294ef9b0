"""Files of stages: what they say, and every way to get one wrong, each in a sentence with its line."""

import numpy as np
import pytest

from adapt.core.errors import BadInput
from adapt.core.stage.dag.settings import Edge, Life, read_stages
from adapt.core.stage.input.keyed_rows import StateUnit

WHOLE = """
[[stage]]
name = "top"
query = "q"
inputs = ["parse", "visits"]
key = "page"
service_time = "60us"
state = "rows@9rows"

[[stage]]
name = "visits"
inputs = ["parse"]
selectivity = 2

[[stage]]
name = "parse"
selectivity = 0.5
state = 7
partitions = 3
buffer = 20

[[query]]
name = "q"
arrive = "1s"
leave = "2m"
"""


def test_stages_follow_their_inputs():
    file = read_stages(WHOLE)
    assert [one.name for one in file.stages] == ["parse", "visits", "top"]
    assert set(file.edges) == {Edge(0, 1, 0.5), Edge(0, 2, 0.5), Edge(1, 2, 2.0)}
    assert file.lives == (Life(), Life(), Life(1.0, 120.0))
    parse, visits, top = file.stages
    assert (parse.state, parse.partitions, parse.buffer, parse.key, parse.query) == (7, 3, 20, "key", "main")
    assert (visits.service_s, top.service_s) == (None, pytest.approx(60e-6))
    assert top.state.unit is StateUnit.ROWS
    assert (file.last("main"), file.last("q")) == ((1,), (2,))


def changed(old, new):
    assert old in WHOLE
    return WHOLE.replace(old, new)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = ", "not valid TOML"),
        ("", "add one as [[stage]]"),
        ("[[stages]]", "unknown field 'stages'; did you mean 'stage'?"),
        ("stage = 3", "must be a list of tables"),
        (changed('name = "parse"\n', ""), "one [[stage]] has no name; add name ="),
        (
            changed('key = "page"', 'kee = "page"'),
            "line 6: stage 'top' has an unknown field",
        ),
        (changed('inputs = ["parse"]', 'inputs = "parse"'), "line 12: stage 'visits': inputs must be a list of stages"),
        (changed('inputs = ["parse"]', 'inputs = ["pares"]'), "line 12: stage 'visits' reads 'pares', which is not a"),
        (changed('inputs = ["parse"]', 'inputs = ["parse", "parse"]'), "reads a stage twice"),
        (
            changed("selectivity = 0.5", 'inputs = ["visits"]'),
            "reads its own output: 'parse' <- 'visits' <- 'parse'; remove one of these inputs",
        ),
        (changed('query = "q"', 'query = "p"'), "line 4: stage 'top': there is no query 'p'"),
        (changed('leave = "2m"', 'leave = "1s"'), "line 25: query 'q': leave must be after arrive (got 1s and 1s)"),
        (changed('leave = "2m"', 'leave = "2"'), "line 25: query 'q': leave 2 needs a unit: 2s or 2h?"),
        (changed('arrive = "1s"', "arrive = 1"), "line 24: query 'q': arrive must be a text in quotes (got 1)"),
        (changed('"top"\nquery = "q"', '"top"').replace('"visits"\nin', '"visits"\nquery = "q"\nin'), "let 'q' arrive"),
        (changed("partitions = 3", "partitions = 0"), "partitions must be an integer of at least 1 (got 0)"),
        (changed("selectivity = 2", "selectivity = -1"), "selectivity must be a number of at least 0 (got -1)"),
        (changed('"60us"', '"0s"'), "service_time must be above 0 (got 0s)"),
        (changed("state = 7", "state = -7"), "state takes a number of tuples, or rows"),
        (changed("rows@9rows", "rows@1m"), "state in bytes or in a window of time needs the rows of the trace"),
        (changed('name = "visits"', 'name = "parse"'), "stage 'parse' appears twice; rename one"),
    ],
)
def test_a_file_that_is_no_dag_is_refused_with_line_and_remedy(text, said):
    with pytest.raises(BadInput) as error:
        read_stages(text)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_all_mistakes_are_told_at_once():
    with pytest.raises(BadInput, match=r"2 mistakes: \(1\) line 6: .*; \(2\) line 20: "):
        read_stages(changed("buffer = 20", "buffer = 0").replace("kee", "key").replace('key = "page"', 'kee = "page"'))


def test_a_query_without_an_end_stays():
    assert read_stages(changed('leave = "2m"\n', "")).lives[2] == Life(1.0, np.inf)
