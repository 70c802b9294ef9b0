"""Report of a query network: node loads."""

from pathlib import Path

from adapt.core.fit.network_tables import NetworkLoad
from adapt.core.units.seals import hash_of
from adapt.traces.replay.fit import open_network
from adapt.traces.reports.reported import Reported


def reported(path: Path) -> Reported:
    """Loads of elements and nodes."""
    network = open_network(path)
    load = NetworkLoad.from_network(network.read.network)
    content = hash_of(network.text)
    made = {"artefact": path.name, "kind": "network", "content_hash": content}
    return Reported(path.name, "network", content, tuple(load.sentences()), (load.elements(), load.nodes()), (), made)
