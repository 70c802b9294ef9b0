"""Random networks of dozens of nodes: many queries, several to a node or several nodes to a query."""

from dataclasses import replace

import numpy as np

from adapt.core.fit.network.names import OperatorKind
from adapt.core.fit.network.network import Input, Network, Node, Operator, Output
from adapt.core.fit.network.wiring import Wiring

MAP, FILTER, UNION, JOIN = OperatorKind.MAP, OperatorKind.FILTER, OperatorKind.UNION, OperatorKind.JOIN


def large_network(seed, nodes=100, overload=1.5):
    """Queries of 1 to 4 inputs and 3 to 10 operators on random nodes, which need `overload` times the capacity.

    Every input is parsed and filtered; streams of a query are joined or united, and results may go to several outputs.
    """
    random = np.random.default_rng([seed, nodes])
    capacities = random.choice([0.5, 1.0, 2.0], nodes)
    inputs, operators, outputs, rates = [], [], [], []
    for query in range(nodes * 7 // 10):
        streams = []
        for number in range(int(random.choice([1, 2, 3, 4], p=[0.4, 0.3, 0.2, 0.1]))):
            name = f"q{query}.in{number}"
            rates.append(float(random.lognormal(5, 0.7)))
            inputs.append(Input(name, rate=rates[-1], out_bytes=float(random.integers(50, 500))))
            parse = _operator(random, f"q{query}.parse{number}", MAP, (name,), 1.0)
            clean = _operator(random, f"q{query}.filter{number}", FILTER, (parse.name,), random.uniform(0.2, 0.9))
            operators += [parse, clean]
            streams.append(clean.name)
        while len(streams) > 1:
            sides, streams = tuple(streams[:2]), streams[2:]
            joins = random.random() < 0.4
            both = _operator(random, f"q{query}.merge{len(streams)}", JOIN if joins else UNION, sides, 1.0)
            operators.append(both)
            streams.append(both.name)
        for number in range(int(random.integers(1, 3))):
            last = _operator(random, f"q{query}.result{number}", MAP, (streams[0],), random.uniform(0.1, 1.0))
            operators.append(last)
            outputs.append(Output(f"q{query}.out{number}", last.name, float(random.integers(1, 6))))
    network = Network(
        tuple(Node(f"n{at}", float(capacity)) for at, capacity in enumerate(capacities)),
        tuple(inputs),
        tuple(operators),
        tuple(outputs),
    )
    return scaled(spread(network, seed), np.array(rates), overload)


def spread(network, seed):
    """The network with its operators on random nodes."""
    at = np.random.default_rng([seed, 1]).integers(len(network.nodes), size=len(network.operators))
    placed = (replace(each, node=network.nodes[node].name) for each, node in zip(network.operators, at, strict=True))
    return replace(network, operators=tuple(placed))


def scaled(network, rates, overload):
    """The network with costs that need `overload` times the capacity of all nodes."""
    wiring = Wiring.from_network(network)
    need = (wiring.use @ wiring.unshed(rates[None])[0]).sum() / wiring.limits.sum()
    costs = (replace(each, cost=float(each.cost * overload / need)) for each in network.operators)
    return replace(network, operators=tuple(costs))


def text_of(network):
    """The network as a file."""
    texts = [f'[[node]]\nname = "{node.name}"\ncapacity = {node.capacity!r}\n' for node in network.nodes]
    texts += [
        f'[[input]]\nname = "{each.name}"\nrate = {each.rate!r}\nout_bytes = {each.out_bytes!r}\n'
        for each in network.inputs
    ]
    for each in network.operators:
        sources = ", ".join(f'"{name}"' for name in each.inputs)
        windows = f"window = {list(each.join_windows)}\n" if each.join_windows else ""
        texts.append(
            f'[[operator]]\nname = "{each.name}"\nnode = "{each.node}"\nkind = "{each.kind}"\ninputs = [{sources}]\n'
            f"cost = {each.cost!r}\nselectivity = {each.selectivity!r}\n{windows}out_bytes = {each.out_bytes!r}\n"
        )
    texts += [
        f'[[output]]\nname = "{each.name}"\nfrom = "{each.source}"\nweight = {each.weight!r}\n'
        for each in network.outputs
    ]
    return "\n".join(texts)


def _operator(random, name, kind, sources, selectivity):
    windows = (10.0, 10.0) if kind is JOIN else None
    selectivity = 0.05 if kind is JOIN else 1.0 if kind is UNION else float(selectivity)
    size = float(random.integers(50, 500))
    return Operator(name, "n0", kind, sources, float(random.lognormal(0, 0.8)), selectivity, windows, out_bytes=size)
