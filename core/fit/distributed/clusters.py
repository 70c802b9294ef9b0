"""Clusters of nodes that turn a network into a tree."""

from graphlib import CycleError, TopologicalSorter

from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.tables.local_plans import nodes_ahead


def clusters(wiring: Wiring) -> tuple[tuple[int, ...], ...]:
    """Groups of nodes, upstream first, each fed by one other at most.

    Nodes that share a child plan together, and so do nodes in a cycle; in a tree every node is a group of its own.
    Nodes without operators belong to no group.

    Source: FIT, section 10, which leaves such clusters to future work.
    """
    ahead = dict(nodes_ahead(wiring))
    label = {node: node for node in ahead}
    while True:
        before = {
            group: {label[other] for node in ahead if label[node] == group for other in ahead[node]} - {group}
            for group in label.values()
        }
        together = _to_be_joined(before)
        if not together:
            break
        least = min(together)
        label = {node: least if group in together else group for node, group in label.items()}
    order = TopologicalSorter({group: sorted(before[group]) for group in sorted(before)}).static_order()
    return tuple(tuple(sorted(node for node in label if label[node] == group)) for group in order)


def _to_be_joined(before: dict[int, set[int]]) -> set[int]:
    """Groups that form a cycle, or several parents of one group; empty if neither exists."""
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        return set(error.args[1])
    return next((parents for _, parents in sorted(before.items()) if len(parents) > 1), set())
