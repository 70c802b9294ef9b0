"""The search for the sustainable rate, against queueing theory and a machine of known limits."""

from dataclasses import dataclass

import numpy as np
import pytest

from adapt.core.errors import UsageError
from adapt.core.ordered.chain.names import Backend, Spacing
from adapt.core.ordered.engine.settings import Contention, RunSettings
from adapt.core.ordered.replay.arrivals import Arrivals, LatencyTarget, Ordered, Sustained
from adapt.core.ordered.replay.charts import ordered_charts
from adapt.core.ordered.replay.outcome import Latency
from adapt.core.ordered.replay.replay import replay_ordered
from adapt.core.ordered.replay.sustainable import LOW, SEARCH_RUNS, STEP, Run, Search, searched
from adapt.core.ordered.replay.tables import OrderedRun
from tests.core.ordered.chains import bound, counting, stateless

SERVICE_NS, ROWS = 5_000, 5_000


def replayed(ordered: Ordered, rows: int = ROWS) -> OrderedRun:
    chain = bound([stateless("a", cost=SERVICE_NS / 1000)], rows)
    return replay_ordered(chain, ordered, clock=lambda: 0.0, cpu_clock=lambda: 0.0)


def shares(*of: float, spacing: Spacing = Spacing.POISSON) -> tuple[Arrivals, ...]:
    return tuple(Arrivals(sustained=each, spacing=spacing) for each in of)


def lindley_s(rate: float, seed: int) -> tuple[float, float]:
    """Latency of one server that serves in the order of arrival, by Lindley's recursion over the same gaps.

    Its 99th percentile, and where it would be after five times as many rows if its medians grew on.
    """
    at_ns = np.rint(np.cumsum(np.random.default_rng([seed, 1]).exponential(size=ROWS)) / rate * 1e9)
    free, took = 0.0, []
    for arrival in at_ns:
        free = max(arrival, free) + SERVICE_NS
        took.append(free - arrival)
    middle, last = (np.median(took[int(share * ROWS) :][: ROWS // 5]) for share in (0.4, 0.8))
    p99 = sorted(took[ROWS // 5 : ROWS - ROWS // 5])[int(np.ceil(0.99 * 0.6 * ROWS)) - 1]
    return p99 / 1e9, last / 1e9 + (last - middle) / 1e9 * 4.1 / 0.4


def lindley_p99_s(rate: float, seed: int) -> float:
    return lindley_s(rate, seed)[0]


def test_the_sustainable_rate_of_one_worker_is_that_of_lindleys_recursion() -> None:
    settings, target = RunSettings(mark_every=1, chunk=1), LatencyTarget(times=10)
    model = Ordered((1,), Backend.SIM, settings, Contention(send_us=0.0), arrivals=shares(0.5, 1.0), target=target)
    run = replayed(model)
    found = run.outcomes[0].paced.sustained  # type: ignore[union-attr]
    assert found is not None
    capacity = 1e9 / SERVICE_NS
    low = sorted(lindley_p99_s(LOW * capacity, seed) for seed in range(3))[1]
    assert found.target_s == pytest.approx(10 * low, rel=1e-9)
    assert 0 < found.high - found.low <= STEP * capacity
    for rate, sustained in ((found.low, True), (found.high, False)):
        votes = [max(lindley_s(rate, seed)) <= found.target_s for seed in range(3)]
        assert (votes.count(True) >= 2) is sustained
    rows = run.tables()["loads"].records()
    assert [row["rate"] / row["sustainable"] for row in rows] == pytest.approx([0.5, 1.0], rel=0.05)  # type: ignore[operator]
    assert [row["end_to_end_p99"] for row in rows] == pytest.approx(
        [lindley_p99_s(share * found.low, 0) for share in (0.5, 1.0)], rel=1e-6
    )


def test_a_search_is_reported_with_all_its_runs() -> None:
    run = replayed(Ordered((1, 2), Backend.SIM, arrivals=shares(0.5, 0.9), check=0), 1000)
    tables = run.tables()
    for workers, row in zip((1, 2), tables["workers"].records(), strict=True):
        probes = [probe for probe in tables["search"].records() if probe["workers"] == workers]
        votes = {each["rate"]: [one["sustained"] for one in probes if one["rate"] == each["rate"]] for each in probes}
        sustained = [rate for rate, of in votes.items() if 2 * of.count(True) > len(of)]
        assert row["sustainable"] == max(sustained)  # type: ignore[type-var]
        assert len(probes) <= SEARCH_RUNS
    verdict = str(run.summary().records()[0]["verdict"])
    assert "1 worker sustains" in verdict
    assert "2 workers sustain" in verdict
    shown = ordered_charts(tables["workers"], tables["operators"], tables["occupancy"], tables["loads"])[0]
    assert "over the sustainable rate" in str(shown.spec)
    points = [each["x"] for each in shown.spec["data"]["values"] if each["series"] == "2 workers, p99"]
    assert points == pytest.approx([0.5, 0.9], rel=0.1)
    assert run.as_data()["parameters"]["arrivals"]["target"] == {"seconds": None, "times": 10.0}


def test_threads_run_at_shares_of_the_rate_that_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search itself is replaced: what threads sustain depends on what else the machine does."""

    def found(capacity: float, target: LatencyTarget, run: Run, *, is_steady: bool) -> Search:
        assert is_steady
        probe = run(LOW * capacity, 0)
        assert probe.paced is not None
        assert probe.paced.rate == pytest.approx(LOW * capacity, rel=0.1)
        return Search(Sustained(LOW * capacity, (LOW + STEP) * capacity, target.times), ())

    monkeypatch.setattr("adapt.core.ordered.replay.replay.searched", found)
    ordered = Ordered((1,), arrivals=shares(0.5), target=LatencyTarget())
    chain = bound([stateless("a", cost=2.0), counting("b")], 20_000)
    (one,) = replay_ordered(chain, ordered, clock=lambda: 0.0, cpu_clock=lambda: 0.0).outcomes
    assert one.is_ordered
    assert one.paced is not None
    assert one.paced.sustained is not None
    assert one.paced.rate == pytest.approx(0.5 * one.paced.sustained.low, rel=0.1)


@dataclass(frozen=True, slots=True)
class Machine:
    """A run on a machine that keeps up below a rate."""

    limit: float
    rate: float
    disturbed: bool = False
    workers: int = 1
    drain_s: float = 1.0
    later_s: float = 0.0

    @property
    def keeps_up(self) -> bool:
        return self.rate < self.limit and not self.disturbed

    @property
    def end_to_end(self) -> Latency:
        return Latency(0.0, 0.0, 0.0, 0.001)


@pytest.mark.parametrize("limit", [250.0, 700.0, 990.0, 1190.0, 2000.0])
def test_the_limit_of_a_machine_is_found_whatever_its_measured_capacity(limit: float) -> None:
    def run(rate: float, number: int) -> Machine:
        return Machine(limit, rate, disturbed=number == 0)  # one of three runs is disturbed

    found = searched(1000.0, LatencyTarget(), run).found  # type: ignore[arg-type]
    assert found.low < limit <= found.high <= found.low + STEP * 1000


def test_a_queue_that_grows_is_followed_into_a_longer_run() -> None:
    """Rows of 5 us every 4.9 us: the last of 5,000 waits 0.5 ms, and that of five times as many 2.5 ms."""
    arrivals = Arrivals(rate=1e9 / (SERVICE_NS - 100), spacing=Spacing.EVEN)
    settings = RunSettings(mark_every=1, chunk=1)
    (one,) = replayed(Ordered((1,), Backend.SIM, settings, Contention(), arrivals=(arrivals,), check=0)).outcomes
    assert one.later_s == pytest.approx(5 * ROWS * 100e-9, rel=0.01)


def test_a_rate_at_which_the_queue_still_grows_is_not_sustained_unless_arrivals_vary() -> None:
    def run(rate: float, number: int) -> Machine:
        return Machine(1000.0, rate, later_s=1.0 if rate > 700 else 0.0)

    found = [searched(1000.0, LatencyTarget(0.01), run, is_steady=each).found for each in (True, False)]  # type: ignore[arg-type]
    assert found[0].low <= 700 < found[0].high
    assert found[1].low < 1000 <= found[1].high


def test_a_target_that_no_rate_meets_is_refused() -> None:
    with pytest.raises(UsageError, match=r"no rate is sustained .* give a longer target latency"):
        searched(1000.0, LatencyTarget(0.0001), lambda rate, _: Machine(1e9, rate))  # type: ignore[arg-type,return-value]
    with pytest.raises(UsageError, match=r"every rate is sustained, .* give more rows or a shorter target latency"):
        searched(1000.0, LatencyTarget(1.0), lambda rate, _: Machine(1e9, rate))  # type: ignore[arg-type,return-value]
