"""A query network: operators on nodes, fed by inputs, read by outputs.

A tuple that an operator or an input gives goes to every consumer that names it: naming one source twice is a split.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Protocol

from adapt.core.errors import BadInput, did_you_mean
from adapt.core.fit.network.names import OperatorKind


@dataclass(frozen=True, slots=True)
class ColumnEquals:
    """The rows of a trace whose column has a value."""

    column: str
    value: str | int


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The rows whose key lies from `first` to before `end`, in the order of the key's type; None is no end."""

    first: str | int | None
    end: str | int | None


@dataclass(frozen=True, slots=True)
class KeyBucket:
    """The rows whose key has a hash that leaves `bucket` when divided by `of`."""

    bucket: int
    of: int


Stream = ColumnEquals | KeyRange | KeyBucket
"""Which rows of a trace belong to an input."""


@dataclass(frozen=True, slots=True)
class Window:
    """Windows of an aggregate: each holds `size`, and a new one begins every `slide`.

    Attributes:
        size: Microseconds if `timed`, else tuples.
        slide: As `size`, and not above it.
        timed: Whether the window is one of time.
        group_by: Column whose values have windows of their own; None, one for all tuples.
    """

    size: int
    slide: int
    timed: bool
    group_by: str | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """A server.

    Attributes:
        name: Unique among nodes.
        capacity: CPU seconds a second, above 0 (zeta).
    """

    name: str
    capacity: float = 1.0


@dataclass(frozen=True, slots=True)
class Input:
    """A stream from outside.

    Attributes:
        name: Unique among inputs and operators.
        stream: Rows of the trace that belong to it; None where rates are given otherwise.
        scale: Tuples that each row stands for.
        rate: Tuples/s offered where no trace says so, r; None if not known.
        out_bytes: Size of a tuple, for links; None if not known.
        node: Where it enters; None, where its first consumer is.
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
        inputs: What it reads, by name: two for a join, one or more for a union, one for others.
        cost: CPU seconds an arriving tuple, c.
        selectivity: Tuples given for each that arrives, s; of a join, the share of pairs that match.
        join_windows: Tuples that a join keeps of its first and second input, w1 and w2.
        window: Of an aggregate, where it is known.
        out_bytes: Size of a given tuple, for links; None if not known.
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
        """Tuples given for each that arrives from its input number `port`.

        A join's window is counted in tuples, so that a tuple of one side meets as many of the other at any rate.

        Source: FIT, section 3.3, Eqs. 9 to 11.
        """
        if self.join_windows is None:
            return self.selectivity
        return self.selectivity * self.join_windows[1 - port]


@dataclass(frozen=True, slots=True)
class Output:
    """Where results leave.

    Attributes:
        name: Unique among outputs.
        source: The operator or input whose tuples they are.
        weight: What a tuple is worth, p.
    """

    name: str
    source: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Link:
    """A limit to what goes from one node to another, by all arcs together.

    Attributes:
        source: The node from which.
        target: The node to which.
        bytes_per_s: The most that goes, above 0.
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
    """All of it, valid from construction.

    Attributes:
        operators: In an order in which sources come before their consumers; any order may be given.

    Raises:
        BadInput: naming the element at fault: a name unknown or given twice, a cycle, an operator without a way to an
            output, an input that nothing reads, cost and selectivity both 0, a join without two count windows, a wrong
            number of inputs, a capacity or bandwidth not above 0, a negative rate, cost, weight or selectivity, bytes
            that a link needs and does not know.
    """

    nodes: tuple[Node, ...]
    inputs: tuple[Input, ...]
    operators: tuple[Operator, ...]
    outputs: tuple[Output, ...]
    links: tuple[Link, ...] = ()

    def __post_init__(self) -> None:
        _some("node", self.nodes)
        _some("input", self.inputs)
        _some("output", self.outputs)
        _unique("node", self.nodes)
        _unique("input or operator", self.sources)
        _unique("output", self.outputs)
        _unique("link", self.links)
        for node in self.nodes:
            _above_0(f"node {node.name!r}", "capacity", node.capacity)
        for entering in self.inputs:
            self._check_input(entering)
        for operator in self.operators:
            self._check_operator(operator)
        for output in self.outputs:
            self._known_source(f"output {output.name!r} reads", output.source)
            _from_0(f"output {output.name!r}", "weight", output.weight)
        object.__setattr__(self, "operators", _sources_first(self.operators))
        self._check_ways()
        self._check_links()

    @property
    def sources(self) -> tuple[Input | Operator, ...]:
        """All that gives tuples: inputs, then operators, each after what it reads."""
        return (*self.inputs, *self.operators)

    def node_of(self, source: Input | Operator) -> str:
        """Where its tuples come from."""
        if isinstance(source, Operator):
            return source.node
        first = next((operator.node for operator in self.operators if source.name in operator.inputs), None)
        return source.node or first or self.nodes[0].name

    def _check_input(self, entering: Input) -> None:
        where = f"input {entering.name!r}"
        _above_0(where, "scale", entering.scale)
        if entering.rate is not None:
            _from_0(where, "rate", entering.rate)
        if entering.out_bytes is not None:
            _from_0(where, "out_bytes", entering.out_bytes)
        if entering.node is not None:
            self._known_node(where, entering.node)
        match entering.stream:
            case KeyBucket(bucket, of) if not 0 <= bucket < of:
                raise BadInput(f"{where}: bucket must be from 0 to {of - 1} (got {bucket})")
            case KeyRange(first, end) if first is not None and end is not None and type(first) is not type(end):
                raise BadInput(
                    f"{where}: keys from {first!r} to {end!r} are of two types; give two strings or two integers"
                )
            case _:
                pass

    def _check_operator(self, operator: Operator) -> None:
        where = f"operator {operator.name!r}"
        self._known_node(where, operator.node)
        for source in operator.inputs:
            self._known_source(f"{where} reads", source)
        _from_0(where, "cost", operator.cost)
        _from_0(where, "selectivity", operator.selectivity)
        if operator.out_bytes is not None:
            _from_0(where, "out_bytes", operator.out_bytes)
        if operator.cost == 0 and operator.selectivity == 0:
            raise BadInput(f"{where} has cost 0 and selectivity 0, so it does nothing; set one of them or remove it")
        if operator.kind is OperatorKind.FILTER and operator.selectivity > 1:
            raise BadInput(
                f"{where}: selectivity of a filter must be at most 1 (got {operator.selectivity:g}); use a map"
            )
        needed = {OperatorKind.JOIN: "2", OperatorKind.UNION: "1 or more"}.get(operator.kind, "1")
        number = len(operator.inputs)
        if number < 1 or (needed in "12" and str(number) != needed):
            raise BadInput(f"{where} is a {operator.kind} and must read {needed} inputs (got {number})")
        _check_windows(where, operator)

    def _known_source(self, which: str, name: str) -> None:
        known = [source.name for source in self.sources]
        if name not in known:
            raise BadInput(f"{which} {name!r}, which is neither an input nor an operator{did_you_mean(name, known)}")

    def _known_node(self, where: str, name: str) -> None:
        known = [node.name for node in self.nodes]
        if name not in known:
            raise BadInput(f"{where} is on node {name!r}, which does not exist{did_you_mean(name, known)}")

    def _check_ways(self) -> None:
        """Every source has a way to an output."""
        reaching = {output.source for output in self.outputs}
        for operator in reversed(self.operators):
            if operator.name in reaching:
                reaching |= set(operator.inputs)
        for operator in self.operators:
            if operator.name not in reaching:
                raise BadInput(f"operator {operator.name!r} does not reach an output; add an [[output]] or remove it")
        for entering in self.inputs:
            if entering.name not in reaching:
                raise BadInput(
                    f"input {entering.name!r} does not reach an output; let an operator read it or remove it"
                )

    def _check_links(self) -> None:
        by_name = {source.name: source for source in self.sources}
        for link in self.links:
            where = f"link {link.name!r}"
            self._known_node(where, link.source)
            self._known_node(where, link.target)
            _above_0(where, "bytes_per_s", link.bytes_per_s)
            if link.source == link.target:
                raise BadInput(f"{where} connects a node to itself, which needs no link; remove it")
            for operator in self.operators:
                for source in [by_name[name] for name in operator.inputs]:
                    crosses = (self.node_of(source), operator.node) == (link.source, link.target)
                    if crosses and source.out_bytes is None:
                        raise BadInput(f"{where} limits bytes, so {source.name!r}, which crosses it, needs out_bytes")


class _Named(Protocol):
    @property
    def name(self) -> str: ...


def _some(what: str, elements: Sequence[object]) -> None:
    if not elements:
        raise BadInput(f"the network has no {what}; add a [[{what}]]")


def _unique(what: str, elements: Iterable[_Named]) -> None:
    names = [element.name for element in elements]
    name, times = next(iter(Counter(names).most_common(1)), ("", 0))
    if times > 1:
        raise BadInput(f"{what} {name!r} is defined {times} times; names must be unique")


def _from_0(where: str, what: str, value: float) -> None:
    if not (0 <= value < math.inf):
        raise BadInput(f"{where}: {what} must be a finite number, at least 0 (got {value:g})")


def _above_0(where: str, what: str, value: float) -> None:
    if not (0 < value < math.inf):
        raise BadInput(f"{where}: {what} must be a finite number above 0 (got {value:g})")


def _check_windows(where: str, operator: Operator) -> None:
    joins = operator.kind is OperatorKind.JOIN
    if joins and operator.join_windows is None:
        raise BadInput(f"{where} is a join and needs two count windows: window = [TUPLES, TUPLES]")
    if joins != (operator.join_windows is not None):
        raise BadInput(f"{where} is a {operator.kind}, but only a join takes window = [TUPLES, TUPLES]; remove window")
    if operator.join_windows is not None:
        for side in operator.join_windows:
            _above_0(where, "window", side)
    if operator.window is None:
        return
    if operator.kind is not OperatorKind.AGGREGATE:
        raise BadInput(f"{where} is a {operator.kind}, but only an aggregate takes a size and a slide; remove window")
    if not 0 < operator.window.slide <= operator.window.size:
        raise BadInput(f"{where}: the slide of a window must be above 0 and at most its size")


def _sources_first(operators: tuple[Operator, ...]) -> tuple[Operator, ...]:
    """Operators after what they read, otherwise in the given order."""
    by_name = {operator.name: operator for operator in operators}
    graph = {operator.name: [name for name in operator.inputs if name in by_name] for operator in operators}
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        raise BadInput(f"operators must not form a cycle (got {' -> '.join(error.args[1])})") from None
    return tuple(by_name[name] for name in order)
