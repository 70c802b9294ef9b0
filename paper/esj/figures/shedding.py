"""Adaptive load shedding: the shed factor, and what a stage sheds by its curve."""

from collections.abc import Sequence

import numpy as np

from adapt.core.stage.conditions.names import DropCurve
from adapt.core.stage.conditions.shed_factor import ShedFactor
from adapt.core.table import Column, Kind, Table
from paper.claims import ONE_RUN, Claim, Judged, about, below, judged, never
from paper.esj.measured import Sent, Shedding
from paper.esj.scope import AT_TAU_1, WORKERS, Scope, values
from paper.estimates import Estimate
from paper.experiments import Experiment, Results
from paper.report import Shown, averaged, cells, section

_WHERE = "Adaptive load shedding"
_OFFERED = (0.7, 1.2, 1.8)
"""Offered load over capacity."""


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Steady loads by drop curve."""
    return [run for runs in _steady(scope).values() for run in runs]


def shown(scope: Scope, results: Results) -> Shown:
    """Share shed by load and curve."""
    shed = {key: values(results, runs) for key, runs in _steady(scope).items()}
    table = Table.from_rows(
        "Share shed by the form of the shed factor",
        [Column("curve"), Column("offered", Kind.RATIO, about="load over capacity"), *averaged([SHED]), EXPECTED],
        [
            (curve.value, offered, *cells(Estimate.of(found)), _settled(offered) if curve is DropCurve.LINEAR else None)
            for (curve, offered), found in shed.items()
        ],
    )
    said = (
        "The paper's factor is linear, and may have another form, such as a square. A form that rises late keeps the"
        " buffer fuller and sheds less of a small overload; under a large one, all forms shed about the same."
    )
    return section("Adaptive load shedding", [said], [], [table], _claims(shed))


SHED = Column("shed", Kind.SHARE)
EXPECTED = Column("expected", Kind.SHARE, about="where the occupancy settles, rho k / (1 + rho k), linear alone")


def _steady(scope: Scope) -> dict[tuple[DropCurve, float], list[Shedding | Sent]]:
    return {
        (curve, offered): scope.each(Shedding(WORKERS, (offered * WORKERS * AT_TAU_1,), 30.0, curve=curve.value))
        for curve in DropCurve
        for offered in _OFFERED
    }


def _settled(offered: float, tau2: float = 0.8) -> float:
    """Share that a linear factor sheds of a steady load, with B = 0."""
    rho_k = offered / (1 - tau2)
    return max(0.0, 1 - max(tau2, rho_k / (1 + rho_k)) / offered)


def _claims(shed: dict[tuple[DropCurve, float], list[float]]) -> list[Judged]:
    at = ShedFactor(0.8, 0.2).part(np.array([0.79, 0.8, 0.9, 1.0]))
    linear = DropCurve.LINEAR
    claims: list[tuple[Claim, Sequence[float]]] = [
        (Claim(_WHERE, "Below tau2 nothing is shed", "0", never(), "SF at 0.79"), [float(at[0])]),
        (Claim(_WHERE, "At tau2 the base share B is shed", "B", about(0.2), "SF at tau2, B = 0.2"), [float(at[1])]),
        (Claim(_WHERE, "Between, SF is linear", "0.6", about(0.6), "SF halfway, B = 0.2"), [float(at[2])]),
        (Claim(_WHERE, "A saturated worker drops all tuples", "1", about(1.0), "SF at 1"), [float(at[3])]),
        (
            Claim(_WHERE, "Nothing is shed for tau < tau2", "0 (0.1 % is ours)", below(0.001), "share shed at 0.7"),
            shed[linear, 0.7],
        ),
        (
            Claim(
                _WHERE,
                "Under a steady overload, the linear factor settles at rho k / (1 + rho k) (computed)",
                f"{_settled(1.8):.3f}",
                about(_settled(1.8)),
                "share shed at 1.8 times the capacity",
            ),
            shed[linear, 1.8],
        ),
    ]
    return [judged(claim, found, ONE_RUN) for claim, found in claims]
