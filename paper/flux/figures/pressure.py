"""Second experiment on memory: many workers lose half of it."""

from collections.abc import Mapping, Sequence

from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.table import Column, Kind, Table
from paper.claims import Claim, Judged, above, between, equal, never, printed
from paper.experiments import Experiment, Results
from paper.flux.figures.shown import (
    LABELS,
    LATENCY,
    MOVES,
    ON_DISK,
    POLICY,
    THROUGHPUT,
    estimate,
    judged,
    lines,
    shares,
    straightness,
)
from paper.flux.measured import Ran, StageRun
from paper.flux.scenarios import mean_rate
from paper.flux.scope import Scope, ran
from paper.report import Shown, averaged, cells, section

_LAST_S = 40.0
"""Time in which a worker reads all its partitions from disk in turn."""

_PRESSED = Column("pressed", Kind.COUNT, "workers", "workers with half of their memory")

STATIC, MEMORY, SEVERAL = (LABELS[policy] for policy in (FluxPolicy.NONE, FluxPolicy.MEMORY, FluxPolicy.MEMORY_SEVERAL))


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Runs with and without moves, by number of workers short of memory."""
    return [run for by_count in _pressed(scope).values() for runs in by_count.values() for run in runs]


def shown(scope: Scope, results: Results) -> Shown:
    """Throughput and latency by number of workers short of memory."""
    runs = {
        name: {count: ran(results, of) for count, of in by_count.items()} for name, by_count in _pressed(scope).items()
    }
    table = Table.from_rows(
        "Second experiment on memory",
        [POLICY, _PRESSED, *averaged([THROUGHPUT, LATENCY, ON_DISK, MOVES])],
        [
            (
                name,
                count,
                *cells(
                    estimate(rate(run) for run in seeds),
                    estimate(latency(run) for run in seeds),
                    estimate(float(run.intervals[-1].on_disk) for run in seeds),
                    estimate(run.moves for run in seeds),
                ),
            )
            for name, by_count in runs.items()
            for count, seeds in by_count.items()
        ],
    )
    charts = [
        lines(
            "Throughput by workers short of memory",
            f"Tuples per second over the last {_LAST_S:g} s. Dashed: the undisturbed stage. Bands: 95 %.",
            table,
            "pressed",
            "throughput",
            mark=scope.full,
        ),
        lines(
            "Latency by workers short of memory",
            "Microseconds in the operator over the same time. Dashed: 45 us.",
            table,
            "pressed",
            "latency",
            log_y=True,
            mark=45.0,
        ),
    ]
    said = (
        f"Random workers out of {scope.workers}, chosen by the seed, are left with 512 MB of 1 GB. All memory just "
        f"holds all state if {scope.workers // 2} are. Runs of {scope.pressed_s:g} s; the partitions on disk have not "
        f"settled by then, since a worker does not answer the controller while it reads and writes."
    )
    return section("Section 6.2: memory of several workers", [said], charts, [table], _claims(scope, runs))


def rate(run: Ran) -> float:
    """Tuples per second of the last seconds."""
    return mean_rate(run, run.lasted_s - _LAST_S)


def latency(run: Ran) -> float:
    """Microseconds in the operator over the last seconds."""
    return run.latency_us(run.lasted_s - _LAST_S)


def _pressed(scope: Scope) -> dict[str, dict[int, list[StageRun]]]:
    return {
        LABELS[policy]: {
            count: scope.runs("pressed", policy, count=count, seconds=scope.pressed_s) for count in scope.pressed
        }
        for policy in (FluxPolicy.NONE, FluxPolicy.MEMORY, FluxPolicy.MEMORY_SEVERAL)
    }


def _claims(scope: Scope, runs: Mapping[str, Mapping[int, list[Ran]]]) -> list[Judged]:
    static, flux = runs[STATIC], runs[MEMORY]
    one, every = scope.pressed[0], scope.pressed[-1]
    roomy = max(count for count in scope.pressed if count < scope.workers // 2)
    beyond = min(count for count in scope.pressed if count > scope.workers // 2)
    straight = [
        straightness([0, *scope.pressed], [scope.full, *(rate(flux[count][seed]) for count in scope.pressed)])
        for seed in range(scope.seeds)
    ]
    claims: list[tuple[Claim, Sequence[float]]] = [
        (
            Claim(
                "Section 6.2",
                "Without moves throughput drops once a single worker is short of memory, and remains there",
                "remains",
                equal(),
                f"throughput with {every} workers short of memory over that with one",
                certainty="S",
            ),
            shares([rate(run) for run in static[every]], [rate(run) for run in static[one]]),
        ),
        (
            Claim(
                "Section 6.2",
                "Without moves latency is 2.4e5 us with one worker short of memory",
                "2.4e5 us",
                printed("2.4", departs=45e-5),
                "1e5 us",
                "it depends on the time between two reads from disk, which is assumed; the power of ten is computed, "
                "since the paper's is illegible",
                certainty="D, C",
            ),
            [latency(run) / 1e5 for run in static[one]],
        ),
        (
            Claim(
                "Section 6.2",
                "Without moves latency is some 1e6 us with all workers short of memory",
                "x.y x 1e6 us",
                between(1e6, 1e7, departs=2.4e5),
                "us",
                certainty="C",
            ),
            [latency(run) for run in static[every]],
        ),
        (
            Claim(
                "Section 6.2",
                "With Flux throughput degrades almost along a straight line",
                "almost linear (0.95 is ours)",
                above(0.95),
                "r squared of a straight line through throughput by workers short of memory",
                "once memory is exhausted, the stage has not settled by the end of the runs, and is as slow with some "
                "workers short of memory as with all",
                certainty="S",
            ),
            straight,
        ),
        (
            Claim(
                "Section 6.2",
                "With Flux latency is that of a tuple in memory until all memory is exhausted",
                "45 us",
                printed("45"),
                f"us with {roomy} workers short of memory, the most that leave some memory free",
                "the stage has not settled by the end of the runs",
                certainty="D",
            ),
            [latency(run) for run in flux[roomy]],
        ),
        (
            Claim(
                "Section 6.2",
                "With Flux latency increases exponentially once all memory is exhausted",
                "exponentially (100 times is ours)",
                above(100, departs=1),
                f"latency with {beyond} workers short of memory over that with {roomy}",
                certainty="S",
            ),
            shares([latency(run) for run in flux[beyond]], [latency(run) for run in flux[roomy]]),
        ),
        (
            Claim(
                "Section 6.2, beyond the paper",
                f"Several moves per round have all state in memory at the end with {roomy} workers short of memory "
                f"(an aim of ours)",
                "0",
                never(),
                "partitions on disk at the end",
            ),
            [float(run.intervals[-1].on_disk) for run in runs[SEVERAL][roomy]],
        ),
    ]
    return [judged(claim, values) for claim, values in claims]
