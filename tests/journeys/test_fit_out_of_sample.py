"""Planners that know only the half before: the table of `docs/shedding.md`, on quotes and on generated bursts."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from adapt.core.fit.network.names import DropPlanner, Flow
from adapt.core.fit.network.network import ColumnEquals, Network
from adapt.core.fit.network.settings import SheddingSettings
from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.replay.bound_rows import Binding, Counts
from adapt.core.fit.replay.replay import replay_fit
from adapt.core.synthetic.variation import Cascade, Lags, Variation
from adapt.traces.generators.keyed import packet_stream
from adapt.traces.replay.fit import open_network
from adapt.traces.store.trace import open_trace
from tests.core.fit.options import fit_options
from tests.journeys.test_fit_real import ingested
from tests.tiers import soak

EXAMPLES = Path(__file__).parents[2] / "examples"
DOCS = Path(__file__).parents[2] / "docs" / "shedding.md"
BLOCKS = 5
OVERLOADED = 0.05
"""Share of the ticks replayed in which a node gets more work than it can do."""

PLANNERS = tuple(DropPlanner)
COLUMNS = ("in-sample", "half before", "margin 2", "late")
"""What planners know: the highest rates, and for solver-w how often rates occur. Late: the half before, and for each
tick the rates of the tick before."""


AT_ONCE = COLUMNS[:3]


@dataclass(frozen=True)
class Half:
    """Rows of a block of a trace, its second half to be replayed."""

    rows: pa.Table
    network: Network
    settings: SheddingSettings

    @property
    def second(self) -> pa.Table:
        """The rows replayed."""
        times = self.rows["ts"].cast("int64").to_numpy()
        middle = times[0] + (self.ticks // 2) * self.settings.tick_us
        return self.rows.slice(int(np.searchsorted(times, middle)))

    @property
    def ticks(self) -> int:
        """Ticks of the whole block."""
        times = self.rows["ts"].cast("int64").to_numpy()
        return int((times[-1] - times[0]) // self.settings.tick_us) + 1

    def sized(self) -> "Half":
        """With capacities that the second half exceeds in some ticks."""
        binding = Binding(self.network, self.settings.tick_us)
        counts = Counts.from_batches(binding, self.second.to_batches(), lambda _: None)
        wiring = Wiring.from_network(self.network)
        loads = wiring.unshed(counts.by_tick / (self.settings.tick_us / 1e6)) @ wiring.use.T
        most = np.quantile(loads, 1 - OVERLOADED, axis=0)
        nodes = (replace(node, capacity=float(load)) for node, load in zip(self.network.nodes, most, strict=True))
        return replace(self, network=replace(self.network, nodes=tuple(nodes)))

    def replayed(self, knows: str) -> Mapping[str, Mapping[str, object]]:
        """The measurements of each planner."""
        rows = self.second if knows == "in-sample" else self.rows
        margin = 2.0 if knows == "margin 2" else 1.0
        learn = 0.0 if knows == "in-sample" else 0.5
        settings = replace(self.settings, lag_ticks=int(knows == "late"), headroom=0.0, min_rate_change=0.0)
        options = fit_options(PLANNERS, settings, flow=Flow.FLUID, learn=learn, margin=margin)
        binding = Binding(self.network, self.settings.tick_us)
        run = replay_fit(lambda: rows.to_batches(1 << 17), binding, options, clock=lambda: 0.0)
        return {str(row["planner"]): row for row in run.tables()["planners"].records()}


def packets() -> Iterator[Half]:
    """Three streams of generated packets, for each of five seeds."""
    read = open_network(EXAMPLES / "drifting.toml").read
    inputs = (
        replace(entering, stream=ColumnEquals("stream", f"s{at}")) for at, entering in enumerate(read.network.inputs, 1)
    )
    network = replace(read.network, inputs=tuple(inputs))
    for seed in range(BLOCKS):
        varying = Variation(lags=Lags(3), cascade=Cascade())
        stream = packet_stream(200_000, seed=seed, rate_per_s=500.0, variation=varying)
        rows = pa.Table.from_batches([stream.block(0)]).drop_columns("key")
        yield Half(rows, network, read.settings).sized()


def quotes(trace: Path) -> Iterator[Half]:
    """Five blocks of the quotes, a fifth of the time each."""
    read = open_network(EXAMPLES / "fx-ticks.toml").read
    rows = pa.Table.from_batches(open_trace(trace).batches(["ts", "stream"]))
    times = rows["ts"].cast("int64").to_numpy()
    ends = np.linspace(times[0], times[-1] + 1, BLOCKS + 1)
    for first, last in zip(*np.searchsorted(times, [ends[:-1], ends[1:]]), strict=True):
        block = rows.slice(int(first), int(last - first))
        yield Half(block, read.network, read.settings).sized()


def table(halves: Callable[[], Iterator[Half]]) -> list[str]:
    """Loss of each planner by what it knows, with 95 % intervals over blocks; then overload with late plans."""
    found = [{knows: half.replayed(knows) for knows in COLUMNS} for half in halves()]
    lines = []
    for planner in map(str, PLANNERS):
        cells = []
        for knows in COLUMNS:
            lost = np.array([1 - float(block[knows][planner]["optimum_share_full"]) for block in found])
            reach = stats.t.ppf(0.975, len(lost) - 1) * lost.std(ddof=1) / np.sqrt(len(lost))
            cells.append(f"{lost.mean():.1%} ± {reach:.1%}".replace("%", " %"))
        assert planner == "none" or not any(block[knows][planner]["overloaded"] for block in found for knows in AT_ONCE)
        late = [block["late"][planner] for block in found]
        overloaded = float(np.mean([row["overloaded"] for row in late]))
        cells += [f"{overloaded:.1%}".replace("%", " %"), f"{max(float(row['wait_max']) for row in late):.1f} s"]
        lines.append(f"| {' | '.join((planner, *cells))} |")
    return lines


@soak
def test_the_table_of_generated_bursts_is_measured() -> None:
    made = table(packets)
    print("\n".join(made))
    assert "\n".join(made) in DOCS.read_text()


@soak
@pytest.mark.usefixtures("spark")
def test_the_table_of_quotes_is_measured(adapt, real_traces, tmp_path) -> None:
    made = table(lambda: quotes(ingested(adapt, real_traces("fx-ticks"), tmp_path / "fx.trace")))
    print("\n".join(made))
    assert "\n".join(made) in DOCS.read_text()
