"""Real key columns as counts by window: the verdict, the plan and the floors of their rows."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapt.core.out_of_sample.windows import rows_a_pane
from tests.claims.real_columns import DECIDING, OTHERS
from tests.tiers import soak

DATA = Path(os.environ.get("ADAPT_DATA", "../shared/data")).absolute()
FOURTEEN = {
    **DECIDING,
    "reviews": (DECIDING["reviews/anonreviews.csv.bz2"][0], OTHERS["reviews/anonreviews.csv.bz2"][1]),
}


@soak
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("source", FOURTEEN)
def test_counts_by_window_are_judged_as_their_rows_are(adapt, tmp_path, monkeypatch, source):
    path = DATA / (source if source != "reviews" else "reviews/anonreviews.csv.bz2")
    if not path.exists():
        pytest.skip(f"{path} is not there; set ADAPT_DATA")
    monkeypatch.chdir(tmp_path)
    read, names = FOURTEEN[source]
    rows, times = read(path)
    order = pa.array(np.argsort(times, kind="stable"))
    for name in names:
        keys = rows[name].cast(pa.string()).take(order).combine_chunks()
        ts = pa.array(1_700_000_000_000_000 + 1_000_000 * np.arange(len(keys)), pa.timestamp("us", "UTC"))
        pq.write_table(pa.table({"ts": ts, "key": keys}), "rows.parquet")
        window = np.arange(len(keys)) // (rows_a_pane(len(keys)) or len(keys))
        starts = ts.take(pa.array([int(np.argmax(window == at)) for at in range(int(window[-1]) + 1)]))
        by_window = pa.table({"window": starts.take(pa.array(window)), "key": keys})
        pq.write_table(by_window.group_by(["window", "key"]).aggregate([([], "count_all")]), "counts.parquet")
        for engine in ("spark", "kafka", "flink"):
            asked = ("--engine", engine, "--channels", 8, "--format", "json", "--force")
            own = json.loads(adapt.done("verdict", "rows.parquet", "--key", "key", *asked).out)
            counted = json.loads(adapt.done("verdict", "counts.parquet", "--count", "count_all", *asked).out)
            assert counted["status"] == own["status"]
            assert counted["verdict"]["imbalance"] == own["verdict"]["imbalance"]  # every row counts in both
            assert counted["verdict"]["class"] == own["verdict"]["class"]
            if source != "reviews":  # of 400,000 keys, the rows of a window are counted lossily
                assert_alike(counted["verdict"], own["verdict"], (name, engine))
            plans = [json.loads(Path(f"{each}.recommended.plan").read_text()) for each in ("rows", "counts")]
            assert plans[0]["explicit"] == plans[1]["explicit"]


def assert_alike(one, other, place):
    """The same but for the third decimal of numbers."""
    if isinstance(one, dict) and isinstance(other, dict):
        assert one.keys() == other.keys(), place
        for name in one:
            assert_alike(one[name], other[name], (*place, name))
    elif isinstance(one, list) and isinstance(other, list):
        assert len(one) == len(other), place
        for at, pair in enumerate(zip(one, other, strict=True)):
            assert_alike(*pair, (*place, at))
    elif isinstance(one, float) and isinstance(other, float):
        # of random placements, of which there are a thousand
        within = 0.05 if place[-1] == "as_uneven" else 2e-3
        assert one == pytest.approx(other, rel=2e-3, abs=within), place
    elif isinstance(one, str) and isinstance(other, str):
        assert re.sub(r"[\d.]+", "#", one) == re.sub(r"[\d.]+", "#", other), place
    else:
        assert one == other, place
