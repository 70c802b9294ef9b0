"""Equations 7 and 8: plan size and construction time."""

from collections.abc import Sequence

import numpy as np

from adapt.core.partitioning.schemes.names import Construction
from adapt.core.table import Column, Kind, Table
from paper.claims import Claim, Judged, below, judged
from paper.experiments import Experiment, Results
from paper.partitioning.figures.grid import lines
from paper.partitioning.scope import CHANNELS, Scope
from paper.partitioning.timings import Cold, ColdTimed, MemoryOfBlocks, PlanSizes
from paper.report import Shown, section

_TRACKED = Column("tracked", Kind.COUNT, about="pinned keys")
_CHANNELS = Column("channels", Kind.COUNT)
_SECONDS = Column("seconds", Kind.SECONDS, "s")

_MOST_BYTES = 64
"""Limit on the bytes of a plan per tracked key."""

_BY_KEYS = {
    Construction.SCAN: (100, 300, 1000, 3000, 10_000),
    Construction.LEVEL: (100, 300, 1000, 3000, 10_000),
    Construction.REDIST: (100, 300, 1000, 3000),
    Construction.READJ: (25, 50, 100, 200, 400),
}
_BY_CHANNELS = {
    Construction.SCAN: (10, 30, 100, 300),
    Construction.LEVEL: (10, 30, 100, 300),
    Construction.REDIST: (10, 30, 100, 300),
    Construction.READJ: (5, 10, 20, 40),
}
_FIXED_KEYS = {Construction.READJ: 100}


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Runs of cold steps, plans and domain sums of growing size."""
    return [_by_keys(scope), _by_channels(scope), _plans(scope), _memory(scope)]


def shown(scope: Scope, results: Results) -> Shown:
    """Bytes and seconds by tracked keys, and seconds by N."""
    sizes = Table.from_rows(
        "Plan files",
        (
            Column("keys are"),
            _TRACKED,
            Column("file", Kind.BYTES, about="with its side file, which holds keys from 10,001 on"),
            Column("bytes per key", Kind.NUMBER, about="without the size of a plan with no tracked key"),
        ),
        _plan_rows(scope, results),
    )
    by_keys = _timed_table("Time by tracked keys, 10 channels", _by_keys(scope), results)
    by_channels = _timed_table("Time by channels, 1,000 tracked keys (readj: 100)", _by_channels(scope), results)
    exponents = Table.from_rows(
        "Growth of construction time",
        (
            Column("construction"),
            Column("power of keys", Kind.NUMBER, about="slope of a straight line in logarithms"),
            Column("power of channels", Kind.NUMBER),
        ),
        [
            (name.value, _power(by_keys, name.value, "tracked"), _power(by_channels, name.value, "channels"))
            for name in _BY_KEYS
        ],
        note="Steps that start from pure hashing; short ones are dominated by the overhead of a call.",
    )
    memory = Table.from_rows(
        f"Memory to sum a domain of {_memory(scope).keys:,} keys",
        (
            Column("keys looked at", Kind.COUNT),
            Column("peak memory", Kind.BYTES, about="of a separate process"),
        ),
        [(found["keys"], found["bytes"]) for found in results[_memory(scope)]],
    )
    charts = [
        lines(
            "Bytes of a plan per tracked key",
            f"Size of a plan file over the number of pinned keys. Dashed: {_MOST_BYTES} bytes.",
            sizes,
            "tracked",
            "bytes per key",
            "keys are",
            log_x=True,
            mark=_MOST_BYTES,
        ),
        lines(
            "Time by tracked keys",
            "Seconds of one construction.",
            by_keys,
            "tracked",
            "seconds",
            "construction",
            log_x=True,
            log_y=True,
        ),
        lines(
            "Time by channels",
            "Seconds of one construction.",
            by_channels,
            "channels",
            "seconds",
            "construction",
            log_x=True,
            log_y=True,
        ),
    ]
    said = (
        "Eq. 7 requires a function whose size does not depend on the domain, Eq. 8 a construction whose time is "
        "polynomial in that size."
    )
    return section(
        "Equations 7 and 8: growth", [said], charts, [exponents, sizes, memory], _claims(scope, results, memory)
    )


def _by_keys(scope: Scope) -> ColdTimed:
    most = 1000 if scope.is_quick else 10_000
    return ColdTimed(
        scope.keys,
        0,
        tuple(Cold(name, keys, CHANNELS) for name, sizes in _BY_KEYS.items() for keys in sizes if keys <= most),
    )


def _by_channels(scope: Scope) -> ColdTimed:
    most = 100 if scope.is_quick else 1000
    return ColdTimed(
        scope.keys,
        0,
        tuple(
            Cold(name, _FIXED_KEYS.get(name, 1000), channels, 100)
            for name, counts in _BY_CHANNELS.items()
            for channels in counts
            if channels <= most
        ),
    )


def _plans(scope: Scope) -> PlanSizes:
    return PlanSizes(scope.mapped, CHANNELS)


def _memory(scope: Scope) -> MemoryOfBlocks:
    return MemoryOfBlocks(10**7 if scope.is_quick else 10**8, (1, 2) if scope.is_quick else (1, 16))


def _timed_table(title: str, experiment: ColdTimed, results: Results) -> Table:
    rows = [
        (step.construction.value, step.tracked, step.channels, found["seconds"])
        for step, found in zip(experiment.steps, results[experiment], strict=True)
    ]
    return Table.from_rows(title, (Column("construction"), _TRACKED, _CHANNELS, _SECONDS), rows)


def _plan_rows(scope: Scope, results: Results) -> list[tuple[str, int, int, float]]:
    found = results[_plans(scope)]
    empty = {each["key_type"]: each["bytes"] for each in found if each["mapped"] == 0}
    return [
        (each["key_type"], each["mapped"], each["bytes"], (each["bytes"] - empty[each["key_type"]]) / each["mapped"])
        for each in found
        if each["mapped"]
    ]


def _power(table: Table, construction: str, column: str) -> float:
    points = [(row[column], row["seconds"]) for row in table.records() if row["construction"] == construction]
    xs, ys = np.log(np.array(points, np.float64)).T
    return float(np.polyfit(xs, ys, 1)[0])


def _claims(scope: Scope, results: Results, memory: Table) -> list[Judged]:
    a_key = max(row[3] for row in _plan_rows(scope, results))
    peaks = [float(found["bytes"]) for found in results[_memory(scope)]]
    claims = [
        (
            Claim(
                "Eq. 7",
                f"A plan takes at most {_MOST_BYTES} bytes per tracked key (an aim of ours)",
                f"<= {_MOST_BYTES}",
                below(_MOST_BYTES + 1e-9),
                "bytes per key, highest over all sizes and types of keys",
            ),
            [a_key],
        ),
        (
            Claim(
                "Eq. 8",
                "Construction time is polynomial in the tracked keys",
                "at most cubic",
                below(3.5),
                "largest power of keys of the four constructions",
            ),
            [max(_power(_timed_table("", _by_keys(scope), results), name.value, "tracked") for name in _BY_KEYS)],
        ),
        (
            Claim(
                "4.1",
                "Measuring a plan takes memory that does not depend on the domain (an aim of ours)",
                "bounded",
                below(1.1),
                f"peak memory over {memory.rows[-1][0]:,} keys over that of {memory.rows[0][0]:,}",
            ),
            [peaks[-1] / peaks[0]],
        ),
    ]
    return [judged(claim, values) for claim, values in claims]
