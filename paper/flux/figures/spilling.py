"""Figures 9 and 10: one worker loses half of its memory."""

from collections.abc import Mapping, Sequence

from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.table import Column, Kind, Table
from paper.claims import Claim, Judged, Range, about, above, below, equal, printed
from paper.experiments import Experiment, Results
from paper.flux.figures.shown import (
    LABELS,
    LATENCY,
    MOVES,
    ON_DISK,
    POLICY,
    SHARE,
    THROUGHPUT,
    estimate,
    judged,
    lines,
    over_time,
    within,
)
from paper.flux.measured import Ran, StageRun
from paper.flux.scenarios import DISTURBED_S, mean_rate
from paper.flux.scope import Scope, ran
from paper.report import Shown, averaged, cells, section

_INTERVAL_S = 0.25
_LAST_S = 5.0
_STILL, _AGAIN = 0.01, 0.1
"""A stage has stopped below the first share of the full rate, and resumed above the second."""

_RESUMES = Column("resumes", Kind.NUMBER, "s", "after the loss of memory, at a tenth of the full rate")
_IN_MEMORY = Column("all in memory", Kind.NUMBER, "s", "after the loss of memory, with nothing on disk")

STATIC, MEMORY = LABELS[FluxPolicy.NONE], LABELS[FluxPolicy.MEMORY]


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Runs with and without moves."""
    return [run for runs in _pressed(scope).values() for run in runs]


def shown(scope: Scope, results: Results) -> Shown:
    """Throughput and latency over time."""
    runs = {name: ran(results, of) for name, of in _pressed(scope).items()}
    metrics = {
        THROUGHPUT: lambda one: one.throughput,
        LATENCY: lambda one: one.latency_us,
        ON_DISK: lambda one: float(one.on_disk),
    }
    seconds = over_time("Figures 9 and 10: second by second", runs, metrics)
    summary = Table.from_rows(
        "Figures 9 and 10: a worker loses half of its memory",
        [POLICY, *averaged([_RESUMES, _IN_MEMORY, SHARE, LATENCY, MOVES])],
        [
            (
                name,
                *cells(
                    estimate(resumes_after_s(run, scope.full) for run in seeds),
                    estimate(in_memory_after_s(run) for run in seeds),
                    estimate(at_the_end(run) / scope.full for run in seeds),
                    estimate(latency_at_the_end(run) for run in seeds),
                    estimate(run.moves for run in seeds),
                ),
            )
            for name, seeds in runs.items()
        ],
    )
    charts = [
        lines(
            "Throughput as a worker loses half of its memory",
            f"Tuples per second; the memory is lost at {DISTURBED_S:g} s. Dashed: the undisturbed stage. Bands: 95 %.",
            seconds,
            "second",
            "throughput",
            mark=scope.full,
            spots=False,
        ),
        lines(
            "Latency as a worker loses half of its memory",
            "Microseconds from when a consumer takes a tuple until it is processed. Dashed: 45 us.",
            seconds,
            "second",
            "latency",
            log_y=True,
            mark=45.0,
            spots=False,
        ),
    ]
    said = (
        f"{scope.workers} workers with 128 partitions of 6 MB each, 768 MB of 1 GB; one is left with 512 MB and writes "
        f"256"
        " MB to its disk. The time between two reads from disk, and the order in which partitions are written, are in "
        "the paper's unpublished long version: 0.2 s and first come, first written are assumed."
    )
    return section("Figures 9 and 10: memory of one worker", [said], charts, [summary, seconds], _claims(scope, runs))


def resumes_after_s(run: Ran, full: float) -> float | None:
    """Seconds from memory loss until the stage resumes; None if never."""
    still = next(
        (one.start_s for one in run.intervals if one.start_s >= DISTURBED_S and one.throughput < _AGAIN * full), None
    )
    if still is None:
        return None
    again = (one.start_s for one in run.intervals if one.start_s > still and one.throughput > _AGAIN * full)
    return next((start - DISTURBED_S for start in again), None)


def in_memory_after_s(run: Ran) -> float | None:
    """Seconds from memory loss until nothing is on disk; None if never."""
    last = run.intervals[-1]
    return None if last.on_disk else max(one.end_s for one in run.intervals if one.on_disk) - DISTURBED_S


def at_the_end(run: Ran) -> float:
    """Tuples per second of the last seconds."""
    return mean_rate(run, run.lasted_s - _LAST_S)


def latency_at_the_end(run: Ran) -> float:
    """Microseconds in the operator over the last seconds."""
    return run.latency_us(run.lasted_s - _LAST_S)


def _pressed(scope: Scope) -> dict[str, list[StageRun]]:
    return {
        LABELS[policy]: scope.runs("pressed", policy, interval_s=_INTERVAL_S, count=1, seconds=scope.spilling_s)
        for policy in (FluxPolicy.NONE, FluxPolicy.MEMORY)
    }


def _claims(scope: Scope, runs: Mapping[str, list[Ran]]) -> list[Judged]:
    static, flux = runs[STATIC], runs[MEMORY]
    resumed = {name: [within(run, resumes_after_s(run, scope.full)) for run in seeds] for name, seeds in runs.items()}
    again = [DISTURBED_S + seconds for seconds in resumed[STATIC]]
    claims: list[tuple[Claim, Sequence[float]]] = [
        (
            Claim(
                "Figure 9, section 6.2",
                "The static stage resumes about 14 s after the memory is gone, when 256 MB are written",
                "about 14 s",
                about(14),
                "seconds; 43 partitions take 0.305 s each, 13.1 s",
                certainty="D, C",
            ),
            resumed[STATIC],
        ),
        (
            Claim(
                "Figure 9, section 6.2",
                "While a worker writes to disk, the static stage grinds to a halt",
                "0",
                below(_STILL),
                "throughput of its worst second over the full rate",
                certainty="S",
            ),
            [min(one.throughput for one in run.by_second()) / scope.full for run in static],
        ),
        (
            Claim(
                "Figure 9, section 6.2",
                "The static stage then goes on at a much reduced rate",
                "much reduced (half is ours)",
                below(0.5, departs=1),
                "throughput from then on over the full rate",
                certainty="S",
            ),
            [mean_rate(run, start + 1) / scope.full for run, start in zip(static, again, strict=True)],
        ),
        (
            Claim(
                "Figure 9, section 6.2",
                "With Flux there is some throughput while the static stage has stopped",
                "some, minute",
                above(0),
                "throughput less that of the static stage, over the full rate, in the 5 s before the latter goes on",
                certainty="S",
            ),
            [
                (mean_rate(moved, start - 5, start) - mean_rate(still, start - 5, start)) / scope.full
                for moved, still, start in zip(flux, static, again, strict=True)
            ],
        ),
        (
            Claim(
                "Figure 9, section 6.2",
                "With Flux the stage resumes no later than without",
                "earlier or together",
                Range(high=_INTERVAL_S + 1e-9),
                f"seconds later, in steps of {_INTERVAL_S:g}",
                certainty="?",
            ),
            [late - early for late, early in zip(resumed[MEMORY], resumed[STATIC], strict=True)],
        ),
        (
            Claim(
                "Figure 9, section 6.2",
                "Bringing all partitions into memory takes longer than sending them, 8.3 s",
                "> 8.3 s",
                above(8.3),
                "seconds from the loss of memory until nothing is on disk",
                certainty="C",
            ),
            [within(run, in_memory_after_s(run)) for run in flux],
        ),
        (
            Claim(
                "Figure 9, section 6.2",
                "Bringing all partitions into memory takes no longer than writing, reading and sending them in turn",
                "< 13.1 + 13.1 + 8.3 s",
                below(34.5),
                "seconds from the loss of memory until nothing is on disk",
                "the worker reads requests to move only between disk accesses, and goes on writing and reading those "
                "partitions that have not moved yet",
                certainty="C",
            ),
            [within(run, in_memory_after_s(run)) for run in flux],
        ),
        (
            Claim(
                "Abstract",
                "Flux improves throughput by several factors, here with one worker short of memory",
                "several factors (two is ours)",
                above(2),
                "throughput of the last 5 s over that of the static stage",
                certainty="S",
            ),
            [at_the_end(moved) / at_the_end(still) for moved, still in zip(flux, static, strict=True)],
        ),
        (
            Claim(
                "Abstract",
                "Flux improves average latency by orders of magnitude, here with one worker short of memory",
                "orders of magnitude (a hundred times is ours)",
                above(100),
                "mean latency of the static stage over that with Flux, over the last 5 s",
                certainty="S",
            ),
            [latency_at_the_end(still) / latency_at_the_end(moved) for moved, still in zip(flux, static, strict=True)],
        ),
        (
            Claim(
                "Figure 9, section 6.2",
                "Once all is in memory, the stage with Flux is at its full rate",
                "as undisturbed",
                equal(),
                "throughput of the last 5 s over the full rate",
                certainty="S",
            ),
            [at_the_end(run) / scope.full for run in flux],
        ),
        (
            Claim(
                "Figure 10, section 6.2",
                "While partitions are on disk, latency with Flux is high",
                "high (ten times 45 us is ours)",
                above(450),
                "mean us with Flux over the tuples of its worst second",
                certainty="S",
            ),
            [max(one.latency_us or 0.0 for one in run.by_second()) for run in flux],
        ),
        (
            Claim(
                "Figure 10, section 6.2",
                "Once all is in memory, latency with Flux is that of a tuple in memory",
                "45 us",
                printed("45"),
                "us over the last 5 s",
                certainty="D",
            ),
            [latency_at_the_end(run) for run in flux],
        ),
    ]
    return [judged(claim, values) for claim, values in claims]
