"""A DAG of stages over shared workers.

Claim: four stages on 32 workers simulate at least 3 million tuples per second of CPU time; a tuple counts once per
stage.
"""

import sys
from time import process_time

from rich.console import Console
from rich.table import Table

from adapt.core.stage.conditions.arrivals import Drawn, Made
from adapt.core.stage.conditions.settings import StageSettings, even_groups, even_owners
from adapt.core.stage.dag.settings import DagSettings, Edge
from adapt.core.stage.dag.simulation import simulate_dag

WORKERS, GROUPS, SECONDS, RUNS = 32, 16384, 2.0, 5
CLAIMED = {4: 3e6}
SHAPES = {
    1: (),
    2: (Edge(0, 1),),
    4: (Edge(0, 1), Edge(1, 2), Edge(2, 3)),
}
"""Edges by number of stages: all in a row."""


def main() -> int:
    """Run and print all sizes; 1 if the claim does not hold."""
    table = Table("stages", "tuples", "M tuples/s of CPU", "claimed")
    met = True
    for stages, edges in SHAPES.items():
        tuples, seconds = best(stages, edges)
        speed, claimed = tuples / seconds, CLAIMED.get(stages)
        met &= claimed is None or speed >= claimed
        verdict = "" if claimed is None else f"{claimed / 1e6:g}: {'met' if speed >= claimed else 'NOT MET'}"
        table.add_row(str(stages), f"{tuples:,}", f"{speed / 1e6:.2f}", verdict)
    Console(width=80).print(table)
    return 0 if met else 1


def best(stages: int, edges: tuple[Edge, ...]) -> tuple[int, float]:
    """Tuples of all stages, and the lowest CPU time of some runs."""
    partitions = WORKERS * 64
    stage = StageSettings(WORKERS, even_owners(WORKERS, 64), even_groups(GROUPS, partitions))
    of = DagSettings((stage,) * stages, edges)
    inputs = Drawn(), *(Made() for _ in range(stages - 1))
    tuples, times = 0, []
    for _ in range(RUNS):
        begun_s = process_time()
        run = simulate_dag(of, inputs, SECONDS)
        times.append(process_time() - begun_s)
        tuples = sum(one.census.processed for one in run.stages)
    return tuples, min(times)


if __name__ == "__main__":
    sys.exit(main())
