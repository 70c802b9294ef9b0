import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import BadInput
from adapt.core.stage.conditions.faults import DETECTION_S, Crash, ExternalLoad, FaultSchedule, SlowDown, parse_faults


def document(*faults, **changes):
    return json.dumps({"schema": "adapt.faults/1", "faults": list(faults)} | changes)


CRASH = {"kind": "crash", "worker": 1, "at_s": 5}
SLOW = {"kind": "slow", "worker": 0, "start_s": 1, "end_s": 2, "speed": 0.5}


@st.composite
def schedules(draw):
    """Faults of every kind in order, one after the other at each worker."""
    faults, free = [], {}
    start = 0.0
    for _ in range(draw(st.integers(0, 8))):
        start += draw(st.floats(0, 5))
        worker = draw(st.integers(0, 5))
        if free.get(worker, 0.0) > start:
            continue
        end = draw(st.one_of(st.just(math.inf), st.floats(start + 0.1, start + 9)))
        kind = draw(st.sampled_from(["crash", "slow", "pause", "load"]))
        if kind == "pause":
            end = min(end, start + 10)
        faults.append(
            {
                "crash": Crash(worker, start, end),
                "slow": SlowDown(worker, start, end, draw(st.floats(0.01, 4))),
                "pause": SlowDown(worker, start, end, 0.0),
                "load": ExternalLoad(worker, start, end, draw(st.floats(1e-6, 1))),
            }[kind]
        )
        free[worker] = end
    return FaultSchedule(tuple(faults), draw(st.floats(1e-3, 10)))


@given(schedules())
def test_a_schedule_comes_back_from_its_text(schedule):
    text = schedule.canonical()
    assert parse_faults(text) == schedule
    assert parse_faults(text.encode()).canonical() == text


def test_what_is_left_out_has_its_default():
    schedule = parse_faults(document(SLOW, CRASH, {"kind": "load", "worker": 0, "start_s": 6}))
    assert schedule.detection_s == DETECTION_S
    assert schedule.crashes == (Crash(1, 5.0, math.inf),)
    assert schedule.disturbances == (SlowDown(0, 1.0, 2.0, 0.5), ExternalLoad(0, 6.0, math.inf))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "not JSON"),
        (b"\xff", "UTF-8"),
        ("[" * 10**5, "nested too deeply"),
        ("[]", "must be an object"),
        (document(schema="adapt.faults/2"), "schema must be 'adapt.faults/1'"),
        (document(extra=1), "field 'extra'"),
        (document(faults={}), "must be a list"),
        (document(detection_s=0), "detection_s .* above 0"),
        (document(detection_s=math.nan), "detection_s .*NaN"),
        (document(7), r"faults\[0\] must be an object .*7"),
        (document({"worker": 1}), r"faults\[0\] has no kind; available: crash, load, pause, slow"),
        (document(SLOW, CRASH | {"kind": "crsh"}), r"faults\[1\].kind \"crsh\".*'crash'"),
        (document(CRASH | {"kind": ["crash"]}), r"faults\[0\].kind"),
        (document({"kind": "crash", "worker": 1}), r"faults\[0\] needs a field at_s"),
        (document(SLOW | {"sped": 1}), r"faults\[0\]: field 'sped' does not exist; did you mean 'speed'"),
        (document(CRASH | {"worker": -1}), r"faults\[0\].worker must .*-1"),
        (document(CRASH | {"worker": True}), r"faults\[0\].worker must .*true"),
        (document(CRASH | {"worker": 1.5}), r"faults\[0\].worker must .*1.5"),
        (document(CRASH | {"at_s": "5"}), r"faults\[0\].at_s must .*\"5\""),
        (document(CRASH | {"at_s": math.nan}), r"faults\[0\].at_s must .*NaN"),
        (document(CRASH | {"at_s": 10**400}), r"faults\[0\].at_s must be a finite .*1000"),
        (document(CRASH | {"back_s": 5}), r"faults\[0\].back_s must be after at_s 5"),
        (document(SLOW | {"speed": -0.5}), r"faults\[0\].speed must .*-0.5"),
        (document(SLOW | {"speed": 0}), r"faults\[0\].speed must be above 0 .* kind pause"),
        (document({"kind": "pause", "worker": 0, "start_s": 1}), r"faults\[0\] needs a field end_s"),
        (document({"kind": "load", "worker": 0, "start_s": 1, "burst_s": 0}), r"faults\[0\] needs burst_s above 0"),
        (document(CRASH, SLOW), r"faults\[1\] starts at 1 s, before faults\[0\] at 5 s"),
        (document(SLOW, SLOW | {"start_s": 1.5}), r"faults\[1\] starts at 1.5 s, but faults\[0\] .* until 2 s"),
        (document(CRASH, CRASH | {"at_s": 9}), r"faults\[1\] starts at 9 s, but faults\[0\] .* to the end"),
        ('{"schema": "adapt.faults/1", "faults": [], "faults": []}', "given twice"),
    ],
)
def test_what_is_no_schedule_is_refused_in_one_line_that_names_the_entry(text, told):
    with pytest.raises(BadInput, match=told) as refused:
        parse_faults(text)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("faults", "told"),
    [
        ((SlowDown(0, 0, 1, 0.5), Crash(4, 1.0)), r"faults\[1\].worker must be from 0 to 1 \(got 4"),
        ((Crash(0, 1.0, 3.0), Crash(1, 2.0)), r"faults\[1\] crashes the last of 2 workers at 2 s"),
        ((Crash(1, 2.5),), r"faults\[0\] crashes worker 1 at 2.5 s, during its disturbance from 2 to 3 s"),
    ],
)
def test_faults_that_a_stage_cannot_have_are_refused(faults, told):
    with pytest.raises(BadInput, match=told):
        FaultSchedule(faults).check(2, (SlowDown(1, 2.0, 3.0, 0.5),))
