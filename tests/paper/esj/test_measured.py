"""Runs of the part on ESJ, and the sections made of them."""

import json

import pytest

from paper.esj.figures import deployment, shedding
from paper.esj.measured import Shedding, WebLog
from paper.esj.scope import Scope


def test_a_steady_load_below_the_threshold_is_kept_and_an_overload_is_shed():
    assert Shedding(2, (1000.0,)).measure([])["shed"] == 0
    run = Shedding(2, (4000.0,), phase_s=10.0).measure([])
    assert run["shed"] == pytest.approx(1 - 10 / 11 / 2, abs=0.05)  # rho = 2, k = 5
    assert run["workers"] == [2]
    json.dumps(run)


def test_sections_judge_each_claim():
    scope = Scope.quick()
    runs = {each: {"shed": 0.0, "workers": 4, "messages": 0.1, "bytes": 20.0, "cpu_us": 1.0} for each in _wanted(scope)}
    judged = [each for part in (deployment, shedding) for each in part.shown(scope, runs).claims]
    verdicts = {each.claim.text: str(each.verdict) for each in judged}
    assert verdicts["Below tau2 nothing is shed"] == verdicts["A saturated worker drops all tuples"] == "holds"
    assert verdicts["As tau1 nears tau2, a tiny fluctuation triggers shedding"] == "does not hold"


def _wanted(scope):
    return [*deployment.wanted(scope), *shedding.wanted(scope)]


def test_a_burst_of_the_web_log_is_shed_but_for_what_the_buffer_holds(monkeypatch, tmp_path):
    line = '{} - - [17/May/2015:{:02}:00:00 +0000] "GET / HTTP/1.1" 200 1\n'
    log = tmp_path / "apache_logs"
    log.write_text("".join(line.format("quiet", hour) for hour in range(10)) + line.format("busy", 10) * 1000)
    monkeypatch.setattr("paper.esj.measured.WEB_LOG", log)
    kept = 1010 * (1 - WebLog(2, ()).measure([])["shed"])
    assert 10 + 12 <= round(kept) <= 10 + 15  # nothing is shed below 0.8 of the 15 rows of a buffer
