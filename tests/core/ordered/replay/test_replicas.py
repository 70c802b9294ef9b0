"""Replicas of an ordered run: what is said of them, and chains that have none."""

from dataclasses import replace

import pytest

from adapt.core.errors import UsageError
from adapt.core.ordered.chain.bound import bind
from adapt.core.ordered.chain.names import Backend
from adapt.core.ordered.engine.serial import Egress
from adapt.core.ordered.presets.presets import PRESETS
from adapt.core.ordered.replay.replay import Ordered, OrderedRun, replay_ordered
from adapt.core.ordered.replay.replicas import differing, replicas_sentence, replicas_table
from tests.core.ordered.chains import bound, counting
from tests.core.ordered.presets.test_presets import columns


def replayed(chain, ordered) -> OrderedRun:
    return replay_ordered(chain, ordered, clock=lambda: 0.0, cpu_clock=lambda: 0.0)


def test_replicas_agree_and_one_that_did_not_would_be_named() -> None:
    run = replayed(bind(PRESETS["retail-q1"].chain, columns(2000)), Ordered((2,), replicas=3))
    rows = run.tables()["replicas"].records()
    assert [row["agrees"] for row in rows] == [True] * 3
    assert rows[0]["crashes"] == 0 < rows[1]["crashes"] <= 3
    assert max(row["most_workers"] for row in rows) <= 2
    crashes = sum(row["crashes"] for row in rows)
    said = f"3 replicas with other workers and schedules, restored from checkpoints after {crashes} crashes, ended with"
    assert said in run.summary().records()[0]["verdict"]
    broken = [*run.replicas[:2], replace(run.replicas[2], state_hash="0")]
    assert [row["agrees"] for row in replicas_table(broken, run.egress).records()] == [True, True, False]
    assert replicas_sentence(broken, run.egress) == "1 of 3 replicas differ in state or output: this is a bug."
    assert differing(run.replicas, Egress(0, 0)) == 3


def test_a_chain_that_cannot_be_restored_is_refused() -> None:
    with pytest.raises(UsageError, match=r"taken at punctuations; add \[punctuations\] to the chain"):
        replayed(bound([counting("count")], 50), Ordered((1,), replicas=2))
    with pytest.raises(UsageError, match=r"--replicas needs --backend threads \(got sim\)"):
        Ordered((1,), Backend.SIM, replicas=2)
    with pytest.raises(UsageError, match=r"at least 0 \(got -1\)"):
        Ordered((1,), replicas=-1)
