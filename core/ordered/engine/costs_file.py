"""TOML file of the measured costs of the ordered engine."""

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from hashlib import sha256
from typing import Any, TypeVar

from adapt.core.errors import BadInput
from adapt.core.ordered.chain.names import Heuristic, OperatorKind
from adapt.core.ordered.engine.cache_costs import CacheCosts, StateCost, TupleCost
from adapt.core.ordered.engine.contention import Stalls
from adapt.core.ordered.engine.costs import SCHEMA, TERMS, Cost, EngineProfile, Interval, Term
from adapt.core.toml import Element, elements, number_of, only, versioned_document, with_lines

_INTERVAL = ("ns", "low_ns", "high_ns")

_Point = TypeVar("_Point", StateCost, TupleCost)


def write_engine_profile(profile: EngineProfile) -> str:
    """A profile as text of a TOML file."""
    lines = ["# Costs of the ordered engine: adapt replay ordered ... --costs FILE. Nanoseconds of CPU."]
    lines += [f'schema = "{SCHEMA}"', f"measured = {json.dumps(profile.measured, ensure_ascii=False)}"]
    lines += [f"workers = {profile.workers}"]
    for term in TERMS:
        if term in profile.costs:
            one = profile.costs[term]
            lines += ["", "[[cost]]", f'name = "{term.cost}"']
            lines += [] if term.kind is None else [f'kind = "{term.kind}"']
            lines += [] if term.heuristic is None else [f'heuristic = "{term.heuristic}"']
            lines += [f"{name} = {float(f'{getattr(one, name):.6g}')}" for name in _INTERVAL]
    for kind in ("state", "tuple"):
        for point in [] if profile.caches is None else getattr(profile.caches, f"{kind}s"):
            lines += ["", f"[[{kind}]]", *(f"{name} = {_number(value)}" for name, value in asdict(point).items())]
    for each in profile.stalls:
        lines += ["", "[[stall]]", f"workers = {each.workers}", f"per_s = {float(f'{each.per_s:.6g}')}"]
        lines += [f"{name} = {[float(one) for one in getattr(each, name)]}" for name in ("us", "late_us", "rare_us")]
        lines += [f"spans = {each.spans}"]
    return "\n".join(lines) + "\n"


def _number(value: float) -> int | float:
    return value if isinstance(value, int) else float(f"{value:.6g}")


def _points(kind: type[_Point], name: str, document: Mapping[str, Any]) -> tuple[_Point, ...]:
    """The points of a cache model."""
    named, points = tuple(field.name for field in fields(kind)), list[_Point]()
    for given in elements(document, name):
        of = Element(f"one [[{name}]]", given, named)
        sizes = [field.name for field in fields(kind) if field.name.endswith("bytes")]
        points.append(kind(*(of.whole(each, 0) if each in sizes else of.number(each) for each in named)))  # type: ignore[arg-type]
    return tuple(points)


def read_engine_profile(text: str) -> EngineProfile:
    """Read the text of such a file.

    Raises:
        BadInput: The text is not TOML, has another schema, or a field is missing or invalid; names the line.
    """
    document = versioned_document(text, SCHEMA, "adapt calibrate ordered")
    try:
        only("the profile", document, ("schema", "measured", "workers", "cost", "state", "tuple", "stall"))
        head, costs = Element("the profile", document, tuple(document)), dict[Term, Interval]()
        for given in elements(document, "cost"):
            of = Element("one [[cost]]", given, ("name", "kind", "heuristic", *_INTERVAL))
            term = Term(
                of.choice("name", Cost),
                of.choice("kind", OperatorKind) if "kind" in given else None,
                of.choice("heuristic", Heuristic) if "heuristic" in given else None,
            )
            if term not in TERMS or term in costs:
                raise BadInput(f"one [[cost]]: {term} is given twice, or there is no such cost of this kind")
            costs[term] = Interval(*(of.number(name) for name in _INTERVAL))
        stalls = tuple(_stalls_of(given) for given in elements(document, "stall"))
        if [one.workers for one in stalls] != sorted({one.workers for one in stalls}):
            raise BadInput("[[stall]] must have ascending workers")
        states, tuples = _points(StateCost, "state", document), _points(TupleCost, "tuple", document)
        caches = CacheCosts(states, tuples) if states or tuples else None
        return EngineProfile(head.text("measured"), head.whole("workers", 0), costs, caches, stalls)
    except BadInput as error:
        raise BadInput(with_lines(text, [str(error)])) from None


def _stalls_of(given: Mapping[str, Any]) -> Stalls:
    of = Element("one [[stall]]", {"rare_us": [], **given}, ("workers", "per_s", "us", "late_us", "spans", "rare_us"))
    none: tuple[float, ...] = ()
    us, late_us, rare_us = (of.read(name, _numbers, none) for name in ("us", "late_us", "rare_us"))
    return Stalls(of.whole("workers", 0), of.number("per_s"), us, late_us, of.whole("spans", 0), rare_us)


def _numbers(where: str, name: str, value: Any) -> tuple[float, ...]:
    if not isinstance(value, list):
        raise BadInput(f"{where}: {name} must be a list of numbers (got {value!r})")
    return tuple(number_of(where, name, one) for one in value)


def engine_profile_hash(profile: EngineProfile) -> str:
    """SHA-256 of what a profile says, whatever its layout."""
    return sha256(write_engine_profile(profile).encode()).hexdigest()
