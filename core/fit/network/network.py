"""A query network: operators on nodes, from inputs to outputs.

Every consumer that names a source gets all its tuples: naming one source twice is a split.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from adapt.core.errors import BadInput, did_you_mean
from adapt.core.fit.network.names import OperatorKind


@dataclass(frozen=True, slots=True)
class ColumnEquals:
    """The rows of a trace with a value in a column."""

    column: str
    value: str | int


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The rows with keys from `first` up to, but excluding, `end`.

    Keys are in the order of their type; None is open-ended.
    """

    first: str | int | None
    end: str | int | None


@dataclass(frozen=True, slots=True)
class KeyBucket:
    """The rows whose key hash modulo `of` is `bucket`."""

    bucket: int
    of: int


Stream = ColumnEquals | KeyRange | KeyBucket
"""Selects the rows of a trace that belong to an input."""


@dataclass(frozen=True, slots=True)
class Window:
    """Windows of an aggregate: each holds `size`, and one starts every `slide`."""

    size: int  # microseconds if `timed`, else tuples
    slide: int  # in the unit of `size`, at most `size`
    timed: bool  # whether windows are time windows


@dataclass(frozen=True, slots=True)
class Node:
    """A server.

    Attributes:
        name: Unique among nodes.
        capacity: CPU seconds per second, above 0 (zeta).
    """

    name: str
    capacity: float = 1.0


@dataclass(frozen=True, slots=True)
class Input:
    """A stream from outside.

    Attributes:
        name: Unique among inputs and operators.
        stream: Rows of the trace that belong to it; None where rates are given otherwise.
        scale: Tuples per row.
        rate: Tuples/s offered where no trace is given, r; None if unknown.
        out_bytes: Size of a tuple, for links; None if unknown.
        node: Node that it enters; None: that of its first consumer.
    """

    name: str
    stream: Stream | None = None
    scale: float = 1.0
    rate: float | None = None
    out_bytes: float | None = None
    node: str | None = None


@dataclass(frozen=True, slots=True)
class Operator:
    """A step of a query.

    Attributes:
        name: Unique among inputs and operators.
        node: The node that runs it.
        kind: What it does; joins and aggregates have windows.
        inputs: Names of its sources: two for a join, one or more for a union, one otherwise.
        cost: CPU seconds per arriving tuple, c.
        selectivity: Tuples out / tuples in, s; of a join, the share of pairs that match.
        join_windows: Tuples that a join keeps of its first and second input, w1 and w2.
        window: Of an aggregate, where it is known.
        out_bytes: Size of an emitted tuple, for links; None if unknown.
    """

    name: str
    node: str
    kind: OperatorKind
    inputs: tuple[str, ...]
    cost: float
    selectivity: float = 1.0
    join_windows: tuple[float, float] | None = None
    window: Window | None = None
    out_bytes: float | None = None

    def gain(self, port: int) -> float:
        """Tuples emitted per tuple that arrives on input number `port`.

        A join's window counts tuples, so a tuple of one side meets the same number of the other at any rate.

        Source: FIT, section 3.3, Eqs. 9 to 11.
        """
        if self.join_windows is None:
            return self.selectivity
        return self.selectivity * self.join_windows[1 - port]


@dataclass(frozen=True, slots=True)
class Output:
    """Where results leave the network.

    Attributes:
        name: Unique among outputs.
        source: The operator or input whose tuples it emits.
        weight: Value of a tuple, p.
    """

    name: str
    source: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Link:
    """A bandwidth limit between two nodes, for all arcs together.

    Attributes:
        source: The sending node.
        target: The receiving node.
        bytes_per_s: Bandwidth, above 0.
    """

    source: str
    target: str
    bytes_per_s: float

    @property
    def name(self) -> str:
        """For messages."""
        return f"{self.source} to {self.target}"


@dataclass(frozen=True, slots=True)
class Network:
    """A query network, valid from construction."""

    nodes: tuple[Node, ...]
    inputs: tuple[Input, ...]
    operators: tuple[Operator, ...]  # sources before their consumers; may be given in any order
    outputs: tuple[Output, ...]
    links: tuple[Link, ...] = ()

    def __post_init__(self) -> None:
        names, faults = list(self._names()), list(self._numbers())
        unknown = [] if names else list(self._references())
        faults = [*names, *unknown, *faults]
        if not names and not unknown:  # otherwise the structure is not known
            try:
                object.__setattr__(self, "operators", _sources_first(self.operators))
                faults += [*self._ways(), *self._sizes()]
            except BadInput as error:
                faults.append(str(error))
        if faults:
            raise BadInput("\n".join(faults))

    @property
    def sources(self) -> tuple[Input | Operator, ...]:
        """Inputs, then operators, each after what it reads."""
        return (*self.inputs, *self.operators)

    def node_of(self, source: Input | Operator) -> str:
        """The node that a source's tuples come from."""
        if isinstance(source, Operator):
            return source.node
        first = next((operator.node for operator in self.operators if source.name in operator.inputs), None)
        return source.node or first or self.nodes[0].name

    def _names(self) -> Iterator[str]:
        """Faults of names: missing elements, and names used twice."""
        for kind in ("node", "input", "output"):
            if not getattr(self, f"{kind}s"):
                yield f"the network has no {kind}; add a [[{kind}]]"
        groups = {"node": self.nodes, "input or operator": self.sources, "output": self.outputs, "link": self.links}
        for what, elements in groups.items():
            for name, times in Counter(element.name for element in elements).items():
                if times > 1:
                    yield f"{what} {name!r} is defined {times} times; names must be unique"

    def _numbers(self) -> Iterator[str]:
        """Faults within single elements."""
        for node in self.nodes:
            yield from _above_0(f"node {node.name!r}", "capacity", node.capacity)
        for entering in self.inputs:
            yield from _faults_of_input(entering)
        for operator in self.operators:
            yield from _faults_of_operator(operator)
        for output in self.outputs:
            yield from _from_0(f"output {output.name!r}", "weight", output.weight)
        for link in self.links:
            yield from _above_0(f"link {link.name!r}", "bytes_per_s", link.bytes_per_s)
            if link.source == link.target:
                yield f"link {link.name!r} connects a node to itself, which needs no link; remove it"

    def _references(self) -> Iterator[str]:
        """Names that do not exist."""
        nodes, sources = [node.name for node in self.nodes], [source.name for source in self.sources]
        on = [(f"input {entering.name!r}", entering.node) for entering in self.inputs if entering.node is not None]
        on += [(f"operator {operator.name!r}", operator.node) for operator in self.operators]
        on += [(f"link {link.name!r}", name) for link in self.links for name in (link.source, link.target)]
        for where, name in on:
            if name not in nodes:
                yield f"{where} is on node {name!r}, which does not exist{did_you_mean(name, nodes)}"
        reads = [(f"operator {operator.name!r}", name) for operator in self.operators for name in operator.inputs]
        reads += [(f"output {output.name!r}", output.source) for output in self.outputs]
        for where, name in reads:
            if name not in sources:
                hint = did_you_mean(name, sources)
                yield f"{where} reads {name!r}, which is neither an input nor an operator{hint}"

    def _ways(self) -> Iterator[str]:
        """Inputs and operators that nothing reads."""
        read = {output.source for output in self.outputs}.union(*(operator.inputs for operator in self.operators))
        for operator in self.operators:
            if operator.name not in read:
                yield f"operator {operator.name!r} does not reach an output; add an [[output]] or remove it"
        for entering in self.inputs:
            if entering.name not in read:
                yield f"input {entering.name!r} does not reach an output; let an operator read it or remove it"

    def _sizes(self) -> Iterator[str]:
        """Missing tuple sizes on links."""
        by_name = {source.name: source for source in self.sources}
        for link in self.links:
            for operator in self.operators:
                for source in [by_name[name] for name in operator.inputs]:
                    crosses = (self.node_of(source), operator.node) == (link.source, link.target)
                    if crosses and source.out_bytes is None:
                        yield f"link {link.name!r} limits bytes, so {source.name!r}, which crosses it, needs out_bytes"


def _faults_of_input(entering: Input) -> Iterator[str]:
    where = f"input {entering.name!r}"
    yield from _above_0(where, "scale", entering.scale)
    if entering.rate is not None:
        yield from _from_0(where, "rate", entering.rate)
    if entering.out_bytes is not None:
        yield from _from_0(where, "out_bytes", entering.out_bytes)
    match entering.stream:
        case KeyBucket(bucket, of) if not 0 <= bucket < of:
            yield f"{where}: bucket must be from 0 to {of - 1} (got {bucket})"
        case KeyRange(first, end) if first is not None and end is not None and type(first) is not type(end):
            yield f"{where}: keys from {first!r} to {end!r} are of two types; give two strings or two integers"
        case _:
            pass


def _faults_of_operator(operator: Operator) -> Iterator[str]:
    where = f"operator {operator.name!r}"
    yield from _from_0(where, "cost", operator.cost)
    yield from _from_0(where, "selectivity", operator.selectivity)
    if operator.out_bytes is not None:
        yield from _from_0(where, "out_bytes", operator.out_bytes)
    if operator.cost == 0 and operator.selectivity == 0:
        yield f"{where} has cost 0 and selectivity 0, so it does nothing; set one of them or remove it"
    if operator.kind is OperatorKind.FILTER and operator.selectivity > 1:
        yield f"{where}: selectivity of a filter must be at most 1 (got {operator.selectivity:g}); use a map"
    needed = {OperatorKind.JOIN: "2", OperatorKind.UNION: "1 or more"}.get(operator.kind, "1")
    number = len(operator.inputs)
    if number < 1 or (needed in "12" and str(number) != needed):
        yield f"{where} is a {operator.kind} and must read {needed} inputs (got {number})"
    yield from _faults_of_windows(where, operator)


def _faults_of_windows(where: str, operator: Operator) -> Iterator[str]:
    joins = operator.kind is OperatorKind.JOIN
    if joins and operator.join_windows is None:
        yield f"{where} is a join and needs two count windows: window = [TUPLES, TUPLES]"
    elif joins != (operator.join_windows is not None):
        yield f"{where} is a {operator.kind}, but only a join takes window = [TUPLES, TUPLES]; remove window"
    for side in operator.join_windows or ():
        yield from _above_0(where, "window", side)
    if operator.window is None or joins:
        return
    if operator.kind is not OperatorKind.AGGREGATE:
        yield f"{where} is a {operator.kind}, but only an aggregate takes a size and a slide; remove window"
    if not 0 < operator.window.slide <= operator.window.size:
        yield f"{where}: the slide of a window must be above 0 and at most its size"


def _from_0(where: str, what: str, value: float) -> Iterator[str]:
    if not (0 <= value < math.inf):
        yield f"{where}: {what} must be a finite number, at least 0 (got {value:g})"


def _above_0(where: str, what: str, value: float) -> Iterator[str]:
    if not (0 < value < math.inf):
        yield f"{where}: {what} must be a finite number above 0 (got {value:g})"


def _sources_first(operators: tuple[Operator, ...]) -> tuple[Operator, ...]:
    """Operators sorted so that sources come first, otherwise in the given order."""
    by_name = {operator.name: operator for operator in operators}
    graph = {operator.name: [name for name in operator.inputs if name in by_name] for operator in operators}
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        raise BadInput(f"operators must not form a cycle (got {' -> '.join(error.args[1])})") from None
    return tuple(by_name[name] for name in order)
