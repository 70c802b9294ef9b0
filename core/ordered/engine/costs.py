"""Measured costs of the engine itself, for the model."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from adapt.core.errors import BadInput
from adapt.core.ordered.chain.names import Heuristic, OperatorKind
from adapt.core.ordered.engine.cache_costs import ASSUMED_CACHES, CacheCosts
from adapt.core.ordered.engine.contention import Contention, Stalls, assumed_contention

SCHEMA = "adapt.ordered-costs/3"


class Cost(StrEnum):
    """What costs time, in addition to an operator's function."""

    FEED = "feed"
    """A row enters the first work queue."""
    TUPLE = "tuple"
    """A tuple is run through an operator that does next to nothing."""
    CLAIM = "claim"
    """A worker claims a chunk."""
    HANDOVER = "handover"
    """A worker enters a lane of a partitioned operator (one partition, or several); none with a single worker."""
    SEND = "send"
    """A chunk is sent on; one worker at a time."""
    OUTPUT = "output"
    """An output row is sent on, or leaves the chain; one worker at a time."""
    SEVERAL = "several"
    """What a tuple with several outputs costs more."""
    SPREAD = "spread"
    """What a tuple costs more per standard deviation of the numbers of outputs: mispredicted branches."""
    HIDDEN = "hidden"
    """What a tuple costs less whose function takes time, since the processor begins the next tuple meanwhile."""
    LINE = "line"
    """A cache line moves from one core to the other; all costs of contention were measured at this time."""
    CONTENDED_TUPLE = "contended-tuple"
    """What each other worker on the operator adds to a tuple."""
    CONTENDED_CLAIM = "contended-claim"
    """What each other worker on the operator adds to a claim."""
    CONTENDED_HANDOVER = "contended-handover"
    """What each other worker on the operator adds to a handover."""
    PASSED_TUPLE = "passed-tuple"
    """What a tuple costs more while all other workers are on other operators, since it passes between cores."""
    PASSED_CLAIM = "passed-claim"
    """What a claim costs more then."""
    PASSED_APART = "passed-apart"
    """What a tuple without exactly one output costs more then."""
    QUERY = "query"
    """A worker asks the scheduler for an operator, enters it, and leaves it after its slice."""
    QUERY_OPERATOR = "query-operator"
    """What each operator of the chain adds to a query."""
    CONTENDED_QUERY = "contended-query"
    """What each other worker adds to a query."""
    CONTENDED_QUERY_OPERATOR = "contended-query-operator"
    """What each other worker adds to a query by operator of the chain."""


@dataclass(frozen=True, slots=True)
class Term:
    """A cost: of a kind of operator, of a heuristic, or neither."""

    cost: Cost
    kind: OperatorKind | None = None
    heuristic: Heuristic | None = None

    def __str__(self) -> str:
        return ", ".join(part.value for part in (self.cost, self.kind, self.heuristic) if part is not None)


_CONTENDED = (Cost.CONTENDED_TUPLE, Cost.CONTENDED_CLAIM)
QUERIES = (Cost.QUERY, Cost.QUERY_OPERATOR, Cost.CONTENDED_QUERY, Cost.CONTENDED_QUERY_OPERATOR)
_PASSED = (Cost.PASSED_TUPLE, Cost.PASSED_CLAIM)
_LATER = (
    Cost.SEVERAL,
    Cost.SPREAD,
    Cost.HIDDEN,
    Cost.LINE,
    Cost.CONTENDED_HANDOVER,
    *_PASSED,
    Cost.PASSED_APART,
)
"""Costs that a file may lack."""
CONTENDED = (*_CONTENDED, Cost.CONTENDED_HANDOVER, *_PASSED, Cost.PASSED_APART, *QUERIES[2:])
"""Costs of cache lines that move between cores."""
_OF_MANY = (*_CONTENDED, Cost.HANDOVER)
_SHARED = (OperatorKind.STATELESS, OperatorKind.PARTITIONED)

TERMS = (
    *(Term(cost) for cost in (Cost.FEED, Cost.SEND, Cost.OUTPUT, Cost.SEVERAL, Cost.SPREAD, Cost.HIDDEN)),
    Term(Cost.LINE),
    *(Term(cost, kind) for kind in OperatorKind for cost in (Cost.TUPLE, Cost.CLAIM)),
    *(Term(cost, OperatorKind.PARTITIONED) for cost in (Cost.HANDOVER, Cost.CONTENDED_HANDOVER)),
    *(Term(cost, kind) for kind in _SHARED for cost in _CONTENDED),
    *(Term(cost, heuristic=each) for each in Heuristic for cost in (Cost.QUERY, Cost.QUERY_OPERATOR)),
    *(Term(cost, kind) for kind in OperatorKind for cost in _PASSED),
    Term(Cost.PASSED_APART),
    *(Term(cost) for cost in (Cost.CONTENDED_QUERY, Cost.CONTENDED_QUERY_OPERATOR)),
)
"""All costs. No two workers contend for a stateful operator."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A cost in nanoseconds of CPU, with its spread over repeated measurements."""

    ns: float
    low_ns: float
    high_ns: float

    def __post_init__(self) -> None:
        values = (self.low_ns, self.ns, self.high_ns)
        if not (all(map(math.isfinite, values)) and 0 <= self.low_ns <= self.ns <= self.high_ns):
            raise BadInput(f"ns must be from low_ns to high_ns, both at least 0 (got {self.ns:g} of {values})")


@dataclass(frozen=True, slots=True)
class EngineCosts:
    """Costs in nanoseconds, the cache model, and stalls of workers."""

    ns: Mapping[Term, float]
    caches: CacheCosts = ASSUMED_CACHES
    stalls: Stalls | None = None

    def of(self, cost: Cost, kind: OperatorKind | None = None, heuristic: Heuristic | None = None) -> float:
        """A cost; 0 if there is none of this kind."""
        return self.ns.get(Term(cost, kind, heuristic), 0.0)

    def contended_by(self, factor: float) -> "EngineCosts":
        """The same with this multiple of what workers cost each other."""
        return replace(
            self, ns={term: ns * (factor if term.cost in CONTENDED else 1.0) for term, ns in self.ns.items()}
        )


@dataclass(frozen=True, slots=True)
class EngineProfile:
    """Measured costs of the engine.

    Attributes:
        measured: On what they were measured, in words.
        workers: Most workers of a measured run.
        costs: Of each term; without those of many workers if only one was measured. Those of queries are assumed, and
            some others 0, if they are missing.
        caches: Costs of states and payloads; None if they were not measured.
        stalls: By number of workers, ascending; empty if they were not measured.

    Raises:
        BadInput: a cost is missing.
    """

    measured: str
    workers: int
    costs: Mapping[Term, Interval]
    caches: CacheCosts | None = None
    stalls: tuple[Stalls, ...] = ()

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise BadInput(f"workers must be at least 1 (got {self.workers})")
        for term in TERMS:
            optional = term.cost in (*QUERIES, *_LATER) or (term.cost in _OF_MANY and self.workers == 1)
            if term not in self.costs and not optional:
                raise BadInput(f"the cost {term} is missing; measure it with adapt calibrate ordered")

    def at_line(self, line_ns: float | None) -> "EngineProfile":
        """The same where a cache line takes this long to another core.

        As measured, if either time is unknown.
        """
        line = self.costs.get(Term(Cost.LINE))
        if not (line and line.ns and line_ns):
            return self
        slower = line_ns / line.ns
        costs = {
            term: Interval(slower * one.ns, slower * one.low_ns, slower * one.high_ns)
            if term.cost in CONTENDED
            else one
            for term, one in self.costs.items()
        }
        return replace(self, costs={**costs, Term(Cost.LINE): Interval(line_ns, line_ns, line_ns)})

    def costs_at(self, bound: str = "ns", workers: int = 0) -> EngineCosts:
        """The costs (`ns`), or the ends of all intervals.

        With `low_ns` a run takes least, and with `high_ns` most. Costs that were not measured are assumed.

        Args:
            workers: With the stalls of that many workers, or the most that were measured; 0 for none.
        """
        of_workers = [one for one in self.stalls if one.workers <= workers]
        contention = assumed_contention()
        assumed = {Term(Cost.CONTENDED_TUPLE, kind): 1000 * contention.contention_us for kind in _SHARED}
        assumed[Term(Cost.CONTENDED_QUERY)] = 1000 * contention.query_contention_us
        for each in Heuristic:
            contention = assumed_contention(each)
            assumed[Term(Cost.QUERY, heuristic=each)] = 1000 * contention.query_us
            assumed[Term(Cost.QUERY_OPERATOR, heuristic=each)] = 1000 * contention.query_operator_us
        saved = {"low_ns": "high_ns", "high_ns": "low_ns"}.get(bound, bound)
        known = {term: getattr(one, saved if term.cost is Cost.HIDDEN else bound) for term, one in self.costs.items()}
        return EngineCosts({**assumed, **known}, self.caches or ASSUMED_CACHES, of_workers[-1] if of_workers else None)


@dataclass(frozen=True, slots=True)
class Modeled:
    """Inputs of a model, in addition to the chain and the settings.

    Attributes:
        costs_us: Cost of a tuple by operator; None where each tuple has its own.
        selectivities: Outputs per tuple, by operator.
        contention: Time that workers cost each other.
        seed: Random seed; below 2^62.
        engine: Measured costs of the engine; None for the assumed contention.
    """

    costs_us: tuple[float | None, ...]
    selectivities: tuple[float, ...]
    contention: Contention
    seed: int
    engine: EngineCosts | None = None
