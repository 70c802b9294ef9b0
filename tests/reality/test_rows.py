"""What is measured on the rows of a run."""

import numpy as np
import pytest

from adapt.core.costs.profile import CostSource
from adapt.core.costs.profile_file import read_profile
from reality.rows import Processed, latencies, profile, rescaled, throughput


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
