"""Predictions of scenarios by the product's simulator."""

from collections.abc import Mapping
from typing import Any

import numpy as np

import adapt
from reality.rows import Metrics
from reality.scenarios import Engine, Kind, Scenario
from reality.workload import Workload

SCHEME_OF = {Engine.STAGE: "stage", Engine.FLINK: "flink", Engine.SPARK: "spark", Engine.STREAMING: "spark"}
"""The plans of an engine."""

BATCH_ROWS = 500
"""Most rows of a micro-batch of a saturated query."""


def elastic_options(workload: Workload, scenario: Scenario, rate: float) -> dict[str, Any]:
    """Options of an elastic replay that scales out once."""
    return {
        "pool": scenario.after,
        "workers": scenario.workers,
        "policy": "thresholds",
        "speedup": workload.speedup(rate),
        "period": "500ms",
        "scale_out_delay": "1s",
        "cooldown": "1000s",
        "window": "2s",
        "interval": "100ms",
        "state": "1000",
    }


def rescale_metrics(run: Any) -> Metrics:
    """How long a scale-out took, and the highest latency from then on."""
    tables = run.tables()
    first = tables["rescales"].records()[0]
    late = [
        one["latency_max"]
        for one in tables["intervals"].records()
        if one["case"] == "thresholds" and one["end"] >= first["decided"] and one["latency_max"] is not None
    ]
    return {"downtime": first["done"] - first["decided"], "peak": max(late)}


def measured_case(run: Any, scenario: Scenario) -> Metrics:
    """Throughput or latencies of a flux run, and rows of each worker."""
    outcome = run.outcomes[0]
    found = [one for one in run.tables()["workers"].records() if one["case"] == "static"]
    rows = np.bincount([one["worker"] for one in found], [one["processed"] for one in found], scenario.workers)
    metrics = {f"rows of worker {worker}": float(each) for worker, each in enumerate(rows)}
    if scenario.kind is Kind.LOAD:
        return metrics | {f"p{share}": float(outcome.total.share_below_s(share / 100)) for share in (50, 95, 99)}
    return metrics | {"throughput": outcome.throughput}


def predicted(workload: Workload, scenario: Scenario, rate: float, costs: Mapping[str, float]) -> Metrics:
    """Simulate a scenario with the costs that the calibration found.

    Args:
        rate: Rows per second; 0, as fast as possible.
        costs: Means over the runs of the engine's calibration.
    """
    mean_s = float(workload.costs_s.mean())
    slowed = [f"{worker}@0s:{100 * mean_s / (mean_s + costs['fixed_s']):.4f}%" for worker in range(scenario.after)]
    common = {"slow": slowed if costs["fixed_s"] > 0 else None}
    if scenario.kind is Kind.RESCALE:
        if scenario.engine is Engine.FLINK:
            return {"downtime": costs["downtime"]}
        return rescale_metrics(adapt.replay.elastic(workload.trace, **elastic_options(workload, scenario, rate), **common))
    plan = workload.plan(SCHEME_OF[scenario.engine], scenario.placement, scenario.workers)
    pace = {"speedup": workload.speedup(rate)} if rate else {"arrivals": "saturate"}
    run = adapt.replay.flux(workload.trace, plan=plan, policy="none", **pace, **common, **_queues(scenario, costs))
    return measured_case(run, scenario)


def _queues(scenario: Scenario, costs: Mapping[str, float]) -> dict[str, Any]:
    """The queues of the engine."""
    match scenario.engine:
        case Engine.STAGE:
            return {}
        case Engine.FLINK:
            return {"queueing": "flink", "network_latency": f"{costs['way_s'] * 1e3:.4f}ms"}
        case _:
            rows = BATCH_ROWS if scenario.kind is Kind.SATURATED else 2**20
            overhead = f"{costs['batch_s'] * 1e3:.3f}ms"
            return {"queueing": "spark", "batch_overhead": overhead, "batch_rows": rows}
