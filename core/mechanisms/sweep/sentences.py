"""Sentences of a sweep: wins, loads and workers."""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from adapt.core.mechanisms.sweep.finding import Finding
from adapt.core.phrases import counted, listed
from adapt.core.values import duration


def sweep_sentences(findings: Sequence[Finding]) -> list[str]:
    """The sentences after a recommendation.

    Args:
        findings: One per point, the given one first.
    """
    base = findings[0]
    told = [_wins(base), *_by_load(findings), *_by_workers(findings)]
    return [each for each in told if each]


def _wins(found: Finding) -> str:
    """How often it wins at the given point."""
    seeds, wins, level = found.seeds, found.wins, found.level
    name = found.scenario
    if seeds == 1:
        return "One seed: how often it wins is unknown; use --seeds."
    if found.race.is_certain and found.wins == seeds:
        return f"No seed changes anything: {seeds} give {name} the same latency and cost."
    if found.race.is_settled:
        return f"{name} keeps up with {_all_of(seeds)}."
    said = f"{name} wins in {wins} of {counted(seeds, 'seed')}"
    others = seeds - wins - level
    if level:
        said += f" and is level with the best in {'the other' if not others and level == 1 else f'{level} more'}"
    return f"{said}{_instead(found)}."


def _instead(found: Finding) -> str:
    """What wins in the other seeds."""
    picks = found.race.picks()
    counts = Counter(name for seed, name in enumerate(picks) if not found.is_level_at(seed, found.scenario))
    return f"; else {listed([f'{name} in {times}' for name, times in counts.most_common()])}" if counts else ""


def _by_load(findings: Sequence[Finding]) -> list[str]:
    """What is right at each load, with the given workers."""
    base = findings[0]
    here = sorted((each for each in findings if each.point.workers == base.point.workers), key=_load)
    if len(here) < 2:
        return []
    groups = [(phrase, [*map(_load, group)]) for phrase, group in groupby(here, key=lambda each: each.phrase)]
    parts = [f"{_range(loads, at == 0)} {phrase}" for at, (phrase, loads) in enumerate(groups)]
    return [f"By load, with {base.point.workers} workers: {'; '.join(parts)}."]


def _load(found: Finding) -> float:
    return found.point.offered


def _range(loads: Sequence[float], is_first: bool) -> str:
    if is_first:
        return f"up to {loads[-1]:g}"
    return f"at {loads[0]:g}" if len(loads) == 1 else f"from {loads[0]:g} to {loads[-1]:g}"


def _by_workers(findings: Sequence[Finding]) -> list[str]:
    """What more workers would do at the given load."""
    base, told = findings[0], []
    for found in sorted(findings[1:], key=lambda each: each.point.workers):
        if found.point.offered == base.point.offered and found.point.workers > base.point.workers:
            record = found.race.means()[found.race.compared.index(found.scenario)]
            p99, cost = (duration(float(record[metric] or 0)) for metric in ("latency_p99", "worker_time"))
            does = "keeps up" if found.keeps_up else "is best"
            told.append(f"With {found.point.workers} workers {found.scenario} {does}: p99 {p99} for {cost}.")
    return told


def _all_of(seeds: int) -> str:
    return f"all {counted(seeds, 'seed')}" if seeds > 1 else "one seed"
