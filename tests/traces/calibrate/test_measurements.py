"""Cost profiles from CSV files: every column, empty cells, and what is wrong."""

import pytest

from adapt.core.costs.profile import ServiceBy
from adapt.core.errors import BadInput
from adapt.traces.calibrate.measurements import calibrate_csv


def calibrated(tmp_path, text):
    path = tmp_path / "times.csv"
    path.write_text(text)
    return calibrate_csv(path).profile


def test_every_measurement_is_taken(tmp_path):
    rows = [
        "service_us,transport_us,produce_us,latency_us,state_bytes,serialize_us,transfer_us,install_us,restore_us,"
        "pause,pause_at_s,pause_us,stop_s,start_s",
        "1000,60,1,70,,,,,,,,,,",
        "3000,80,3,90,,,,,,,,,,",
        ",,,500,1000,10,20,30,40,,,,,",
        ",,,,3000,30,60,90,120,,,,,",
        ",,,,,,,,,gc,1.0,20000,,",
        ",,,,,,,,,gc,4.0,40000,,",
        ",,,,,,,,,gc,2.0,30000,5,2",
    ]
    found = calibrated(tmp_path, "\n".join(rows))
    assert found.service.rows == 2
    assert found.service.mean_s == pytest.approx(2e-3)
    assert found.service.quantiles_s == pytest.approx((1e-3, 3e-3))
    of = found.transport
    assert (of.row_s, of.produce_s, of.latency_s) == pytest.approx((70e-6, 2e-6, 90e-6))
    state = found.state
    assert state.serialize_byte_s == pytest.approx(1e-8)
    assert state.transfer_byte_s == pytest.approx(2e-8)
    assert state.install_byte_s == pytest.approx(3e-8)
    assert found.restart.restore_byte_s == pytest.approx(4e-8)
    assert (found.restart.stop_s, found.restart.start_s) == (5, 2)
    (pause,) = found.pauses
    assert (pause.kind, pause.durations_s) == ("gc", pytest.approx((0.02, 0.03, 0.04)))
    assert pause.interval_s == pytest.approx((0.98 + 1.97) / 2)


def test_keys_and_costs_are_taken_where_service_times_depend_on_them(tmp_path):
    lines = [f"{100 + 900 * (row % 2)},{row % 2}," for row in range(400)]
    by_key = calibrated(tmp_path, "service_us,key,latency_us\n" + "\n".join(lines))
    assert by_key.service.by is ServiceBy.KEY
    assert {one.key: one.mean_s for one in by_key.keys} == {"0": pytest.approx(1e-4), "1": pytest.approx(1e-3)}
    by_cost = calibrated(tmp_path, "service_us,cost_us\n" + "\n".join(f"{2 * row},{row}" for row in range(1, 50)))
    assert by_cost.service.by is ServiceBy.COST
    assert by_cost.service.cost_factor == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("service_ms\n1\n", "unknown column 'service_ms'; did you mean 'service_us'"),
        ("service_us\nfast\n", "column 'service_us' must hold numbers"),
        ("service_us\n1\n-2\n", "row 2: 'service_us' must be a number of at least 0 (got -2)"),
        ("service_us,latency_us\n,\n", "has no measurements; columns: service_us"),
        ("pause,pause_at_s,pause_us\ngc,1,10\n", "pause 'gc' needs two or more measurements"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, text, said):
    with pytest.raises(BadInput) as raised:
        calibrated(tmp_path, text)
    assert said in str(raised.value)


def test_a_missing_file_is_bad_input(tmp_path):
    with pytest.raises(BadInput, match=r"none\.csv: cannot be read"):
        calibrate_csv(tmp_path / "none.csv")
