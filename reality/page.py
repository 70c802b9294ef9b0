"""Page of predicted against measured, and the same values as JSON."""

import json
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from adapt.core.phrases import counted
from adapt.traces.store.atomic import replace_whole
from reality.runs import Kept
from reality.scenarios import Engine, scenarios
from reality.values import SCHEMA, Value, effects
from reality.workload import MEAN_S, ROWS, VARIATION, WORKERS, cores

TITLES = {
    Engine.STAGE: "Worker processes",
    Engine.FLINK: "Flink",
    Engine.SPARK: "Spark, batch",
    Engine.STREAMING: "Spark, Structured Streaming",
}

ABOUT = {
    Engine.STAGE: (
        "`adapt replay flux`, and `adapt replay elastic` for the rescale, with worker processes (`reality/processes`)"
        " in place of the simulated workers. They run from the start, so that the prediction has"
        " `--migrate startup-time=0s`."
        "\n\nA rescale of 146 partitions once took 65 ms where 31 ms were foretold. Times of each step showed "
        "why: orders went out one by one (6 to 13 ms), donors copied states and contended with the threads "
        "that sent them (10 to 20 ms), and an order waits for the row in service, which the simulator did "
        "not know. Now orders go together, states are not copied, and the profile has what a plan and a "
        "move take besides the state and that orders are read between rows. `downtime without queues` "
        "leaves out the time in which the last donor processed the rows ahead of its moves. What is still "
        "missing in it is probably the sending of many states at once, by threads that share two cores with "
        "the work; the calibration times states with bytes one at a time."
        "\n\nThe rest of the downtime, and the peak, are queues: two workers are busy for 90 to 94 % of the "
        "time before the rescale, so small errors in the service time become large ones. In one set of five "
        "calibrating runs, whose mean service time was 4.13 to 4.28 ms, the profiles foretold a downtime of 30 "
        "to 115 ms and a peak of 50 to 290 ms, so one profile is right to 25 % only by luck. The peak is the "
        "latency of a single row. The mean latency of the 2 s from the rescale on is shown too: these profiles "
        "foretold 5.9 to 10.6 ms."
    ),
    Engine.FLINK: (
        "A standalone cluster: a JobManager and a TaskManager with 4 slots, each row sent at once (buffer timeout 0)."
        " The DataStream job is `reality/java/ReplayTrace.java`. A rescale changes the parallelism over REST; the"
        " adaptive scheduler restarts the job from a checkpoint (one per second). Its downtime is the longest time"
        " without a processed row. Service times are those of `adapt calibrate flink` on the running job as the"
        " prediction, and of the job's own log. A replayed rescale moves key groups as Flink does (`--scheme flink`)."
        "\n\nThe peak of a rescale is foretold too low. It is not the work of a few rows: in each run 41 to 76 rows are"
        " within 20 % of it, nearly all on the busiest subtask. The rows of these runs show why. The downtime ends with"
        " the first subtask that takes a row, but the busiest took its first one 39 to 146 ms after the last row before"
        " the stop, in three of the ten runs 87 to 95 ms after another subtask. With its median in the rescale to 4"
        " workers, 132 ms, as the time of the restart, the simulator foretells a peak of 202 ms. And 10 to 16 rows"
        " since the checkpoint are processed again, which a replay leaves out."
    ),
    Engine.SPARK: "`local[4]`, rows grouped by key, or by the route of the plan.",
    Engine.STREAMING: (
        "`local[4]`, a stateful query with a source that offers the rows that are due. A row counts as processed when"
        " its micro-batch is. Saturated, a micro-batch has up to 400 rows. There is no rescale: a checkpoint fixes the"
        " number of state partitions."
    ),
}

TARGETS: Mapping[str, tuple[float, float | None]] = {
    "throughput": (0.10, 0.20),
    "p99": (0.25, None),
    "downtime": (0.25, None),
}
"""Errors that are aimed at: in the median, and at worst."""


def write_page(
    folder: Path, values: Sequence[Value], kept: Mapping[Engine, Kept], skipped: Mapping[Engine, str]
) -> Path:
    """Write `reality.md` and `reality.json`; returns the page."""
    folder.mkdir(parents=True, exist_ok=True)
    data = {"schema": SCHEMA, "made": made(), "values": [one.as_data() for one in values], "noise": noise(kept)}
    replace_whole(folder / "reality.json", (json.dumps(data, indent=1, allow_nan=False) + "\n").encode())
    replace_whole(folder / "reality.md", page(values, noise(kept), skipped).encode())
    return folder / "reality.md"


def made() -> dict[str, str]:
    """Versions and machine."""
    return {
        "command": "make reality",
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "pyspark")},
        "adapt": version("adapt-streams"),
        "machine": f"{platform.machine()}, {cores()} cores",
    }


def noise(kept: Mapping[Engine, Kept]) -> list[dict[str, Any]]:
    """Noise beside the runs of each scenario, medians over its runs."""
    found = []
    for engine in Engine:
        for scenario in scenarios(engine):
            runs = [run["noise"] for run in kept[engine].runs(scenario)]
            if runs:
                means = {name: median(run[name] for run in runs) for name in runs[0]}
                found.append({"engine": engine.value, "scenario": scenario.name, "runs": len(runs), **means})
    return found


def page(values: Sequence[Value], noises: Sequence[Mapping[str, Any]], skipped: Mapping[Engine, str]) -> str:
    """The page as Markdown."""
    parts = [_head(values), _summary(values)]
    for engine in Engine:
        own = [one for one in values if one.engine is engine]
        if own:
            parts.append(_of_engine(engine, own))
        elif engine in skipped:
            parts.append(f"## {TITLES[engine]}\n\nNot run: {skipped[engine]}.")
    return "\n\n".join([*parts, _noise(noises)]) + "\n"


def _head(values: Sequence[Value]) -> str:
    found = {(one.engine, one.scenario) for one in values}
    runs = max((len(one.measured) for one in values), default=0)
    scope = f"{counted(len(found), 'scenario')} on {counted(len({engine for engine, _ in found}), 'engine')}"
    mean, cv = f"{MEAN_S * 1e3:g} ms", f"{VARIATION:g}"
    return f"""# Predictions against real engines

Generated by `make reality`, with [all values as JSON](reality.json). {scope},
up to {runs} runs each: {ROWS:,} edits of Wikipedia by language edition, replayed through {WORKERS} workers. Each row
waits for a service on the same machine, whose latency is stated row by row: lognormal, with a mean of {mean} and a
coefficient of variation of {cv}. So the workers use little CPU, and there can be more of them than the {cores()} cores.

`natural` is the placement that the engine has by itself, `plan` that of `adapt partition build`. Loads are shares of
the throughput of the first run at saturation. Latency counts from the time at which a row was due. One scenario of each
engine, marked *, calibrates the others: service times and the time on the way as a cost profile, and what a micro-batch
or a restart takes. Everything else is predicted by `adapt replay` with this profile."""


def _summary(values: Sequence[Value]) -> str:
    lines = ["## In short", "", "| metric | values | error in the median | at worst | aim |", "|---|---|---|---|---|"]
    foretold = [one for one in values if not one.calibrates and one.error is not None]
    rows = [one for one in foretold if one.unit == "rows"]
    exact = sum(all(each == one.predicted for each in one.measured) for one in rows)
    lines.append(f"| rows per worker | {len(rows)} | {exact} exact in every run | | exact |")
    for metric, (aim, worst) in TARGETS.items():
        errors = [abs(one.error or 0) for one in foretold if one.metric == metric]
        if errors:
            aims = f"{aim:.0%} in the median" + (f", {worst:.0%} at worst" if worst else "")
            lines.append(f"| {metric} | {len(errors)} | {median(errors):.1%} | {max(errors):.1%} | {aims} |")
    gains = effects(values)
    lines += ["", "A plan of `adapt` instead of the natural placement, by throughput at saturation:", ""]
    lines += ["| engine | | predicted | measured |", "|---|---|---|---|"]
    lines += [
        f"| {TITLES[one.engine]} | {one.scenario} | {one.predicted:.2f} times | {median(one.measured):.2f} times |"
        for one in gains
    ]
    return "\n".join(lines)


def _of_engine(engine: Engine, values: Sequence[Value]) -> str:
    lines = [f"## {TITLES[engine]}", "", ABOUT[engine], ""]
    lines += ["| scenario | metric | predicted | measured, median | in each run | error |", "|---|---|---|---|---|---|"]
    for name in dict.fromkeys(one.scenario for one in values):
        own = [one for one in values if one.scenario == name]
        workers = [one for one in own if one.unit == "rows"]
        shown = name + ("*" if own[0].calibrates else "")
        for one in own:
            if one not in workers:
                lines.append(_line(shown, one))
        if workers:
            lines.append(_line_of_workers(shown, workers))
    return "\n".join(lines)


def _line(name: str, one: Value) -> str:
    shown = amount(one.unit)
    each = ", ".join(shown(value) for value in one.measured)
    foretold = "no model" if one.predicted is None else shown(one.predicted)
    error = "" if one.error is None else f"{one.error:+.1%}"
    return f"| {name} | {one.metric} | {foretold} | {shown(median(one.measured))} | {each} | {error} |"


def _line_of_workers(name: str, workers: Sequence[Value]) -> str:
    """Rows of all workers in one line."""
    foretold = _listed(one.predicted for one in workers)
    runs = list(dict.fromkeys(_listed(each) for each in zip(*(one.measured for one in workers), strict=True)))
    exact = "exact" if runs == [foretold] else ""
    each = "the same" if len(runs) == 1 else "; ".join(runs)
    return f"| {name} | rows per worker | {foretold} | {runs[0]} | {each} | {exact} |"


def _listed(values: Iterable[float | None]) -> str:
    return ", ".join("?" if each is None else f"{each:.0f}" for each in values)


def amount(unit: str) -> Callable[[float], str]:
    """How numbers of a unit are shown."""
    if unit == "s":
        return lambda value: f"{value * 1e3:.3g} ms" if value < 1 else f"{value:.3g} s"
    return lambda value: f"{value:,.0f}" + (f" {unit}" if unit != "rows" else "")


def _noise(noises: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        "## Noise of the machine",
        "",
        "During every run another process waits 25 ms and runs a fixed loop, again and again. Medians over the runs:",
        "",
        "| engine | scenario | loop: least, p50, p99 | wait too long: p50, p99 |",
        "|---|---|---|---|",
    ]
    shown = amount("s")
    for one in noises:
        loops = ", ".join(shown(one[f"loop_{name}_s"]) for name in ("least", "p50", "p99"))
        waits = ", ".join(shown(one[f"wait_{name}_s"]) for name in ("p50", "p99"))
        lines.append(f"| {TITLES[Engine(one['engine'])]} | {one['scenario']} | {loops} | {waits} |")
    return "\n".join(lines)
