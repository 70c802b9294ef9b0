"""Messages that are late, lost and overtaken still bring every receiver what was told last."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import UsageError
from adapt.core.fit.distributed.exchange import Channel, Exchange, Transport
from adapt.core.fit.distributed.messages import Sheet, Topic

CHANNELS = [Channel(1, 0, Topic.TABLE), Channel(2, 0, Topic.TABLE)]


def sheet(random):
    return Sheet(np.array([7]), random.integers(0, 4, (random.integers(0, 9), 3)).astype(float))


def run(exchange, until=np.inf):
    while exchange.next_s() < np.inf and exchange.next_s() <= until:
        exchange.step()


@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.3, 0.8]), st.sampled_from([0.0, 5.0]))
def test_the_last_sheet_arrives(seed: int, loss: float, jitter: float) -> None:
    random = np.random.default_rng(seed)
    exchange = Exchange(Transport(0.5, jitter, loss, 2.0), np.random.default_rng([seed, 1]))
    last = {}
    for _ in range(12):
        channel = CHANNELS[random.integers(2)]
        if last and random.random() < 0.1:
            exchange.close(channel)
            last.pop(channel, None)
            continue
        last[channel] = sheet(random)
        exchange.send(channel, last[channel])
        run(exchange, exchange.now + random.exponential(2.0))
    run(exchange)
    assert exchange.idle
    for channel, told in last.items():
        received = exchange.received(channel)
        assert received is not None
        assert received.same(told)
        assert exchange.known(channel).same(told)


def test_without_losses_nothing_is_sent_again_and_what_is_known_is_not_sent() -> None:
    random = np.random.default_rng(0)
    exchange = Exchange(Transport(0.5, 0.0, 0.0, 2.0), random)
    told = Sheet(np.array([7]), np.arange(12.0).reshape(4, 3))
    for _ in range(3):
        exchange.send(CHANNELS[0], told)
        run(exchange)
    traffic = exchange.traffic()[CHANNELS[0]]
    assert (traffic.messages, traffic.retries, traffic.lost) == (1, 0, 0)
    assert (traffic.rows, traffic.erased, traffic.size) == (4, 0, 4 * 30 + 8)
    assert exchange.now == 1.0


def test_what_changes_while_a_message_is_on_its_way_follows_it() -> None:
    exchange = Exchange(Transport(1.0, 0.0, 0.0, 9.0), np.random.default_rng(0))
    rows = np.arange(12.0).reshape(4, 3)
    exchange.send(CHANNELS[0], Sheet(np.array([7]), rows))
    exchange.send(CHANNELS[0], Sheet(np.array([7]), rows[:3]))
    exchange.send(CHANNELS[0], Sheet(np.array([7]), rows[1:3]))
    run(exchange)
    traffic = exchange.traffic()[CHANNELS[0]]
    assert (traffic.messages, traffic.rows, traffic.erased) == (2, 4, 2)
    assert exchange.received(CHANNELS[0]).rows.tolist() == rows[1:3].tolist()


def test_times_and_losses_that_cannot_be_are_refused() -> None:
    with pytest.raises(UsageError, match="--message-loss must be at least 0 and below 1"):
        Transport(loss=1.0)
    with pytest.raises(UsageError, match="timeout above 0"):
        Transport(resend_s=0.0)
