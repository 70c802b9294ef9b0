"""Messages that are late, lost and overtaken still bring every receiver what was told last."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import UsageError
from adapt.core.fit.distributed.exchange import Exchange, Transport
from adapt.core.fit.distributed.mailbox import Channel, Mailbox
from adapt.core.fit.distributed.messages import Sheet, Topic
from tests.tiers import examples

CHANNELS = [Channel(1, 0, Topic.TABLE), Channel(2, 0, Topic.TABLE)]


def sheet(random):
    return Sheet(np.array([7]), random.integers(0, 4, (random.integers(0, 9), 3)).astype(float))


class Nodes:
    """Three nodes that only exchange sheets."""

    def __init__(self, transport, random):
        self.exchange = Exchange(transport, random, {})
        self.restart(0, 1)
        self.restart(1, 1)
        self.restart(2, 1)

    def restart(self, node, run):
        member = self.exchange.members[node] = Member(run)
        for channel in CHANNELS:
            if run > 1 and node == channel.receiver:
                member.mail.ask(channel)
        self.exchange.carry(member.mail.sent())

    def send(self, channel, told):
        mail = self.exchange.members[channel.sender].mail
        mail.send(channel, told)
        self.exchange.carry(mail.sent())

    def close(self, channel):
        self.exchange.close({channel})
        for member in self.exchange.members.values():
            member.mail.keep(set(CHANNELS) - {channel})

    def received(self, channel):
        return self.exchange.members[channel.receiver].received(channel)

    def known(self, channel):
        return self.exchange.members[channel.sender].mail.known(channel)


class Member:
    gone = False

    def __init__(self, run):
        self.mail = Mailbox(run)
        self.pending, self.received = self.mail.pending, self.mail.received

    def take(self, event):
        self.mail.take(event)
        return self.mail.sent()


@examples(40)
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.3, 0.8]), st.sampled_from([0.0, 5.0]))
def test_nodes_that_lost_their_state_are_told_again(seed: int, loss: float, jitter: float) -> None:
    random = np.random.default_rng(seed)
    nodes = Nodes(Transport(0.5, jitter, loss, 2.0), np.random.default_rng([seed, 1]))
    last, runs = {}, [1, 1, 1]
    for _ in range(12):
        node = int(random.integers(3))
        if random.random() < 0.4:
            runs[node] += 1
            nodes.restart(node, runs[node])
            for channel in [channel for channel in last if channel.sender == node]:
                if random.random() < 0.5:
                    nodes.send(channel, last[channel])
                else:
                    del last[channel]
        else:
            channel = CHANNELS[random.integers(2)]
            last[channel] = sheet(random)
            nodes.send(channel, last[channel])
        nodes.exchange.run(nodes.exchange.now + random.exponential(2.0))
    nodes.exchange.run(np.inf)
    assert nodes.exchange.idle
    for channel, told in last.items():
        received = nodes.received(channel)
        assert received is not None
        assert received.same(told)


@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.3, 0.8]), st.sampled_from([0.0, 5.0]))
def test_the_last_sheet_arrives(seed: int, loss: float, jitter: float) -> None:
    random = np.random.default_rng(seed)
    nodes = Nodes(Transport(0.5, jitter, loss, 2.0), np.random.default_rng([seed, 1]))
    exchange = nodes.exchange
    last = {}
    for _ in range(12):
        channel = CHANNELS[random.integers(2)]
        if last and random.random() < 0.1:
            nodes.close(channel)
            last.pop(channel, None)
            continue
        last[channel] = sheet(random)
        nodes.send(channel, last[channel])
        exchange.run(exchange.now + random.exponential(2.0))
    exchange.run(np.inf)
    assert exchange.idle
    for channel, told in last.items():
        received = nodes.received(channel)
        assert received is not None
        assert received.same(told)
        assert nodes.known(channel).same(told)


def test_without_losses_nothing_is_sent_again_and_what_is_known_is_not_sent() -> None:
    random = np.random.default_rng(0)
    nodes = Nodes(Transport(0.5, 0.0, 0.0, 2.0), random)
    exchange = nodes.exchange
    told = Sheet(np.array([7]), np.arange(12.0).reshape(4, 3))
    for _ in range(3):
        nodes.send(CHANNELS[0], told)
        exchange.run(np.inf)
    traffic = exchange.traffic()[CHANNELS[0]]
    assert (traffic.messages, traffic.retries, traffic.lost) == (1, 0, 0)
    assert (traffic.rows, traffic.erased, traffic.size) == (4, 0, 4 * 30 + 8)
    assert exchange.now == 1.0


def test_what_changes_while_a_message_is_on_its_way_follows_it() -> None:
    nodes = Nodes(Transport(1.0, 0.0, 0.0, 9.0), np.random.default_rng(0))
    exchange = nodes.exchange
    rows = np.arange(12.0).reshape(4, 3)
    nodes.send(CHANNELS[0], Sheet(np.array([7]), rows))
    nodes.send(CHANNELS[0], Sheet(np.array([7]), rows[:3]))
    nodes.send(CHANNELS[0], Sheet(np.array([7]), rows[1:3]))
    exchange.run(np.inf)
    traffic = exchange.traffic()[CHANNELS[0]]
    assert (traffic.messages, traffic.rows, traffic.erased) == (2, 4, 2)
    assert nodes.received(CHANNELS[0]).rows.tolist() == rows[1:3].tolist()


def test_times_and_losses_that_cannot_be_are_refused() -> None:
    with pytest.raises(UsageError, match="--message-loss must be at least 0 and below 1"):
        Transport(loss=1.0)
    with pytest.raises(UsageError, match="timeout above 0"):
        Transport(resend_s=0.0)
