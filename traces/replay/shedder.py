"""Load shedder: shares to keep, by rules.toml in this folder.

    python shedder.py clicks=120 orders=40

`shares` is for use in a job: keep a tuple on an arc with the probability given for it. Rates are in tuples/s. Where no
regime of the rules holds, all inputs are scaled down by the same share until one does, or everything fits.
"""

import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

TOLERANCE = 1e-9


def read_rules(path: Path = Path(__file__).with_name("rules.toml")) -> Mapping[str, Any]:
    """Read the rules."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def shares(rules: Mapping[str, Any], rates: Mapping[str, float]) -> dict[str, float]:
    """Share to keep on every arc that may drop tuples.

    Args:
        rates: Tuples/s of each input; 0 where it is not given.
    """
    kept: dict[str, float] = {}
    for part in rules["part"]:
        kept |= _of_part(part, [rates.get(name, 0.0) for name in part["inputs"]])
    return kept


def _of_part(part: Mapping[str, Any], rates: Sequence[float]) -> dict[str, float]:
    kept = dict.fromkeys(part["arcs"], 1.0)
    load = max((sum(use * rate for use, rate in zip(uses, rates, strict=True)) for uses in part["loads"]), default=0.0)
    if load <= 1 + TOLERANCE:
        return kept
    for regime in part.get("regime", ()):
        if all(_at(function, rates) >= -TOLERANCE for function in regime["when"]):
            return {arc: _share(keep, rates) for arc, keep in regime["keep"].items()}
    down = 1 / load
    for regime in part.get("regime", ()):
        reach = _reach(regime["when"], rates)
        if reach > down:
            down, lower = reach, [reach * rate for rate in rates]
            kept = {arc: _share(keep, lower) for arc, keep in regime["keep"].items()}
    return {arc: share * (down if arc in part["roots"] else 1.0) for arc, share in kept.items()}


def _reach(when: Sequence[Sequence[float]], rates: Sequence[float]) -> float:
    """The largest share of the rates, at most 1, at which a regime holds; 0 if at none."""
    lowest, highest = 0.0, 1.0
    for function in when:
        constant, slope = function[0] + TOLERANCE, _at(function, rates) - function[0]
        if slope < 0:
            highest = min(highest, -constant / slope)
        elif slope > 0:
            lowest = max(lowest, -constant / slope)
        elif constant < 0:
            return 0.0
    return highest if lowest <= highest else 0.0


def _share(keep: float | Mapping[str, Sequence[float]], rates: Sequence[float]) -> float:
    if isinstance(keep, float):
        return keep
    offered = _at(keep["offered"], rates)
    return min(max(_at(keep["kept"], rates) / offered, 0.0), 1.0) if offered > 0 else 1.0


def _at(function: Sequence[float], rates: Sequence[float]) -> float:
    return function[0] + sum(factor * rate for factor, rate in zip(function[1:], rates, strict=True))


if __name__ == "__main__":
    given = (argument.rpartition("=") for argument in sys.argv[1:])
    for arc, share in shares(read_rules(), {name: float(rate) for name, _, rate in given}).items():
        print(f"{arc}\t{share:.4f}")
