"""The program written down in another way, solved by others: what planners are held against."""

from fractions import Fraction

import numpy as np
from scipy.optimize import linprog


def written_out(network, rates):
    """Maximise c.f, A f <= b over the flow on every arc: each at most what its source gives, with what that depends on.

    Unlike the program under test, any arc may drop.
    """
    arcs = [(source, operator, port) for operator in network.operators for port, source in enumerate(operator.inputs)]
    arcs += [(output.source, output, -1) for output in network.outputs]
    rate = {entering.name: value for entering, value in zip(network.inputs, rates, strict=True)}
    rows, limits = [], []
    for number, (source, _, _) in enumerate(arcs):
        row = [0.0] * len(arcs)
        row[number] = 1.0
        for other, (_, target, port) in enumerate(arcs):
            if port >= 0 and target.name == source:
                gain = target.selectivity * (target.join_windows[1 - port] if target.join_windows else 1.0)
                row[other] -= gain
        rows.append(row)
        limits.append(float(rate.get(source, 0.0)))
    for node in network.nodes:
        rows.append([target.cost if port >= 0 and target.node == node.name else 0.0 for _, target, port in arcs])
        limits.append(node.capacity)
    by_name = {source.name: source for source in network.sources}
    for link in network.links:
        crosses = [
            port >= 0 and (network.node_of(by_name[source]), target.node) == (link.source, link.target)
            for source, target, port in arcs
        ]
        sizes = [by_name[source].out_bytes or 0.0 for source, _, _ in arcs]
        rows.append([size if crossing else 0.0 for size, crossing in zip(sizes, crosses, strict=True)])
        limits.append(link.bytes_per_s)
    return [0.0 if port >= 0 else target.weight for _, target, port in arcs], rows, limits


def scipy_score(network, rates):
    """The best score by scipy."""
    worth, rows, limits = written_out(network, rates)
    return -linprog(-np.array(worth), rows, limits, method="highs").fun


def rational_score(network, rates):
    """The best score, exactly: the primal simplex method on fractions, by Bland's rule."""
    worth, rows, limits = written_out(network, rates)
    height, width = len(rows), len(worth)
    table = [
        [*map(Fraction, row), *(Fraction(int(other == at)) for other in range(height)), Fraction(limits[at])]
        for at, row in enumerate(rows)
    ]
    price = [*(-Fraction(value) for value in worth), *[Fraction(0)] * (height + 1)]
    basis = list(range(width, width + height))
    while True:
        column = next((at for at in range(width + height) if price[at] < 0), None)
        if column is None:
            return price[-1]
        tried = [(table[at][-1] / table[at][column], basis[at], at) for at in range(height) if table[at][column] > 0]
        _, _, pivot = min(tried)
        by = table[pivot][column]
        table[pivot] = [value / by for value in table[pivot]]
        for at in range(height):
            if at != pivot and table[at][column]:
                table[at] = _less(table[at], table[at][column], table[pivot])
        price = _less(price, price[column], table[pivot])
        basis[pivot] = column


def _less(row, times, pivot):
    return [value - times * other if other else value for value, other in zip(row, pivot, strict=True)]
