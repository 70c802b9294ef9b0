"""Section 6: time slice and window, model beside threads."""

from collections.abc import Mapping, Sequence
from itertools import product
from statistics import median

from adapt.core.charts.chart import Chart
from adapt.core.ordered.chain.names import Heuristic
from adapt.core.phrases import counted
from adapt.core.table import Cell, Column, Kind, Table
from paper.claims import Claim, Judged, above, below
from paper.experiments import Data, Experiment, Results
from paper.ordered.figures.shown import AIM, HEURISTIC, LABELS, LATENCY, RATE, WORKERS, all_judged, lines, means
from paper.ordered.scope import Scope
from paper.ordered.sliced import LIGHTER, QUERY, Calibrated, Sliced
from paper.report import Shown, averaged, section

_CALIBRATED = 2
"""Most workers of the runs, few enough for any machine."""

_WORKERS = (1, 2)
_WINDOW_MS, _SLICE_US = 20.0, 100.0
_SLICE = Column("slice", Kind.NUMBER, "us")
_WINDOW = Column("window", Kind.NUMBER, "ms", "of CT")
_RUN_BY = Column("run by", about="threads of this machine, or the model with costs measured on it")
_THREADS, _MODEL = "threads", "model"

CLOSE = 0.15
"""Largest difference between model and threads that is aimed for."""

Measured = Mapping[str, Data]


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Runs by slice and by window."""
    return list(_runs(scope).values())


def shown(scope: Scope, results: Results) -> Shown:
    """Throughput and latency by slice and by window."""
    found = {key: results[run] for key, run in _runs(scope).items()}
    columns = [WORKERS, HEURISTIC, _SLICE, _WINDOW, _RUN_BY, *averaged([RATE, LATENCY])]
    by_slice = [row for key, one in found.items() if key[3] == _WINDOW_MS for row in _rows(key, one)]
    by_window = [row for key, one in found.items() if key[1:3] == (Heuristic.CT, _SLICE_US) for row in _rows(key, one)]
    slices = Table.from_rows(f"{QUERY} by slice, costs x {LIGHTER:g}", columns, by_slice)
    windows = Table.from_rows(f"{QUERY} by window of CT, costs x {LIGHTER:g}", columns, by_window)
    told = [
        "Threads of this machine, and the model with the costs of the engine that adapt calibrate ordered measures "
        "here, among them those of queries of the scheduler. Tuples are claimed one by one. Throughput is by CPU time, "
        "that of as many whole cores as workers; latency is the median processing latency.",
        "CT evens out the time of the operators within a window, not their queues. An interrupted worker makes its "
        "operator look expensive for a window, and the tuples that pile up meanwhile stay, so that its latency on a "
        "machine with other processes is above that of the model.",
    ]
    return section("Section 6: time slice and window", told, _charts(slices), [slices, windows], _claims(scope, found))


Key = tuple[int, Heuristic, float, float]
"""Workers, heuristic, slice and window."""


def costs_of(scope: Scope) -> Calibrated:
    """The costs of the engine that the model takes."""
    return Calibrated(scope.calibrated_rows, scope.repeats, _CALIBRATED)


def _runs(scope: Scope) -> dict[Key, Sliced]:
    calibrated = costs_of(scope)
    slices = product(_WORKERS, (Heuristic.LP, Heuristic.CT), scope.thread_slices_us, [_WINDOW_MS])
    windows = product(_WORKERS, [Heuristic.CT], [_SLICE_US], scope.windows_ms)
    return {
        (workers, heuristic, slice_us, window_ms): Sliced(
            calibrated, slice_us, window_ms, workers, heuristic, scope.rows, scope.repeats
        )
        for workers, heuristic, slice_us, window_ms in dict.fromkeys((*slices, *windows))
    }


def _rows(key: Key, one: Measured) -> list[list[Cell]]:
    workers, heuristic, slice_us, window_ms = key
    shown_key: list[Cell] = [workers, LABELS[heuristic], slice_us, window_ms]
    rates, latencies = zip(*one[_THREADS], strict=True)
    model_rate, model_ms = one[_MODEL]
    return [
        [*shown_key, _THREADS, *means(rates, latencies)],
        [*shown_key, _MODEL, *means([model_rate], [model_ms])],
    ]


def _charts(slices: Table) -> list[Chart]:
    def of(workers: int, heuristic: str) -> Table:
        rows = [row for row in slices.rows if row[:2] == (workers, heuristic)]
        return Table.from_rows(f"{slices.title}, {heuristic}, {counted(workers, 'worker')}", slices.columns, rows)

    return [
        lines(
            f"{what} by slice: {LABELS[heuristic]}, {counted(workers, 'worker')}",
            f"{QUERY}, costs x {LIGHTER:g}; threads of this machine, and the model. Bands: 95 %.",
            of(workers, LABELS[heuristic]),
            _SLICE.name,
            column.name,
            _RUN_BY.name,
            log_x=True,
            log_y=column is LATENCY,
        )
        for heuristic in (Heuristic.LP, Heuristic.CT)
        for workers in _WORKERS
        for what, column in (("Throughput", RATE), ("Latency", LATENCY))
    ]


def _over(one: Measured, other: Measured, place: int) -> list[float]:
    """Ratio of two measurements of threads, run by run.

    `place` is 0 for the rate and 1 for the latency.
    """
    return [mine[place] / their[place] for mine, their in zip(one[_THREADS], other[_THREADS], strict=True)]


def _apart(one: Measured) -> float:
    """How far the model's rate is from the median of threads."""
    rates: list[float] = [rate for rate, _ in one[_THREADS]]
    return abs(float(one[_MODEL][0]) / median(rates) - 1)


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
    for workers in _WORKERS:
        apart = [_apart(one) for key, one in found.items() if key[0] == workers]
        claims.append(
            (
                Claim(
                    "Section 6, target",
                    f"The model's throughput is within {CLOSE:.0%} of that of threads for every slice and window {AIM}",
                    f"< {CLOSE:g}",
                    below(CLOSE),
                    f"largest relative difference from the median of threads, {counted(workers, 'worker')}",
                    "more than this where other processes take a core: two workers on a quiet machine came to 0.16",
                ),
                [max(apart)],
            )
        )
    return all_judged(claims)
