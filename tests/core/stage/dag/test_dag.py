from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.errors import BadInput
from adapt.core.stage.conditions.arrivals import Drawn, Made
from adapt.core.stage.conditions.faults import Crash, FaultSchedule
from adapt.core.stage.conditions.growth import Growth
from adapt.core.stage.dag.settings import DagSettings, Edge, Life
from adapt.core.stage.dag.simulation import Dag, DagControl, simulate_dag
from tests.core.stage.engine.test_running_stage import BY_CONTENT, in_order, serial_answers, small
from tests.core.stage.movement.test_protocol import AnyMoves
from tests.core.stage.stages import stages, stream
from tests.tiers import SOAK

few = settings(max_examples=300 if SOAK else 10)


@st.composite
def dags(draw, lives=False):
    """Small stages over the same workers; every later one has an input, and some grow.

    With lives, stages that read a source and those after them arrive and leave.
    """
    first = draw(stages(BY_CONTENT))
    all_stages, edges = [first], []
    for target in range(1, draw(st.integers(2, 4))):
        other = draw(stages(BY_CONTENT))
        all_stages.append(
            replace(
                other,
                workers=first.workers,
                owners=other.owners % first.workers,
                network=first.network,
                disturbances=first.disturbances,
                state=Growth(draw(st.integers(0, 200)), 80, rows_per_group=3) if draw(st.booleans()) else None,
            )
        )
        for source in sorted(draw(st.sets(st.integers(0, target - 1), min_size=0 if lives else 1))):
            edges.append(Edge(source, target, draw(st.sampled_from([0.3, 1.0, 1.5]))))
    there = [Life()]
    for target in range(1, len(all_stages)):
        above = [there[edge.source] for edge in edges if edge.target == target]
        from_s, until_s = (
            max((one.from_s for one in above), default=0),
            min((one.until_s for one in above), default=np.inf),
        )
        if lives and draw(st.booleans()) and from_s < 0.02 and until_s > 0.03:
            there.append(Life(draw(st.floats(from_s, 0.02)), draw(st.sampled_from([until_s, 0.03]))))
        else:
            there.append(Life(from_s, until_s))
    return DagSettings(tuple(all_stages), tuple(edges), tuple(there))


def inputs(of, source):
    return [source if stage in of.entries else Made() for stage in range(len(of.stages))]


def control(of, seed, joint, faults=FaultSchedule()):
    if joint:
        return DagControl(AnyMoves(seed), faults=faults)
    return DagControl(each=[AnyMoves(seed + number) for number in range(len(of.stages))], faults=faults)


def seen(run):
    """The groups that every stage processed, with how often."""
    return [Counter(one.journal["group"].tolist()) for one in run.stages]


@given(dags(), st.integers(0, 150), st.integers(0, 2**20), st.booleans())
@few
def test_what_is_processed_is_that_of_a_run_without_moves(of, rows, seed, joint):
    source = stream(of.stages[0], rows, 0.02, seed)
    run = simulate_dag(of, inputs(of, source), None, control(of, seed, joint), interval_s=0.02, journal=10**5)
    still = simulate_dag(of, inputs(of, source), interval_s=0.02, journal=10**5)
    assert seen(run) == seen(still)
    for stage, settings_of in zip(run.stages, of.stages, strict=True):
        assert stage.census.whole
        assert stage.census.generated == stage.census.processed
        assert in_order(stage.journal) or stage is not run.stages[0]
        assert stage.journal["answer"].tolist() == serial_answers(stage.journal, settings_of.window)


@given(dags(), st.integers(0, 150), st.integers(0, 2**20), st.booleans(), st.floats(0, 0.03), st.booleans())
@few
def test_a_crash_loses_only_what_is_counted(of, rows, seed, joint, at_s, back):
    of = replace(of, stages=tuple(replace(one, disturbances=()) for one in of.stages))
    source = stream(of.stages[0], rows, 0.02, seed)
    faults = FaultSchedule((Crash(0, at_s, at_s + 0.01 if back else np.inf),), 1e-3)
    run = simulate_dag(of, inputs(of, source), 3.0, control(of, seed, joint, faults), interval_s=0.1, journal=10**5)
    assert run.in_between == 0
    for stage, settings_of in zip(run.stages, of.stages, strict=True):
        assert stage.census.whole
        assert stage.census.generated == stage.census.processed + stage.census.lost
        lost = set().union(*(crash.hit for crash in stage.crashes))
        right = np.array(serial_answers(stage.journal, settings_of.window), np.int64) == stage.journal["answer"]
        assert set(stage.journal["group"][~right].tolist()) <= lost


def test_a_query_reads_only_while_it_is_there_and_its_state_is_freed():
    of = DagSettings((small(2, 2),) * 4, (Edge(0, 1), Edge(2, 3)), (Life(), Life(), *[Life(0.2, 0.5)] * 2))
    dag = Dag(of, (Drawn(), Made(), Drawn(), Made()))
    dag.run(0.19)
    assert [int(one.arrays.world["processed"]) > 0 for one in dag.stages] == [True, True, False, False]
    assert not dag.stages[3].state_bytes().any()
    dag.run(0.4)
    assert all(one.state_bytes().all() for one in dag.stages)
    dag.run(1.0)
    for stage in dag.stages[2:]:
        assert not stage.state_bytes().any()
        assert stage.census().generated == stage.census().processed > 0
    assert dag.stages[0].state_bytes().all()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda: Life(2.0, 1.0), "arrive before it leaves"),
        (lambda: DagSettings((small(), small()), (Edge(1, 0),)), "to a later one"),
        (lambda: DagSettings((small(), small()), (Edge(0, 1), Edge(0, 1))), "join the same stages"),
        (lambda: DagSettings((small(), small()), (Edge(0, 1),), (Life(0, 1), Life())), "but its input"),
        (lambda: simulate_dag(DagSettings((small(),)), (Made(),), 1.0), "needs a source"),
    ],
)
def test_a_dag_that_cannot_be_is_refused(wrong, told):
    with pytest.raises(BadInput, match=told):
        wrong()
