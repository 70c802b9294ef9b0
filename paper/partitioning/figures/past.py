"""Beyond the paper: level and unlocked against the floor, and other schemes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from adapt.core.partitioning.from_counts.bounded import USUAL
from adapt.core.partitioning.schemes.names import Construction, Scheme
from adapt.core.table import Column, Kind, Table
from paper.claims import Claim, Judged, below, judged
from paper.estimates import Estimate
from paper.experiments import Experiment, Results
from paper.partitioning.chains import Recipe, Step
from paper.partitioning.figures.channels import RECIPES as LONG
from paper.partitioning.figures.channels import long_chains
from paper.partitioning.figures.grid import B, Chains, M, grid, label, lines
from paper.partitioning.measured import HashedParts, hashed_parts, hashed_steps
from paper.partitioning.peers import SPLITTINGS, SplitKeys, WholeMaps
from paper.partitioning.scope import (
    CHANNELS,
    Scope,
    at_channels,
    b_of,
    built,
    estimate,
    m_of,
    ratios,
)
from paper.report import Shown, averaged, cells, section

_TRACK = (200, 500, 1000, 2000, 5000)
_COUNTS = (10, 32)
_GROUPS = 128
_HASHED = (Scheme.UNIFORM, Scheme.CONSISTENT, Scheme.JUMP, Scheme.RENDEZVOUS, Scheme.MAGLEV, Scheme.KEY_GROUPS)
_CAPS = (USUAL, 1.05)
"""Caps of bounded: the default, and a tight one with more pinned keys and migration."""
_R = Column("r", Kind.RATIO, about="linear load, busiest channel over least busy")
_OVER = Column("r over floor", Kind.RATIO, about="r over r_best_pinned: 1 is the best possible with the tracked keys")


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Chains of level by number of keys, and other schemes."""
    return [
        *scope.chains(_levels()),
        *scope.chains(LONG, channels=scope.most_channels),
        *scope.chains(_unlocked()),
        *(part for scheme in _HASHED for seed in range(scope.seeds) for part in _hashed(scope, scheme, seed)),
        *(_map(scope, cap, seed) for cap in _CAPS for seed in range(scope.seeds)),
        *(_split(scope, seed) for seed in range(scope.seeds)),
    ]


def shown(scope: Scope, results: Results) -> Shown:
    """level compared with its floor, and the table of schemes."""
    chains = long_chains(scope, results)
    levels = {recipe.track: built(scope.chains(_levels()), results, recipe) for recipe in _levels()}
    by_keys = grid(
        "level by tracked keys, 10 channels",
        Column("tracked", Kind.COUNT),
        [("level", track, steps) for track, steps in levels.items()],
        {
            _R: lambda step: step.r["L"],
            _OVER: _over_floor,
            B: b_of("LLL"),
            Column("b (LCL)", Kind.RATIO): b_of("LCL"),
            M: m_of("L"),
        },
    )
    floors = _floor_table(chains)
    charts = [
        lines(
            "Distance from the floor",
            "r over the lowest r possible with the same tracked keys over the same ring, by channels.",
            floors,
            "channels",
            _OVER.name,
            mark=1.0,
        ),
        lines(
            "level by tracked keys",
            "r of the linear load at 10 channels, with 95 % bands.",
            by_keys,
            "tracked",
            "r",
            log_x=True,
        ),
    ]
    said = (
        "level, which is not in the paper, knows the load of the untracked keys on each channel and fills up the "
        "rest. r_best_pinned is the bound for any placement of the same tracked keys. Other schemes run on the same "
        "streams; those that split keys must merge the partial results of a key's channels."
    )
    return section(
        "Beyond the paper",
        [said],
        charts,
        [_peer_table(scope, results, chains), by_keys, floors],
        _claims(scope, results, chains, levels),
    )


def _levels() -> tuple[Recipe, ...]:
    return tuple(Recipe(Construction.LEVEL, track=track) for track in _TRACK)


def _unlocked() -> tuple[Recipe, ...]:
    return tuple(Recipe(construction, sigma=0.008) for construction in (Construction.UNLOCKED, Construction.REDIST))


def _hashed(scope: Scope, scheme: Scheme, seed: int) -> tuple[HashedParts, ...]:
    channels = tuple(n for count in _COUNTS for n in (count - 1, count))
    groups = _GROUPS if scheme is Scheme.KEY_GROUPS else None
    return hashed_parts(scope.keys, seed, (1.0,), scheme, channels, groups)


def _map(scope: Scope, cap: float, seed: int) -> WholeMaps:
    return WholeMaps(scope.keys, seed, cap, _COUNTS)


def _split(scope: Scope, seed: int) -> SplitKeys:
    return SplitKeys(scope.keys, seed, scope.keys, _COUNTS)


def _over_floor(step: Step) -> float | None:
    ratio = step.r["L"]
    return None if ratio is None or step.r_best_pinned is None else ratio / step.r_best_pinned


def _floor_table(chains: Mapping[str, Chains]) -> Table:
    """r over r_best_pinned by N, for every construction."""
    rows = []
    for recipe in LONG:
        steps = chains[label(recipe)]
        for n in range(5, 33):
            rows.append((label(recipe), n, *cells(estimate(at_channels(steps, n, _over_floor)))))
    columns = [Column("scheme"), Column("channels", Kind.COUNT), *averaged([_OVER])]
    return Table.from_rows("r over r_best_pinned", columns, rows)


def _peer_table(scope: Scope, results: Results, chains: Mapping[str, Chains]) -> Table:
    """r and m of every scheme at two channel counts."""
    rows: list[tuple[Any, ...]] = []
    seeds = range(scope.seeds)
    for scheme in _HASHED:
        steps = [_at(scope, results, scheme, seed) for seed in seeds]
        numbers = [[(each[n].r["L"], _m(each[n])) for each in steps] for n in _COUNTS]
        name = f"{scheme}, {_GROUPS} groups" if scheme is Scheme.KEY_GROUPS else scheme.value
        rows.append((name, *_both(numbers), None))
    for recipe in LONG:
        numbers = [[(steps[n - 1].r["L"], _m(steps[n - 1])) for steps in chains[label(recipe)]] for n in _COUNTS]
        rows.append((label(recipe), *_both(numbers), None))
    for cap in _CAPS:
        found = [results[_map(scope, cap, seed)] for seed in seeds]
        numbers = [[(each[at]["r"], each[at]["m"]) for each in found] for at in range(len(_COUNTS))]
        rows.append((f"bounded, cap {cap:g}", *_both(numbers), None))
    for way in SPLITTINGS:
        found = [[results[_split(scope, seed)][f"{way} {n}"] for seed in seeds] for n in _COUNTS]
        numbers = [[(each["r"], None) for each in of_n] for of_n in found]
        spread = Estimate.of([each["channels_per_key"] for each in found[0]]).mean
        rows.append((f"{way} (splits keys)", *_both(numbers), spread))
    columns = [
        Column(f"{name}, N = {n}", Kind.RATIO, about=about)
        for n in _COUNTS
        for name, about in (("r", "linear load"), ("m", "migration from N - 1"))
    ]
    last = Column("channels per key", Kind.RATIO, about="with state of a key, N = 10")
    return Table.from_rows("Every scheme, z = 1, linear load", (Column("scheme"), *averaged(columns), last), rows)


def _at(scope: Scope, results: Results, scheme: Scheme, seed: int) -> dict[int, Step]:
    parts = _hashed(scope, scheme, seed)
    return {step.channels: step for step in hashed_steps(parts, [results[part] for part in parts], 1.0)}


def _m(step: Step) -> float | None:
    return None if step.m is None else step.m["L"]


def _both(by_count: Sequence[Sequence[tuple[float | None, float | None]]]) -> list[float | None]:
    """r and m with their intervals, by channel count."""
    row: list[float | None] = []
    for pairs in by_count:
        for numbers in zip(*pairs, strict=True):
            known = [number for number in numbers if number is not None]
            row += cells(Estimate.of(known) if len(known) == len(numbers) else None)
    return row


def _claims(
    scope: Scope, results: Results, chains: Mapping[str, Chains], levels: Mapping[int | None, Chains]
) -> list[Judged]:
    unlocked, redist = (built(scope.chains(_unlocked()), results, recipe) for recipe in _unlocked())
    long = chains[label(LONG[-1])]
    every = range(5, 33)

    def ours(
        what: str, aim: float, measure: str, values: Sequence[float], why: str = ""
    ) -> tuple[Claim, Sequence[float]]:
        return Claim("ours", what, f"<= {aim:g}", below(aim + 1e-9), measure, why), values

    def of(steps: Chains, number: Callable[[Step], float | None]) -> list[float]:
        return at_channels(steps, CHANNELS, number)

    def mean_over_n(number: Callable[[Step], float | None]) -> list[float]:
        by_n = [at_channels(long, n, number) for n in every]
        return [sum(values) / len(values) for values in zip(*by_n, strict=True)]

    ring_noise = "the rings' key counts differ, which no placement of the tracked keys changes"
    claims = [
        ours("level, 1,000 keys: b (LLL)", 1.02, "b", of(levels[1000], b_of("LLL"))),
        ours("level, 1,000 keys: b (LCL)", 0.99, "b", of(levels[1000], b_of("LCL"))),
        ours("level, 1,000 keys: m", 1.0, "m", of(levels[1000], m_of("L")), "its interval reaches above 1"),
        ours("level, 5,000 keys: b (LLL)", 0.91, "b", of(levels[5000], b_of("LLL"))),
        ours("level, 5,000 keys: b (LCL)", 0.92, "b", of(levels[5000], b_of("LCL"))),
        ours(
            "level, 1,000 keys: r is near its floor",
            1.05,
            "mean r over r_best_pinned over N = 5 to 32",
            mean_over_n(_over_floor),
        ),
        ours("unlocked, sigma 0.008: b (LCL)", 1.03, "b", of(unlocked, b_of("LCL")), ring_noise),
        ours("unlocked, sigma 0.008: m", 1.1, "m", of(unlocked, m_of("L")), "its interval reaches above the aim"),
        ours(
            "unlocked, sigma 0.008: b is that of redist",
            1.02,
            "b of unlocked over b of redist",
            ratios(of(unlocked, b_of("LCL")), of(redist, b_of("LCL"))),
        ),
        ours(
            "unlocked, sigma 0.008: m is three quarters of redist's",
            0.75,
            "m of unlocked over m of redist",
            ratios(of(unlocked, m_of("L")), of(redist, m_of("L"))),
        ),
    ]
    return [judged(claim, values) for claim, values in claims]
