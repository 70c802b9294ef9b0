"""Contents of the part on partitioning functions."""

from paper.partitioning.domain import TUPLES_A_KEY
from paper.partitioning.figures import (
    channels,
    domains,
    example,
    growth,
    loop,
    past,
    resources,
    scaler,
    sizes,
    skew,
    times,
    tolerance,
    utilities,
)
from paper.partitioning.scope import Scope
from paper.report import Paper, Part

_FIGURES = (
    example,
    resources,
    skew,
    scaler,
    channels,
    utilities,
    domains,
    tolerance,
    sizes,
    times,
    growth,
    loop,
    past,
)


def partitioning(scope: Scope) -> Paper[Scope]:
    """The paper with the experiments of a scope."""
    return Paper(
        name="Partitioning functions",
        title="Gedik: Partitioning functions for stateful data parallelism in stream processing",
        scope=scope,
        parts=[Part.of(figures) for figures in _FIGURES],
        made={
            "seeds": scope.seeds,
            "keys": scope.keys,
            "tuples a key": TUPLES_A_KEY,
            "domains": ", ".join(f"{keys:,} ({seeds} seeds)" for keys, seeds in scope.domains),
            "channels": scope.most_channels,
            "defaults": "z 1, N 10, alpha 1.2, sigma 0.1, LCL, U_APM, murmur3, 1000 replicas",
        },
    )
