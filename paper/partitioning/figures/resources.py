"""Figure 3: the five schemes under four combinations of resource functions."""

from collections.abc import Sequence

from adapt.core.partitioning.schemes.names import Construction, Scheme
from adapt.core.table import Column, Kind, Table
from paper.claims import Claim, Judged, above, between, equal, judged, printed
from paper.experiments import Experiment, Results
from paper.partitioning.chains import Recipe
from paper.partitioning.figures.grid import DRAWN, B, Chains, M, dots, grid, label
from paper.partitioning.scope import (
    CHANNELS,
    PAPERS_OWN,
    Scope,
    at_channels,
    b_of,
    built,
    differences,
    hashed,
    m_of,
    r_of,
    ratios,
)
from paper.report import Shown, section

LETTERS = ("CCL", "LCL", "LLL", "LQL")

_CONSTRUCTIONS = (*PAPERS_OWN, Construction.READJ_PRINTED, Construction.UNLOCKED)


def _recipes() -> tuple[Recipe, ...]:
    """LLL has the mapping of LCL, since constant resources do not count in the balance."""
    letters = [each for each in LETTERS if each != "LLL"]
    own = [Recipe(construction, each) for each in letters for construction in _CONSTRUCTIONS]
    levels = [Recipe(Construction.LEVEL, each, track=track) for each in letters for track in (1000, 5000)]
    return (*own, *levels)


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Hashing, and the chains of every construction under every combination."""
    uniform = [part for seed in range(scope.seeds) for part in scope.hashed(Scheme.UNIFORM, seed)]
    return [*scope.chains(_recipes()), *uniform]


def shown(scope: Scope, results: Results) -> Shown:
    """b, m and the three b_k, by scheme and combination."""
    chains = _chains(scope, results)
    tables = [
        grid(
            f"Figure 3: {letters}",
            Column("resources"),
            [(name, letters, steps) for name, steps in chains[letters].items()],
            {
                M: m_of(letters[0]),
                B: b_of(letters),
                Column("b_s", Kind.RATIO, about="of state only"): r_of(letters[0]),
                Column("b_c", Kind.RATIO, about="of computation only"): r_of(letters[1]),
                Column("b_n", Kind.RATIO, about="of network only"): r_of(letters[2]),
            },
        )
        for letters in LETTERS
    ]
    rows = [row for table in tables for row in table.rows]
    table = Table.from_rows("Figure 3: all combinations", tables[0].columns, rows)
    drawn = (*DRAWN, "level, 1,000 keys")
    charts = [
        dots(
            "Balance by resource functions",
            "b of each scheme; LCL, for example, is linear state, constant computation and linear network. Dashed: "
            "the ideal.",
            table,
            "resources",
            "b",
            log_y=True,
            mark=1.0,
            only=drawn,
        ),
        dots(
            "Migration by resource functions",
            "m of each scheme on the step from 9 to 10 channels. Dashed: the ideal.",
            table,
            "resources",
            "m",
            log_y=True,
            mark=1.0,
            only=drawn,
        ),
    ]
    said = (
        f"Zipf z = 1 over {scope.keys:,} keys, from 1 to {CHANNELS} channels one at a time, alpha 1.2, sigma 0.1, "
        f"U_APM. LLL and LCL have the same mapping and differ only in its metrics, since constant resources do not "
        f"count in rho."
    )
    return section("Figure 3: resource functions", [said], charts, [table], _claims(chains))


def _chains(scope: Scope, results: Results) -> dict[str, dict[str, Chains]]:
    """Steps of each scheme, by combination."""
    experiments = scope.chains(_recipes())
    hashes = {scheme.value: hashed(scope, results, scheme) for scheme in (Scheme.UNIFORM, Scheme.CONSISTENT)}
    of = {}
    for letters in LETTERS:
        mapped = "LCL" if letters == "LLL" else letters
        recipes = [recipe for recipe in _recipes() if recipe.letters == mapped]
        of[letters] = {**hashes, **{label(recipe): built(experiments, results, recipe) for recipe in recipes}}
    return of


def _claims(chains: dict[str, dict[str, Chains]]) -> list[Judged]:
    def b(scheme: str, letters: str) -> list[float]:
        return at_channels(chains[letters][scheme], CHANNELS, b_of(letters))

    def m(scheme: str, letters: str) -> list[float]:
        return at_channels(chains[letters][scheme], CHANNELS, m_of(letters[0]))

    def computation(scheme: str) -> list[float]:
        return at_channels(chains["LQL"][scheme], CHANNELS, r_of("Q"))

    at_most_1 = [float(value <= 1) for value in m("consistent", "LCL")]
    ring_blind = (
        "even with a perfect ring the channel of the hottest key makes b at least 1.236: the constructions do not see "
        "the ring's load on that channel"
    )
    claims = [
        (
            Claim("5.3", "Uniform hashing migrates more than 8 times the ideal", "> 8", above(8), "m, LCL"),
            m("uniform", "LCL"),
        ),
        (
            Claim(
                "5.3",
                "Consistent hashing's migration is below 1 in some cases",
                "some",
                above(0),
                "share of seeds with m of at most 1, LCL",
            ),
            at_most_1,
        ),
        (
            Claim("5.3", "LLL: b of consistent hashing", "1.75", printed("1.75"), "b, LLL"),
            b("consistent", "LLL"),
        ),
        (
            Claim(
                "5.3",
                "LLL: b of uniform hashing",
                "1.55",
                printed("1.55"),
                "b, LLL",
                "the best mean of five of our seeds is higher; the hash decides which hot keys share a channel",
            ),
            b("uniform", "LLL"),
        ),
        (
            Claim(
                "5.3",
                "LLL: uniform hashing is better balanced than consistent hashing",
                "1.55 against 1.75",
                above(0),
                "b of consistent minus b of uniform, LLL",
                "the two differ by less than their spread over seeds; the hash decides which is better",
            ),
            differences(b("consistent", "LLL"), b("uniform", "LLL")),
        ),
        *(
            (Claim("5.3", f"LLL: b of {name}", "1.32", printed("1.32"), "b, LLL"), b(name, "LLL"))
            for name in ("scan", "redist")
        ),
        *(
            (Claim("5.3", f"LLL: m of {name}", "1.23", printed("1.23"), "m, LLL"), m(name, "LLL"))
            for name in ("scan", "redist")
        ),
        (
            Claim("5.3", "LLL: b of readj", "1.2", printed("1.2"), "b, LLL", ring_blind),
            b("readj", "LLL"),
        ),
        (
            Claim(
                "5.3",
                "LLL: readj is better balanced than scan and redist, by about 10 %",
                "1.32 / 1.2",
                between(1.05, 1.15, departs=1.0),
                "b of scan over b of readj, LLL",
                f"on average the two are equally good, or almost; {ring_blind}",
            ),
            ratios(b("scan", "LLL"), b("readj", "LLL")),
        ),
        (
            Claim(
                "5.3",
                "LLL: m of readj",
                "1.34",
                printed("1.34"),
                "m, LLL",
                "read literally (readj-printed), Algorithm 4 overwrites u inside its loop, and migrates more",
            ),
            m("readj", "LLL"),
        ),
        (
            Claim(
                "5.3",
                "LLL: m of readj with u as Algorithm 4 prints it",
                "1.34",
                printed("1.34", departs=1),
                "m, LLL",
                "it is closer than readj as described in the text",
            ),
            m("readj-printed", "LLL"),
        ),
        (
            Claim(
                "5.3",
                "LLL: readj migrates more than scan and redist",
                "1.34 against 1.23",
                above(0),
                "m of readj minus m of scan, LLL",
                "readj weighs every move against the current mapping, so it moves less, not more; with u as printed "
                "it moves more",
            ),
            differences(m("readj", "LLL"), m("scan", "LLL")),
        ),
        *(
            (
                Claim(
                    "5.3",
                    f"{letters}: redist and scan are indistinguishable",
                    "equal",
                    equal(),
                    f"b of redist over b of scan, {letters}",
                    "they differ by a few percent",
                ),
                ratios(b("redist", letters), b("scan", letters)),
            )
            for letters in LETTERS
        ),
        *(
            (
                Claim(
                    "5.3",
                    f"LQL: relative computation imbalance of {name} is in the 30s",
                    "30 to 40",
                    between(30, 40),
                    "b_c, LQL",
                ),
                computation(name),
            )
            for name in PAPERS_OWN
        ),
        (
            Claim(
                "5.3",
                "LQL: consistent hashing cannot keep computation under control",
                "above all others",
                above(1),
                "b_c of consistent hashing over that of readj, LQL",
            ),
            ratios(computation("consistent"), computation("readj")),
        ),
    ]
    return [judged(claim, values) for claim, values in claims]
