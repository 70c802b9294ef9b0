"""Past the paper: a worker dies, with and without twins of its partitions."""

from collections.abc import Mapping, Sequence

from adapt.core.table import Column, Kind, Table
from paper.claims import Claim, Judged, about, above, never
from paper.experiments import Experiment, Results
from paper.flux.figures.shown import POLICY, SHARE, THROUGHPUT, estimate, judged, lines, over_time, shares
from paper.flux.measured import Aftermath, Ran, StageRun
from paper.flux.scenarios import DISTURBED_S, mean_rate
from paper.flux.scope import Scope, ran
from paper.report import Shown, averaged, cells, section

_INTERVAL_S = 0.25
_ALONE, _TWINS = "without twins", "with twins"
_LOST = Column("lost", Kind.NUMBER, "tuples", "that died with the worker or are not accounted for")
_STATE = Column("lost state", Kind.NUMBER, "MB", "of partitions that began anew")
_TAKEOVER = Column("takeover", Kind.NUMBER, "s", "from the crash until its partitions have owners again")
_FULL = Column("full rate", Kind.NUMBER, "s", "from the crash until the stage has the rate of the workers that live")
_PROTECTED = Column("protected", Kind.NUMBER, "s", "from the crash until every partition has a twin again")
_SENT = Column("sent", Kind.NUMBER, "MB/s", "to twins")


def wanted(scope: Scope) -> Sequence[Experiment]:
    """With and without twins, with and without a crash."""
    return [run for runs in _crashed(scope).values() for run in runs]


def shown(scope: Scope, results: Results) -> Shown:
    """What a crash takes, and what twins cost."""
    runs = {key: ran(results, of) for key, of in _crashed(scope).items()}
    crashes = {name: runs[name, True] for name in (_ALONE, _TWINS)}
    seconds = over_time("A worker dies: second by second", crashes, {THROUGHPUT: lambda one: one.throughput})
    full = _before(runs[_ALONE, False])
    table = Table.from_rows(
        "A worker dies",
        [POLICY, *averaged([THROUGHPUT, SHARE, _LOST, _STATE, _TAKEOVER, _FULL, _PROTECTED, _SENT])],
        [
            (
                name,
                *cells(
                    estimate(_before(runs[name, False])),
                    estimate(shares(_before(runs[name, False]), full)),
                    estimate(aftermath(run).lost_tuples for run in seeds),
                    estimate(aftermath(run).lost_state_bytes / 1e6 for run in seeds),
                    estimate(aftermath(run).takeover_s for run in seeds),
                    estimate(aftermath(run).full_rate_s for run in seeds),
                    estimate(aftermath(run).protected_s for run in seeds),
                    estimate(run.standby_bytes / run.lasted_s / 1e6 for run in runs[name, False]),
                ),
            )
            for name, seeds in crashes.items()
        ],
        note="Throughput and what is sent are those of runs without a crash.",
    )
    chart = lines(
        "Throughput as a worker dies",
        f"Tuples a second; the worker dies at {DISTURBED_S:g} s. With twins every tuple is processed twice.",
        seconds,
        "second",
        "throughput",
        spots=False,
    )
    said = (
        "The paper leaves fault tolerance to future work and names process pairs. Here every partition has a twin on"
        " another worker that processes the same tuples in the same order; when a worker dies, twins take over, and"
        " producers send again what was not committed."
    )
    return section("Past the paper: crashes", [said], [chart], [table, seconds], _claims(runs))


def aftermath(run: Ran) -> Aftermath:
    """What became of its crash."""
    assert run.crash is not None
    return run.crash


def _crashed(scope: Scope) -> dict[tuple[str, bool], list[StageRun]]:
    """With and without twins; whether a worker dies."""
    return {
        (name, dies): scope.runs(
            "crashed", interval_s=_INTERVAL_S, standby=name == _TWINS, dies=dies, seconds=scope.crash_s
        )
        for name in (_ALONE, _TWINS)
        for dies in (True, False)
    }


def _before(seeds: Sequence[Ran]) -> list[float]:
    """Tuples a second where nothing goes wrong."""
    return [mean_rate(run) for run in seeds]


def _claims(runs: Mapping[tuple[str, bool], list[Ran]]) -> list[Judged]:
    claims: list[tuple[Claim, Sequence[float]]] = [
        (
            Claim(
                "Section 8, past the paper",
                "With twins no tuple is lost or repeated when a worker dies (an aim of ours)",
                "0",
                never(),
                "tuples that died, are not accounted for, or gave another answer at the twin",
            ),
            [aftermath(run).lost_tuples for run in runs[_TWINS, True]],
        ),
        (
            Claim(
                "Section 8, past the paper",
                "Without twins the loss is counted (an aim of ours)",
                "> 0",
                above(0),
                "tuples that died",
            ),
            [aftermath(run).lost_tuples for run in runs[_ALONE, True]],
        ),
        (
            Claim(
                "Section 8, past the paper",
                "Twins cost about half of the throughput (computed: every tuple is processed twice)",
                "about 0.5",
                about(0.5, departs=1),
                "throughput with twins over that without, no worker dying",
            ),
            shares(_before(runs[_TWINS, False]), _before(runs[_ALONE, False])),
        ),
    ]
    return [judged(claim, values) for claim, values in claims]
