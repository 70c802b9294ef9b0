"""The operator of a Spark SQL plan that a stage runs."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

_JOIN = re.compile(r"^(?:SortMergeJoin|ShuffledHashJoin)(?:\(.*?\))? \[(.*?)\], \[(.*?)\], (\w+)")
_AGGREGATE = re.compile(r"^\w+Aggregate\(keys?=\[(.*?)\], functions=\[(.*)\]")
_WINDOW = re.compile(r"^Window \[.*\], \[(.+?)\](?:, \[.*\])?$")
_GROUPS = re.compile(r"^(?:FlatMap|Aggregate|ArrowAggregate|MapGroups|TransformWithState)\w* \[(.+?)\]")
_PARTITIONED = re.compile(r"hashpartitioning\((.*), (\d+)\)")
_NUMBER = re.compile(r"#\d+L?")
_EXCHANGES = ("Exchange", "ReusedExchange")
_OUTPUT, _ROWS, _BYTES = "number of output rows", "records read", ("local bytes read", "remote bytes read")
METRICS = (_OUTPUT, _ROWS, *_BYTES)
"""Metrics of a plan that are needed by task."""


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A node of a plan."""

    name: str
    text: str
    metrics: Mapping[str, int]  # accumulator of each metric
    children: tuple["Node", ...]

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> "Node":
        """From Spark's `SparkPlanInfo`."""
        return cls(
            str(info["nodeName"]),
            str(info["simpleString"]),
            {str(each["name"]): int(each["accumulatorId"]) for each in info.get("metrics", ())},
            tuple(cls.of(each) for each in info.get("children", ())),
        )

    def paths(self, above: tuple["Node", ...] = ()) -> Iterator[tuple["Node", ...]]:
        """Each node below with those above it, itself first."""
        here = (self, *above)
        yield here
        for child in self.children:
            yield from child.paths(here)


@dataclass(frozen=True, slots=True)
class Side:
    """What a stage reads from one shuffle."""

    at: int  # 0 for the left or only side, 1 for the right
    rows: tuple[int, ...]  # accumulators
    read_bytes: tuple[int, ...]
    read_by: str  # how adaptive execution reads it, such as "coalesced and skewed"; empty if it does not
    partitions: int  # of the shuffle; 0 if it is not by hash


@dataclass(frozen=True, slots=True)
class Operator:
    """A join, aggregation or window, with the shuffles that it reads."""

    name: str  # of its node, such as SortMergeJoin
    keys: tuple[tuple[str, ...], ...]  # key columns of each side
    join: str = ""  # Inner, LeftOuter, ...; empty if it is no join
    functions: tuple[str, ...] = ()  # of an aggregation
    is_merged: bool = False  # whether rows are aggregated before the shuffle already
    pairs: int | None = None  # accumulator of the rows that it gives
    sides: tuple[Side, ...] = ()

    def __str__(self) -> str:
        if self.join:
            return f"{self.name} [{', '.join(self.keys[0])}] = [{', '.join(self.keys[1])}], {self.join}"
        return f"{self.name} by {', '.join(self.keys[0])}"

    @property
    def advice(self) -> str:
        """What to do where no code can be given."""
        if self.is_merged:
            return "Rows are aggregated before this shuffle already: use more shuffle partitions, or smaller results."
        if self.name == "Window":
            return "A window needs all rows of a key in one task: add a column to PARTITION BY."
        return "It needs all rows of a key in one task: add a column to the key, and merge the results."


def operator_of(plan: Node, accumulators: Collection[int]) -> Operator | None:
    """The lowest keyed operator above the shuffles of a stage.

    None if it reads none.

    Args:
        accumulators: Of the tasks of the stage.
    """
    is_read = [
        path
        for path in plan.paths()
        if path[0].name in _EXCHANGES and any(path[0].metrics.get(name) in accumulators for name in (_ROWS, *_BYTES))
    ]
    for path in is_read:
        for node in _up_to_exchange(path):
            found, below = _keyed(node), [each for each in is_read if node in _up_to_exchange(each)]
            if found is None or node.metrics.get(_OUTPUT) not in (None, *accumulators) or len(below) > 2:
                continue
            return Operator(
                re.sub(r"\(.*", "", node.name),
                is_merged="functions" in found and any("partial_" in each.text for each in _below(path[0])),
                pairs=node.metrics.get(_OUTPUT),
                sides=tuple(sorted((_side(each, node) for each in below), key=lambda side: side.at)),
                **found,
            )
    return None


def _up_to_exchange(path: tuple[Node, ...]) -> list[Node]:
    """Nodes above an exchange, up to the next."""
    return list(takewhile(lambda node: node.name not in _EXCHANGES, path[1:]))


def _below(exchange: Node) -> Iterator[Node]:
    """Nodes of the stage that writes an exchange."""
    for child in exchange.children:
        if child.name not in _EXCHANGES:
            yield child
            yield from _below(child)


def _side(path: tuple[Node, ...], of_node: Node) -> Side:
    exchange, metrics = path[0], path[0].metrics
    is_right = len(of_node.children) > 1 and of_node.children[1] in path
    read_by = next((each.text for each in _up_to_exchange(path) if each.name == "AQEShuffleRead"), "")
    of = _PARTITIONED.search(exchange.text)
    return Side(
        int(is_right),
        (metrics.get(_ROWS, -1),),
        tuple(metrics.get(name, -1) for name in _BYTES),
        read_by.removeprefix("AQEShuffleRead").strip(),
        int(of[2]) if of else 0,
    )


def _keyed(node: Node) -> dict[str, Any] | None:
    """Keys and kind of an operator that needs all rows of a key in one task."""
    if found := _JOIN.match(node.text):
        return {"keys": (names(found[1]), names(found[2])), "join": found[3]}
    if found := _AGGREGATE.match(node.text):
        functions, keys = names(found[2]), names(found[1])
        is_final = keys and not any("partial_" in each for each in functions)
        return {"keys": (keys,), "functions": functions} if is_final else None
    found = _WINDOW.match(node.text) or _GROUPS.match(node.text)
    return {"keys": (names(found[1]),)} if found else None


def names(text: str) -> tuple[str, ...]:
    """Expressions of a list, without Spark's numbers."""
    parts, depth = [""], 0
    for letter in _NUMBER.sub("", text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return tuple(part.strip() for part in parts if part.strip())
