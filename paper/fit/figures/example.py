"""Section 1.1: the servers of Figure 1 and Table 1's plans."""

from collections.abc import Sequence
from fractions import Fraction

from adapt.core.table import Column, Kind, Table
from paper.claims import Claim, Judged, above
from paper.experiments import Experiment, Results
from paper.fit.figures.shown import COMPUTED, PLAIN, exactly, judged
from paper.fit.networks import figure_1
from paper.fit.scope import Scope
from paper.fit.worked import TABLE_1, TableRow, best, greedy, measured_row
from paper.report import Shown, section

_WHERE = "Table 1, section 1.1"
_ONES = (1.0, 1.0)
_DIGITS = 12
"""Digits that are compared; the rest is rounding."""


def wanted(scope: Scope) -> Sequence[Experiment]:  # noqa: ARG001
    """No experiments: results are computed directly."""
    return []


def shown(scope: Scope, results: Results) -> Shown:  # noqa: ARG001
    """The five plans, as printed and as measured."""
    numbers = ("load of A", "load of B", "A, query 1", "A, query 2", "B, query 1", "B, query 2")
    columns = [
        Column("plan", Kind.COUNT),
        Column("source"),
        Column("kept 1", Kind.RATIO, about="share kept of input 1 at A"),
        Column("kept 2", Kind.RATIO, about="share kept of input 2 at A"),
        *(Column(name, Kind.RATIO, "" if "load" in name else "tuples/s") for name in numbers),
    ]
    rows = [
        (number, source, *row.rates, *row.numbers)
        for number, printed in enumerate(TABLE_1)
        for source, row in (("paper", printed), ("ours", measured_row(printed.rates)))
    ]
    said = (
        "Two queries run through servers A and B; both inputs offer a tuple per second. Costs follow from the"
        " table: 1 and 2 s of CPU per tuple on A, 3 and 1 on B. The paper's scheduler is fair and round-robin; the "
        "numbers"
        " match fairness in tuples: every operator gets the same number of tuples, or all it has. Equal shares of CPU"
        " would give other numbers in plans 0 and 1."
    )
    table = Table.from_rows("Table 1: five ways to shed load at A", columns, rows)
    return section("Table 1: an example", [said], [], [table], _claims())


def _claims() -> list[Judged]:
    optimum, alone = best(figure_1(), _ONES), greedy(figure_1(), _ONES)
    claims = [_row_claim(number, printed) for number, printed in enumerate(TABLE_1)]
    claims += [
        (
            Claim(
                _WHERE,
                "The optimal plan keeps a fifth of the first input",
                "1/5",
                exactly(1 / 5),
                "share kept by the linear program",
                certainty=PLAIN,
            ),
            optimum.keeps["in0 -> A0"],
        ),
        (
            Claim(
                _WHERE,
                "The optimal plan keeps two fifths of the second input",
                "2/5",
                exactly(2 / 5),
                "share kept by the linear program",
                certainty=PLAIN,
            ),
            optimum.keeps["in1 -> A1"],
        ),
        (
            Claim(
                _WHERE,
                "The optimal plan gives 3/5 of a tuple per second",
                "3/5",
                exactly(3 / 5),
                "tuples/s at the outputs by the linear program",
                certainty=COMPUTED,
            ),
            optimum.score,
        ),
        (
            Claim(
                _WHERE,
                "From A's point of view, the best local plan is plan 2",
                "keep all of input 1 and nothing of input 2",
                exactly(1),
                "share kept of input 1 minus that of input 2, by greedy-local",
                certainty=PLAIN,
            ),
            alone.keeps["in0 -> A0"] - alone.keeps["in1 -> A1"],
        ),
        (
            Claim(
                _WHERE,
                "Servers that shed independently deliver less than a coordinated plan",
                "1/3 instead of 3/5",
                above(1),
                "score of the linear program over that of greedy-local",
                certainty=COMPUTED,
            ),
            optimum.score / alone.score,
        ),
    ]
    return [judged(claim, [value]) for claim, value in claims]


def _row_claim(number: int, printed: TableRow) -> tuple[Claim, float]:
    measured = measured_row(printed.rates)
    apart = max(abs(one - other) for one, other in zip(printed.numbers, measured.numbers, strict=True))
    claim = Claim(
        _WHERE,
        f"Plan {number} of Table 1 has these loads and throughputs at A and B",
        f"loads {_said(printed.loads)}; A gives {_said(printed.given)}; B gives {_said(printed.results)}",
        exactly(0),
        "largest difference from any of the row's six numbers",
        certainty=PLAIN,
    )
    return claim, round(apart, _DIGITS)


def _said(numbers: tuple[float, float]) -> str:
    return " and ".join(str(Fraction(number).limit_denominator(10)) for number in numbers)
