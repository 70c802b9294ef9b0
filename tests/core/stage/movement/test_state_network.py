import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapt.core.stage.engine.queues import Agenda
from adapt.core.stage.movement.protocol import StateNetwork

sends = st.lists(st.tuples(st.floats(0, 3), st.integers(0, 3), st.floats(0, 1000)), min_size=1, max_size=8)


def arrivals(asked, flow_limit, total_limit):
    """When each of the transfers arrives, and the greatest rates met."""
    agenda, clock, found, peaks = Agenda(), [0.0], [0.0] * len(asked), [(0.0, 0.0)]
    network = StateNetwork(agenda, lambda: clock[0], np.broadcast_to(flow_limit, 9).tolist(), total_limit)

    def ask(number, donor, bits):
        network.send(donor, bits, lambda: found.__setitem__(number, clock[0]))

    for number, (at, donor, bits) in enumerate(asked):
        agenda.at(at, lambda number=number, donor=donor, bits=bits: ask(number, donor, bits))
    for _ in range(8 * len(asked)):
        if agenda.next_s == np.inf:
            break
        clock[0] = agenda.next_s
        agenda.take()()
        peaks.append((max(network.rates.values(), default=0.0), sum(network.rates.values())))
    assert not network.rates
    ticks = 8 * len(asked) * total_limit * np.spacing(clock[0])
    whole = sum(bits for _, _, bits in asked)
    # transfers that end within a billionth of the time of the first end with it
    assert network.bits_sent == pytest.approx(whole, rel=1e-9 * len(asked), abs=1e-3 + ticks)
    return found, np.max(peaks, axis=0)


def stepped(asked, flow_limit, total_limit, step):
    """The same, walking through time in small steps."""
    left = [bits for _, _, bits in asked]
    found = [None] * len(asked)
    time = 0.0
    order = sorted(range(len(asked)), key=lambda number: (asked[number][0], number))
    while None in found:
        sending = {}
        for number in order:
            at, donor, _ = asked[number]
            if at <= time and found[number] is None:
                sending.setdefault(donor, number)
        rate = min(flow_limit, total_limit / len(sending)) if sending else 0
        time += step
        for number in sending.values():
            left[number] -= rate * step
            if left[number] <= 1e-9:
                found[number] = time
    return found


@given(sends)
def test_transfers_arrive_as_if_time_were_walked_in_small_steps(asked):
    step = 2e-3
    found, (rate, together) = arrivals(asked, 250, 500)
    assert rate <= 250
    assert together <= 500 * (1 + 1e-12)
    assert found == pytest.approx(stepped(asked, 250, 500, step), abs=step * (2 * len(asked) + 2))


def test_two_flows_have_their_limit_and_four_share_the_whole():
    assert arrivals([(0, 0, 500.0), (0, 1, 500.0)], 250, 500)[0] == [2.0, 2.0]
    assert arrivals([(0, donor, 500.0) for donor in range(4)], 250, 500)[0] == [4.0] * 4


@example(125.0, [999_999_999.0, 1e9])
@given(st.floats(100, 1e6), st.lists(st.floats(1, 1e9), min_size=2, max_size=8))
def test_transfers_end_however_late_it_is(start_s, sizes):
    found, _ = arrivals([(start_s, donor, bits) for donor, bits in enumerate(sizes)], 250e6, 500e6)
    assert min(found) >= start_s


def test_each_worker_may_have_its_own_limit():
    asked = [(0, 0, 500.0), (0, 1, 500.0), (0, 1, 100.0)]
    assert arrivals(asked, [250, 100] + [250] * 7, 500)[0] == pytest.approx([2.0, 5.0, 6.0])


def test_a_worker_sends_one_at_a_time():
    assert arrivals([(0, 0, 250.0), (0, 0, 250.0)], 250, 500)[0] == [1.0, 2.0]
