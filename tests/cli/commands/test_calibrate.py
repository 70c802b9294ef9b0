"""`adapt calibrate`, and `--costs` of every replay."""

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.costs.profile_file import profile_hash, read_profile
from tests.traces.small_traces import write_trace

ROWS = 2_000
PROFILE = """schema = "adapt.costs/1"
source = "csv"
measured = "by hand"
[service]
mean_s = 0.002
quantiles_s = [0.001, 0.003]
[transport]
row_s = 0.0001
produce_s = 0
latency_s = 0.0003
[state]
serialize_byte_s = 1e-8
install_byte_s = 2e-8
transfer_byte_s = 1e-8
plan_s = 0.004
order_move_s = 0.001
install_move_s = 0.002
between_rows = true
[restart]
start_s = 0.5
[[pause]]
kind = "gc"
interval_s = 0.5
durations_s = [0.02]
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A trace of 200 keys in two seconds, in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ADAPT_MASTER", raising=False)
    chance = np.random.default_rng(1)
    columns = {
        "ts": (np.sort(chance.uniform(0, 2, ROWS)) * 1e6).astype(np.int64),
        "key": pa.array([f"k{key}" for key in chance.integers(0, 200, ROWS)]),
    }
    write_trace(tmp_path / "x.trace", columns)
    write_trace(tmp_path / "costed.trace", {**columns, "cost_us": pa.array(np.full(ROWS, 200.0))})
    (tmp_path / "costs.toml").write_text(PROFILE)
    return tmp_path


REPLAYS = {
    "flux": "x.trace --workers 3 --partitions 4 --policy none",
    "elastic": "x.trace --pool 3 --workers 1 --partitions 4 --period 200ms",
    "compare": "x.trace --channels 3 --partitions 4 --scenario flux-load --jobs 1",
}


def replayed(adapt, line):
    return adapt.json("replay", *line.split())["parameters"]


def parts(parameters):
    """Costs and network, of the stage or of all scenarios."""
    held = parameters if "costs" in parameters else parameters["terms"]
    return held["costs"], held["network"]


@pytest.mark.parametrize("mechanism", REPLAYS)
def test_every_replay_takes_a_profile_and_names_it_by_its_hash(adapt, here, mechanism):
    parameters = replayed(adapt, f"{mechanism} {REPLAYS[mechanism]} --costs costs.toml")
    costs, network = parts(parameters)
    assert costs["profile"] == profile_hash(read_profile(PROFILE))
    assert costs["service_s"] == pytest.approx(2.1e-3)
    assert costs["spread"]["kind"] == "empirical"
    assert costs["produce_s"] == 0
    assert costs["marshal_s"] == pytest.approx(80e-8)
    assert costs["install_s"] == pytest.approx(160e-8)
    assert tuple(costs["fixed"].values()) == (0.004, 0.001, 0, 0.002, True)
    assert [one["kind"] for one in costs["pauses"]] == ["gc"]
    assert network["latency_s"] == 3e-4
    assert (network["flow_bits_per_s"], network["state_bits_per_s"]) == pytest.approx((8e8, 16e8))
    if mechanism == "elastic":
        assert parameters["startup_s"] == 0.5


def test_options_win_over_the_profile(adapt, here):
    line = f"elastic {REPLAYS['elastic']} --costs costs.toml --service-time constant(1ms) --migrate startup-time=0s"
    line += " --network latency=1ms,state-bandwidth=1Mbps"
    parameters = replayed(adapt, line + " --network state-bandwidth-total=5Mbps")
    costs, network = parts(parameters)
    assert costs["service_s"] == pytest.approx(1.1e-3)
    assert (network["latency_s"], network["flow_bits_per_s"], network["state_bits_per_s"]) == (1e-3, 1e6, 5e6)
    assert parameters["startup_s"] == 0


def test_what_is_wrong_with_a_profile_is_said_with_its_name(adapt, here):
    (here / "bad.toml").write_text(PROFILE.replace("row_s", "row_us"))
    line = ("replay", "flux", *REPLAYS["flux"].split(), "--costs")
    assert "bad.toml: line 8: [transport] has an unknown field 'row_us'" in adapt.refused(3, *line, "bad.toml")
    (here / "cost.toml").write_text(PROFILE.replace("mean_s", 'by = "cost"\ncost_factor = 2\nmean_s'))
    assert "cost.toml: its service times depend on column 'cost_us'" in adapt.refused(3, *line, "cost.toml")
