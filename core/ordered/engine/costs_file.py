"""TOML file of the measured costs of the ordered engine."""

import json
from hashlib import sha256

from adapt.core.errors import BadInput
from adapt.core.ordered.chain.names import Heuristic, OperatorKind
from adapt.core.ordered.engine.costs import EARLIER, SCHEMA, TERMS, Cost, EngineProfile, Interval, Term
from adapt.core.toml import Element, elements, only, versioned_document, with_lines

_INTERVAL = ("ns", "low_ns", "high_ns")


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
    return "\n".join(lines) + "\n"


def read_engine_profile(text: str) -> EngineProfile:
    """Read the text of such a file.

    Raises:
        BadInput: The text is not TOML, has another schema, or a field is missing or invalid; names the line.
    """
    document = versioned_document(text, SCHEMA, "adapt calibrate ordered", EARLIER)
    try:
        only("the profile", document, ("schema", "measured", "workers", "cost"))
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
        return EngineProfile(head.text("measured"), head.whole("workers", 0), costs)
    except BadInput as error:
        raise BadInput(with_lines(text, [str(error)])) from None


def engine_profile_hash(profile: EngineProfile) -> str:
    """SHA-256 of what a profile says, whatever its layout."""
    return sha256(write_engine_profile(profile).encode()).hexdigest()
