"""A stage in processes: every row once and in order, whatever moves."""

from dataclasses import replace

import numpy as np
import pytest

from adapt.core.errors import EnvironmentFailure
from adapt.core.stage.simulate import Actors
from reality.processes.launch import LoopbackWorkers
from reality.processes.messages import States
from reality.processes.running import run_in_processes
from tests.reality.processes.histories import AnyMoves, History, Launched, check
from tests.tiers import SOAK

SHORT = (2, 5, 7)


@pytest.fixture
def launched():
    one = Launched()
    yield one
    assert one.started
    assert one.all_ended


@pytest.mark.parametrize("seed", range(200) if SOAK else SHORT)
def test_no_row_is_lost_doubled_or_out_of_order(seed, launched) -> None:
    history = History.drawn(seed)
    check(history, history.run(launched))


def plain(rows=300, **changes):
    """Two workers, with moves all the time."""
    history = History.drawn(2)
    owners = np.arange(len(history.settings.owners)) % 2
    settings = replace(history.settings, workers=2, owners=owners.astype(np.int32), **changes)
    actors = Actors(AnyMoves(np.random.default_rng(0)))
    return History(settings, history.groups[:rows], history.due_s[:rows], actors)


class Forging(LoopbackWorkers):
    """One row too many in the state of a key."""

    def poll(self, until_s):
        messages = super().poll(until_s)
        for _, message in messages:
            if isinstance(message, States) and len(message.keys):
                forged = message.keys.copy()
                forged["count"][0] += 1
                object.__setattr__(message, "keys", forged)
        return messages


class Repeating(LoopbackWorkers):
    """Sends the first row twice."""

    repeats = True

    def rows(self, worker, rows):
        super().rows(worker, np.concatenate([rows[:1], rows]) if self.repeats else rows)
        self.repeats = False


@pytest.mark.parametrize(("kind", "found"), [(Forging, "the state of"), (Repeating, "out of order")])
def test_a_wrong_state_and_a_doubled_row_are_found(kind, found, launched) -> None:
    launched.kind = kind
    with pytest.raises(RuntimeError, match=found):
        plain().run(launched)


def test_a_worker_that_ends_by_itself_is_no_crash_of_the_schedule(launched) -> None:
    def end(_) -> None:
        launched.started[0]._processes[1].popen.kill()

    history = plain()
    with pytest.raises(EnvironmentFailure, match="worker process 1 ended by itself"):
        run_in_processes(
            *(history.settings, history.source, None, history.actors),
            interval_s=0.01,
            on_interval=end,
            launch=launched,
        )


def test_an_interrupt_ends_all_processes(launched) -> None:
    def interrupt(_):
        raise KeyboardInterrupt

    history = plain()
    with pytest.raises(KeyboardInterrupt):
        run_in_processes(
            *(history.settings, history.source),
            interval_s=0.01,
            on_interval=interrupt,
            launch=launched,
        )
