"""A profile of worker processes has all costs of rows and moves."""

from pathlib import Path

import adapt
from adapt.core.costs.profile_file import write_profile
from reality.processes.calibrate import calibrate_stage


def test_a_stage_of_processes_becomes_a_profile(tmp_path: Path) -> None:
    trace = tmp_path / "x.trace"
    adapt.generate("zipf", out=trace, rows=1000, keys=50, cost="lognormal(300us, 0.3)")
    profile = calibrate_stage(trace, 2, 1000).profile
    assert profile.service.rows == 1000
    assert profile.service.mean_s is not None
    assert profile.service.mean_s > 2e-4
    state, transport = profile.state, profile.transport
    of_moves = state.plan_s, state.serialize_move_s, state.install_move_s, state.transfer_byte_s
    for measured in (transport.row_s, transport.latency_s, profile.restart.start_s, *of_moves):
        assert measured is not None
        assert measured > 0
    assert state.order_move_s is not None
    assert state.between_rows
    (tmp_path / "made.toml").write_text(write_profile(profile))
    adapt.replay.flux(trace, workers=2, policy="none", costs=tmp_path / "made.toml")
