"""Input rates, utilization and true values, read from files."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv

from adapt.core.arrays import Floats
from adapt.core.errors import BadInput, did_you_mean
from adapt.core.fit.network.network import Network
from adapt.core.fit.network.network_file import read_true
from adapt.core.fit.network.true_values import Drawn, TrueSource
from adapt.core.fit.network_tables import FittedCosts, fitted_costs
from adapt.core.fit.planners.solver import Exponential, Learnt, Observed, Workload
from adapt.traces.locations.arrow import arrow_source
from adapt.traces.locations.location import location
from adapt.traces.read_errors import parsed, readable
from adapt.traces.store.manifest import file_sha256

EXPONENTIAL = "exponential"
"""In place of a file: independent exponential rates, with the rates in the network file as means."""


ONLINE = "online"
"""In place of a file: rates are learnt while the network runs."""


@dataclass(frozen=True, slots=True)
class NamedWorkload:
    """A distribution of rates, with its source."""

    workload: Workload  # the distribution
    source: dict[str, Any]  # where it comes from, to record in the run; JSON data


def open_workload(said: str, network: Network) -> NamedWorkload:
    """Read a distribution of rates from a CSV, or `exponential`, or `online`.

    The CSV has a column of tuples/s for each input.

    Source: FIT, sections 5.2 and 8.1.
    """
    names = [entering.name for entering in network.inputs]
    if said == EXPONENTIAL:
        rates = np.array([entering.rate or 0.0 for entering in network.inputs])
        for name, rate in zip(names, rates.tolist(), strict=True):
            if rate <= 0:
                raise BadInput(
                    f"--workload {EXPONENTIAL}: input {name!r} needs a rate in the network file, which is its mean"
                )
        return NamedWorkload(Exponential(rates), {"exponential": dict(zip(names, rates.tolist(), strict=True))})
    if said == ONLINE:
        return NamedWorkload(Learnt(np.empty((0, len(names))), np.ones(len(names))), {ONLINE: True})
    path = location(said)
    with readable(path):
        sha256 = file_sha256(path)
    return NamedWorkload(Observed(_rates(path, network)), {"name": path.name, "sha256": sha256})


def _rates(path: Path, network: Network) -> Floats:
    """Read rates from a CSV with a column for each input.

    Returns:
        Tuples/s, shape (times, inputs).
    """
    return _columns(path, {"input": [entering.name for entering in network.inputs]})


def open_true(said: str, network: Network) -> TrueSource:
    """Read true costs and selectivities from a file, or draw them."""
    return Drawn.from_text(said) or parsed(Path(said), lambda text: read_true(text, network))


def read_costs(path: Path, network: Network) -> FittedCosts:
    """Fit the costs of a network to a CSV of measurements.

    The CSV has a column of tuples/s for each input, and one of utilization for each node with operators, 1 at capacity.
    """
    inputs = [entering.name for entering in network.inputs]
    nodes = [node.name for node in network.nodes]
    both = set(inputs) & set(nodes)
    if both:
        raise BadInput(f"{path}: {min(both)!r} is both an input and a node; rename one in the network file")
    columns = _columns(path, {"input": inputs, "node": nodes})
    return fitted_costs(network, columns[:, : len(inputs)], columns[:, len(inputs) :])


def _columns(path: Path, named: Mapping[str, list[str]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The columns of these elements, by kind, in their order; shape (times, elements)."""
    with readable(path):
        try:
            table = pcsv.read_csv(arrow_source(path))
        except pa.ArrowInvalid as error:
            raise BadInput(f"{path} is not a CSV of rates: {error}") from error
    names, kinds = [name for each in named.values() for name in each], " or ".join(named)
    for name in table.column_names:
        if name not in names:
            raise BadInput(f"{path}: column {name!r} is not an {kinds} of the network{did_you_mean(name, names)}")
    columns = []
    for name in names:
        if name not in table.column_names:
            raise BadInput(f"{path}: column {name!r} is missing; every {kinds} needs a column of numbers")
        try:
            rates = table.column(name).cast(pa.float64()).to_numpy()
        except pa.ArrowInvalid as error:
            raise BadInput(f"{path}: column {name!r} must hold numbers: {error}") from error
        bad = ~(np.isfinite(rates) & (rates >= 0))
        if bad.any():
            row, unit = int(bad.argmax()), " tuples/s" if name in named["input"] else ""
            raise BadInput(f"{path} row {row + 1}: {name!r} must be at least 0{unit} (got {rates[row]:g})")
        columns.append(rates)
    if not len(table):
        raise BadInput(f"{path}: the file has a header but no rates")
    return np.column_stack(columns)
