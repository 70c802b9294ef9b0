"""Movement of a partition: the stage's protocol, on a stage where messages take any time and workers may be slow.

The protocol is the stage's own class. The stage below it is a small one: producers that hear of a pause or restart one
by one (`pause` and `restart` of `engine/kernel/orders.py`, where all hear it at once), connections in order with
acknowledgements behind the rows (`Stage.pause`), jobs of a worker in order (`Jobs`), and a receiver that crashes.
"""

import inspect
from collections import defaultdict
from functools import partial
from types import FunctionType, ModuleType, SimpleNamespace

import pytest

from adapt.core.stage.engine.queues import Job
from adapt.core.stage.movement import protocol
from adapt.core.stage.movement.controller import Course, Move
from tests.tiers import SOAK
from tests.trust.models.explorer import Refused, explore

DONOR, RECEIVER, ACK = 0, 1, "acknowledged"


class Stage:
    """Two workers and some producers; one partition, whose state is the list of its rows."""

    standby, now_s = False, 0.0

    def __init__(self, movement, producers, rows, moves, crashes):
        self.settings = SimpleNamespace(
            workers=2,
            network=SimpleNamespace(latency_s=0.0),
            costs=SimpleNamespace(
                fixed=SimpleNamespace(between_rows=False, order_s=0.0, extract_s=0.0, install_s=0.0),
                marshal_s=0.0,
                install_s=None,
                tuple_bytes=1,
            ),
        )
        self.arrays = {"partition": {"owner": [DONOR], "in_flight": [0], "stalled": [0]}}
        self.rows, self.dead, self.may_crash, self.moves_left = rows, set(), crashes, list(moves)
        self.sent, self.buffers, self.routes = [0] * producers, [[] for _ in range(producers)], [DONOR] * producers
        self.paused, self.acks, self.quiesced = [False] * producers, 0, None
        self.channels = defaultdict(list)  # by producer and worker
        self.orders = defaultdict(list)  # of producers, of the jobs of workers: in order
        self.messages = []  # in any order
        self.seen, self.holder, self.at = [], DONOR, DONOR
        self.movement = movement.Movement(self, network=SimpleNamespace(send=self.ship, stop=self.drop))
        self.movement.states = SimpleNamespace(take=self.take, put=self.put)
        self.next_move()

    def next_move(self):
        if self.moves_left:
            donor, receiver = self.moves_left.pop(0)
            self.movement.start([Move(0, donor, receiver)], self.next_move)

    # What the protocol calls.

    def after(self, _, action):
        self.messages.append(action)

    def when_read(self, worker, action):
        if worker not in self.dead:
            self.messages.append(partial(self.on, worker, action))

    def do(self, worker, job):
        if worker not in self.dead:
            self.orders["jobs", worker].append(partial(self.on, worker, job.done))

    def announce_pause(self, _):
        pass

    def pause(self, donor, partitions, quiesced):
        for partition in partitions:
            self.arrays["partition"]["stalled"][partition] = 1
        self.acks, self.quiesced = len(self.routes), quiesced
        for producer in range(len(self.routes)):
            self.orders["hears", producer].append(partial(self.hear_pause, producer, donor, len(partitions)))

    def restart(self, _, owner):
        self.arrays["partition"]["stalled"][0], self.arrays["partition"]["owner"][0] = 0, owner
        for producer in range(len(self.routes)):
            self.orders["hears", producer].append(partial(self.hear_restart, producer, owner))

    def state_bytes(self):
        return [0]

    def take(self, _):
        assert self.holder == self.at, "a state is taken where it is not"
        taken, self.seen, self.holder = list(self.seen), [], None
        return taken

    def put(self, _, state, twin=False):
        self.seen, self.holder = list(state), self.at

    def ship(self, _, __, arrived):
        self.messages.append(arrived)

    def drop(self, _):
        pass  # only receivers crash, which send no state

    # What happens.

    def on(self, worker, action):
        if worker not in self.dead:
            self.at = worker
            action()

    def hear_pause(self, producer, donor, pauses):
        self.paused[producer] |= pauses > 0
        self.channels[producer, donor].append(ACK)

    def hear_restart(self, producer, owner):
        self.paused[producer], self.routes[producer] = False, owner
        self.channels[producer, owner] += self.buffers[producer]
        self.buffers[producer] = []

    def emit(self, producer):
        row = self.sent[producer]
        self.sent[producer] += 1
        to = self.buffers[producer] if self.paused[producer] else self.channels[producer, self.routes[producer]]
        to.append(row)

    def read(self, producer, worker):
        row = self.channels[producer, worker].pop(0)
        if row == ACK:
            self.acks -= 1
            if not self.acks:
                self.messages.append(self.quiesced)
            return
        assert self.holder == worker, f"row {row} is at worker {worker}, the state at {self.holder}"
        self.seen.append((producer, row))

    def crash(self):
        self.may_crash = False
        self.dead.add(RECEIVER)
        self.orders.pop(("jobs", RECEIVER), None)
        self.movement.crashed(RECEIVER)
        self.messages.append(partial(self.movement.bury, RECEIVER))

    # What the explorer calls.

    def moves(self):
        found = [("emit", one) for one, sent in enumerate(self.sent) if sent < self.rows]
        found += [("read", *way) for way, rows in self.channels.items() if rows and way[1] not in self.dead]
        found += [("order", *whose) for whose, orders in self.orders.items() if orders]
        found += [("message", at) for at in range(len(self.messages))]
        if self.may_crash and self.movement.course_of(0) and not self.channels_to(RECEIVER):
            found.append(("crash",))
        return found

    def channels_to(self, worker):
        return [rows for (_, to), rows in self.channels.items() if to == worker and rows]

    def do_now(self, move):
        match move:
            case ("message", at):
                self.messages.pop(at)()
            case ("order", *whose):
                self.orders[tuple(whose)].pop(0)()
            case (name, *arguments):
                getattr(self, name)(*arguments)
        owner = self.arrays["partition"]["owner"][0]
        flying = sum(row != ACK for (_, to), rows in self.channels.items() if to == owner for row in rows)
        self.arrays["partition"]["in_flight"][0] = flying

    def state(self):
        course = self.movement.course_of(0)
        return (
            *(
                tuple(self.sent),
                repr((self.buffers, self.routes, self.paused, self.acks, self.may_crash, self.moves_left)),
            ),
            tuple(sorted((way, tuple(rows)) for way, rows in self.channels.items() if rows)),
            tuple(sorted((whose, tuple(map(described, orders))) for whose, orders in self.orders.items() if orders)),
            tuple(sorted(map(repr, map(described, self.messages)))),
            *(tuple(self.seen), self.holder, self.at, repr(self.arrays), tuple(self.dead), described(course)),
            *(tuple(self.movement._moving), tuple(self.movement._donating), repr(self.movement.on_the_wire)),
        )

    def end(self):
        assert not any(self.buffers), f"rows stay at producers: {self.buffers}"
        assert self.movement.moving == 0
        assert self.holder == self.arrays["partition"]["owner"][0]
        for producer in range(len(self.sent)):
            of = [row for one, row in self.seen if one == producer]
            assert of == list(range(self.rows)), f"rows of producer {producer}: {of}"


class Explored:
    """A stage as a system."""

    def __init__(self, *given):
        self.stage = Stage(*given)
        self.moves, self.do, self.state, self.end = (
            *(self.stage.moves, self.stage.do_now, self.stage.state, self.stage.end),
        )


def described(action):
    """An action by its code and what it is bound to."""
    match action:
        case partial():
            return (described(action.func), *map(described, action.args))
        case FunctionType():
            return (action.__qualname__, *(described(cell.cell_contents) for cell in action.__closure__ or ()))
        case Course():
            flags = (action.donor_lost, action.receiver_lost, action.buried, action.over, action.is_expected)
            return (action.moved.move, tuple(action.moved.times_s), flags)
        case Job():
            return described(action.done)
        case list():
            return tuple(map(described, action))
        case int() | str() | None:
            return action
    return getattr(action, "__qualname__", type(action).__name__)


def protocol_with(*faults):
    """The module of the protocol, with texts replaced."""
    source = inspect.getsource(protocol)
    for old, new in faults:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    made = ModuleType("protocol in the model")
    exec(compile(source, "protocol in the model", "exec"), vars(made))
    made.States = lambda _: None
    return made


THERE, BACK = (DONOR, RECEIVER), (RECEIVER, DONOR)


@pytest.mark.parametrize(
    ("producers", "rows", "moves", "crashes"),
    [(1, 2, [THERE], True), (2, 1, [THERE], False)]
    + [(1, 2, [THERE, BACK], False)]
    + SOAK * [(2, 1, [THERE], True), (2, 2, [THERE], False), (2, 2, [THERE], True)],
)
def test_a_partition_moves_whole_whatever_is_slow_or_crashes(producers, rows, moves, crashes, promise):
    found = explore(partial(Explored, protocol_with(), producers, rows, moves, crashes))
    assert found.ends
    promise("movement").checked(found.states)


FAULTS = {
    "the donor does not wait for acknowledgements": (
        "self._stage.pause(donor, partitions, lambda: self._quiesced(donor, going_on))",
        "self._stage.pause(donor, partitions, lambda: None)\n        self._quiesced(donor, going_on)",
    ),
    "producers restart before the state is installed": (
        '        self._note(course, "received")\n        receiver =',
        '        self._note(course, "received")\n        self._stage.after(0, lambda: self._restart(course))\n'
        "        receiver =",
    ),
    "the donor goes on without the state that it sent": (
        "self.states.put(partition, self.on_the_wire[partition])",
        "pass",
    ),
    "producers never hear of the restart": (
        "            self._stage.restart(move.partition, move.receiver)\n            self.on_moved(move)",
        "            self.on_moved(move)",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_movement_is_refused(fault, promise):
    made = protocol_with(FAULTS[fault])
    with pytest.raises(Refused):
        explore(partial(Explored, made, 1, 2, [THERE], True))
    promise("movement").checked(1)
