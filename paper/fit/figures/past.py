"""Beyond the paper: fairness, weights, links, and splits that join again."""

from collections.abc import Sequence

from adapt.core.table import Column, Kind, Table
from paper.claims import Claim, Judged
from paper.experiments import Experiment, Results
from paper.fit.figures.shown import exactly, judged
from paper.fit.networks import figure_1
from paper.fit.scope import Scope
from paper.fit.worked import Shed, best, fair, linked, the_diamond, weighted
from paper.report import Shown, section

_ONES = (1.0, 1.0)
_FIRST, _SECOND = "in0 -> A0", "in1 -> A1"


def wanted(scope: Scope) -> Sequence[Experiment]:  # noqa: ARG001
    """No experiments: results are computed directly."""
    return []


def shown(scope: Scope, results: Results) -> Shown:  # noqa: ARG001
    """Shares kept and rates reached by each extension."""
    cases = [
        ("throughput", best(figure_1(), _ONES)),
        ("weights 1 and 3", best(weighted(), _ONES)),
        ("max-min fair", fair(figure_1(), _ONES)),
        ("link of 1/2 tuple/s", best(linked(0.5), _ONES)),
        ("link of 7/10 tuple/s", best(linked(0.7), _ONES)),
    ]
    columns = [
        Column("objective or limit"),
        Column("kept 1", Kind.RATIO),
        Column("kept 2", Kind.RATIO),
        Column("score", Kind.RATIO, "tuples/s", "weighted"),
    ]
    rows = [(name, shed.keeps[_FIRST], shed.keeps[_SECOND], shed.score) for name, shed in cases]
    said = (
        "The paper leaves bandwidth and server networks other than trees to future work, excludes splits whose branches"
        " join again, and expresses fairness by weights. This program supports all of them. The expected numbers were"
        " computed by hand."
    )
    table = Table.from_rows("Figure 1, with other objectives and limits", columns, rows)
    return section(
        "Beyond the paper: fairness, links, any network", [said], [], [table], _claims(dict(cases), the_diamond())
    )


def _claims(cases: dict[str, Shed], diamond: Shed) -> list[Judged]:
    heavy, even = cases["weights 1 and 3"], cases["max-min fair"]
    claims = [
        ("Weights of 1 and 3 starve the first query", "0 kept", 0.0, "share kept of input 1", heavy.keeps[_FIRST]),
        (
            "Weights of 1 and 3 leave half of the second query",
            "1/2 kept",
            1 / 2,
            "share kept of input 2",
            heavy.keeps[_SECOND],
        ),
        ("Weights of 1 and 3 give a score of 3/2", "3/2", 3 / 2, "weighted tuples/s", heavy.score),
        (
            "Max-min fairness keeps a quarter of the first query",
            "1/4",
            1 / 4,
            "share kept of input 1",
            even.keeps[_FIRST],
        ),
        (
            "Max-min fairness keeps a quarter of the second query",
            "1/4",
            1 / 4,
            "share kept of input 2",
            even.keeps[_SECOND],
        ),
        ("Max-min fairness gives half a tuple per second", "1/2", 1 / 2, "tuples/s", even.score),
        (
            "A link that carries half a tuple per second lets that much through",
            "1/2",
            1 / 2,
            "tuples/s",
            cases["link of 1/2 tuple/s"].score,
        ),
        (
            "A link with spare bandwidth changes nothing",
            "3/5",
            3 / 5,
            "tuples/s",
            cases["link of 7/10 tuple/s"].score,
        ),
        (
            "A split that joins again on another server gives 7/27",
            "7/27",
            7 / 27,
            "tuples/s of the diamond at rate 1",
            diamond.score,
        ),
    ]
    return [
        judged(Claim("Beyond the paper", text, reported, exactly(number), measure), [value])
        for text, reported, number, measure, value in claims
    ]
