"""The TOML file of true values: [[change]] tables."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import BadInput, UsageError, did_you_mean
from adapt.core.fit.network.names import OperatorKind
from adapt.core.fit.network.network import Network
from adapt.core.fit.network.true_values import TrueValues, values_of, with_values
from adapt.core.toml import Element, document_of, elements, only, text_of
from adapt.core.units.durations import duration_us

_FIELDS = ("at", "operator", "cost", "selectivity", "over")


@dataclass(frozen=True, slots=True)
class Change:
    """New true values of an operator."""

    at_us: int  # start, in microseconds since the start of the replay
    operator: str  # name
    cost: float | None  # CPU seconds per tuple; None: unchanged
    selectivity: float | None  # tuples out / tuples in; None: unchanged
    over_us: int = 0  # time until the new values are reached, along a straight line; 0: at once


@dataclass(frozen=True, slots=True)
class Listed:
    """True values from a file: those of the network, then changes."""

    changes: tuple[Change, ...]  # ascending by time
    noise: float  # standard deviation of a value in a tick, as a share of its mean
    seed: int  # random seed of this fluctuation
    text: str  # the file, to record in the run

    def over(self, network: Network, at_us: NDArray[np.int64]) -> TrueValues:
        """The values in each tick: those at its start."""
        values = np.repeat(values_of(network)[:, None], len(at_us), axis=1)
        names = [operator.name for operator in network.operators]
        for change in self.changes:
            number, after = names.index(change.operator), at_us >= change.at_us
            share = np.minimum(1.0, (at_us - change.at_us) / change.over_us) if change.over_us else None
            for of_kind, wanted in zip(values, (change.cost, change.selectivity), strict=True):
                if wanted is None or not after.any():
                    continue
                before = of_kind[int(np.argmax(after)), number]
                of_kind[after, number] = wanted if share is None else before + share[after] * (wanted - before)
        return TrueValues(network, values[0], values[1], self.noise, self.seed)

    def as_data(self) -> Mapping[str, Any]:
        """The file."""
        return {"text": self.text}


def read_true(text: str, network: Network) -> Listed:
    """Read true values from the text of their file."""
    document = document_of(text, "the true values are")
    only("the file of true values", document, ("noise", "seed", "change"))
    top = Element("the file of true values", document, tuple(document))
    noise, seed = top.number("noise", 0.0), top.whole("seed", 0)
    if not (0 <= noise < np.inf and 0 <= seed < 2**63):
        raise BadInput(f"noise and seed must be at least 0 (got {noise:g} and {seed})")
    found = [_change(number, each, network) for number, each in enumerate(elements(document, "change"), 1)]
    listed = Listed(tuple(sorted(found, key=lambda change: change.at_us)), noise, seed, text)
    for change in listed.changes:
        values = listed.over(network, np.array([change.at_us + change.over_us]))
        with_values(network, values.mean_costs[0], values.mean_selectivities[0])
    return listed


def _change(number: int, fields: Mapping[str, Any], network: Network) -> Change:
    where, operators = f"change {number}", {each.name: each for each in network.operators}
    element = Element(where, fields, _FIELDS)
    name = element.text("operator")
    if name not in operators:
        raise BadInput(f"{where}: operator {name!r} does not exist{did_you_mean(name, operators)}")
    cost, selectivity = element.number_or_none("cost"), element.number_or_none("selectivity")
    if cost is None and selectivity is None:
        raise BadInput(f"{where} changes nothing; add cost = ... or selectivity = ...")
    for what, value in (("cost", cost), ("selectivity", selectivity)):
        if value is not None and not 0 <= value < np.inf:
            raise BadInput(f"{where}: {what} must be a finite number, at least 0 (got {value:g})")
    if operators[name].kind is OperatorKind.FILTER and (selectivity or 0.0) > 1:
        raise BadInput(f"{where}: selectivity of a filter must be at most 1 (got {selectivity:g})")
    over_us = element.read("over", _duration, 0) if "over" in fields else 0
    return Change(element.read("at", _duration, 0), name, cost, selectivity, over_us)


def _duration(where: str, name: str, value: Any) -> int:
    try:
        return duration_us(text_of(where, name, value))
    except UsageError as error:
        raise BadInput(f"{where}: {name}: {error}") from None
