"""Shell completion of option values that the parser does not know.

Only names are imported, as a shell asks at every press of a key.
"""

from collections.abc import Callable, Iterable

import typer

from adapt.core.engines.names import SCHEMES_BY_NAME
from adapt.core.fit.network.names import DropPlanner
from adapt.core.partitioning.splitting.names import PlannedSplitting, Splitting


def schemes(incomplete: str) -> list[str]:
    """Schemes that keep keys whole, and those that split them."""
    return _begun((*SCHEMES_BY_NAME, *PlannedSplitting, *Splitting), incomplete)


def engines(incomplete: str) -> list[str]:
    """What may place the keys of a trace."""
    return _begun(SCHEMES_BY_NAME, incomplete)


def of_schemes(known: Iterable[str]) -> Callable[[str], list[str]]:
    """Completion of the name of one of these schemes."""

    def complete(incomplete: str) -> list[str]:
        return _begun(known, incomplete)

    return complete


def planners(incomplete: str) -> list[str]:
    """Drop planners, also after a comma."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in _begun(DropPlanner, last) if name not in before.split(",")]


def scenarios(incomplete: str) -> list[str]:
    """Mechanisms that are compared."""
    from adapt.core.mechanisms.scenarios import ALL, BY_NAME, SCENARIOS

    return _begun((ALL, *(scenario.name for scenario in (*SCENARIOS, *BY_NAME))), incomplete)


def columns(context: typer.Context, incomplete: str) -> list[str]:
    """Columns and nested fields of the source that was typed."""
    given = context.params
    sources = given.get("sources") or [each for each in (given.get("source"),) if each] or context.args
    from adapt.core.errors import AdaptError
    from adapt.traces.sources.sniff import offered_columns

    try:
        return _begun(offered_columns(sources[:1]), incomplete) if sources and sources[0] != "-" else []
    except (AdaptError, OSError):
        return []


def limits(incomplete: str) -> list[str]:
    """Metrics that a limit may begin with."""
    from adapt.core.metrics import METRICS

    return _begun(METRICS, incomplete)


def _begun(names: Iterable[str], incomplete: str) -> list[str]:
    return [str(name) for name in names if name.startswith(incomplete)]
