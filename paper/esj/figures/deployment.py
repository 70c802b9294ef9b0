"""Initial deployment: workers by tau1, the rise that they take, and their messages."""

from collections.abc import Sequence

from adapt.core.advice.initial_workers import initial_workers_table
from adapt.core.stage.conditions.shed_factor import Overload, ShedFactor, Thresholds
from adapt.core.table import Column, Kind, Table
from paper.claims import ONE_RUN, Claim, Judged, above, below, judged
from paper.esj.measured import SENT_CAPACITY, SENT_RATE, SENT_WINDOW_S, Sent, Shedding
from paper.esj.scope import Scope, rising, values
from paper.estimates import Estimate
from paper.experiments import Experiment, Results
from paper.report import Shown, averaged, cells, section

_WHERE = "Initial deployment"
_RISES = ((0.4, 2.0), (0.4, 3.0), (0.75, 1.1), (0.2, 2.0), (0.2, 3.0))
"""tau1, and the rate of a phase over the expected one."""


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Rising rates, and messages by tau1."""
    return [run for runs in (*_rises(scope).values(), *_sent(scope).values()) for run in runs]


def shown(scope: Scope, results: Results) -> Shown:
    """Workers by tau1, shedding by rise, messages by tau1."""
    workers = initial_workers_table(SENT_RATE, Overload(ShedFactor(), SENT_CAPACITY, SENT_WINDOW_S), Thresholds())
    shed = {key: values(results, runs) for key, runs in _rises(scope).items()}
    sent = {tau1: [results[run] for run in runs] for tau1, runs in _sent(scope).items()}
    rises = Table.from_rows(
        "A rate that rises for 5 s",
        [Column("tau1", Kind.NUMBER), Column("rise", Kind.RATIO), *averaged([Column("shed", Kind.SHARE)])],
        [(*key, *cells(Estimate.of(found))) for key, found in shed.items()],
    )
    names = ("messages", "bytes", "cpu_us")
    columns = [
        Column("messages", Kind.NUMBER, about="messages per tuple"),
        Column("bytes", Kind.NUMBER, "B", "bytes per tuple, as Arrow"),
        Column("cpu", Kind.NUMBER, "us", "CPU time per tuple, to write and read messages"),
    ]
    messages = Table.from_rows(
        "Messages between workers",
        [Column("tau1", Kind.NUMBER), Column("workers", Kind.COUNT), *averaged(columns)],
        [
            (tau1, runs[0]["workers"], *cells(*(Estimate.of(run[name] for run in runs) for name in names)))
            for tau1, runs in sent.items()
        ],
        note="Each worker sends to all, and collects tuples for a receiver for 100 ms.",
    )
    low, high = min(sent), max(sent)
    more = [few["cpu_us"] / many["cpu_us"] for few, many in zip(sent[low], sent[high], strict=True)]
    said = "M = ceil(E(rate) window / (W tau1)) workers start. A small tau1 takes a large rise and costs messages."
    return section(
        "Initial deployment", [said], [], [workers, rises, messages], _claims(workers, shed, more, (low, high))
    )


def _rises(scope: Scope) -> dict[tuple[float, float], list[Shedding | Sent]]:
    return {key: scope.each(rising(*key)) for key in _RISES}


def _sent(scope: Scope) -> dict[float, list[Shedding | Sent]]:
    return {tau1: scope.each(Sent(tau1)) for tau1 in scope.taus}


def _claims(
    workers: Table, shed: dict[tuple[float, float], list[float]], more: list[float], taus: tuple[float, float]
) -> list[Judged]:
    fullest = max(float(str(row["busiest"])) / float(str(row["tau1"])) for row in workers.records())
    claims: list[tuple[Claim, Sequence[float]]] = [
        (
            Claim(_WHERE, "With M workers tau <= tau1 is expected", "<= 1", below(1.001), "largest tau / tau1"),
            [fullest],
        ),
        (
            Claim(
                _WHERE,
                "With tau1 = tau2 / 2, a rise by the average workload is afforded",
                "nothing shed (1 % is ours)",
                below(0.01),
                "share shed at twice the expected rate",
            ),
            shed[0.4, 2.0],
        ),
        (
            Claim(
                _WHERE,
                "As tau1 nears tau2, a tiny fluctuation triggers shedding",
                "some shed",
                above(0.0),
                "share shed at tau1 = 0.75 when the rate rises by a tenth",
            ),
            shed[0.75, 1.1],
        ),
        (
            Claim(
                _WHERE,
                "As tau1 nears 0, a big fluctuation is afforded",
                "nothing shed (1 % is ours)",
                below(0.01),
                "share shed at tau1 = 0.2 and three times the expected rate",
            ),
            shed[0.2, 3.0],
        ),
        (
            Claim(
                _WHERE,
                "As tau1 nears 0, many workers incur a high communication cost",
                "high (twice is ours)",
                above(2.0, departs=1.0),
                f"CPU time of messages per tuple at tau1 = {taus[0]:g} over that at {taus[1]:g}",
            ),
            more,
        ),
    ]
    return [judged(claim, found, ONE_RUN) for claim, found in claims]
