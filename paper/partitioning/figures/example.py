"""Figure 1: balance and migration of three set-ups over eight keys."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.measures.imbalance import channel_loads, max_over_min
from adapt.core.partitioning.measures.metrics import migration
from adapt.core.partitioning.measures.resources import Resources, load_of
from adapt.core.table import Column, Kind, Table
from paper.claims import Claim, between, judged
from paper.experiments import Experiment, Results
from paper.partitioning.scope import Scope
from paper.report import Shown, section

_SHARES = {"X": 5, "Z": 3, "V": 2, "R": 1, "U": 4, "Y": 3, "W": 3, "L": 1}

_SETUPS = {
    "network balanced": (("XZVR", "UYWL"), ("XZ", "UY", "WVRL")),
    "processing balanced": (("XZV", "UYWLR"), ("X", "UY", "WZVRL")),
    "both balanced": (("XZV", "UYWLR"), ("XRL", "UY", "WZV")),
}
"""The keys of each channel, before and after a third one is added."""

_PRINTED = {
    "network balanced": ((1.0, 1.11), (1.14, 2.26), 7),
    "processing balanced": ((1.2, 1.05), (2.0, 1.04), 10),
    "both balanced": ((1.2, 1.05), (1.14, 1.23), 10),
}
"""Network and computation balance before, and after; the cost of migration."""


def wanted(_scope: Scope) -> Sequence[Experiment]:
    """No experiments: results are computed directly."""
    return ()


def shown(_scope: Scope, _results: Results) -> Shown:
    """Every balance and cost, compared with the printed one."""
    rows = list(_rows())
    worst = max(abs(ours - printed) for *_, printed, ours in rows)
    table = Table.from_rows(
        "Figure 1, number by number",
        (Column("set-up"), Column("number"), Column("printed", Kind.NUMBER), Column("ours", Kind.NUMBER)),
        rows,
        note="The figure rounds some ratios and truncates others (34/15 to 2.26), so a last digit may be off by one.",
    )
    claim = Claim(
        "Figure 1",
        "Twelve balances and three costs of migration of three set-ups",
        "as printed",
        between(0, 0.01),
        "largest difference from a printed number",
    )
    said = "Eight keys on two channels, and then on three. Two loads are misprints: 16 + 9 is 25, not 24."
    return section("Figure 1: balance and migration by hand", [said], (), [table], [judged(claim, [worst])])


def _rows() -> list[tuple[str, str, float, float]]:
    stream = frequencies_of(KeyCounts(pa.array(list(_SHARES)), np.array(list(_SHARES.values())), 22))
    resources = Resources.parse("LQL")
    rows = []
    for name, periods in _SETUPS.items():
        *printed, cost = _PRINTED[name]
        placed = [_placed(stream.keys.to_pylist(), channels) for channels in periods]
        for at, (when, channels) in enumerate(zip(("2 channels", "3 channels"), periods, strict=True)):
            _, computation, network = channel_loads(placed[at], stream, resources, len(channels))
            for what, load, ratio in zip(("network", "computation"), (network, computation), printed[at], strict=True):
                rows.append((name, f"{what} balance, {when}", ratio, max_over_min(load) or 0.0))
        moved = migration(placed[0], placed[1], load_of(resources.state, stream.count_low), 3).state
        rows.append((name, "cost of migration", float(cost), moved))
    return rows


def _placed(keys: Sequence[str], channels: Sequence[str]) -> Channels:
    return np.array([next(at for at, held in enumerate(channels) if key in held) for key in keys], np.int32)
