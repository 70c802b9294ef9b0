"""The order of policies: which pairs the runs decide, and which of them were foretold."""

from collections.abc import Sequence
from typing import Any

import pytest

from reality import policies
from reality.policies import TRIALS, ordered, p99_of

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
