"""`python -m reality.policies`: is the order of policies as the simulator foretells it?

Worker processes run the same rows with each policy, static placement, moves of partitions, and a changing number of
workers, under four conditions. The simulator replays them with the costs of one calibration. A pair of policies counts
where every run of one has a lower p99 latency than all runs of the other; the prediction is right if it has the same
order. Runs are kept in --out, and a repeated command makes only those that are missing.
"""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

import adapt
from adapt.core.costs.profile_file import write_profile
from adapt.traces.store.atomic import replace_whole
from reality.noise import beside
from reality.processes.calibrate import calibrate_stage
from reality.processes.running import in_processes

WORKERS, START = 4, 2
"""Workers of a static stage and of the pool, and those with which an elastic stage starts."""

MEAN_S, ROWS, RATE = 0.01, 2400, 100.0
"""Latency of the service on average, and rows of a trace with their rate."""

TRACES: Mapping[str, Mapping[str, Any]] = {
    "steady": {"exponent": 0.9},
    "rising and falling": {"exponent": 0.9, "diurnal": f"0.8:day={ROWS / RATE:g}s"},
}

FLUX: Mapping[str, Any] = {"policy": ["load", "load-several"], "workers": WORKERS}
ELASTIC: Mapping[str, Any] = {
    "policy": ["thresholds", "ds2:utilization=0.7", "lag:rows=50"],
    "pool": WORKERS,
    "workers": START,
    "period": "250ms",
    "scale_out_delay": "500ms",
    "cooldown": "1500ms",
    "window": "2s",
    "shed": "tau=0.2,0.5,0.7,0.8",
    "migrate": "startup-time=0s",  # the processes of the pool run from the start
}
NAMES = {"static": f"static, {WORKERS} workers", "fixed": f"static, {START} workers"}

LEAST_RIGHT = 0.9

P99 = Mapping[str, float]
"""p99 latency in seconds of each policy."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Conditions under which all policies run.

    Attributes:
        load: Share of what the workers can do by stated costs.
        options: Of the replay.
    """

    name: str
    trace: str
    load: float
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def speedup(self) -> float:
        """Speed-up at which rows arrive at the load."""
        return self.load * WORKERS / MEAN_S / RATE


TRIALS = (
    Trial("half load", "steady", 0.5),
    Trial("80 % load", "steady", 0.8),
    Trial("half load, one worker at 40 % of its speed from second 3", "steady", 0.5, {"slow": ["3@3s-60s:40%"]}),
    Trial("load that rises and falls", "rising and falling", 0.5),
)


@dataclass(frozen=True, slots=True)
class Order:
    """Pairs of policies of a trial, in the order measured.

    Attributes:
        right: Pairs whose order was foretold.
        wrong: Those whose order was not.
        open: Pairs whose runs overlap, so that the measurement decides nothing.
    """

    right: list[tuple[str, str]]
    wrong: list[tuple[str, str]]
    open: list[tuple[str, str]]


def ordered(predicted: P99, runs: Sequence[P99]) -> Order:
    """Compare the predicted order of policies with that of all runs."""
    found = Order([], [], [])
    for one, other in combinations(predicted, 2):
        for low, high in ((one, other), (other, one)):
            if max(run[low] for run in runs) < min(run[high] for run in runs):
                (found.right if predicted[low] < predicted[high] else found.wrong).append((low, high))
                break
        else:
            found.open.append((one, other))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, print the tables; 1 if fewer pairs are right."""
    parser = ArgumentParser("reality.policies", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of traces, profile and kept runs")
    parser.add_argument("--runs", type=int, default=3, help="runs of each trial")
    options = parser.parse_args(arguments)
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    traces = {name: _trace(out, name) for name in TRACES}
    costs = out / "costs.toml"
    if not costs.exists():
        costs.write_text(write_profile(calibrate_stage(traces["steady"], WORKERS, ROWS).profile))
    for number in range(options.runs):
        for trial in TRIALS:
            file = out / f"{trial.name}-{number}.json"
            if not file.exists():
                noise: dict[str, float] = {}
                p99_of(trial, traces[trial.trace])  # loads compiled kernels before rows are due
                with beside(noise), in_processes():
                    run = p99_of(trial, traces[trial.trace])
                replace_whole(file, json.dumps({"p99": run, "noise": noise}, indent=1).encode())
                print(f"{trial.name}, run {number + 1} of {options.runs}", file=sys.stderr, flush=True)
    orders = []
    for trial in TRIALS:
        kept = [json.loads(file.read_bytes()) for file in sorted(out.glob(f"{trial.name}-*.json"))]
        predicted, runs = p99_of(trial, traces[trial.trace], costs=costs), [one["p99"] for one in kept]
        orders.append(ordered(predicted, runs))
        noise_s = median(one["noise"]["wait_p99_s"] for one in kept)
        print(table(trial, predicted, runs, orders[-1], noise_s), end="\n\n")
    right, wrong = sum(len(one.right) for one in orders), sum(len(one.wrong) for one in orders)
    share = f"{right / max(1, right + wrong):.0%}"
    print(f"Of {right + wrong} pairs that the runs decide, the order of {right} ({share}) was foretold.")
    return 0 if right >= LEAST_RIGHT * (right + wrong) else 1


def p99_of(trial: Trial, trace: Path, **further: Any) -> dict[str, float]:
    """p99 latency of each policy, simulated or measured."""
    shared = {"speedup": trial.speedup, "partitions": 16, "state": "1000", **trial.options, **further}
    cases = [
        *adapt.replay.flux(trace, **FLUX, **shared).as_data()["cases"],
        *adapt.replay.elastic(trace, **ELASTIC, **shared).as_data()["cases"],
    ]
    return {NAMES.get(one["case"], one["case"]): float(one["latency_p99"]) for one in cases}


def table(trial: Trial, predicted: P99, runs: Sequence[P99], order: Order, noise_s: float) -> str:
    """The policies of a trial in the measured order, as Markdown."""
    lines = [f"**{trial.name}**", "", "| policy | p99, median (all runs) | foretold |", "|---|---|---|"]
    for name in sorted(predicted, key=lambda name: median(run[name] for run in runs)):
        each = sorted(run[name] for run in runs)
        lines.append(f"| {name} | {median(each):.3g} s ({each[0]:.3g} to {each[-1]:.3g}) | {predicted[name]:.3g} s |")
    wrong = "; ".join(f"{low} before {high}" for low, high in order.wrong)
    said = f"Right: {len(order.right)} of {len(order.right) + len(order.wrong)} pairs; {len(order.open)} undecided."
    said += f" Not foretold: {wrong}." if wrong else ""
    return "\n".join([*lines, "", f"{said} A wait of 25 ms was too long by {noise_s * 1e3:.2g} ms at its p99."])


def _trace(out: Path, name: str) -> Path:
    """A trace with a stated cost of each row, made on first use."""
    trace = out / f"{name.replace(' ', '-')}.trace"
    if not trace.exists():
        cost = f"lognormal({MEAN_S * 1e3 / 1.133:.4g}ms, 0.5)"  # of sigma 0.5: the mean is exp(0.125) medians
        adapt.generate("zipf", out=trace, rows=ROWS, rate=RATE, keys=1000, cost=cost, **TRACES[name])
    return trace


if __name__ == "__main__":
    sys.exit(main())
