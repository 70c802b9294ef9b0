"""Predictions of scenarios by the product's simulator."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import adapt
from adapt.core.errors import BadInput
from reality.rows import Metrics
from reality.scenarios import Engine, Kind, Scenario
from reality.workload import Workload

SCHEME_OF = {Engine.STAGE: "stage", Engine.FLINK: "flink", Engine.SPARK: "spark", Engine.STREAMING: "spark"}
"""The plans of an engine."""

INTERVAL_S, HUMP_S = 0.1, 2.0
"""Length of the intervals of a rescale's latencies, and how long its mean latency is taken."""

MEAN_AFTER = f"mean of {HUMP_S:g} s"
"""Mean latency of the rows done in this time from a rescale on."""

WITHOUT_QUEUES = "downtime without queues"
"""Downtime less the time in which the last donor processed the rows ahead of a move."""

BATCH_ROWS = 400
"""Most rows of a micro-batch of a saturated query."""


def elastic_options(workload: Workload, scenario: Scenario, rate: float) -> dict[str, Any]:
    """Options of an elastic replay that scales out once."""
    return {
        "pool": scenario.after,
        "workers": scenario.workers,
        "policy": "thresholds",
        "speedup": workload.speedup(rate),
        "shed": "tau=0.1,0.4,0.6,0.7",
        "period": "500ms",
        "scale_out_delay": "1s",
        "cooldown": "1000s",
        "window": "2s",
        "interval": f"{round(INTERVAL_S * 1e3)}ms",
        "state": "1000" if scenario.engine is Engine.STAGE else "0",
    }


def rescale_metrics(run: Any) -> Metrics:
    """How long a scale-out took, and latency from then on.

    Only intervals that begin after the decision count, or just before it: a real stage decides a moment late.
    """
    tables = run.tables()
    if not tables["rescales"].rows:
        raise BadInput("the stage did not scale out; run it on a machine with less noise")
    first = tables["rescales"].records()[0]
    late = [
        one
        for one in tables["intervals"].records()
        if one["case"] == "thresholds" and one["end"] > first["decided"] + INTERVAL_S / 2 and one["processed"]
    ]
    soon = [one for one in late if one["end"] < first["decided"] + HUMP_S + INTERVAL_S / 2]
    means_s, rows = zip(*((one["latency_mean"], one["processed"]) for one in soon), strict=True)
    hump = {
        "peak": max(one["latency_max"] for one in late),
        MEAN_AFTER: float(np.average(means_s, weights=rows)),
    }
    moves = [one for one in tables["moves"].records() if one["case"] == "thresholds"]
    if first["downtime"] is None:
        lasted_s, last = first["done"] - first["decided"], max(moves, key=lambda one: one["restarted"])
        return {"downtime": lasted_s, WITHOUT_QUEUES: lasted_s - (last["quiesced"] - last["paused"]), **hump}
    stopped = moves[0]
    return {"downtime": stopped["restarted"] - stopped["quiesced"], **hump}  # rows on their way are done before


def measured_case(run: Any, scenario: Scenario) -> Metrics:
    """Throughput or latencies of a flux run, and rows of each worker."""
    outcome = run.outcomes[0]
    found = [one for one in run.tables()["workers"].records() if one["case"] == "static"]
    rows = np.bincount([one["worker"] for one in found], [one["processed"] for one in found], scenario.workers)
    metrics = {f"rows of worker {worker}": float(each) for worker, each in enumerate(rows)}
    if scenario.kind is Kind.LOAD:
        return metrics | {f"p{share}": float(outcome.total.share_below_s(share / 100)) for share in (50, 95, 99)}
    return metrics | {"throughput": outcome.throughput}


def predicted(workload: Workload, scenario: Scenario, rate: float, costs: Mapping[str, Any]) -> Metrics:
    """Simulate a scenario with the costs that the calibration found.

    Args:
        rate: Rows per second; 0, as fast as possible.
        costs: `profile`, the text of a cost profile; for Spark `batch_s`, and for Flink `restart_s`.
    """
    with TemporaryDirectory() as folder:
        file = Path(folder) / "costs.toml"
        file.write_text(costs["profile"])
        if scenario.kind is Kind.RESCALE:
            options = elastic_options(workload, scenario, rate) | _restarts(scenario, costs)
            return rescale_metrics(adapt.replay.elastic(workload.trace, costs=file, **options))
        plan = workload.plan(SCHEME_OF[scenario.engine], scenario.placement, scenario.workers)
        pace = {"speedup": workload.speedup(rate)} if rate else {"arrivals": "saturate"}
        queues = _queues(scenario, costs)
        return measured_case(
            adapt.replay.flux(workload.trace, plan=plan, policy="none", costs=file, **pace, **queues), scenario
        )


def _restarts(scenario: Scenario, costs: Mapping[str, Any]) -> dict[str, Any]:
    """How the engine rescales."""
    if scenario.engine is Engine.STAGE:
        return {"migrate": "startup-time=0s"}  # its processes run from the start
    return {
        "engine": "flink",
        "scheme": "flink",
        "migrate": f"restart:restart=flink-adaptive,restart-time={costs['restart_s']:.4f}s",
    }


def _queues(scenario: Scenario, costs: Mapping[str, Any]) -> dict[str, Any]:
    """The queues of the engine."""
    match scenario.engine:
        case Engine.STAGE:
            return {}
        case Engine.FLINK:
            return {"engine": "flink"}
        case _:
            rows = BATCH_ROWS if scenario.kind is Kind.SATURATED else 2**20
            return {"engine": f"spark:batch-overhead={costs['batch_s'] * 1e3:.3f}ms,batch-rows={rows}"}
