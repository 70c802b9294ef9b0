"""Predictions against real engines: runs, rows, samples and policies."""

import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

import reality.__main__ as reality
from adapt.core.costs.profile import CostSource, Profile, Service, ServiceBy
from adapt.core.costs.profile_file import read_profile, write_profile
from adapt.core.errors import EnvironmentFailure
from reality import policies, service
from reality.engines.spark_source import WARMING, TraceReader
from reality.policies import TRIALS, ordered, p99_of
from reality.predictions import MEAN_AFTER, WITHOUT_QUEUES, rescale_metrics
from reality.rows import Processed, latencies, profile, rescaled, throughput
from reality.runs import Kept, measure
from reality.samples import LEAST_ROWS, MOST_KEYS, Samples, service_of_samples
from reality.scenarios import Engine, Kind, Placement, Scenario, scenarios
from reality.values import calibrated
from reality.workload import Workload


class Counting:
    """An engine that fails after so many runs."""

    def __init__(self, lasts: int) -> None:
        self.lasts, self.starts, self.ran = lasts, 0, []

    def missing(self) -> str:
        return ""

    @contextmanager
    def started(self, workload: Workload, folder: Path) -> Iterator["Counting"]:
        self.starts += 1
        yield self

    def run(self, scenario: Scenario, rate: float) -> dict[str, Any]:
        if len(self.ran) == self.lasts:
            raise EnvironmentFailure("the engine ended")
        self.ran.append((scenario.name, rate))
        return {
            "metrics": {"throughput": 200.0 + len(self.ran), "p99": 1.0},
            "costs": {"fixed_s": float(len(self.ran))},
        }


def of_flink(kind: Kind, share: float = 0.0) -> Scenario:
    return Scenario(Engine.FLINK, kind, Placement.NATURAL, share)


WANTED = [of_flink(Kind.SATURATED), of_flink(Kind.LOAD, 0.5)]


def test_an_interrupted_set_goes_on_with_the_rates_of_its_first_runs(tmp_path: Path) -> None:
    kept, workload = Kept(tmp_path / "runs"), Workload(tmp_path / "workload")
    first = Counting(3)
    with pytest.raises(EnvironmentFailure, match="the engine ended"):
        measure(first, WANTED, 2, workload, kept, lambda _: None)
    second = Counting(10)
    measure(second, WANTED, 2, workload, kept, lambda _: None)
    assert first.ran == [("natural, saturated", 0), ("natural, 50%", 100.5), ("natural, saturated", 0)]
    assert second.ran == [("natural, 50%", 100.5)]
    assert [len(kept.runs(one)) for one in WANTED] == [2, 2]


def test_every_engine_has_one_scenario_that_calibrates_and_names_are_unique() -> None:
    for quick in (False, True):
        for engine in Engine:
            found = scenarios(engine, quick=quick)
            assert sum(one.calibrates for one in found) == 1
            assert len({one.name for one in found}) == len(found)
    assert sum(len(scenarios(engine)) for engine in Engine) - len(Engine) >= 20


def text_of(mean_s: float) -> str:
    return write_profile(Profile(CostSource.STAGE, "a test", Service(1, mean_s=mean_s)))


def test_predictions_use_medians_of_the_calibrating_runs_alone(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    calibrating = Scenario(Engine.SPARK, Kind.BATCH, calibrates=True)
    other = Scenario(Engine.SPARK, Kind.BATCH, workers=2, after=2)
    for number, cost in enumerate((5.0, 1.0, 2.0)):
        kept.keep(calibrating, number, {"metrics": {}, "costs": {"batch_s": cost, "profile": text_of(cost)}})
    kept.keep(other, 0, {"metrics": {}, "costs": {"batch_s": 100.0, "profile": text_of(100)}})
    assert calibrated(kept, [other, calibrating]) == {"batch_s": 2, "profile": text_of(2)}
    assert calibrated(kept, [other]) is None


FOLDER = Path(reality.__file__).parent


class Rows(list[dict[str, Any]]):
    """A table."""

    @property
    def rows(self) -> "Rows":
        return self

    def records(self) -> "Rows":
        return self


class Run:
    """A rescale that is decided at 2 s and done at 3 s."""

    def __init__(self, downtime: float | None) -> None:
        late = [(1.9, 9.0, 5), (2.1, 0.5, 1), (2.2, 0.7, 3), (2.3, None, 0), (4.5, 0.1, 4)]
        self.found = {
            "rescales": Rows([{"case": "thresholds", "decided": 2.0, "done": 3.0, "downtime": downtime}]),
            "moves": Rows([{"case": "thresholds", "paused": 2.1, "quiesced": 2.6, "restarted": 3.0}]),
            "intervals": Rows(
                {"case": "thresholds", "end": end, "latency_max": most, "latency_mean": most, "processed": rows}
                for end, most, rows in late
            ),
        }

    def tables(self) -> dict[str, Rows]:
        return self.found


@pytest.mark.parametrize(("stopped", "downtime"), [(None, 1.0), (0.9, 0.4)])
def test_a_stop_counts_from_the_last_row_and_a_live_move_from_its_decision(
    stopped: float | None, downtime: float
) -> None:
    hump = {"peak": 0.7, MEAN_AFTER: (0.5 + 3 * 0.7) / 4}
    waited = {} if stopped else {WITHOUT_QUEUES: 0.5}
    assert rescale_metrics(Run(stopped)) == pytest.approx({"downtime": downtime, **waited, **hump})


def test_runs_are_kept_by_the_files_of_their_engine() -> None:
    patterns = {pattern for each in reality.MEASURED_BY.values() for pattern in each} | set(reality.ALL_BY)
    covered = [path for pattern in patterns for path in FOLDER.glob(pattern)]
    assert all(list(FOLDER.glob(pattern)) for pattern in patterns)
    assert set(FOLDER.glob("engines/[a-z]*.py")) <= set(covered)
    hashes = {engine: reality.hash_of(reality.MEASURED_BY[engine]) for engine in Engine}
    assert len(set(hashes.values())) == 3  # batches and streams of Spark share their files


def processed(*rows: tuple[int, int, float, float, float, float]) -> Processed:
    """Rows of number, worker, and when they were due, sent, taken and done."""
    fields = [
        ("number", np.int64),
        ("worker", np.int64),
        *((f"{name}_s", float) for name in ("due", "sent", "taken", "done")),
    ]
    records = np.array(list(rows), fields)
    whole = np.zeros(len(rows), [*fields, ("shown_s", float)])
    for name in records.dtype.names:
        whole[name] = records[name]
    whole["shown_s"] = whole["done_s"]
    return Processed.of(whole)


def test_a_row_that_a_restart_repeats_counts_once_as_done_last() -> None:
    rows = processed((0, 0, 0, 0, 0, 1), (1, 0, 0, 0, 1, 2), (0, 1, 0, 0, 3, 4), (2, 1, 0, 0, 4, 5)).last()
    assert rows.number.tolist() == [1, 0, 2]
    assert rows.worker.tolist() == [0, 1, 1]
    assert rows.done_s.tolist() == [2, 4, 5]


def test_throughput_counts_from_the_first_row_until_the_last_is_done() -> None:
    assert throughput(processed((0, 0, 1, 1, 1, 2), (1, 0, 2, 2, 3, 5))) == {"throughput": 0.5}


def test_latency_counts_from_when_a_row_was_due() -> None:
    rows = processed(*((number, 0, 0, 1, 2, float(number)) for number in range(101)))
    assert latencies(rows) == {"p50": 50, "p95": 95, "p99": 99}


def test_the_downtime_is_the_longest_time_without_a_row_after_the_request() -> None:
    rows = processed(
        (0, 0, 0, 0, 0, 1), (1, 0, 0, 0, 1, 5), (2, 0, 5, 5, 5, 6), (3, 1, 6, 6, 8, 9), (4, 1, 8, 8, 9, 10)
    )
    assert rescaled(rows, asked_s=5.5) == {"downtime": 3, "peak": 3}


def test_a_profile_has_slope_intercept_and_the_way_of_rows_that_found_an_idle_worker() -> None:
    costs_s = np.linspace(0.5, 1.5, 41)
    rows = [(at, 0, 4.0 * at, 4.0 * at, 4 * at + 0.25, 4 * at + 0.5 + cost) for at, cost in enumerate(costs_s)]
    rows.append((3, 1, 170, 170, 190, 191))  # of another worker, after the time
    found = read_profile(profile(CostSource.FLINK, processed(*rows), costs_s, until_s=180.0))
    assert found.service.rows == 41
    assert found.service.cost_factor == pytest.approx(1)
    assert found.service.fixed_s == pytest.approx(0.25)
    assert found.transport.latency_s == pytest.approx(0.25)


def test_each_request_has_its_answer_and_shorter_ones_come_first() -> None:
    with service.running() as port:
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(2)]
        for client, latency_s in zip(clients, (60.0, 0.0), strict=True):
            client.sendall(service.REQUEST.pack(latency_s))
        assert clients[1].recv(1) == service.ANSWER
        clients[0].setblocking(False)
        try:
            clients[0].recv(1)
            raise AssertionError("the long request was answered first")
        except BlockingIOError:
            pass
        for client in clients:
            client.close()


def rows(path: Path) -> TraceReader:
    """A source of five rows at once, in micro-batches of two."""
    path.write_text("".join(f"{at}\t0.004\t{at % 2}\tkey {at % 3}\n" for at in range(5)))
    return TraceReader({"path": str(path), "speedup": "0", "most": "2"})


def test_a_first_batch_warms_up_and_then_each_row_comes_once(tmp_path: Path) -> None:
    reader = rows(tmp_path / "rows.tsv")
    offset, batches = reader.initialOffset(), []
    while offset["row"] < 5:
        end = reader.latestOffset(offset, ReadAllAvailable())
        batches.append([row for part in reader.partitions(offset, end) for row in reader.read(part)])
        offset = end
    assert {row[0] for row in batches[0]} == {WARMING}
    assert {row[1] for row in batches[0]} == {"key 0", "key 1", "key 2"}
    assert [[row[0] for row in batch] for batch in batches[1:]] == [[0, 1], [2, 3], [4]]
    assert reader.latestOffset(offset, ReadAllAvailable()) == {"row": 5}


ROWS = 20_000


def drawn(seed=0):
    return np.random.default_rng(seed)


def test_rows_that_depend_on_nothing_have_one_distribution():
    chance = drawn()
    seconds, keys = chance.exponential(1e-3, ROWS), [f"k{each}" for each in chance.integers(0, 50, ROWS)]
    service, means, sizes = service_of_samples(Samples(seconds, keys, chance.integers(1, 999, ROWS).astype(float)))
    assert (service.by, service.rows, means, sizes) == (ServiceBy.ALL, ROWS, (), ())
    assert service.mean_s == pytest.approx(seconds.mean())
    assert service.quantiles_s is not None
    assert np.quantile(service.quantiles_s, 0.99) == pytest.approx(np.quantile(seconds, 0.99), rel=0.03)


def test_keys_with_means_of_their_own_are_found_and_rare_ones_are_not_named():
    chance = drawn(1)
    places = np.where(chance.random(ROWS) < 0.001, 1000 + np.arange(ROWS), chance.integers(0, 20, ROWS))
    means = np.where(places < 20, 1e-3 * (1 + places % 20), 5e-3)
    keys = [None if place == 19 else f"k{place}" for place in places]
    seconds = means * chance.lognormal(-0.02, 0.2, ROWS)
    service, named, _ = service_of_samples(Samples(seconds, keys))
    assert service.by is ServiceBy.KEY
    assert {one.key for one in named} == {f"k{place}" for place in range(19)}
    assert all(one.rows >= LEAST_ROWS for one in named)
    for one in named:
        assert one.mean_s == pytest.approx(1e-3 * (1 + int(one.key[1:])), rel=0.05)
    assert service.within is not None
    assert np.std(service.within) < 0.5
    assert len(named) <= MOST_KEYS


def test_sizes_with_means_of_their_own_are_found():
    chance = drawn(2)
    sizes = chance.integers(10, 1000, ROWS).astype(float)
    service, _, classes = service_of_samples(Samples(sizes * 1e-6 * chance.lognormal(0, 0.1, ROWS), None, sizes))
    assert service.by is ServiceBy.SIZE
    assert [one.most_bytes for one in classes] == sorted(one.most_bytes for one in classes)
    assert classes[-1].most_bytes == sizes.max()
    assert sum(one.rows for one in classes) == ROWS
    for one, before in zip(classes[1:], classes[:-1], strict=True):
        assert before.most_bytes * 1e-6 < one.mean_s < one.most_bytes * 1.1e-6


@pytest.mark.parametrize(("factor", "fixed_s"), [(1.0, 2e-4), (1.5, 0.0), (3.0, 1e-3)])
def test_a_stated_cost_has_a_factor_and_a_fixed_part(factor, fixed_s):
    chance = drawn(3)
    stated = chance.lognormal(-6.5, 0.8, ROWS)
    service, _, _ = service_of_samples(
        Samples(fixed_s + factor * stated * chance.lognormal(0, 0.05, ROWS), costs=stated)
    )
    assert service.by is ServiceBy.COST
    assert service.cost_factor == pytest.approx(factor, rel=0.03)
    assert service.fixed_s == pytest.approx(fixed_s, abs=6e-5)


PREDICTED = {"static": 3.0, "load": 1.0, "several": 2.0}
RUNS = [{"static": 5.0, "load": 1.4, "several": 1.0}, {"static": 4.0, "load": 1.5, "several": 1.1}]


def test_a_pair_counts_where_no_run_of_one_is_as_slow_as_any_of_the_other() -> None:
    found = ordered(PREDICTED, RUNS)
    assert sorted(found.right) == [("load", "static"), ("several", "static")]
    assert found.wrong == [("several", "load")]
    assert found.open == []
    overlapping = ordered(PREDICTED, [*RUNS, {"static": 4.5, "load": 1.05, "several": 1.2}])
    assert overlapping.open == [("load", "several")]
    assert (len(overlapping.right), overlapping.wrong) == (2, [])


def test_every_policy_runs_on_the_rows_of_its_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    class Run:
        def __init__(self, cases: Sequence[str]) -> None:
            self.cases = cases

        def as_data(self) -> dict[str, Any]:
            return {"cases": [{"case": case, "latency_p99": 1.0} for case in self.cases]}

    def replayed(_: object, **options: Any) -> Run:
        asked.append(options)
        names = [each.partition(":")[0] for each in options["policy"]]
        return Run(["fixed" if "pool" in options else "static", *names])

    monkeypatch.setattr(policies.adapt.replay, "flux", replayed)
    monkeypatch.setattr(policies.adapt.replay, "elastic", replayed)
    slow = next(one for one in TRIALS if one.options)
    names = p99_of(slow, policies.Path("x.trace"))
    assert {"static, 4 workers", "static, 2 workers", "load", "ds2"} < names.keys()
    assert all(one["slow"] == slow.options["slow"] for one in asked)
    assert len({one["speedup"] for one in asked}) == 1
