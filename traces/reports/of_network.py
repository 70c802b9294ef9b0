"""Report of a query network: diagram and node loads."""

from pathlib import Path

from adapt.core.fit.network_diagram import network_charts
from adapt.core.fit.network_tables import NetworkLoad
from adapt.traces.replay.fit import open_network
from adapt.traces.reports.reported import Reported
from adapt.traces.store.manifest import hash_of


def reported(path: Path) -> Reported:
    """Node loads and a diagram."""
    network = open_network(path)
    load = NetworkLoad.from_network(network.read.network)
    nodes = load.nodes()
    content = hash_of(network.text)
    made = {"artefact": path.name, "kind": "network", "content_hash": content}
    charts = network_charts(network.read.network, nodes)
    return Reported(path.name, "network", content, tuple(load.sentences()), (load.elements(), nodes), charts, made)
