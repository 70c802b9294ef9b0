"""Settings of a DAG of stages over shared workers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from adapt.core.errors import BadInput, UsageError, did_you_mean
from adapt.core.stage.conditions.faults import Capacity, Crash, ExternalLoad, SlowDown
from adapt.core.stage.conditions.names import QueueingName, Router
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.input.keyed_rows import StateSource
from adapt.core.toml import Element, called, document_of, elements, only, text_of, with_lines
from adapt.core.units.amounts import seconds_of


@dataclass(frozen=True, slots=True)
class Edge:
    """Tuples emitted to a later stage, partitioned by its key."""

    source: int  # the stage that emits
    target: int  # the stage that receives
    selectivity: float = 1.0  # mean tuples emitted per processed tuple, at least 0

    def __post_init__(self) -> None:
        if not 0 <= self.selectivity < np.inf:
            raise UsageError(f"selectivity must be finite and at least 0 (got {self.selectivity:g})")


@dataclass(frozen=True, slots=True)
class Life:
    """When the query of a stage arrives and leaves, in seconds."""

    from_s: float = 0.0
    until_s: float = np.inf

    def __post_init__(self) -> None:
        if not 0 <= self.from_s < np.inf:
            raise BadInput(f"a query must arrive at 0 s or later (got {self.from_s:g} s)")
        if not self.from_s < self.until_s:
            raise BadInput(f"a query must arrive before it leaves (got {self.from_s:g} and {self.until_s:g} s)")


@dataclass(frozen=True, slots=True, eq=False)
class DagSettings:
    """A DAG of stages over shared workers."""

    # the stages in topological order, with the same workers, network and disturbances. Those without an edge into
    # them have a source
    stages: tuple[StageSettings, ...]
    edges: tuple[Edge, ...] = ()
    # when the query of each stage arrives and leaves; empty, all are there from start to end
    lives: tuple[Life, ...] = field(default=())

    def __post_init__(self) -> None:
        if not self.stages:
            raise BadInput("a DAG needs at least one stage")
        if not self.lives:
            object.__setattr__(self, "lives", (Life(),) * len(self.stages))
        if len(self.lives) != len(self.stages):
            raise BadInput(f"every stage needs a life (got {len(self.lives)} for {len(self.stages)} stages)")
        self._check_sites()
        for edge in self.edges:
            if not 0 <= edge.source < edge.target < len(self.stages):
                raise BadInput(f"an edge must go from a stage to a later one (got {edge.source} to {edge.target})")
            above, below = self.lives[edge.source], self.lives[edge.target]
            if not above.from_s <= below.from_s < below.until_s <= above.until_s:
                raise BadInput(
                    f"stage {edge.target} is there from {below.from_s:g} to {below.until_s:g} s, but its input, stage"
                    f" {edge.source}, from {above.from_s:g} to {above.until_s:g} s"
                )
        if len({(edge.source, edge.target) for edge in self.edges}) < len(self.edges):
            raise BadInput("two edges join the same stages; use one with the sum of both selectivities")
        for target in {edge.target for edge in self.edges}:
            growth = self.stages[target].growth
            if growth is not None and growth.is_ranked:
                raise UsageError("a window of state needs rows with event times; only stages that read a source do")

    @property
    def workers(self) -> int:
        """Number of workers."""
        return self.stages[0].workers

    @property
    def entries(self) -> tuple[int, ...]:
        """Stages without an edge into them."""
        targets = {edge.target for edge in self.edges}
        return tuple(stage for stage in range(len(self.stages)) if stage not in targets)

    def into(self, stage: int) -> tuple[int, ...]:
        """Numbers of the edges into a stage, in sorted order."""
        return tuple(number for number, edge in enumerate(self.sorted_edges()) if edge.target == stage)

    def sorted_edges(self) -> tuple[Edge, ...]:
        """The edges by source, then target."""
        return tuple(sorted(self.edges, key=lambda edge: (edge.source, edge.target)))

    def visits(self) -> tuple[float, ...]:
        """Mean tuples of each stage per tuple of each source."""
        found = [float(stage in self.entries) for stage in range(len(self.stages))]
        for edge in self.sorted_edges():
            found[edge.target] += edge.selectivity * found[edge.source]
        return tuple(found)

    def capacity(self, faults: tuple[ExternalLoad | SlowDown | Crash, ...] = ()) -> Capacity:
        """CPU seconds of all workers over time, with further faults."""
        return Capacity.from_disturbances(self.workers, (*self.stages[0].disturbances, *faults))

    def bound(self, at_s: float) -> float:
        """Upper bound of the throughput of every source, in tuples/s.

        The capacity of all CPUs: the total speed of the workers over the mean cost of a tuple of each source and all
        tuples made of it, by the costs of the settings.
        """
        costs = (of.costs.produce_s + of.costs.service_s for of in self.stages)
        each_s = sum(visits * cost_s for visits, cost_s in zip(self.visits(), costs, strict=True))
        capacity = self.capacity()
        at = int(np.searchsorted(capacity.times_s, at_s, "right")) - 1
        rates = np.append(np.diff(capacity.cpu_s) / np.diff(capacity.times_s), capacity.rate)
        return float(rates[at]) / each_s

    def _check_sites(self) -> None:
        first, *others = self.stages
        for other in others:
            if first.workers != other.workers:
                raise UsageError(
                    f"all stages need the same number of workers (got {first.workers} and {other.workers})"
                )
            if first.network != other.network or first.disturbances != other.disturbances:
                raise BadInput("all stages need the same network and disturbances")
        if any(of.router is Router.RIVER for of in self.stages):
            raise UsageError("a DAG of stages needs routing by content; use router flux or exchange")
        if any(of.overload is not None for of in self.stages):
            raise UsageError("a DAG of stages does not support load shedding; omit overload")
        if any(of.queueing.engine is not QueueingName.FLUX for of in self.stages):
            raise UsageError("a DAG of stages has the queues of flux; omit queueing")
        if any(of.join is not None for of in self.stages):
            raise UsageError("a DAG of stages does not support joins; omit join")


FIELDS = {
    "query": ("name", "arrive", "leave"),
    "stage": ("name", "query", "inputs", "key", "selectivity", "service_time", "state", "partitions", "buffer"),
}
"""The fields of each kind of element."""

MAIN = "main"
"""The query of stages that name none; it is there from start to end."""

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class StageEntry:
    """A stage as the file describes it."""

    name: str
    query: str = MAIN  # the query that it belongs to
    inputs: tuple[str, ...] = ()  # the stages that it reads; empty, the trace
    key: str = "key"  # the column of the trace by which its tuples are partitioned
    selectivity: float = 1.0  # tuples that it sends to each stage that reads it, per processed tuple
    service_s: float | None = None  # mean CPU time of a tuple; None, that of the command
    state: int | StateSource | None = None  # tuples per partition, or how it grows; None, that of the command
    partitions: int | None = None  # partitions per worker; None, those of the command
    buffer: int | None = None  # tuples that a producer buffers; None, those of the command


@dataclass(frozen=True, slots=True)
class StagesFile:
    """The contents of a file of stages."""

    stages: tuple[StageEntry, ...]  # the stages, each after its inputs
    queries: Mapping[str, Life]  # when each query arrives and leaves
    text: str = field(repr=False)
    name: str = ""  # of the file

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The edges between the stages."""
        numbers = {one.name: number for number, one in enumerate(self.stages)}
        pairs = [(numbers[name], number) for number, one in enumerate(self.stages) for name in one.inputs]
        return tuple(Edge(source, target, self.stages[source].selectivity) for source, target in pairs)

    @property
    def lives(self) -> tuple[Life, ...]:
        """When each stage arrives and leaves."""
        return tuple(self.queries[one.query] for one in self.stages)

    def last(self, query: str) -> tuple[int, ...]:
        """Numbers of the stages of a query that it does not read."""
        of_query = [one for one in self.stages if one.query == query]
        read = {name for one in of_query for name in one.inputs}
        return tuple(at for at, one in enumerate(self.stages) if one.query == query and one.name not in read)

    def located(self, fault: str) -> BadInput:
        """The error of a fault that begins with its element."""
        return BadInput(with_lines(self.text, [fault]))


def read_stages(text: str) -> StagesFile:
    """Read a DAG of stages from the text of its file."""
    document = document_of(text, "the file of stages is")
    faults: list[str] = []
    try:
        only("the file of stages", document, tuple(FIELDS))
        found = {kind: elements(document, kind) for kind in FIELDS}
    except BadInput as error:
        raise BadInput(with_lines(text, [str(error)])) from None
    if not found["stage"]:
        raise BadInput("the file has no stage; add one as [[stage]] with name = ... below")
    queries = {MAIN: Life()} | dict(_query(each, faults) for each in found["query"])
    stages = [_stage(each, faults) for each in found["stage"]]
    for kind, each in found.items():
        names = [str(fields.get("name")) for fields in each]
        faults += [f"{kind} {name!r} appears twice; rename one" for name in sorted(set(names)) if names.count(name) > 1]
    if not faults:
        faults += _faults(stages, queries)
    if faults:
        raise BadInput(with_lines(text, faults))
    return StagesFile(_sorted(stages), queries, text)


def _query(fields: Mapping[str, Any], faults: list[str]) -> tuple[str, Life]:
    element = Element(called("query", fields), fields, FIELDS["query"], faults)
    name = element.text("name")
    from_s = element.read("arrive", _seconds, 0.0) if "arrive" in fields else 0.0
    until_s = element.read("leave", _seconds, float("inf")) if "leave" in fields else float("inf")
    if not from_s < until_s:
        faults.append(f"{element.where}: leave must be after arrive (got {fields['leave']} and {from_s:g}s)")
        return name, Life()
    return name, Life(from_s, until_s)


def _stage(fields: Mapping[str, Any], faults: list[str]) -> StageEntry:
    element = Element(called("stage", fields), fields, FIELDS["stage"], faults)

    def optional(name: str, parse: Any, default: Value) -> Value:
        return element.read(name, parse, default) if name in fields else default

    return StageEntry(
        name=element.text("name"),
        query=element.text_or_none("query") or MAIN,
        inputs=optional("inputs", _names, ()),
        key=element.text_or_none("key") or "key",
        selectivity=optional("selectivity", _at_least_0, 1.0),
        service_s=optional("service_time", _service, None),
        state=optional("state", _state, None),
        partitions=optional("partitions", _at_least_1, None),
        buffer=optional("buffer", _at_least_1, None),
    )


def _faults(stages: list[StageEntry], queries: Mapping[str, Life]) -> list[str]:
    """What is wrong between the elements."""
    known = {one.name: one for one in stages}
    found = []
    for one in stages:
        if one.query not in queries:
            found.append(f"stage {one.name!r}: there is no query {one.query!r}{did_you_mean(one.query, queries)}")
        for name in one.inputs:
            if name not in known:
                found.append(f"stage {one.name!r} reads {name!r}, which is not a stage{did_you_mean(name, known)}")
        if len(set(one.inputs)) < len(one.inputs):
            found.append(f"stage {one.name!r} reads a stage twice; double the selectivity of that stage instead")
        if one.inputs and isinstance(one.state, StateSource) and one.state.growth(1).is_ranked:
            found.append(
                f"stage {one.name!r}: state in bytes or in a window of time needs the rows of the trace; use rows, keys"
                " or rows@9rows, or omit inputs"
            )
    return found or _circle(stages) or _outlived(known, queries)


def _circle(stages: list[StageEntry]) -> list[str]:
    left = {one.name: set(one.inputs) for one in stages}
    while ready := {name for name, inputs in left.items() if not inputs & left.keys()}:
        left = {name: inputs for name, inputs in left.items() if name not in ready}
    if not left:
        return []
    path = [next(iter(left))]
    while path[-1] not in path[:-1]:
        path.append(min(left[path[-1]] & left.keys()))
    circle = path[path.index(path[-1]) :]
    told = " <- ".join(map(repr, circle))
    return [f"stage {circle[0]!r} reads its own output: {told}; remove one of these inputs"]


def _outlived(known: Mapping[str, StageEntry], queries: Mapping[str, Life]) -> list[str]:
    found = []
    for one in known.values():
        below = queries[one.query]
        for name in one.inputs:
            above = queries[known[name].query]
            if not above.from_s <= below.from_s < below.until_s <= above.until_s:
                found.append(
                    f"stage {one.name!r} reads {name!r}, whose query {known[name].query!r} is there from"
                    f" {above.from_s:g} to {above.until_s:g} s, not as long as {one.query!r}, from {below.from_s:g} to"
                    f" {below.until_s:g} s; let {known[name].query!r} arrive earlier or leave later"
                )
    return found


def _sorted(stages: list[StageEntry]) -> tuple[StageEntry, ...]:
    """The stages, each after its inputs, else as in the file."""
    done: list[StageEntry] = []
    while len(done) < len(stages):
        names = {one.name for one in done}
        done += [one for one in stages if one.name not in names and names.issuperset(one.inputs)]
    return tuple(done)


def _seconds(where: str, name: str, value: Any) -> float:
    try:
        return seconds_of(text_of(where, name, value))
    except UsageError as error:
        raise BadInput(f"{where}: {name} {error}") from None


def _service(where: str, name: str, value: Any) -> float:
    seconds = _seconds(where, name, value)
    if seconds == 0:
        raise BadInput(f"{where}: {name} must be above 0 (got {value})")
    return seconds


def _names(where: str, name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise BadInput(f'{where}: {name} must be a list of stages, as in ["parse"] (got {value!r})')
    return tuple(value)


def _at_least_0(where: str, name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise BadInput(f"{where}: {name} must be a number of at least 0 (got {value!r})")
    return float(value)


def _at_least_1(where: str, name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BadInput(f"{where}: {name} must be an integer of at least 1 (got {value!r})")
    return value


def _state(where: str, name: str, value: Any) -> int | StateSource:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    try:
        return StateSource.parse(str(value), f"{where}: {name}")
    except UsageError as error:
        raise BadInput(str(error)) from None
