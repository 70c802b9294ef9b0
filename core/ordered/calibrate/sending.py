"""How long the engine takes to send, apart from claims and functions."""

from adapt.core.atomics import clock_ns, exchange
from adapt.core.compiled import compiled, record_at
from adapt.core.ordered.chain.bound import BoundChain
from adapt.core.ordered.engine.kernel.claiming import take_shared
from adapt.core.ordered.engine.kernel.feeding import feed
from adapt.core.ordered.engine.kernel.layout import HEADER, operator_at, tally_at
from adapt.core.ordered.engine.kernel.progress import is_finished
from adapt.core.ordered.engine.kernel.reorder_buffer import drain_apart
from adapt.core.ordered.engine.memory import Memory
from adapt.core.ordered.engine.outcome import OperatorTally
from adapt.core.ordered.engine.settings import RunSettings

_TIMES = 1000


@compiled
def _sending_ns(address: int) -> int:
    """Time to send all outputs, a chunk at a time.

    The flag `sending` is taken while a chunk runs, so that nothing is sent then.
    """
    header = record_at(address, HEADER, 0)
    operator, tally = operator_at(header, 0), tally_at(header, 0, 0)
    spent = 0
    while not is_finished(header):
        feed(header, 1, False)
        done = 1
        while done:
            exchange(operator, "sending", 1)
            done = take_shared(header, tally, header.scratch_at, operator, 1)
            exchange(operator, "sending", 0)
            start = clock_ns()
            drain_apart(header, tally, operator)
            if done:
                spent += clock_ns() - start
    return spent


@compiled
def _clock_ns(times: int) -> int:
    """Time between two readings of the clock, added up."""
    spent = 0
    for _ in range(times):
        start = clock_ns()
        spent += clock_ns() - start
    return spent


def timed_sending(chain: BoundChain, settings: RunSettings) -> tuple[OperatorTally, float]:
    """Send the outputs of a chain of one stateless operator.

    Returns:
        What was counted, and the nanoseconds in sections that one worker at a time may enter.
    """
    _clock_ns(1)
    memory = Memory(chain, settings, 1, 0)
    spent = _sending_ns(memory.address)
    tally = memory.run(0.0).operators[0]
    memory.release()
    chunks = int(tally.in_use.sum())
    return tally, max(spent - chunks * _clock_ns(_TIMES) / _TIMES, spent / 10)
