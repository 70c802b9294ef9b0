"""What is predicted of a rescale, and what runs are kept by."""

from pathlib import Path
from typing import Any

import pytest

import reality.__main__ as reality
from reality.predictions import MEAN_AFTER, WITHOUT_QUEUES, rescale_metrics
from reality.scenarios import Engine

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
