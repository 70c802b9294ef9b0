"""Figure 6: growing number of channels, up to a hundred."""

from collections.abc import Mapping, Sequence

from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.table import Column, Kind, Table
from paper.claims import Claim, Judged, above, below, between, judged, printed
from paper.estimates import Estimate
from paper.experiments import Experiment, Results
from paper.partitioning.chains import Recipe
from paper.partitioning.figures.grid import DRAWN, B, Chains, M, label, lines
from paper.partitioning.measured import ChainsBuilt
from paper.partitioning.scope import (
    LEVEL,
    PAPERS_OWN,
    Scope,
    at_channels,
    b_of,
    built,
    differences,
    estimate,
    hashed,
    m_of,
    ratios,
)
from paper.report import Shown, averaged, cells, section

N = Column("channels", Kind.COUNT)
_R = Column("r", Kind.RATIO, about="linear load, busiest channel over least busy")
_FLOOR = Column("r_best", Kind.RATIO, about="lowest r of any placement of whole keys")
_PAIR = Column("r_best_pinned", Kind.RATIO, about="lowest r with these keys pinned and the rest on the ring")

RECIPES = (*(Recipe(construction) for construction in PAPERS_OWN), LEVEL)

_LAST = 32
"""N of the last step of the paper's figure."""


def wanted(scope: Scope) -> Sequence[Experiment]:
    """One long chain per construction."""
    uniform = [part for seed in range(scope.seeds) for part in scope.hashed(Scheme.UNIFORM, seed)]
    return [*_experiments(scope), *uniform]


def shown(scope: Scope, results: Results) -> Shown:
    """b, m and r by N."""
    chains = long_chains(scope, results)
    table = _table("Figure 6: number of channels", chains, _counts(scope))
    drawn = (*DRAWN, "level, 1,000 keys")
    tracking = [name for name in drawn if name != "uniform"]
    charts = [
        lines(
            "Balance by channels",
            "b (LCL), with 95 % bands. Dashed: the ideal.",
            table,
            "channels",
            "b",
            mark=1.0,
            only=drawn,
            up_to=_LAST,
        ),
        lines(
            "Migration by channels",
            "m of the step to N channels, with 95 % bands; uniform hashing, at about N - 1, is not shown.",
            table,
            "channels",
            "m",
            mark=1.0,
            only=tracking,
            up_to=_LAST,
        ),
    ]
    if scope.most_channels > _LAST:
        charts += [
            lines(
                f"Balance up to {scope.most_channels} channels",
                "b (LCL) over the whole range of Table 1.",
                table,
                "channels",
                "b",
                log_y=True,
                mark=1.0,
                only=drawn,
            ),
            lines(
                f"Migration up to {scope.most_channels} channels",
                "m over the whole range of Table 1.",
                table,
                "channels",
                "m",
                log_y=True,
                mark=1.0,
                only=tracking,
            ),
        ]
    said = (
        f"Zipf z = 1 over {scope.keys:,} keys, LCL, adding one channel at a time. From N = 15 the hottest key alone "
        f"exceeds the mean load of a channel, so no placement of whole keys is balanced: r_best says by how much."
    )
    return section("Figure 6: number of channels", [said], charts, [table], _claims(chains))


def long_chains(scope: Scope, results: Results) -> dict[str, Chains]:
    """Steps up to the most channels, by scheme."""
    experiments = _experiments(scope)
    hashes = {scheme.value: hashed(scope, results, scheme) for scheme in (Scheme.UNIFORM, Scheme.CONSISTENT)}
    return {**hashes, **{label(recipe): built(experiments, results, recipe) for recipe in RECIPES}}


def _experiments(scope: Scope) -> list[ChainsBuilt]:
    return scope.chains(RECIPES, channels=scope.most_channels)


def _counts(scope: Scope) -> list[int]:
    """The channel counts shown."""
    return [n for n in (*range(2, 21, 2), 24, 28, 32, 40, 50, 60, 70, 80, 90, 100) if n <= scope.most_channels]


def _table(title: str, chains: Mapping[str, Chains], counts: Sequence[int]) -> Table:
    metrics = {B: b_of("LCL"), M: m_of("L"), _R: lambda step: step.r["L"]}
    floors = {_FLOOR: lambda step: step.r_best, _PAIR: lambda step: step.r_best_pinned}
    rows = []
    for name, steps in chains.items():
        for n in counts:
            measured = cells(*(estimate(at_channels(steps, n, number)) for number in metrics.values()))
            limits = [estimate(at_channels(steps, n, number)) for number in floors.values()]
            keys = steps[0][n - 1].pinned_keys
            rows.append((name, n, keys, *measured, *(None if limit is None else limit.mean for limit in limits)))
    tracked = Column("tracked", Kind.COUNT, about="pinned keys")
    return Table.from_rows(title, [Column("scheme"), N, tracked, *averaged(list(metrics)), *floors], rows)


def _claims(chains: Mapping[str, Chains]) -> list[Judged]:
    def b(scheme: str, n: int) -> list[float]:
        return at_channels(chains[scheme], n, b_of("LCL"))

    def m(scheme: str, n: int) -> list[float]:
        return at_channels(chains[scheme], n, m_of("L"))

    lead = {n: ratios(b("uniform", n), b("readj", n)) for n in range(2, 21)}
    most = max(lead, key=lambda n: Estimate.of(lead[n]).mean)
    above_20 = [differences(b("readj", n), b("redist", n)) for n in range(21, _LAST + 1)]
    flat = [m("redist", n) for n in range(5, _LAST + 1)]
    claims = [
        (
            Claim(
                "Figure 6",
                "Uniform hashing reaches 22 times the ideal migration at 32 channels",
                "22",
                printed("22"),
                "m at N = 32, LCL",
                "a new modulus moves all but 1/N of the keys, which is N - 1 = 31 times the ideal; 22 is what 23"
                " channels give",
            ),
            m("uniform", _LAST),
        ),
        (
            Claim("Figure 6", "Consistent hashing passes b = 2 at 32 channels", "> 2", above(2), "b at N = 32, LCL"),
            b("consistent", _LAST),
        ),
        (
            Claim(
                "Figure 6",
                "redist's migration is almost flat, around 1.15",
                "around 1.15",
                printed("1.15", departs=1),
                "mean m over N = 5 to 32",
                "it is above the ideal, but falls below it beyond the number of channels that can be balanced",
            ),
            [sum(values) / len(values) for values in zip(*flat, strict=True)],
        ),
        *(
            (
                Claim(
                    "Figure 6",
                    f"Migration of {name} grows with the channels",
                    "grows",
                    above(0),
                    "m at N = 32 minus m at N = 10",
                    "scan places keys once, hottest first; beyond 15 channels balance is out of reach and most keys "
                    "stay"
                    if name == "scan"
                    else "",
                ),
                differences(m(name, _LAST), m(name, 10)),
            )
            for name in ("scan", "readj")
        ),
        (
            Claim(
                "Figure 6",
                "scan's migration passes 3 at 32 channels",
                "> 3",
                above(3),
                "m at N = 32",
                "it stays near the ideal: beyond 15 channels balance is out of reach and migration decides",
            ),
            m("scan", _LAST),
        ),
        (
            Claim(
                "Figure 6",
                "readj is worse balanced than redist above 20 channels",
                "worse",
                above(0),
                "b of readj minus b of redist, mean over N = 21 to 32",
                "it stays better balanced, at the cost of migration",
            ),
            [sum(values) / len(values) for values in zip(*above_20, strict=True)],
        ),
        (
            Claim(
                "Figure 6",
                "Between 2 and 20 channels uniform hashing is up to 36 % above readj",
                "1.36",
                between(1.355, 1.365, departs=1),
                f"largest b of uniform hashing over b of readj, at N = {most}",
                "the lead is smaller than reported",
            ),
            lead[most],
        ),
        (
            Claim(
                "Figure 6",
                "Consistent hashing migrates least",
                "least",
                below(0),
                "m of consistent hashing minus the lowest of the paper's three, mean over N = 5 to 32",
                "with many channels, the paper's constructions also leave almost all keys in place",
            ),
            _mean_of_least(m),
        ),
    ]
    return [judged(claim, values) for claim, values in claims]


def _mean_of_least(m) -> list[float]:  # type: ignore[no-untyped-def]
    by_n = []
    for n in range(5, _LAST + 1):
        least = [min(values) for values in zip(*(m(name.value, n) for name in PAPERS_OWN), strict=True)]
        by_n.append(differences(m("consistent", n), least))
    return [sum(values) / len(values) for values in zip(*by_n, strict=True)]
