"""Regret of every scaling policy against the offline optimum, and plan-ahead against each of the others.

Real traces under ADAPT_DATA and twelve generated ones, 600 control periods of 100 ms each, a pool of 16 workers, four
of them busy on average; rescales live, and by restarts of 1 s (ten periods). Small traces repeat each row, so that all
have some 100,000 rows; large ones are thinned. A rescale costs two control periods of the pool, the default; at other
prices only plan-ahead and the optimum run anew. Intervals are 95 %: of a trace by means of ten batches of the
difference in cost, of generated ones over their seeds. In the table + is a win of plan-ahead, - a loss, = level: an
interval with 0. Settings of plan-ahead were chosen on half of the real traces, marked (tuning), and on generated ones
with other seeds.

Claims: plan-ahead has no more late rows than ds2, and costs less on more traces than it costs more. Its aims are a
regret of at most 10 % in the median, and 60 % fewer rescales than ds2; whether it reaches them is printed, at each
price. A last table has the regret on the traces for tuning if plan-ahead knows the load some stages ahead.
"""

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from references import from_tests

from adapt.core.elastic.planning.horizon import Outlook
from adapt.core.elastic.planning.outlook import STAGES, Past
from adapt.core.elastic.planning.prices import GIB, Prices, usual_rescale_price
from adapt.core.elastic.policies.names import ScalingPolicy
from adapt.core.elastic.policies.placements import Counting
from adapt.core.elastic.policies.registry import Chosen
from adapt.core.elastic.policies.scaler import Patience
from adapt.core.elastic.replay.outcome import ElasticOutcome
from adapt.core.elastic.replay.regret import Bill
from adapt.core.elastic.replay.replay import Elastic, ElasticRun, replay_elastic
from adapt.core.keys.hashes import HASHES
from adapt.core.keys.names import HashName
from adapt.core.partitioning.build import Recipe
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stage.conditions.arrivals import Chunk, Rows
from adapt.core.stage.conditions.names import Migrating
from adapt.core.stage.conditions.restart import Restart
from adapt.core.stage.conditions.settings import Costs, Network, StageSettings, even_groups, even_owners
from adapt.core.stage.control.workers import Migration
from adapt.core.stage.input.offered_load import Demand
from adapt.core.statistics.student import student_quantile
from adapt.core.synthetic.rates import Bursts, Diurnal
from adapt.core.synthetic.variation import Variation
from adapt.traces.generators.zipf import zipf_stream
from adapt.traces.store.trace import BLOCK_ROWS

DATA = Path(os.environ.get("ADAPT_DATA", "../shared/data"))
PERIOD_S, PERIODS, ROWS = 0.1, 600, 100_000
LASTS_S = PERIOD_S * PERIODS
POOL, LEAST, BUSY, PER_WORKER = 16, 2, 4.0, 32
PARTITIONS = POOL * PER_WORKER
BATCHES = 10
SEEDS = range(3)
"""Seeds of generated traces. Those for tuning were 100 and 101."""

OWN, BEST = ScalingPolicy.PLAN_AHEAD.value, ScalingPolicy.OPTIMUM.value

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S
VARIATIONS = {
    "still": Variation(),
    "diurnal": Variation(diurnal=Diurnal(0.8)),
    "bursts": Variation(bursts=Bursts(5.0, 8 * HOUR_S, 2 * HOUR_S)),
    "diurnal and bursts": Variation(diurnal=Diurnal(0.6), bursts=Bursts(3.0, 12 * HOUR_S, HOUR_S)),
}
"""Four days of Zipf keys."""

REAL = {
    "web log by host": ("weblog-2015/apache_logs", "host", 0.0),
    "web log by path": ("weblog-2015/apache_logs", "path", 0.0),
    "edits by channel": ("wiki-edits/wikiticker-2015-09-12-sampled.json.gz", "channel", 0.0),
    "edits by page": ("wiki-edits/wikiticker-2015-09-12-sampled.json.gz", "page", 0.0),
    "reviews by vendor": ("reviews/anonreviews.csv.bz2", "vendorId", 14.0),
    "flights by destination": ("flights/flights.csv.gz", "dest", 14.0),
    "flights by carrier": ("flights/flights.csv.gz", "carrier", 14.0),
    "messages by sender": ("messages/CollegeMsg.txt", "sender", 28.0),
    "taxi by taxi": ("taxi/taxi-traces.csv", "taxi", 0.0),
    "taxi by cell": ("taxi/taxi-traces.csv", "cell", 0.0),
    "quotes by level": ("fx-ticks", "instrument@bid", 0.0),
    "trades by pair": ("crypto-trades", "currency pair", 0.0),
}
"""File, key, and days from the middle row on; 0 for all."""

TUNED = (
    "web log by host",
    "web log by path",
    "flights by destination",
    "flights by carrier",
    "messages by sender",
    "quotes by level",
)
"""Real traces on which settings of plan-ahead were chosen."""

AIM, FEWER = 0.10, 0.60
"""Median regret, and share of the rescales of ds2 that are saved: what plan-ahead was made for."""

PLANNED = (ScalingPolicy.PLAN_AHEAD, ScalingPolicy.OPTIMUM)
OTHERS = tuple(one for one in ScalingPolicy if one not in (ScalingPolicy.FIXED, *PLANNED))

USUAL = usual_rescale_price(POOL, PERIOD_S)
PRICES = (USUAL, 0.0, 2 * USUAL, 4 * USUAL)
"""Prices of a rescale, in worker seconds; the tables are at the first."""

AHEAD = (1, 2, 4, STAGES)
"""Stages of known load, on the traces for tuning."""

columns = from_tests("claims/real_columns.py")
SOURCES = {file: read for kind in (columns.DECIDING, columns.OTHERS) for file, (read, _) in kind.items()}


def main() -> int:
    """Print the tables; 0 if the claims are met."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="traces whose name contains this")
    parser.add_argument("--runs", type=Path, help="folder that keeps what was run, to go on after an interruption")
    parser.add_argument("--prices", type=int, default=len(PRICES), help="how many of the prices of a rescale are tried")
    options = parser.parse_args()
    is_met = True
    for named, migration in (
        ("live", Migration(Migrating.ALL)),
        ("restarts of ten periods", Migration(Migrating.RESTART, restart=Restart(start_s=10 * PERIOD_S, saves=False))),
    ):
        kept = None if options.runs is None else options.runs / named
        runs: dict[float, dict[str, Run]] = {price: {} for price in PRICES[: options.prices]}
        ahead: dict[str, tuple[Run, ...]] = {}
        for name, trace in _traces():
            if options.only not in name:
                continue
            others = _kept(kept, f"{name} others", partial(_run, trace, migration, OTHERS))
            for price, found in runs.items():
                own = _kept(kept, f"{name} {price:g}", partial(_run, trace, migration, PLANNED, price))
                found[name] = _together(others, own, price)
            if name in TUNED and options.prices == len(PRICES):
                ahead[name] = tuple(
                    _kept(kept, f"{name} ahead {stages}", partial(_run, trace, migration, PLANNED[:1], USUAL, stages))
                    for stages in AHEAD
                )
        is_met &= _judged(f"Rescales: {named}", runs[USUAL])
        _print_prices(runs)
        _print_ahead(ahead, runs[USUAL])
    return 0 if is_met else 1


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """A trace that is replayed in `LASTS_S`.

    Attributes:
        chunk: Its rows.
        times: Seconds of the replay in a second of the trace, by which published policies decide.
    """

    chunk: Chunk
    times: float


class Foreseen(Past):
    """The load, known some stages ahead and foreseen from the past after them."""

    def __init__(self, rates: np.ndarray, stages: int) -> None:
        """Start without a past.

        Args:
            rates: Workers that each control period keeps busy, shape (periods,).
            stages: Stages that are known.
        """
        super().__init__()
        self._done = np.concatenate([[0.0], np.cumsum(rates)])
        self._stages = stages

    def outlook(self, period_s: float, stage: int) -> Outlook:
        """Loads that may come; all alike in the stages that are known."""
        foreseen = super().outlook(period_s, stage)
        ends = round(self._last_s / period_s) + stage * np.arange(self._stages + 1)
        work = foreseen.work.copy()
        work[:, : self._stages] = np.diff(self._done[np.minimum(ends, len(self._done) - 1)]) * period_s
        return replace(foreseen, work=work)


@dataclass(frozen=True, slots=True)
class Case:
    """A policy on a trace.

    Attributes:
        cost_s: Cost, in worker seconds, without the price of rescales until `at` adds it.
        late: Late rows.
        worker_s: Worker time.
        rescales: Rescales and rebuilds that changed something.
        batches: Cost of each tenth of the run, likewise.
        rescales_by_batch: Rescales in each tenth.
    """

    cost_s: float
    late: int
    worker_s: float
    rescales: int
    batches: tuple[float, ...]
    rescales_by_batch: tuple[int, ...]

    def at(self, price: float) -> "Case":
        """With rescales at a price."""
        batches = tuple((np.array(self.batches) + price * np.array(self.rescales_by_batch)).tolist())
        return replace(self, cost_s=self.cost_s + price * self.rescales, batches=batches)


@dataclass(frozen=True, slots=True)
class Run:
    """Policies on a trace.

    Attributes:
        bound_s: Least cost in the model of the optimum with free rescales.
        cases: By policy.
    """

    bound_s: float
    cases: Mapping[str, Case]

    def regret(self, policy: str) -> float:
        """Cost above that of the optimum, relative."""
        return self.cases[policy].cost_s / self.cases[BEST].cost_s - 1


def _kept(folder: Path | None, name: str, run: Callable[[], Run]) -> Run:
    """A run, from the folder if it is there."""
    file = None if folder is None else folder / f"{name}.json"
    if file is not None and file.exists():
        data = json.loads(file.read_text())
        return Run(data["bound_s"], {case: Case(**one) for case, one in data["cases"].items()})
    made = run()
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        whole = file.with_suffix(".part")
        whole.write_text(json.dumps(asdict(made)))
        whole.replace(file)
    return made


def _run(
    trace: Trace, migration: Migration, policies: tuple[ScalingPolicy, ...], price: float = 0.0, known: int = 0
) -> Run:
    """Policies on a trace; their cases are without the price of rescales, by which they decide."""
    run = replayed(trace, migration, policies, price, known)
    free = replace(run.bill, prices=replace(run.bill.prices, rescale=0.0))
    cases = {}
    for one in run.outcomes:
        cost, (batches, rescales) = free.cost(one), _batches(free, one)
        tenths = tuple(batches.tolist()), tuple(rescales.tolist())
        cases[one.case] = Case(cost.total_s, cost.late, one.worker_s, one.restarts, *tenths)
    return Run(float(run.bound_s or 0.0), cases)


def _together(others: Run, own: Run, price: float) -> Run:
    """All policies with rescales at a price; the optimum is the cheapest case."""
    cases = {name: case.at(price) for name, case in {**others.cases, **own.cases}.items()}
    return Run(own.bound_s, {**cases, BEST: min(cases.values(), key=lambda case: case.cost_s)})


def _traces() -> Iterator[tuple[str, Trace]]:
    """Each trace by name."""
    if DATA.exists():
        for file, found in groupby(REAL.items(), key=lambda item: item[1][0]):
            rows, times = SOURCES[file](DATA / file)
            for name, (_, column, days) in found:
                yield name, _real(pc.cast(rows[column], pa.string()), _seconds(file, times), days)
    for name, variation in VARIATIONS.items():
        for seed in SEEDS:
            stream = zipf_stream(ROWS, 10_000, 1.0, seed, ROWS / (4 * DAY_S), variation=variation)
            rows = pa.Table.from_batches([stream.block(at) for at in range(-(-ROWS // BLOCK_ROWS))])
            yield (
                f"{name} {seed}",
                _trace(pc.cast(rows["key"], pa.string()), rows["ts"].cast(pa.int64()).to_numpy() / 1e6),
            )


def _seconds(file: str, times: np.ndarray) -> np.ndarray:
    """Times of a real file in seconds, from what its reader gives."""
    if times.dtype.kind in "OUS":
        return np.array([str(one).rstrip("Z") for one in times], "datetime64[ms]").astype(np.int64) / 1000
    times = times.astype(np.float64)
    if file.startswith("flights/flights"):  # months, days, hours and minutes as decimal digits
        date, clock = np.divmod(times.astype(np.int64), 10_000)
        days = (np.cumsum([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30]))[date // 100 - 1] + date % 100
        return days * DAY_S + clock // 100 * 3600 + clock % 100 * 60
    if file == "crypto-trades":  # days that do not follow each other
        days, clock = np.divmod(times, DAY_S * 1000)
        return np.unique(days, return_inverse=True)[1] * DAY_S + clock / 1000
    return times / 1000 if file == "fx-ticks" else times


def _real(keys: pa.ChunkedArray, times: np.ndarray, days: float) -> Trace:
    """Rows of a stretch, without the thousandth at each end, which are outliers in some."""
    order = np.argsort(times, kind="stable")
    cut = len(order) // 1000
    order = order[cut : len(order) - cut]
    if days:
        first = times[order[len(order) // 2]]
        order = order[(times[order] >= first) & (times[order] < first + days * DAY_S)]
    thinned = order[:: max(1, len(order) // ROWS)]
    repeated = np.repeat(thinned, max(1, ROWS // len(thinned)))
    return _trace(keys.take(pa.array(repeated)), times[repeated])


def _trace(keys: pa.ChunkedArray, times_s: np.ndarray) -> Trace:
    """Rows of keys at times, which last `LASTS_S` in all."""
    factor = LASTS_S / float(times_s[-1] - times_s[0])
    due = (times_s - times_s[0]) * factor
    groups = HASHES[HashName.MURMUR3].modulo(pc.fill_null(keys, "").combine_chunks(), PARTITIONS).astype(np.int64)
    return Trace(Chunk(groups, np.arange(len(due)) % POOL, due.astype(np.float64), None), factor)


def replayed(
    trace: Trace, migration: Migration, policies: tuple[ScalingPolicy, ...], price: float, known: int = 0
) -> ElasticRun:
    """Policies on one trace; scale-out delay and cooldown of two and ten periods, as in `replay compare`.

    `flink`, `conttune`, `spark` and `spark-streaming` have their published times, as times of the trace.

    Args:
        price: Of a rescale, in worker seconds.
        known: Stages ahead in which plan-ahead knows the load.
    """
    chunk = trace.chunk
    costs = Costs(service_s=BUSY * LASTS_S / len(chunk.groups), service_sd_s=0.0)
    settings = StageSettings(
        POOL,
        even_owners(POOL, PER_WORKER),
        even_groups(PARTITIONS, PARTITIONS),
        buffer_tuples=24,
        network=Network(),
        costs=costs,
        state_tuples=100,
    )
    rows = np.bincount((chunk.due_s / PERIOD_S).astype(np.int64))
    past = partial(Foreseen, rows * (costs.service_s + costs.produce_s) / PERIOD_S, known)
    elastic = Elastic(
        POOL,
        LEAST,
        policies,
        Chosen(lag_rows=PERIOD_S / costs.service_s, times=trace.times, past=past if known else None),
        Patience(2 * PERIOD_S, 10 * PERIOD_S),
        recipe=Recipe(Scheme.HYBRID),
        counting=Counting(10 * PERIOD_S, 1e-3),
        period_s=PERIOD_S,
        migration=migration,
        prices=Prices(target_s=5 * PERIOD_S, rescale=price),
    )
    demand = Demand.from_chunks([chunk], settings)
    return replay_elastic(Rows(lambda: iter([chunk])), demand, settings, elastic, interval_s=PERIOD_S)


def _judged(title: str, runs: dict[str, Run]) -> bool:
    """Print regrets, then plan-ahead against each of the others."""
    others = [one.value for one in OTHERS]
    print(f"## {title}\n")
    print(f"| trace | optimum, s | above the bound | {' | '.join([OWN, *others])} |")
    print(f"|{'---|' * (4 + len(others))}")
    for trace, run in runs.items():
        least = run.cases[BEST].cost_s
        signs = {name: "+=-"[_sign(run.cases[OWN], run.cases[name]) + 1] for name in others}
        cells = [f"{run.regret(name):+.0%} {signs.get(name, '')}".strip() for name in [OWN, *others]]
        marked = f"{trace} (tuning)" if trace in TUNED else trace
        print(f"| {marked} | {least:.0f} | {least / run.bound_s - 1:.0%} | {' | '.join(cells)} |")
    held_out = {trace: run for trace, run in runs.items() if trace not in TUNED}
    for named, some in (("median", runs), ("median without those for tuning", held_out)):
        medians = [_median([run.regret(name) for run in some.values()]) for name in [OWN, *others]]
        print(f"| {named} | | | {' | '.join(f'{one:+.0%}' for one in medians)} |")
    print("\n| policy | rescales | late rows | worker time, s | plan-ahead wins, level, loses |\n|---|---|---|---|---|")
    for name in [OWN, *others, BEST]:
        found = [run.cases[name] for run in runs.values()]
        signs_of = [_sign(run.cases[OWN], run.cases[name]) for run in runs.values()]
        ends = ", ".join(str(signs_of.count(sign)) for sign in (-1, 0, 1)) if name in others else ""
        rescales, late = sum(one.rescales for one in found), sum(one.late for one in found)
        print(f"| {name} | {rescales:,} | {late:,} | {sum(one.worker_s for one in found):,.0f} | {ends} |")
    print("\n| generated | regret of plan-ahead over seeds | regret of ds2 |\n|---|---|---|")
    for kind in VARIATIONS:
        by_seed = [runs[f"{kind} {seed}"] for seed in SEEDS if f"{kind} {seed}" in runs]
        if len(by_seed) > 1:
            print(f"| {kind} | {_over_seeds(by_seed, OWN)} | {_over_seeds(by_seed, 'ds2')} |")
    return _claimed(runs)


def _claimed(runs: dict[str, Run]) -> bool:
    """Print aims and claims; whether the claims are met."""
    regret = _median([run.regret(OWN) for run in runs.values()])
    own, ds2 = ([run.cases[name] for run in runs.values()] for name in (OWN, "ds2"))
    fewer = np.array([two.rescales - one.rescales for one, two in zip(own, ds2, strict=True)], np.float64)
    late, late_of_ds2 = sum(one.late for one in own), sum(one.late for one in ds2)
    share = 1 - sum(one.rescales for one in own) / max(1, sum(one.rescales for one in ds2))
    signs = [_sign(one, two) for one, two in zip(own, ds2, strict=True)]
    print(
        f"\nAim: regret at most {AIM:.0%} in the median: {regret:.1%}, {_met(regret <= AIM)}.\n"
        f"Aim: {FEWER:.0%} fewer rescales than ds2: {abs(share):.0%} {'fewer' if share >= 0 else 'more'},"
        f" fewer by trace {_interval(fewer)}, {_met(share >= FEWER)}.\n"
        f"Claim: no more late rows than ds2: {late:,} against {late_of_ds2:,}: {_met(late <= late_of_ds2)}.\n"
        f"Claim: cheaper than ds2 on more traces than dearer: {signs.count(-1)} against {signs.count(1)}:"
        f" {_met(signs.count(-1) > signs.count(1))}.\n",
        flush=True,
    )
    return late <= late_of_ds2 and signs.count(-1) > signs.count(1)


def _print_prices(runs: dict[float, dict[str, Run]]) -> None:
    """What the price of a rescale decides: regret, rescales and late rows."""
    print("| price, s | regret of plan-ahead, ds2 | rescales of plan-ahead, ds2, optimum | fewer | late rows | aims |")
    print(f"|{'---|' * 6}")
    for price in sorted(runs):
        found = list(runs[price].values())
        regrets = [_median([run.regret(name) for run in found]) for name in (OWN, "ds2")]
        own, ds2, best = (sum(run.cases[name].rescales for run in found) for name in (OWN, "ds2", BEST))
        late, late_of_ds2 = (sum(run.cases[name].late for run in found) for name in (OWN, "ds2"))
        fewer = 1 - own / max(1, ds2)
        are_met = regrets[0] <= AIM, fewer >= FEWER, late <= late_of_ds2
        print(
            f"| {price:g} | {regrets[0]:.1%}, {regrets[1]:.0%} | {own:,}, {ds2:,}, {best:,} | {fewer:.0%} |"
            f" {late:,}, {late_of_ds2:,} | {', '.join(map(_met, are_met))} |"
        )


def _print_ahead(runs: dict[str, tuple[Run, ...]], at_usual: dict[str, Run]) -> None:
    """Regret of plan-ahead by the stages of load that it knows."""
    if not runs:
        return
    print(f"\n| known stages | {' | '.join(map(str, (0, *AHEAD)))} |\n|{'---|' * (len(AHEAD) + 2)}")
    costs = {
        name: [at_usual[name].cases[OWN], *(run.cases[OWN].at(USUAL) for run in known)] for name, known in runs.items()
    }
    least = {name: min(one.cost_s for one in (at_usual[name].cases[BEST], *cases)) for name, cases in costs.items()}
    regrets = np.array([[case.cost_s / least[name] - 1 for case in cases] for name, cases in costs.items()])
    print(f"| regret, median | {' | '.join(f'{one:.0%}' for one in np.median(regrets, axis=0))} |")
    print(f"| regret, mean | {' | '.join(f'{one:.0%}' for one in regrets.mean(axis=0))} |\n", flush=True)


def _met(is_met: bool) -> str:
    return "met" if is_met else "NOT MET"


def _median(values: list[float]) -> float:
    return float(np.median(values)) if values else math.nan


def _over_seeds(runs: list[Run], policy: str) -> str:
    return _interval(np.array([run.regret(policy) for run in runs]) * 100, " %")


def _interval(values: np.ndarray, unit: str = "") -> str:
    """Mean and half of its 95 % interval."""
    if len(values) < 2:
        return f"{values.mean():.0f}{unit}"
    return f"{values.mean():.0f} +- {_half(values):.0f}{unit}"


def _half(values: np.ndarray) -> float:
    """Half of the 95 % interval of a mean."""
    return student_quantile(0.975, len(values) - 1) * float(values.std(ddof=1)) / len(values) ** 0.5


def _sign(own: Case, other: Case) -> int:
    """-1 if `own` costs less, by the 95 % interval of batch means, 1 if it costs more, 0 if that cannot be told."""
    apart = np.subtract(own.batches, other.batches)
    return 0 if abs(float(apart.mean())) <= _half(apart) else int(np.sign(apart.mean()))


def _batches(bill: Bill, one: ElasticOutcome) -> tuple[np.ndarray, np.ndarray]:
    """Cost and rescales of each tenth of the run; what comes later is in the last one."""
    costs, prices, simulated = np.zeros(BATCHES), bill.prices, one.outcome.simulated

    def tenth(at_s: float) -> int:
        return min(BATCHES - 1, int(at_s / LASTS_S * BATCHES))

    def add(at_s: float, cost: float) -> None:
        costs[tenth(at_s)] += cost

    for interval, span in zip(simulated.intervals, one.spans, strict=True):
        late = prices.late * bill.row_s * interval.total.above(prices.target_s)
        add(interval.start_s, span.workers * (interval.end_s - interval.start_s) + late)
    for moved in simulated.moves:
        paused_s = moved.times_s.get("restarted", one.ended_s) - moved.times_s.get("paused", one.ended_s)
        add(
            moved.times_s["decided"],
            prices.moved * moved.state_bytes / GIB + prices.pause * paused_s / bill.partitions,
        )
    changed = [tenth(step.decided_s) for step in simulated.steps if step.moves or step.before != step.after]
    return costs, np.bincount(changed, minlength=BATCHES)


if __name__ == "__main__":
    sys.exit(main())
