"""Chain files: what is read, and how invalid chains are refused."""

import re

import pytest

from adapt.core.errors import BadInput
from adapt.core.ordered.chain.chain import Chain, Operator, Punctuations, read_chain
from adapt.core.ordered.chain.graph import Graph
from adapt.core.ordered.chain.names import FunctionName, OperatorKind, PartitionBy, PartitionCount
from adapt.core.ordered.chain.own import own_function


def test_a_chain_of_every_kind_is_read_in_its_order() -> None:
    text = """
        [[operator]]
        name = "parse"
        kind = "stateless"
        cost = 2
        selectivity = 0.5

        [[operator]]
        name = "by vendor"
        kind = "partitioned"
        key = "vendor"
        partitions = 64
        by = "range"
        function = "count"

        [[operator]]
        name = "by plan"
        kind = "partitioned"
        key = "vendor"
        by = "plan"
        cost = "cost_us"

        [[operator]]
        name = "top"
        kind = "stateful"
    """
    assert read_chain(text) == Chain(
        (
            Operator("parse", OperatorKind.STATELESS, cost=2.0, selectivity=0.5),
            Operator(
                "by vendor", OperatorKind.PARTITIONED, "vendor", 64, PartitionBy.RANGE, 0.0, 1.0, FunctionName.COUNT
            ),
            Operator("by plan", OperatorKind.PARTITIONED, "vendor", None, PartitionBy.PLAN, "cost_us"),
            Operator("top", OperatorKind.STATEFUL),
        )
    )


def test_punctuations_are_read_with_their_column_and_how_often_they_come() -> None:
    counting = '[[operator]]\nname = "top"\nkind = "stateful"\nfunction = "final-top-30"\n'
    pages = '[[operator]]\nname = "pages"\nkind = "stateful"\nfunction = "mean-pages"\n'
    for text, expected in (
        ("[punctuations]", Punctuations()),
        ('[punctuations]\ncolumn = "at"\nevery = "1h"', Punctuations("at", 3_600_000_000)),
    ):
        assert read_chain(f"{text}\n{counting}").punctuations == read_chain(f"{pages}{text}").punctuations == expected
    assert read_chain('[[operator]]\nname = "parse"\nkind = "stateless"').punctuations is None


def test_sizes_and_a_partition_per_worker_are_read() -> None:
    text = operator('kind = "partitioned"\nkey = "k"\npartitions = "workers"\ntuple_bytes = 64\nstate_bytes = "4KiB"')
    (read,) = read_chain(text).operators
    assert (read.partitions, read.tuple_bytes, read.state_bytes) == (PartitionCount.WORKERS, 64, 4096)


def operator(lines: str) -> str:
    return '[[operator]]\nname = "parse"\n' + lines


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[operator", "the chain is not valid TOML"),
        ("", "a chain must have from 1 to 32 operators (got 0)"),
        ("[operator]\nname = 1", "operator must be a list of tables"),
        ("[[operators]]\n", "the chain has an unknown field 'operators'; did you mean 'operator'?"),
        ('[[operator]]\nkind = "stateless"', "one [[operator]] has no name"),
        ('[[operator]]\nname = ""\nkind = "stateless"', "an operator has an empty name"),
        (operator(""), "operator 'parse' has no kind"),
        (operator('kind = "statless"'), "operator 'parse': there is no kind 'statless'; did you mean 'stateless'?"),
        (
            operator('kind = "stateless"\ncosts = 1'),
            "operator 'parse' has an unknown field 'costs'; did you mean 'cost'?",
        ),
        (
            operator('kind = "stateless"\ncost = -1'),
            "operator 'parse': cost must be from 0 to 1e+09 microseconds (got -1)",
        ),
        (operator('kind = "stateless"\ncost = nan'), "operator 'parse': cost must be from 0"),
        (operator('kind = "stateless"\ncost = [1]'), "cost must be microseconds or the name of a column"),
        (operator('kind = "stateless"\ncost = ""'), 'cost must be microseconds or the name of a column (got "")'),
        (
            operator('kind = "stateless"\nselectivity = -0.5'),
            "operator 'parse': selectivity must be from 0 to below 65536",
        ),
        (operator('kind = "stateless"\nselectivity = inf'), "operator 'parse': selectivity must be from 0"),
        (
            operator('kind = "stateless"\nkey = "k"'),
            "operator 'parse' is stateless, but key, partitions and by need",
        ),
        (
            operator('kind = "stateful"\npartitions = 2'),
            "operator 'parse' is stateful, but key, partitions and by need",
        ),
        (operator('kind = "partitioned"\npartitions = 4'), "operator 'parse' is partitioned but has no key"),
        (
            operator('kind = "partitioned"\nkey = "k"'),
            "operator 'parse' is partitioned but has no number of partitions",
        ),
        (
            operator('kind = "partitioned"\nkey = "k"\npartitions = 0'),
            "'parse': partitions must be from 1 to 1048576 (got 0)",
        ),
        (operator('kind = "partitioned"\nkey = "k"\npartitions = 1.5'), "partitions must be an integer"),
        (operator('kind = "partitioned"\nkey = "k"\npartitions = 4\nby = "plan"'), "whose channels are its partitions"),
        (operator('kind = "partitioned"\nkey = "k"\npartitions = 4\nby = "has"'), "no by 'has'; did you mean 'hash'?"),
        (operator('kind = "stateless"\nfunction = "count"'), "function count needs a partitioned operator"),
        (
            operator('kind = "stateful"\nfunction = "final-top-30"'),
            "runs final-top-30, which needs punctuations; add [punctuations]",
        ),
        (
            operator('kind = "partitioned"\nkey = "item"\npartitions = 4\nfunction = "final-top-30"'),
            'counts by a field made in the chain; set key = "counted"',
        ),
        (
            operator('kind = "partitioned"\nkey = "k"\npartitions = "worker"'),
            "operator 'parse': partitions must be an integer or \"workers\", for as many as workers (got 'worker')",
        ),
        (
            operator('kind = "partitioned"\nkey = "counted"\npartitions = "workers"\nfunction = "final-top-30"'),
            "runs final-top-30, whose output at punctuations depends on the number of partitions; set partitions to a",
        ),
        (
            operator('kind = "stateless"\ntuple_bytes = 12'),
            "operator 'parse': tuple_bytes must be a multiple of 8 from 0 to 16,384 (got 12)",
        ),
        (operator('kind = "stateless"\ntuple_bytes = "32KiB"'), "from 0 to 16,384 (got 32768)"),
        (operator('kind = "stateless"\ntuple_bytes = "long"'), "operator 'parse': tuple_bytes "),
        (operator('kind = "stateless"\ntuple_bytes = 1.5'), "tuple_bytes must be an integer"),
        (
            operator('kind = "stateful"\nstate_bytes = -8'),
            "state_bytes must be a multiple of 8 from 0 to 1,073,741,824",
        ),
        (operator('kind = "stateless"\nstate_bytes = 64'), "is stateless, but state_bytes needs a state; remove it"),
        (
            operator('kind = "partitioned"\nkey = "k"\npartitions = 4\nfunction = "count"\nstate_bytes = 64'),
            'runs count, which takes no state_bytes; remove it, or set function = "work"',
        ),
        ("punctuations = 3", "punctuations must be a table; write it as [punctuations]"),
        ('[punctuations]\nevry = "1h"', "[punctuations] has an unknown field 'evry'; did you mean 'every'?"),
        ('[punctuations]\nevery = "often"', "[punctuations]: every: "),
        ('[punctuations]\nevery = "0"', "[punctuations]: every must be at least 1us (got 0us)"),
        ('[punctuations]\ncolumn = ""', "[punctuations]: column must not be empty"),
        (operator('kind = "stateless"\nfunction = "cont"'), "there is no function 'cont'; did you mean 'count'?"),
        (
            operator('kind = "partitioned"\nkey = "k"\npartitions = 4\nfunction = "count"\ncost = 1'),
            "operator 'parse' runs count, which takes no cost and no selectivity",
        ),
        (
            operator('kind = "stateless"') + "\n" + operator('kind = "stateful"'),
            "two operators are named 'parse'",
        ),
        ("\n".join(f'[[operator]]\nname = "{n}"\nkind = "stateless"' for n in range(33)), "1 to 32 operators (got 33)"),
    ],
)
def test_a_refusal_names_the_element(text: str, told: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_chain(text)
    assert told in str(refused.value)


def test_a_refusal_says_on_which_line_the_operator_begins() -> None:
    text = operator('kind = "stateless"') + "\n\n  [[ operator ]]\nname = 'b'\nkind = 'partitioned'\npartitions = 0"
    with pytest.raises(BadInput, match=r"^line 5: operator 'b' is partitioned but has no key"):
        read_chain(text)
    with pytest.raises(BadInput, match=r"^operator 'a' has no kind"):
        read_chain("operator = [{name = 'a'}]")


def test_functions_in_python_are_loaded_by_name() -> None:
    def is_even(value: int) -> bool:
        return value % 2 == 0

    own = own_function("mine:is_even", is_even)
    text = operator('kind = "stateless"\nfunction = "mine:is_even"\ncost = 2')
    assert read_chain(text, lambda _: own).operators[0].function == own
    with pytest.raises(BadInput, match="own function 'mine:is_even' cannot be used here"):
        read_chain(text)
    with pytest.raises(BadInput, match="mine:is_even, which decides its outputs itself; remove selectivity"):
        read_chain(text + "\nselectivity = 2", lambda _: own)


def named(name: str, reads: str = "") -> str:
    return f'[[operator]]\nname = "{name}"\nkind = "stateless"\n{reads}\n'


def test_a_graph_is_read_with_its_inputs_branches_and_outputs() -> None:
    text = 'inputs = ["l", "r"]\noutputs = ["b", "c"]\n' + named("a", 'from = ["r", "l"]')
    chain = read_chain(text + named("b") + named("c", 'from = "a"'))
    assert chain.graph == Graph(("l", "r"), ((1, 0), (2,), (2,)), (3, 4))
    assert [chain.graph.live(number) for number in range(4)] == [(0, 1), (2,), (2, 3), (3, 4)]
    assert not chain.graph.is_linear
    assert read_chain(named("a", 'from = "trace"') + named("b", 'from = ["a"]')).graph.is_linear


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (named("a", 'from = "c"') + named("b") + named("c"), "operators read each other in a cycle: a <- c <- b <- a"),
        (named("a", 'from = "a"'), "in a cycle: a <- a"),
        (named("a", 'from = "b"') + named("b", 'from = "trace"'), "'a' reads 'b', which comes later; move"),
        (named("a") + named("b", 'from = "x"'), "operator 'b' reads 'x', which is not an input or operator"),
        (named("a") + named("b", "from = []"), "operator 'b': from must name different inputs and operators (got [])"),
        (named("a") + named("b", "from = 1"), "operator 'b': from must be a list of names"),
        (
            named("a") + named("b", 'from = "a"') + named("c", 'from = "a"'),
            '2 operators are read by no other: add outputs = ["b", "c"]',
        ),
        ('outputs = ["b"]\n' + named("a") + named("b", 'from = "trace"'), "nobody reads operator 'a'; name it"),
        ('outputs = ["x"]\n' + named("a"), "outputs has 'x', which is not an operator"),
        ('outputs = ["a", "a"]\n' + named("a"), "outputs has 'a' twice"),
        ('inputs = ["l", "r"]\n' + named("a"), "operator 'a' must say which inputs it reads; add from = ['l', 'r']"),
        ('inputs = ["l", "r"]\n' + named("a", 'from = "l"'), "no operator reads input 'r'"),
        ('inputs = ["a"]\n' + named("a"), "inputs must have names that differ"),
        (f"inputs = {[f'i{number}' for number in range(9)]}\n" + named("a"), "at most 8 inputs (got 9)"),
    ],
)
def test_what_is_no_graph_is_refused(text: str, told: str) -> None:
    with pytest.raises(BadInput, match=re.escape(told)):
        read_chain(text)
