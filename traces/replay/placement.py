"""Place the operators of a network file, without Spark."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.errors import BadInput
from adapt.core.fit.network.network import Network
from adapt.core.fit.network.network_file import read_network
from adapt.core.fit.network.settings import check_ratio
from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.placement.placement import Placement, place
from adapt.core.fit.placement.problem import Problem
from adapt.core.toml import with_field
from adapt.traces.replay.files.workloads import read_rates
from adapt.traces.replay.fit import NamedNetwork
from adapt.traces.store.atomic import check_free, write_whole

MOST_POINTS = 8
"""Rows of a file of rates that a placement is chosen for."""


@dataclass(frozen=True, slots=True)
class PlacementOptions:
    """How operators are placed.

    Attributes:
        rates: CSV of tuples/s; None: the rates of the network file.
        max_inputs: Inputs of a fragment, at most; None: any number.
        fixed: Operators that stay on their nodes.
        loss: Share of the score given up for less traffic.
        tries: Placements to try.
        seed: Random seed.

    Raises:
        UsageError: the loss is out of range.
    """

    rates: Path | None = None
    max_inputs: int | None = None
    fixed: Sequence[str] = ()
    loss: float = 0.01
    tries: int = 10_000
    seed: int = 0

    def __post_init__(self) -> None:
        check_ratio("--loss", self.loss)


def place_network(
    named: NamedNetwork,
    options: PlacementOptions,
    out: Path | None = None,
    *,
    force: bool = False,
    progress: Callable[[str, int, int], None],
) -> Placement:
    """Place the operators of a network file.

    The file is written with their new nodes.

    Raises:
        BadInput: the file lacks a rate, or the network cannot be placed or written.
        EnvironmentFailure: the output exists.
    """
    if out is not None:
        check_free(out, force=force)
    network = named.read.network
    rates = _given(network) if options.rates is None else _points(network, read_rates(options.rates, network))
    problem = Problem(network, rates, named.read.settings.headroom, options.max_inputs, options.fixed)
    found = place(problem, loss=options.loss, tries=options.tries, seed=options.seed, progress=progress)
    if out is not None:
        write_whole(out, _placed(named, found.network).encode(), force=force)
    return found


def _given(network: Network) -> Floats:
    for entering in network.inputs:
        if entering.rate is None:
            raise BadInput(f"input {entering.name!r} has no rate; add rate to the network file, or give --rates")
    return np.array([[entering.rate or 0.0 for entering in network.inputs]])


def _points(network: Network, rates: Floats) -> Floats:
    """Rows at even distances in the order of the load that they bring."""
    wiring = Wiring.from_network(network)
    order = np.argsort(wiring.uses(wiring.unshed(rates)).sum(axis=1), kind="stable")
    number = min(MOST_POINTS, len(rates))
    return rates[order[((np.arange(number) + 0.5) * len(rates) / number).astype(np.int64)]]


def _placed(named: NamedNetwork, network: Network) -> str:
    """The text of the file with the new nodes.

    Raises:
        BadInput: the nodes are not written on lines of their own.
    """
    text = with_field(named.text, "operator", "node", {each.name: each.node for each in network.operators})
    if read_network(text).network != network:
        raise BadInput(f"{named.name}: write operators as [[operator]] tables, name and node on lines of their own")
    return text
