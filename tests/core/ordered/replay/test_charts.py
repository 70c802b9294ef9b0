"""Charts of an ordered replay: every number in them is in a table, or follows from it as the sentence says."""

import pytest

from adapt.core.ordered.chain.names import Backend
from adapt.core.ordered.engine.settings import Contention
from adapt.core.ordered.replay.arrivals import Ordered
from adapt.core.ordered.replay.charts import REST, ordered_charts
from adapt.core.ordered.replay.replay import replay_ordered
from adapt.core.ordered.replay.tables import OrderedRun
from tests.core.ordered.chains import bound, stateless


@pytest.fixture(scope="module")
def run() -> OrderedRun:
    chain = bound([stateless("a", cost=2.0), stateless("b", cost=1.0)], 1000)
    ordered = Ordered((1, 2, 8), Backend.SIM, contention=Contention(contention_us=0.1))
    return replay_ordered(chain, ordered, clock=lambda: 0.0, cpu_clock=lambda: 0.0)


def test_lines_go_through_the_cells_of_the_table(run: OrderedRun) -> None:
    tables = run.tables()
    throughput, latency, *_ = ordered_charts(tables["workers"], tables["operators"], tables["occupancy"])
    points = throughput.spec["data"]["values"]
    drawn = [(point["x"], point["y"]) for point in points if point["series"] == "throughput"]
    assert drawn == list(zip(tables["workers"].values("workers"), tables["workers"].values("throughput"), strict=True))
    even = [point["y"] for point in points if point["series"] == "even"]
    assert even == pytest.approx([drawn[0][1] * workers for workers in (1, 2, 8)])
    drawn = [
        (point["x"], point["y"]) for point in latency.spec["data"]["values"] if point["series"] == "processing_p99"
    ]
    assert [height for _, height in drawn] == tables["workers"].values("processing_p99")


def test_worker_time_adds_up(run: OrderedRun) -> None:
    tables = run.tables()
    chart = ordered_charts(tables["workers"], tables["operators"], tables["occupancy"])[2]
    points = chart.spec["data"]["values"]
    for workers in ("1", "2", "8"):
        shares = {point["series"]: point["y"] for point in points if point["x"] == workers}
        assert list(shares) == ["a", "b", REST]
        assert sum(shares.values()) == pytest.approx(1)


def test_rings_are_those_of_the_most_workers(run: OrderedRun) -> None:
    tables = run.tables()
    chart = ordered_charts(tables["workers"], tables["operators"], tables["occupancy"])[3]
    rows = [row for row in tables["occupancy"].records() if row["workers"] == 8]
    drawn = [(point["series"], point["x"], point["y"]) for point in chart.spec["data"]["values"]]
    assert drawn == [(row["operator"], row["up_to"], row["share"]) for row in rows]
    for name in ("a", "b"):
        assert sum(share for series, _, share in drawn if series == name) == pytest.approx(1)
