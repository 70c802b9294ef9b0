"""Compiled constructions against literal Python, with identical mappings.

The literal forms are those of the tests (`tests/core/partitioning/constructions/literal.py`): plain Python that
computes every candidate from scratch. Both build the step from 9 to 10 channels of the paper's defaults (partitioning
functions, Table 1) with 39 pinned keys. The times of larger steps are printed with targets for an idle machine with two
cores; they are not claims."""

import sys
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from ratio import best_of, holds, measured
from references import from_tests

from adapt.core.counting.frequencies import Frequencies
from adapt.core.counting.zipf import zipf_shares
from adapt.core.partitioning.build import Recipe, build_partitioner
from adapt.core.partitioning.constructions.registry import CONSTRUCTIONS
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.problem.problem import Problem
from adapt.core.partitioning.problem.tracking import tracked_keys
from adapt.core.partitioning.schemes.consistent import ConsistentHash
from adapt.core.partitioning.schemes.names import Construction, Scheme

DOMAIN, HEAVY, MASS = 10**6, 10_000, 10**9
"""A Zipf stream of a million keys, z = 1; only its hottest keys are listed, since only these are ever pinned."""

CLAIMS = {Construction.SCAN: 20.0, Construction.REDIST: 100.0, Construction.READJ: 500.0}
"""Claimed speed-ups over the literal form, at 39 keys and 10 channels."""


def main() -> int:
    """Compare constructions and print times; 0 if every claim is met.

    Mappings must agree at 39 keys.
    """
    stream = zipf()
    met = [_faster(construction, claim, chain(stream, construction, 0.1)) for construction, claim in CLAIMS.items()]
    for label, construction, problem, target in larger(stream):
        best = best_of(partial(CONSTRUCTIONS[construction], problem), 3)
        print(f"{construction}, {label}: {best:.4f} s (target {target:g} s)")
    return 0 if all(met) else 1


def zipf() -> Frequencies:
    """The hottest keys of the stream, as integer counts."""
    counts = np.rint(MASS * zipf_shares(DOMAIN, 1.0)[:HEAVY]).astype(np.int64)
    return Frequencies(pa.array(np.arange(HEAVY)), counts, counts, total=MASS, rows=MASS, distinct=DOMAIN)


def chain(stream: Frequencies, construction: Construction, sigma: float, letters: str = "LCL") -> Problem:
    """The step to 10 channels, after a chain from 1."""
    resources = Resources.parse(letters, 1.2, sigma)
    current = None
    for channels in range(1, 10):
        current = build_partitioner(stream, Recipe(Scheme.HYBRID, construction, resources), channels, current)
    assert current is not None
    return Problem.from_counts(current, ConsistentHash(10), stream, tracked_keys(stream, resources, 10), resources)


def larger(stream: Frequencies) -> Iterator[tuple[str, Construction, Problem, float]]:
    """Steps too large for a literal form, each with its target time."""
    for letters, targets in {"LCL": {"redist": 0.005, "readj": 0.3}, "LQL": {"readj": 1.0}}.items():
        for name, target in targets.items():
            problem = chain(stream, Construction(name), 0.008, letters)
            yield f"{letters}, {len(problem.keys)} keys, 10 channels", Construction(name), problem, target
    before, after = ConsistentHash(999, 100), ConsistentHash(1000, 100)
    problem = Problem.from_counts(before, after, stream, stream.keys, Resources())
    for name, target in {"scan": 0.1, "redist": 3.0, "level": 0.1}.items():
        yield f"LLL, {HEAVY:,} keys, 1000 channels", Construction(name), problem, target


def _faster(construction: Construction, claim: float, problem: Problem) -> bool:
    literal, compiled = LITERAL[construction], CONSTRUCTIONS[construction]
    same = compiled(problem).tolist() == literal(problem)
    ratio = measured(lambda: compiled(problem), lambda: literal(problem), repeats=3)
    size = f"{len(problem.keys)} keys, {problem.channels} channels"
    print(f"{construction}, {size}: mapping {'identical' if same else 'NOT identical'}")
    return holds(f"{construction} compiled against literal, {size}", ratio, claim) and same


LITERAL: dict[str, Callable[[Problem], list[int]]] = from_tests("core/partitioning/constructions/literal.py").LITERAL

if __name__ == "__main__":
    sys.exit(main())
