"""Messages that are late bring every receiver what was sent last, and are counted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import UsageError
from adapt.core.fit.distributed.exchange import Exchange
from adapt.core.fit.distributed.messages import Channel, Mailbox, Sheet, Topic
from adapt.core.fit.registry import planner_of
from tests.core.fit.networks import FIGURE_1
from tests.core.fit.options import planner_options

CHANNELS = [Channel(1, 0, Topic.TABLE), Channel(2, 0, Topic.TABLE)]


class Member:
    def __init__(self):
        self.mail = Mailbox()

    def take(self, message):
        self.mail.take(message)
        return self.mail.take_away()


class Nodes:
    """Three nodes that only exchange sheets."""

    def __init__(self, delay_s):
        self.members = {node: Member() for node in range(3)}
        self.exchange = Exchange(delay_s, self.members)

    def send(self, channel, sheet):
        self.members[channel.sender].mail.send(channel, sheet)
        self.exchange.carry(self.members[channel.sender].mail.take_away())

    def close(self, channel):
        self.exchange.close({channel})
        for member in self.members.values():
            member.mail.keep(set(CHANNELS) - {channel})

    def received(self, channel):
        return self.members[channel.receiver].mail.received[channel]


@given(st.integers(0, 2**32))
def test_the_last_sheet_arrives(seed: int) -> None:
    random, nodes, last = np.random.default_rng(seed), Nodes(0.5), {}
    for _ in range(12):
        channel = CHANNELS[random.integers(2)]
        if last and random.random() < 0.1:
            nodes.close(channel)
            last.pop(channel, None)
            continue
        last[channel] = Sheet(np.array([7]), random.integers(0, 4, (random.integers(0, 9), 3)).astype(float))
        nodes.send(channel, last[channel])
        nodes.exchange.run(nodes.exchange.now + random.exponential(0.5))
    nodes.exchange.run(np.inf)
    assert nodes.exchange.idle
    assert all(nodes.received(channel).same(sheet) for channel, sheet in last.items())


def test_a_sheet_is_sent_once_with_its_rows_and_bytes_and_arrives_after_the_delay() -> None:
    nodes, sheet = Nodes(0.5), Sheet(np.array([7]), np.arange(12.0).reshape(4, 3))
    for _ in range(3):
        nodes.send(CHANNELS[0], sheet)
        nodes.exchange.run(np.inf)
    traffic = nodes.exchange.traffic()[CHANNELS[0]]
    assert (traffic.messages, traffic.rows, traffic.erased, traffic.size) == (1, 4, 0, 4 * 30 + 8)
    assert nodes.exchange.now == 0.5


def test_changes_follow_a_message_on_its_way() -> None:
    nodes, rows = Nodes(1.0), np.arange(12.0).reshape(4, 3)
    for sent in (rows, rows[:3], rows[1:3]):
        nodes.send(CHANNELS[0], Sheet(np.array([7]), sent))
    assert not nodes.exchange.up_to_date()
    assert nodes.exchange.up_to_date(but=Topic.TABLE)
    nodes.exchange.run(np.inf)
    traffic = nodes.exchange.traffic()[CHANNELS[0]]
    assert (traffic.messages, traffic.rows, traffic.erased) == (3, 4, 2)
    assert nodes.received(CHANNELS[0]).rows.tolist() == rows[1:3].tolist()


@pytest.mark.parametrize("planner", ["d-fit", "d-fit-cuts"])
def test_a_delay_below_0_is_refused(planner: str) -> None:
    with pytest.raises(UsageError, match="delay_s must be at least 0"):
        planner_of(planner, FIGURE_1, planner_options(max_rates=np.ones(2), delay_s=-1.0))
