"""Section 6: time slice and window, on threads."""

from collections.abc import Mapping, Sequence
from itertools import product

from adapt.core.charts.chart import Chart
from adapt.core.ordered.chain.names import Heuristic
from adapt.core.phrases import counted
from adapt.core.table import Cell, Column, Kind, Table
from paper.claims import Claim, Judged, above
from paper.experiments import Data, Experiment, Results
from paper.ordered.figures.shown import HEURISTIC, LABELS, LATENCY, RATE, WORKERS, all_judged, lines, means
from paper.ordered.scope import Scope
from paper.ordered.sliced import LIGHTER, QUERY, Sliced
from paper.report import Shown, averaged, section

_WORKERS = (1, 2)
_WINDOW_MS, _SLICE_US = 20.0, 100.0
_SLICE = Column("slice", Kind.NUMBER, "us")
_WINDOW = Column("window", Kind.NUMBER, "ms", "of CT")
_THREADS = "threads"

Measured = Mapping[str, Data]


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Runs by slice and by window."""
    return list(_runs(scope).values())


def shown(scope: Scope, results: Results) -> Shown:
    """Throughput and latency by slice and by window."""
    found = {key: results[run] for key, run in _runs(scope).items()}
    columns = [WORKERS, HEURISTIC, _SLICE, _WINDOW, *averaged([RATE, LATENCY])]
    by_slice = [row for key, one in found.items() if key[3] == _WINDOW_MS for row in _rows(key, one)]
    by_window = [row for key, one in found.items() if key[1:3] == (Heuristic.CT, _SLICE_US) for row in _rows(key, one)]
    slices = Table.from_rows(f"{QUERY} by slice, costs x {LIGHTER:g}", columns, by_slice)
    windows = Table.from_rows(f"{QUERY} by window of CT, costs x {LIGHTER:g}", columns, by_window)
    told = [
        "Threads of this machine. Tuples are claimed one by one. Throughput is by CPU time, that of as many whole "
        "cores as workers; latency is the median processing latency.",
        "CT evens out the time of the operators within a window, not their queues. An interrupted worker makes its "
        "operator look expensive for a window, and the tuples that pile up meanwhile stay.",
    ]
    return section("Section 6: time slice and window", told, _charts(slices), [slices, windows], _claims(scope, found))


Key = tuple[int, Heuristic, float, float]
"""Workers, heuristic, slice and window."""


def _runs(scope: Scope) -> dict[Key, Sliced]:
    slices = product(_WORKERS, (Heuristic.LP, Heuristic.CT), scope.thread_slices_us, [_WINDOW_MS])
    windows = product(_WORKERS, [Heuristic.CT], [_SLICE_US], scope.windows_ms)
    return {
        (workers, heuristic, slice_us, window_ms): Sliced(
            slice_us, window_ms, workers, heuristic, scope.rows, scope.repeats
        )
        for workers, heuristic, slice_us, window_ms in dict.fromkeys((*slices, *windows))
    }


def _rows(key: Key, one: Measured) -> list[list[Cell]]:
    workers, heuristic, slice_us, window_ms = key
    shown_key: list[Cell] = [workers, LABELS[heuristic], slice_us, window_ms]
    rates, latencies = zip(*one[_THREADS], strict=True)
    return [[*shown_key, *means(rates, latencies)]]


def _charts(slices: Table) -> list[Chart]:
    def of(workers: int) -> Table:
        rows = [row for row in slices.rows if row[0] == workers]
        return Table.from_rows(f"{slices.title}, {counted(workers, 'worker')}", slices.columns, rows)

    return [
        lines(
            f"{what} by slice, {counted(workers, 'worker')}",
            f"{QUERY}, costs x {LIGHTER:g}; threads of this machine. Bands: 95 %.",
            of(workers),
            _SLICE.name,
            column.name,
            HEURISTIC.name,
            log_x=True,
            log_y=column is LATENCY,
        )
        for workers in _WORKERS
        for what, column in (("Throughput", RATE), ("Latency", LATENCY))
    ]


def _over(one: Measured, other: Measured, place: int) -> list[float]:
    """Ratio of two measurements of threads, run by run.

    `place` is 0 for the rate and 1 for the latency.
    """
    return [mine[place] / their[place] for mine, their in zip(one[_THREADS], other[_THREADS], strict=True)]


def _claims(scope: Scope, found: Mapping[Key, Measured]) -> list[Judged]:
    shortest, longest = min(scope.thread_slices_us), max(scope.thread_slices_us)
    claims: list[tuple[Claim, Sequence[float]]] = []
    for workers in _WORKERS:
        short, middle, long = (
            found[workers, Heuristic.LP, each, _WINDOW_MS] for each in (shortest, _SLICE_US, longest)
        )
        of = f"LP, {counted(workers, 'worker')}"
        claims += [
            (
                Claim(
                    "Section 6",
                    "A longer slice amortizes the overhead of scheduling better",
                    "better",
                    above(1),
                    f"throughput with a slice of {_SLICE_US:g} us over that with {shortest:g} us, threads, {of}",
                ),
                _over(middle, short, 0),
            ),
            (
                Claim(
                    "Section 6",
                    "A longer slice makes the system less responsive",
                    "less",
                    above(1),
                    f"latency with a slice of {longest:g} us over that with {_SLICE_US:g} us, threads, {of}",
                ),
                _over(long, middle, 1),
            ),
        ]
    return all_judged(claims)
