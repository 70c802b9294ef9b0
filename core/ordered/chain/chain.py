"""Chains of operators, as users describe them, and their TOML files.

Operators follow each other, or form a graph: each reads inputs and earlier operators.

An optional [punctuations] table says where windows end. `inputs` and `outputs` name those of a graph, `input_column`
the column of a trace that names the input of each row.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, TypeAlias

from adapt.core.errors import BadInput, UsageError
from adapt.core.ordered.chain.graph import Graph, graph_of
from adapt.core.ordered.chain.names import FunctionName, OperatorKind, PartitionBy, PartitionCount
from adapt.core.ordered.chain.own import Gives, OwnFunction
from adapt.core.toml import Element, called, document_of, elements, number_of, only, text_of
from adapt.core.units.amounts import bytes_of
from adapt.core.units.durations import duration_us

VALUE = "value"
"""The field that operators change; at the ingress, the row number."""

COUNTED = "counted"
"""The field that the `top` functions count by."""

TIME = "ts"


class Passes(StrEnum):
    """Treatment of the fields that a function does not make."""

    ALL = "all"
    """The outputs have all fields of the inputs."""
    NEEDED = "needed"
    """The outputs keep the fields that a later operator reads."""
    NONE = "none"
    """The outputs have only the fields that the function makes."""


@dataclass(frozen=True, slots=True)
class Role:
    """Interface of a function to the rest of a chain."""

    kinds: frozenset[OperatorKind]  # kinds of operators that can run it
    # fields read, in addition to the key; those that no earlier operator makes are columns of the trace
    reads: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()  # fields made
    passes: Passes = Passes.NONE  # treatment of the other fields
    at_punctuations: bool = False  # whether some outputs come at punctuations only
    made_key: bool = False  # whether its key is `COUNTED`, made in the chain


_STATELESS = frozenset({OperatorKind.STATELESS})
_PARTITIONED = frozenset({OperatorKind.PARTITIONED})
_STATEFUL = frozenset({OperatorKind.STATEFUL})

CHUNK = 8
"""Fields of a chunk of items."""

CHUNKED = tuple(f"items {number}" for number in range(CHUNK))
"""Two items per word, each plus 1, 0 for no item: the words of the first chunk, then those of the second."""

_TOP = Role(_PARTITIONED | _STATEFUL, (COUNTED, VALUE), ("window", COUNTED, VALUE), at_punctuations=True, made_key=True)

_OF_VALUES = Role(frozenset(OperatorKind), (VALUE,), (VALUE,), Passes.ALL)

ROLES: Mapping[FunctionName, Role] = {
    FunctionName.WORK: _OF_VALUES,
    FunctionName.COUNT: Role(_PARTITIONED, (VALUE,), (VALUE,), Passes.ALL),
    FunctionName.PROJECT: Role(_STATELESS, passes=Passes.NEEDED),
    FunctionName.NOT_SEARCHES: Role(_STATELESS, ("page",), passes=Passes.NEEDED),
    FunctionName.VIEWS_AND_CHECKOUTS: Role(_STATELESS, ("page",), passes=Passes.NEEDED),
    FunctionName.ABANDONED_CARTS: Role(_STATELESS, ("kinds",), passes=Passes.NEEDED),
    FunctionName.HOUR: Role(_STATELESS, (TIME,), ("hour",), Passes.NEEDED),
    FunctionName.DAY_REVENUE: Role(_STATELESS, (TIME, "cents", "qty"), ("day", "revenue"), Passes.NEEDED),
    FunctionName.BASKET_PAIRS: Role(_PARTITIONED, ("item", "hour"), (COUNTED, VALUE)),
    FunctionName.SESSION_ITEMS: Role(_PARTITIONED, (TIME, "item"), (*CHUNKED, "within"), at_punctuations=True),
    FunctionName.ITEM_PAIRS: Role(_STATELESS, (*CHUNKED, "within"), (COUNTED, VALUE)),
    FunctionName.SESSION_PAGES: Role(_PARTITIONED, (TIME, "page"), ("pages", "kinds"), at_punctuations=True),
    FunctionName.MEAN_PAGES: Role(_STATEFUL, ("pages",), ("pages", "sessions"), at_punctuations=True),
    FunctionName.RECENT_VIEWS: Role(_PARTITIONED, (TIME, "item", "page"), (COUNTED, VALUE)),
    FunctionName.WINDOW_TOP_100: _TOP,
    FunctionName.FINAL_TOP_30: _TOP,
    FunctionName.FALLING_REVENUE: Role(
        _PARTITIONED, ("category", "day", "revenue"), ("category", "rise", "spread"), at_punctuations=True
    ),
}


def role_of(function: FunctionName | OwnFunction) -> Role:
    """Role of a built-in or an own function."""
    if isinstance(function, FunctionName):
        return ROLES[function]
    return Role(
        _PARTITIONED | _STATEFUL if function.keeps_state else _STATELESS,
        tuple(name for name, _ in function.parameters),
        tuple(name for name, _ in function.outputs),
        Passes.ALL if function.gives is Gives.FILTER else Passes.NONE,
        at_punctuations=function.close is not None,
    )


MOST_OPERATORS = 32
MOST_PARTITIONS = 1 << 20
MOST_OUTPUTS = 1 << 16
"""Outputs of one tuple."""
LONGEST_COST_US = 1e9
WORD = 8
"""Bytes of a word: sizes of tuples and states are multiples of it."""
MOST_TUPLE_BYTES, MOST_STATE_BYTES = 16 << 10, 1 << 30


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator of a chain.

    Attributes:
        name: Unique in the chain.
        kind: Stateless, partitioned or stateful.
        key: Column with the key of the state; of a partitioned operator only.
        partitions: Number of partitions, 1 to 2^20; `WORKERS` for as many as workers; None if a plan gives it.
        by: How keys are partitioned.
        cost: Microseconds of work per tuple, or a column with them; for `work`, and for own functions in a model.
        selectivity: Mean outputs per tuple; for `work` only.
        function: Function that it runs.
        sources: Inputs and earlier operators that it reads; None for the operator before it.
        tuple_bytes: Payload that it reads of each tuple, and that tuples therefore carry; for `work` only.
        state_bytes: State of each key, all of which it reads and writes for each tuple; for `work` only. 0 for a word.

    Source: ordered streams, sections 2.1 and 7.1 (parametric operators).
    """

    name: str
    kind: OperatorKind
    key: str | None = None
    partitions: int | PartitionCount | None = None
    by: PartitionBy = PartitionBy.HASH
    cost: float | str = 0.0
    selectivity: float = 1.0
    function: FunctionName | OwnFunction = FunctionName.WORK
    sources: tuple[str, ...] | None = None
    tuple_bytes: int = 0
    state_bytes: int = 0

    def __post_init__(self) -> None:
        if not self.name:
            raise BadInput("an operator has an empty name; give each operator a name")
        _check_key(self)
        _check_function(self)
        _check_sizes(self)


@dataclass(frozen=True, slots=True)
class Punctuations:
    """Punctuations: how far event time has advanced, for operators with windows.

    One follows the last row of each interval that has rows, with the time at which the interval ends, and one ends the
    stream. They never come from a clock, which would make the order of a run undefined.

    Attributes:
        column: Column of times in ascending order.
        every_us: Length of the intervals, aligned to 1970; None for only one punctuation at the end.
    """

    column: str = TIME
    every_us: int | None = None

    def __post_init__(self) -> None:
        if not self.column:
            raise BadInput('[punctuations]: column must not be empty (default: "ts")')
        if self.every_us is not None and not 0 < self.every_us < 1 << 62:
            raise BadInput(f"[punctuations]: every must be at least 1us (got {self.every_us}us)")


@dataclass(frozen=True, slots=True)
class Chain:
    """Chain of operators in the order of processing.

    Attributes:
        operators: 1 to 32 operators.
        punctuations: Where windows end; None for no windows.
        inputs: Names of the inputs; empty for a single one.
        outputs: Operators whose output leaves the chain; empty for the only one that no other reads.
        input_column: Column of one trace that names the input of each row; None for a trace per input.
    """

    operators: tuple[Operator, ...]
    punctuations: Punctuations | None = None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    input_column: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= len(self.operators) <= MOST_OPERATORS:
            raise BadInput(f"a chain must have from 1 to {MOST_OPERATORS} operators (got {len(self.operators)})")
        seen: set[str] = set()
        for operator in self.operators:
            if operator.name in seen:
                raise BadInput(f"two operators are named {operator.name!r}; names must be unique")
            seen.add(operator.name)
        made = made_keys(self.operators, self.graph)
        if self.input_column is not None and len(self.inputs) < 2:
            raise BadInput(
                f'input_column {self.input_column!r} needs several inputs; add inputs = ["a", "b"] with the values of '
                "the column"
            )
        for operator in self.operators:
            if role_of(operator.function).at_punctuations and self.punctuations is None:
                raise BadInput(
                    f"operator {operator.name!r} runs {operator.function}, which needs punctuations; add "
                    "[punctuations] to the chain"
                )
            if operator.name in made and operator.by is not PartitionBy.HASH:
                raise BadInput(
                    f"operator {operator.name!r}: key {operator.key!r} is made in the chain, which only "
                    f'by = "{PartitionBy.HASH}" can partition; remove by'
                )

    @property
    def graph(self) -> Graph:
        """Which streams each operator reads."""
        names, reads = [each.name for each in self.operators], [each.sources for each in self.operators]
        return graph_of(names, reads, self.inputs, self.outputs)


def made_before(operators: Sequence[Operator], graph: Graph, *, own_only: bool = False) -> list[set[str]]:
    """Fields that are made before each operator, on any way.

    With `own_only`, those of own functions.
    """
    made: list[set[str]] = [set() for _ in graph.inputs]
    before = []
    for operator, sources in zip(operators, graph.sources, strict=True):
        before.append(set[str]().union(*(made[stream] for stream in sources)))
        counts = not own_only or isinstance(operator.function, OwnFunction)
        made.append(before[-1].union(role_of(operator.function).makes if counts else ()))
    return before


def made_keys(operators: Sequence[Operator], graph: Graph) -> frozenset[str]:
    """Names of the operators whose key is made in the chain.

    By their own function, or by an earlier one of the user's.
    """
    found = set[str]()
    for operator, made in zip(operators, made_before(operators, graph, own_only=True), strict=True):
        is_made = isinstance(operator.function, OwnFunction) and operator.key in made
        if operator.key is not None and (role_of(operator.function).made_key or is_made):
            found.add(operator.name)
    return frozenset(found)


def _check_key(operator: Operator) -> None:
    where = f"operator {operator.name!r}"
    if operator.kind is not OperatorKind.PARTITIONED:
        if operator.key is not None or operator.partitions is not None or operator.by is not PartitionBy.HASH:
            raise BadInput(
                f"{where} is {operator.kind}, but key, partitions and by need a partitioned operator; remove them "
                'or set kind = "partitioned"'
            )
        return
    if not operator.key:
        raise BadInput(f'{where} is partitioned but has no key; add key = "COLUMN"')
    if operator.by is PartitionBy.PLAN:
        if operator.partitions is not None:
            raise BadInput(f"{where} is partitioned by a plan, whose channels are its partitions; remove partitions")
    elif operator.partitions is None:
        raise BadInput(f"{where} is partitioned but has no number of partitions; add partitions = ...")
    elif operator.partitions is PartitionCount.WORKERS:
        if role_of(operator.function).at_punctuations:
            raise BadInput(
                f"{where} runs {operator.function}, whose output at punctuations depends on the number of partitions; "
                f'set partitions to a number instead of "{PartitionCount.WORKERS}"'
            )
    elif not 1 <= operator.partitions <= MOST_PARTITIONS:
        raise BadInput(f"{where}: partitions must be from 1 to {MOST_PARTITIONS} (got {operator.partitions})")


def _check_sizes(operator: Operator) -> None:
    sizes = (
        ("tuple_bytes", operator.tuple_bytes, MOST_TUPLE_BYTES),
        ("state_bytes", operator.state_bytes, MOST_STATE_BYTES),
    )
    where = f"operator {operator.name!r}"
    for name, size, most in sizes:
        if not 0 <= size <= most or size % WORD:
            raise BadInput(f"{where}: {name} must be a multiple of {WORD} from 0 to {most:,} (got {size})")
        if size and operator.function is not FunctionName.WORK:
            raise BadInput(
                f"{where} runs {operator.function}, which takes no {name}; remove it, or set "
                f'function = "{FunctionName.WORK}"'
            )
    if operator.state_bytes and operator.kind is OperatorKind.STATELESS:
        raise BadInput(f"{where} is stateless, but state_bytes needs a state; remove it or set another kind")


def _check_function(operator: Operator) -> None:
    where = f"operator {operator.name!r}"
    if isinstance(operator.cost, str):
        if not operator.cost:
            raise BadInput(f'{where}: cost must be microseconds or the name of a column (got "")')
    elif not (math.isfinite(operator.cost) and 0 <= operator.cost <= LONGEST_COST_US):
        raise BadInput(f"{where}: cost must be from 0 to {LONGEST_COST_US:g} microseconds (got {operator.cost:g})")
    if not 0 <= operator.selectivity < MOST_OUTPUTS:
        raise BadInput(f"{where}: selectivity must be from 0 to below {MOST_OUTPUTS} (got {operator.selectivity:g})")
    role, is_own = role_of(operator.function), isinstance(operator.function, OwnFunction)
    if operator.kind not in role.kinds:
        kinds = " or ".join(sorted(role.kinds))
        raise BadInput(f"{where} is {operator.kind}, but function {operator.function} needs a {kinds} operator")
    if is_own and operator.selectivity != 1.0:
        raise BadInput(f"{where} runs {operator.function}, which decides its outputs itself; remove selectivity")
    if (
        operator.function is not FunctionName.WORK
        and not is_own
        and (operator.cost != 0.0 or operator.selectivity != 1.0)
    ):
        raise BadInput(
            f"{where} runs {operator.function}, which takes no cost and no selectivity; remove both, "
            f'or set function = "{FunctionName.WORK}"'
        )
    if role.made_key and operator.key is not None and (operator.key != COUNTED or operator.by is not PartitionBy.HASH):
        raise BadInput(
            f"{where} runs {operator.function}, which counts by a field made in the chain; set "
            f'key = "{COUNTED}" and remove by'
        )


FIELDS = {
    "operator": (
        *("name", "kind", "key", "partitions", "by", "cost", "selectivity", "function", "from"),
        *("tuple_bytes", "state_bytes"),
    ),
    "punctuations": ("column", "every"),
}
"""Fields of each kind of element."""


NAMES, COLUMN = ("inputs", "outputs"), "input_column"
"""Fields of the chain itself."""

Load: TypeAlias = Callable[[str], OwnFunction]
"""Loads an own function by `module:function`."""


def read_chain(text: str, load: Load | None = None) -> Chain:
    """Parse a chain from TOML text.

    Args:
        load: Loads own functions; None refuses them.
    """
    document = document_of(text, "the chain is")
    only("the chain", document, (*FIELDS, *NAMES, COLUMN))
    tables, lines = elements(document, "operator"), operator_lines(text)
    operators = []
    for at, fields in enumerate(tables):
        try:
            operators.append(_operator(fields, load))
        except BadInput as error:
            raise BadInput(f"line {lines[at]}: {error}" if len(lines) == len(tables) else str(error)) from error
    inputs, outputs = (_names("the chain", name, document.get(name, [])) for name in NAMES)
    column = text_of("the chain", COLUMN, document[COLUMN]) if COLUMN in document else None
    return Chain(tuple(operators), _punctuations(document), inputs, outputs, column)


def _names(where: str, field: str, value: Any) -> tuple[str, ...]:
    """A list of names; a single one may be a text."""
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BadInput(f'{where}: {field} must be a list of names, such as ["a", "b"] (got {value!r})')
    return tuple(names)


def _punctuations(document: Mapping[str, Any]) -> Punctuations | None:
    fields = document.get("punctuations")
    if fields is None:
        return None
    if not isinstance(fields, dict):
        raise BadInput("punctuations must be a table; write it as [punctuations] with its fields below")
    element = Element("[punctuations]", fields, FIELDS["punctuations"])
    every_us, column = _time_us(element, "every"), element.text_or_none("column")
    return Punctuations(TIME if column is None else column, every_us)


def _time_us(element: Element, name: str) -> int | None:
    """An optional time in microseconds."""
    text = element.text_or_none(name)
    try:
        return None if text is None else duration_us(text)
    except UsageError as error:
        raise BadInput(f"{element.where}: {name}: {error}") from None


def operator_lines(text: str) -> list[int]:
    """Line numbers at which [[operator]] tables begin, from 1."""
    is_header = partial(re.match, r"\s*\[\[\s*[\"']?operator[\"']?\s*\]\]")
    return [number for number, line in enumerate(text.splitlines(), 1) if is_header(line)]


def _operator(fields: Mapping[str, Any], load: Load | None) -> Operator:
    element = Element(called("operator", fields), fields, FIELDS["operator"])
    return Operator(
        name=element.text("name"),
        kind=element.choice("kind", OperatorKind),
        key=element.text_or_none("key"),
        partitions=_partition_count(element),
        by=element.choice("by", PartitionBy, PartitionBy.HASH),
        cost=_cost(element),
        selectivity=element.number("selectivity", 1.0),
        function=_function(element, load),
        sources=None if element.get("from") is None else _names(element.where, "from", element.get("from")),
        tuple_bytes=_bytes(element, "tuple_bytes"),
        state_bytes=_bytes(element, "state_bytes"),
    )


def _bytes(element: Element, name: str) -> int:
    """A size: an integer in bytes, or a text such as "64KiB"."""
    size = element.get(name)
    if not isinstance(size, str):
        return element.whole(name, 0)
    try:
        return int(bytes_of(size))
    except UsageError as error:
        raise BadInput(f"{element.where}: {name} {error}") from None


def _partition_count(element: Element) -> int | PartitionCount | None:
    count = element.get("partitions")
    if count is None:
        return None
    if not isinstance(count, str):
        return element.whole("partitions", 1)
    if count != PartitionCount.WORKERS:
        raise BadInput(
            f'{element.where}: partitions must be an integer or "{PartitionCount.WORKERS}", for as many as workers '
            f"(got {count!r})"
        )
    return PartitionCount.WORKERS


def _function(element: Element, load: Load | None) -> FunctionName | OwnFunction:
    named = element.text_or_none("function") or ""
    if ":" not in named:
        return element.choice("function", FunctionName, FunctionName.WORK)
    if load is None:
        raise BadInput(f"{element.where}: own function {named!r} cannot be used here")
    try:
        return load(named)
    except BadInput as error:
        raise BadInput(f"{element.where}: {error}") from error


def _cost(element: Element) -> float | str:
    cost = element.get("cost")
    if cost is None or isinstance(cost, str):
        return 0.0 if cost is None else cost
    try:
        return number_of(element.where, "cost", cost)
    except BadInput:
        raise BadInput(f"{element.where}: cost must be microseconds or the name of a column (got {cost!r})") from None
