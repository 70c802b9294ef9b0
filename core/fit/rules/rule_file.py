"""The file of rules that a shedder reads."""

import json
from collections.abc import Iterator

from adapt.core.fit.rules.regimes import ALL, PART, Regime
from adapt.core.fit.rules.rules import FragmentRules, Rules, bottlenecks, rule_text

_HEADER = """\
# Shares to keep, by regime of input rates; read by shedder.py in this folder.
# A linear function of the rates of a part's inputs, in tuples/s, is [constant, factor of the first input, ...].
# loads: of each node and link, as a share of its capacity, per tuple/s of each input; above 1, tuples must be dropped.
# when: functions that are all at least 0 in a regime. The first regime that holds applies; where none does, all inputs
# are scaled down by the same share until one does, or everything fits.
# keep: share kept on an arc, or the functions kept / offered."""


def rule_file(rules: Rules) -> str:
    """All regimes as TOML."""
    return "\n".join((_HEADER, *(line for part in rules.parts for line in _part(part)))) + "\n"


def _part(part: FragmentRules) -> Iterator[str]:
    program = part.program
    arcs = [program.wiring.arcs[arc].name for arc in program.drop_arcs]
    yield "\n[[part]]"
    yield f"inputs = {_json([entering.name for entering in part.fragment.network.inputs])}"
    yield f"arcs = {_json(arcs)}"
    yield f"roots = {_json([arc for arc, entering in zip(arcs, program.input_of, strict=True) if entering >= 0])}"
    yield f"loads = {_json(part.loads().tolist())}"
    for regime in part.regimes:
        yield "\n[[part.regime]]"
        yield f"rule = {_json(rule_text(part, regime))}"
        yield f"bottleneck = {_json(bottlenecks(part, regime))}"
        yield f"when = {_json(regime.when.tolist())}"
        yield "[part.regime.keep]"
        yield from (f"{_json(arc)} = {_keep(regime, at)}" for at, arc in enumerate(arcs))


def _keep(regime: Regime, variable: int) -> str:
    if regime.keeps[variable] == PART:
        kept, offered = (_json(functions[variable].tolist()) for functions in (regime.kept, regime.offered))
        return f"{{ kept = {kept}, offered = {offered} }}"
    return "1.0" if regime.keeps[variable] == ALL else "0.0"


def _json(value: object) -> str:
    """Strings and lists are written in TOML as in JSON."""
    return json.dumps(value, ensure_ascii=False)
