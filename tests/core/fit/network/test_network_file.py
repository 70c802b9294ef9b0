"""The file of a network: what is read, and that every refusal names the element at fault."""

import re

import pytest

from adapt.core.errors import BadInput
from adapt.core.fit.network.names import DropPlanner, OperatorKind
from adapt.core.fit.network.network import ColumnEquals, KeyBucket, KeyRange, Window
from adapt.core.fit.network.network_file import read_network

WHOLE = """
[settings]
tick = "500ms"
planner = "c-fit"
epsilon = 0.1

[[node]]
name = "edge"
capacity = 1.5

[[node]]
name = "core"

[[input]]
name = "clicks"
stream = { column = "topic", equals = "clicks" }
scale = 2.0
out_bytes = 100

[[input]]
name = "orders"
stream = { keys = ["a", ""] }
rate = 5

[[input]]
name = "views"
stream = { bucket = 1, of = 4 }

[[operator]]
name = "attribute"
node = "core"
kind = "join"
inputs = ["parse", "orders"]
cost = 3e-5
selectivity = 1e-4
window = [5000, 2000]

[[operator]]
name = "parse"
node = "edge"
kind = "map"
inputs = ["clicks"]
cost = 2e-5
out_bytes = 80

[[operator]]
name = "per_page"
node = "core"
kind = "aggregate"
inputs = ["views"]
cost = 4e-5
selectivity = 0.01
window = { size = "60s", slide = "10s" }

[[output]]
name = "pages"
from = "per_page"
weight = 5

[[output]]
name = "conversions"
from = "attribute"

[[link]]
from = "edge"
to = "core"
bytes_per_s = 1e6
"""


def test_a_whole_file_is_read() -> None:
    read = read_network(WHOLE)
    network, settings = read.network, read.settings
    assert (settings.tick_us, settings.planner, settings.epsilon) == (500_000, DropPlanner.C_FIT, 0.1)
    assert [node.capacity for node in network.nodes] == [1.5, 1.0]
    streams = [entering.stream for entering in network.inputs]
    assert streams == [ColumnEquals("topic", "clicks"), KeyRange("a", None), KeyBucket(1, 4)]
    by_name = {operator.name: operator for operator in network.operators}
    assert by_name["attribute"].kind is OperatorKind.JOIN
    assert [by_name["attribute"].gain(port) for port in (0, 1)] == [0.2, 0.5]
    assert by_name["per_page"].window == Window(60_000_000, 10_000_000, True)
    names = [operator.name for operator in network.operators]
    assert names.index("parse") < names.index("attribute")
    assert [network.node_of(source) for source in network.sources[:3]] == ["edge", "core", "core"]


REFUSED = (
    # what is replaced, by what, what the message says
    ('from = "per_page"', 'from = "per_pag"', r"output 'pages' reads 'per_pag'.*did you mean 'per_page'"),
    ('inputs = ["views"]', 'inputs = ["viewz"]', r"operator 'per_page' reads 'viewz'.*did you mean 'views'"),
    ('node = "edge"', 'node = "egde"', r"operator 'parse' is on node 'egde'.*did you mean 'edge'"),
    ('inputs = ["clicks"]', 'inputs = ["attribute"]', r"must not form a cycle .*parse"),
    ('from = "attribute"', 'from = "parse"', r"operator 'attribute' does not reach an output"),
    ('inputs = ["views"]', 'inputs = ["parse"]', r"input 'views' does not reach an output"),
    (
        "cost = 4e-5\nselectivity = 0.01",
        "cost = 0\nselectivity = 0",
        r"operator 'per_page' has cost 0 and selectivity 0",
    ),
    ("window = [5000, 2000]", "", r"operator 'attribute' is a join and needs two count windows"),
    (
        "window = [5000, 2000]",
        "window = [5000]",
        r"operator 'attribute': a join needs window = \[TUPLES, TUPLES\] \(got \[5000\]\)",
    ),
    ("window = [5000, 2000]", "window = [5000, 0]", r"operator 'attribute': window must be .* above 0 \(got 0\)"),
    ("window = [5000, 2000]", 'window = { size = "1s", slide = "1s" }', r"'attribute' is a join and needs two count"),
    ("window = [5000, 2000]", 'window = ["1s", 9]', r"'attribute': a join needs window .*\['1s', 9\]"),
    ('kind = "map"', 'kind = "map"\nwindow = [1, 2]', r"operator 'parse' is a map, but only a join"),
    (
        'slide = "10s"',
        'slide = "70s"',
        r"operator 'per_page': the slide of a window must be above 0 and at most its size",
    ),
    ('slide = "10s"', 'slide = "10"', r"operator 'per_page': slide: 10 needs a unit"),
    ('slide = "10s"', "slide = 10", r"operator 'per_page': an aggregate needs window"),
    ("capacity = 1.5", "capacity = 0", r"node 'edge': capacity must be .* above 0 \(got 0\)"),
    ("capacity = 1.5", "capacity = nan", r"node 'edge': capacity must be .*\(got nan\)"),
    ("capacity = 1.5", 'capacity = "1"', r"node 'edge': capacity must be a number \(got '1'\)"),
    ("rate = 5", "rate = -5", r"input 'orders': rate must be .* at least 0 \(got -5\)"),
    ("weight = 5", "weight = -5", r"output 'pages': weight must be .*\(got -5\)"),
    ("cost = 2e-5", "cost = -1", r"operator 'parse': cost must be .*\(got -1\)"),
    ("cost = 2e-5", "", r"operator 'parse' has no cost"),
    ("cost = 2e-5", "cots = 2e-5", r"operator 'parse' has an unknown field 'cots'; did you mean 'cost'"),
    ('kind = "map"', 'kind = "mop"', r"operator 'parse': there is no kind 'mop'; did you mean 'map'"),
    ('kind = "map"', 'kind = "join"\nwindow = [1, 1]', r"operator 'parse' is a join and must read 2 inputs \(got 1\)"),
    (
        'kind = "map"',
        'kind = "filter"\nselectivity = 1.5',
        r"operator 'parse': selectivity of a filter must be at most 1",
    ),
    ('name = "core"', 'name = "edge"', r"node 'edge' is defined 2 times"),
    ('name = "views"', 'name = "orders"', r"input or operator 'orders' is defined 2 times"),
    ('name = "pages"', 'name = "conversions"', r"output 'conversions' is defined 2 times"),
    ("bucket = 1", "bucket = 4", r"input 'views': bucket must be from 0 to 3 \(got 4\)"),
    ('stream = { keys = ["a", ""] }', 'stream = { keys = ["a", 3] }', r"input 'orders': keys from 'a' to 3"),
    ("bucket = 1, of = 4", "bucket = 1", r"input 'views': stream must be "),
    ("bytes_per_s = 1e6", "bytes_per_s = 0", r"link 'edge to core': bytes_per_s must be .*\(got 0\)"),
    ("out_bytes = 80", "", r"link 'edge to core' limits bytes, so 'parse'"),
    ('to = "core"', 'to = "edge"', r"link 'edge to edge' connects a node to itself"),
    ('tick = "500ms"', "tick = 60", r'^line 3: settings: tick needs a unit, such as tick = "60s" \(got 60\)$'),
    ("epsilon = 0.1", "epsilon = 1", r"settings: epsilon must be above 0 and below 1 \(got 1\)"),
    ("epsilon = 0.1", "epsilon = 0", r"settings: epsilon must be .*\(got 0\)"),
    ("epsilon = 0.1", "headroom = 1.0", r"settings: headroom must be .*\(got 1\)"),
    ("epsilon = 0.1", "lag_ticks = -1", r"settings: lag_ticks must be at least 0 \(got -1\)"),
    ("epsilon = 0.1", "lag_ticks = 1.5", r"settings: lag_ticks must be an integer \(got 1.5\)"),
    ("epsilon = 0.1", "feedback = 1", r"settings: feedback must be true or false \(got 1\)"),
    ("epsilon = 0.1", "epsilom = 0.1", r"settings has an unknown field 'epsilom'; did you mean 'epsilon'"),
    ('tick = "500ms"', 'tick = "0s"', r"settings: tick must be above 0"),
    ('planner = "c-fit"', 'planner = "cfit"', r"settings: there is no planner 'cfit'; did you mean 'c-fit'"),
    ("[[node]]", "[node]", r"node is not a list of tables|not valid TOML"),
    ("[settings]", "[setting]", r"unknown field 'setting'; did you mean 'settings'"),
    ("[settings]", "[[settings]]", r"settings must be a table"),
    ('inputs = ["clicks"]', 'inputs = "clicks"', r"operator 'parse': inputs must be a list of names"),
    ('name = "pages"', "", r"one \[\[output\]\] has no name"),
    ("weight = 5", "weight = 5 6", r"not valid TOML: .*line"),
)


@pytest.mark.parametrize(("was", "becomes", "said"), REFUSED)
def test_a_mistake_is_refused_by_the_name_of_its_element(was: str, becomes: str, said: str) -> None:
    assert was in WHOLE
    with pytest.raises(BadInput) as refused:
        read_network(WHOLE.replace(was, becomes, 1))
    assert re.search(said, str(refused.value)), refused.value
    assert "\n" not in str(refused.value)
    assert "mistakes" not in str(refused.value) or becomes == "cots = 2e-5"  # an unknown field, and a missing one


def test_all_mistakes_are_said_at_once_each_with_its_line_and_remedy() -> None:
    text = WHOLE
    for was, becomes in (
        ('tick = "500ms"', "tick = 60"),
        ("capacity = 1.5", "capacity = 0"),
        ("rate = 5", "rate = -5"),
        ('kind = "map"', 'kind = "mop"'),
        ("cost = 4e-5", "cost = -1"),
        ('from = "attribute"', 'from = "atribute"'),
        ("bytes_per_s = 1e6", 'bytes_per_s = "1 MB"'),
    ):
        text = text.replace(was, becomes, 1)
    with pytest.raises(BadInput) as refused:
        read_network(text)
    first, *lines = re.split(r";? \(\d\) line ", str(refused.value))
    assert first == "7 mistakes:"
    numbers = [int(line.split(":")[0]) for line in lines]
    assert numbers == sorted(numbers)
    of_file = text.splitlines()
    fields = [of_file[number - 1].split(" = ")[0] for number in numbers]
    assert fields == ["tick", "capacity", "rate", "kind", "cost", "from", "bytes_per_s"]
    assert "did you mean 'map'" in lines[3]
    assert "did you mean 'attribute'" in lines[5]


def test_a_network_without_outputs_says_what_to_add() -> None:
    with pytest.raises(BadInput, match=re.escape("add a [[output]]")):
        read_network(WHOLE[: WHOLE.index("[[output]]")])
