"""A machine on which every replay takes more than an hour, by its clock."""

from itertools import count

import pytest

from adapt.core.errors import UsageError
from adapt.traces.replay.ahead import foresight
from adapt.traces.replay.ahead.foresight import Foresight


def refused_and_allowed(replay, monkeypatch):
    """Run a replay that is refused, then allowed; return what is said of its time, and the run.

    Args:
        replay: Runs with a `Foresight` or None.
    """
    for name, value in {"FEW_ROWS": 0, "FEW_TICKS": 0, "SAID_S": 1e-6, "REFUSED_S": 1e-6}.items():
        monkeypatch.setattr(foresight, name, value)
    readings, said = count(), []

    def clock():
        return float(next(readings) ** 2)

    with pytest.raises(UsageError, match=r"the run would take about .* on this machine .*, or give --yes"):
        replay(Foresight(clock, said.append))
    assert said == []
    run = replay(Foresight(clock, said.append, allowed=True))
    assert run.as_data()["summary"] == replay(None).as_data()["summary"], "what was measured changes nothing"
    (sentence,) = said
    return sentence, run
