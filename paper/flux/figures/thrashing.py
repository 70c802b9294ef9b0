"""Figure 8: a few hot partitions, by minimum collection time."""

from collections.abc import Mapping, Sequence
from typing import Any

from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.table import Column, Kind, Table
from paper.claims import Claim, Judged, about, above, below
from paper.experiments import Experiment, Results
from paper.flux.beyond import Compared
from paper.flux.figures.shown import LABELS, POLICY, STEADY, THROUGHPUT, estimate, judged, lines, mean, shares
from paper.flux.measured import Ran, StageRun
from paper.flux.scenarios import mean_rate
from paper.flux.scope import Scope, ran
from paper.report import Shown, averaged, cells, section

_COLLECTION = Column("delta_min", Kind.NUMBER, "ms", "minimum collection time of statistics")
_LOADED = Column("loaded", Kind.COUNT, "workers", "workers with external load, including the hottest")
_OF_STATIC = Column("of static", Kind.RATIO, about="throughput over that of the static stage with the same load")
_MOVES = Column("moves per minute", Kind.NUMBER)
_RETURNS = Column("returns per minute", Kind.NUMBER, about="moves that bring a partition back to a worker it has left")

STATIC, FLUX = LABELS[FluxPolicy.NONE], LABELS[FluxPolicy.LOAD]

_BRIEF_S = 0.25
"""Collection time at which the paper's policy beats the static stage, with no worker loaded."""
_BRIEF_LOADED_S = 0.15
"""The same with eight loaded workers."""

READINGS: Mapping[str, Mapping[str, Any]] = {
    "hashed, waiting known to 10 ms": {},
    "hashed, waiting known exactly": {"idle_clock_s": 0.0},
    "in order, waiting known to 10 ms": {"hashed": False},
    "in order, waiting known exactly": {"hashed": False, "idle_clock_s": 0.0},
}
"""Readings of how groups map to partitions and how exactly waiting is measured; the first is judged."""


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Runs by policy and minimum collection time."""
    return [
        *(run for runs in _hot(scope).values() for run in runs),
        *(run for runs in _read(scope).values() for run in runs),
    ]


def shown(scope: Scope, results: Results) -> Shown:
    """Throughput by minimum collection time."""
    runs = hot(scope, results)
    table = Table.from_rows(
        "Figure 8: a few hot partitions",
        [POLICY, _LOADED, _COLLECTION, *averaged([THROUGHPUT, _OF_STATIC, _MOVES, _RETURNS])],
        [
            (name, loaded, 1000 * collection_s, *_cells(seeds, runs[STATIC, loaded, at]))
            for (name, loaded, collection_s), seeds in runs.items()
            for at in [collection_s if (STATIC, loaded, collection_s) in runs else 0.0]
        ],
    )
    read = {key: ran(results, of) for key, of in _read(scope).items()}
    readings = Table.from_rows(
        "Figure 8: what the paper does not say",
        [Column("reading"), POLICY, _COLLECTION, *averaged([THROUGHPUT, _OF_STATIC, _MOVES, _RETURNS])],
        [
            (reading, name, 1000 * collection_s, *_cells(seeds, read[reading, STATIC, 0.0]))
            for (reading, name, collection_s), seeds in read.items()
        ],
    )
    charts = [
        lines(
            f"Throughput over that of the static stage, {_with(loaded)}",
            "Dashed: the static stage. Bands: 95 %.",
            _only_loaded(table, loaded),
            "delta_min",
            "of static",
            log_x=True,
            mark=1.0,
            only=[FLUX, *(LABELS[policy] for policy in STEADY)],
        )
        for loaded in (0, scope.hot_loaded)
    ]
    said = (
        "80 % of the tuples belong to 20 % of the groups, and likewise within these. The paper does not say how "
        "groups map"
        " to partitions, nor how a consumer measures its waiting. If it sleeps without input and counts the sleeps, "
        "as the"
        " paper suggests, it knows its waiting in steps, of 10 ms here. With exact times the paper's policy does not"
        " thrash at all."
    )
    return section("Figure 8: thrashing", [said], charts, [table, readings], _claims(scope, runs))


Hot = Mapping[tuple[str, int, float], list[Ran]]
"""Runs by policy, loaded workers and minimum collection time, which is 0 without moves."""


def hot(scope: Scope, results: Results) -> dict[tuple[str, int, float], list[Ran]]:
    """Results of the runs."""
    return {key: ran(results, runs) for key, runs in _hot(scope).items()}


def rates(seeds: Sequence[Ran]) -> list[float]:
    """Tuples per second over the whole run, one per seed."""
    return [mean_rate(run, 0.0) for run in seeds]


def _hot(scope: Scope) -> dict[tuple[str, int, float], list[StageRun]]:
    found = {}
    collections_of: dict[Compared, Sequence[float]] = {
        FluxPolicy.NONE: (0.0,),
        FluxPolicy.LOAD: scope.collections_s,
        **dict.fromkeys(STEADY, scope.beyond_collections_s),
    }
    for loaded in (0, scope.hot_loaded):
        for policy, collections in collections_of.items():
            for collection_s in collections:
                found[LABELS[policy], loaded, collection_s] = scope.runs(
                    "few_hot", policy, collection_s, loaded=loaded, seconds=scope.hot_s
                )
    return found


def _read(scope: Scope) -> dict[tuple[str, str, float], list[StageRun]]:
    """Runs by reading, policy and minimum collection time, with no worker loaded."""
    found = {}
    for reading, arguments in READINGS.items():
        for policy, collections in {FluxPolicy.NONE: (0.0,), FluxPolicy.LOAD: scope.beyond_collections_s}.items():
            for collection_s in collections:
                found[reading, LABELS[policy], collection_s] = scope.runs(
                    "few_hot", policy, collection_s, loaded=0, seconds=scope.hot_s, **arguments
                )
    return found


def _cells(seeds: Sequence[Ran], static: Sequence[Ran]) -> list[float | None]:
    return cells(
        estimate(rates(seeds)),
        estimate(shares(rates(seeds), rates(static))),
        estimate(60 * run.moves / run.lasted_s for run in seeds),
        estimate(60 * run.returns / run.lasted_s for run in seeds),
    )


def _only_loaded(table: Table, loaded: int) -> Table:
    at = [column.name for column in table.columns].index(_LOADED.name)
    rows = [row for row in table.rows if row[at] == loaded and row[at + 1]]
    return Table.from_rows(f"{table.title}, {_with(loaded)}", table.columns, rows)


def _with(loaded: int) -> str:
    return "no worker loaded" if loaded == 0 else f"{loaded} workers loaded"


def _claims(scope: Scope, runs: Hot) -> list[Judged]:
    loaded, briefest, longest = scope.hot_loaded, scope.collections_s[0], scope.collections_s[-1]
    static, under_load = rates(runs[STATIC, 0, 0.0]), rates(runs[STATIC, loaded, 0.0])

    def flux(workers: int, collection_s: float) -> list[float]:
        return rates(runs[FLUX, workers, collection_s])

    def gain(workers: int, collection_s: float) -> list[float]:
        return shares(flux(workers, collection_s), under_load if workers else static)

    passes = _first_above(scope, runs, 0, static)
    claims: list[tuple[Claim, Sequence[float]]] = [
        (
            Claim(
                "Figure 8, section 5.4",
                "With a short collection time Flux has half of the throughput of the static stage",
                "half",
                about(0.5, departs=1),
                f"throughput over that of the static stage at {1000 * briefest:g} ms, the shortest",
                "the drop depends on how exactly a consumer measures its waiting, which the paper does not say; with "
                "exact times there is no drop",
                certainty="S",
            ),
            gain(0, briefest),
        ),
        (
            Claim(
                "Figure 8, section 5.4",
                "At 250 ms Flux passes the static stage",
                "> 1 at 250 ms",
                above(1),
                f"throughput over that of the static stage at {1000 * _BRIEF_S:g} ms",
                f"it passes {passes}",
                certainty="D",
            ),
            gain(0, _BRIEF_S),
        ),
        (
            Claim(
                "Figure 8, section 5.4",
                f"Load on {loaded} workers lowers the throughput of the static stage",
                "drops",
                below(1),
                "throughput of the loaded static stage over that of the unloaded one",
                certainty="S",
            ),
            shares(under_load, static),
        ),
        (
            Claim(
                "Figure 8, section 5.4",
                f"With {loaded} workers loaded Flux is still ineffective at a short collection time",
                "ineffective",
                below(1),
                f"throughput over that of the loaded static stage at {1000 * briefest:g} ms",
                "each time the hottest partition leaves a loaded worker for another one, the stage gains",
                certainty="S",
            ),
            gain(loaded, briefest),
        ),
        (
            Claim(
                "Figure 8, section 5.4",
                f"With {loaded} workers loaded Flux passes even the unloaded static stage, at 150 ms",
                "> 1 at 150 ms",
                above(1),
                f"throughput under load at {1000 * _BRIEF_LOADED_S:g} ms over that of the unloaded static stage",
                f"it passes {_first_above(scope, runs, loaded, static)}",
                certainty="D, ?",
            ),
            shares(flux(loaded, _BRIEF_LOADED_S), static),
        ),
        (
            Claim(
                "Figure 8, section 5.4",
                f"The policy works better with {loaded} workers loaded than with none",
                "better",
                above(0),
                f"gain over the static stage at {1000 * _BRIEF_LOADED_S:g} ms with load, less that without",
                certainty="S",
            ),
            [more - less for more, less in zip(gain(loaded, _BRIEF_LOADED_S), gain(0, _BRIEF_LOADED_S), strict=True)],
        ),
        (
            Claim(
                "Figure 8, section 5.4",
                "A longer collection time reduces the frequency of moves",
                "fewer",
                below(1),
                f"moves at {1000 * longest:g} ms over moves at {1000 * briefest:g} ms, no worker loaded",
                certainty="S",
            ),
            [
                few.moves / max(1, many.moves)
                for few, many in zip(runs[FLUX, 0, longest], runs[FLUX, 0, briefest], strict=True)
            ],
        ),
    ]
    return [judged(claim, values) for claim, values in claims]


def _first_above(scope: Scope, runs: Hot, loaded: int, static: Sequence[float]) -> str:
    """Shortest collection time from which the mean is above that of the unloaded static stage."""
    passed = [each for each in scope.collections_s if mean(shares(rates(runs[FLUX, loaded, each]), static)) > 1]
    return f"at {1000 * passed[0]:g} ms" if passed else f"nowhere up to {1000 * scope.collections_s[-1]:g} ms"
