"""Figure 13: an operator of high selectivity with both reorder buffers."""

from collections.abc import Mapping, Sequence

from adapt.core.ordered.chain.names import Reorder
from adapt.core.ordered.engine.settings import Contention, RunSettings
from adapt.core.table import Column, Kind, Table
from paper.claims import Claim, Judged, above
from paper.experiments import Experiment, Results
from paper.ordered.figures.shown import (
    CONSTANTS,
    SCHEME,
    SCHEMES,
    SPEED_UP,
    WORKERS,
    all_judged,
    lines,
    means,
    over,
    said,
)
from paper.ordered.measured import Pipeline, Ran, Simulated
from paper.ordered.pipelines import many_outputs
from paper.ordered.scope import JITTER, Scope, ran
from paper.report import Shown, averaged, section

_FIRST_US, _SELECTIVITY = 100.0, 50.0
_PAPER_US, _LIGHT_US = 100.0, 2.0
"""Cost of a tuple of the second operator: the paper's, and one with the same total work as the first."""

_CONSTANTS = (
    Contention(JITTER, send_us=0.05, output_us=0.05, lock_handover_us=0.15),
    Contention(JITTER, send_us=0.5, output_us=0.1, lock_handover_us=0.5),
    Contention(JITTER, send_us=0.5, output_us=0.2, lock_handover_us=0.5),
)
_SECOND = Column("second", Kind.NUMBER, "us", "cost of a tuple of the second operator")
_PER_TUPLE = Column("first, per tuple", Kind.NUMBER, "us", "worker time on the first operator, including waiting")
_SHARE = Column("first, share", Kind.SHARE, about="share of the time of all workers")
_OVER_LOCK = Column("over lock", Kind.RATIO, about="throughput of non-blocking over lock-based")

Key = tuple[float, Contention, Reorder, int]
"""Cost of the second operator, constants, reorder buffer and workers."""


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Runs of both schemes by second operator, constants and number of workers."""
    return [run for runs in _runs(scope).values() for run in runs]


def shown(scope: Scope, results: Results) -> Shown:
    """Speed-up, and time per tuple of the first operator."""
    runs = {key: ran(results, of) for key, of in _runs(scope).items()}
    table = Table.from_rows(
        "Figure 13: many outputs",
        [_SECOND, CONSTANTS, SCHEME, WORKERS, *averaged([SPEED_UP, _PER_TUPLE, _SHARE])],
        [
            (
                second_us,
                said(constants),
                SCHEMES[scheme],
                workers,
                *means(
                    over(seeds, runs[second_us, constants, scheme, 1]),
                    [run.cost_us for run in seeds],
                    [run.shares[0] for run in seeds],
                ),
            )
            for (second_us, constants, scheme, workers), seeds in runs.items()
        ],
    )
    beside = Table.from_rows(
        f"Figure 13 by constants, {scope.most} workers",
        [_SECOND, CONSTANTS, *averaged([_OVER_LOCK])],
        [
            (second_us, said(constants), *means(_gain(scope, runs, second_us, constants)))
            for second_us in (_PAPER_US, _LIGHT_US)
            for constants in _CONSTANTS
        ],
    )
    charts = [
        lines(
            f"Figure 13{part}: second operator {second_us:g} us",
            f"{what} Model: {said(_CONSTANTS[-1])}. Bands: 95 %.",
            Table.from_rows(
                f"Figure 13: second operator {second_us:g} us, {said(_CONSTANTS[-1])}",
                table.columns,
                [row for row in table.rows if row[0] == second_us and row[1] == said(_CONSTANTS[-1])],
            ),
            WORKERS.name,
            column.name,
            SCHEME.name,
        )
        for second_us in (_PAPER_US, _LIGHT_US)
        for part, column, what in (
            ("a", SPEED_UP, "Speed-up over one worker."),
            ("b", _PER_TUPLE, "Worker time per tuple of the first operator."),
        )
    ]
    told = (
        f"A stateless operator of {_FIRST_US:g} us with {_SELECTIVITY:g} outputs per tuple feeds a partitioned one, "
        f"whose cost in the paper is {_PAPER_US:g} us as well. At those costs the first operator has a fiftieth of "
        f"the work, so its sends cannot limit throughput. With a second operator of"
        f" {_LIGHT_US:g} us, as heavy in all as the first, they can, if an output takes long enough to send (e)."
    )
    return section("Figure 13: operators of high selectivity", [told], charts, [beside, table], _claims(scope, runs))


def _runs(scope: Scope) -> dict[Key, list[Simulated]]:
    rows = scope.few_rows // 10
    return {
        (second_us, constants, scheme, workers): scope.runs(
            Pipeline.of(many_outputs, rows, cost_us=_FIRST_US, selectivity=_SELECTIVITY, second_us=second_us),
            RunSettings(workers, scheme),
            constants,
        )
        for second_us in (_PAPER_US, _LIGHT_US)
        for constants in _CONSTANTS
        for scheme in SCHEMES
        for workers in scope.workers
    }


def _gain(scope: Scope, runs: Mapping[Key, list[Ran]], second_us: float, constants: Contention) -> list[float]:
    free, locked = (runs[second_us, constants, scheme, scope.most] for scheme in (Reorder.RETRY, Reorder.LOCK))
    return over(free, locked)


def _claims(scope: Scope, runs: Mapping[Key, list[Ran]]) -> list[Judged]:
    claims: list[tuple[Claim, Sequence[float]]] = []
    for second_us, weights in ((_PAPER_US, "at the paper's costs"), (_LIGHT_US, "with a light second operator")):
        for constants in (_CONSTANTS[0], _CONSTANTS[-1]):
            why = (
                "the first operator has a fiftieth of the work, and its lock is idle most of the time"
                if second_us == _PAPER_US
                else "sending an output takes too little time"
            )
            claims.append(
                (
                    Claim(
                        "Figure 13a",
                        f"Non-blocking reordering scales better with {_SELECTIVITY:g} outputs per tuple, {weights},"
                        f" e {constants.output_us:g} us",
                        "better",
                        above(1),
                        f"throughput over that of lock-based, {scope.most} workers; {said(constants)}",
                        why,
                    ),
                    _gain(scope, runs, second_us, constants),
                )
            )
    return all_judged(claims)
