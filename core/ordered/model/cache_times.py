"""Time of payloads and states in the model, by operator."""

from dataclasses import dataclass

from adapt.core.ordered.chain.bound import BoundChain, BoundOperator
from adapt.core.ordered.chain.payload import payload_bytes
from adapt.core.ordered.engine.cache_costs import CacheCosts


@dataclass(frozen=True, slots=True)
class CacheTimes:
    """Times of an operator in nanoseconds.

    Attributes:
        added: To a tuple's cost, for its payload.
        output: To send one of its outputs, for its payload.
        working_bytes: State of all keys.
        here: To a tuple's cost, for the state of its key, if this worker processed the key last or none did.
        moved: The same if another worker did.
    """

    added: float
    output: float
    working_bytes: int
    here: float
    moved: float


def has_sizes(chain: BoundChain) -> bool:
    """Whether an operator gives a payload or a state size."""
    return any(bound.operator.tuple_bytes or bound.operator.state_bytes for bound in chain.operators)


def cache_times(chain: BoundChain, bound: BoundOperator, selectivity: float, caches: CacheCosts) -> CacheTimes:
    """Times of an operator.

    The working set is the state of all keys, taken as equally frequent: workers share the last cache, and each of them
    meets all keys in time.

    Args:
        selectivity: Its outputs per tuple.

    Source: ordered streams, section 7.1 varies the sizes; the model is ours.
    """
    payload = caches.of_tuple(payload_bytes([each.operator for each in chain.operators]))
    added = payload.read_ns + selectivity * payload.copy_ns + (payload.feed_ns if bound.number == 0 else 0.0)
    output = payload.leave_ns if bound.number == len(chain.operators) - 1 else payload.send_ns
    size, keys = bound.operator.state_bytes, (bound if bound.route is None else bound.route.inner).keys
    working = size * keys
    return CacheTimes(added, output, working, *(caches.of_state(size, working) if size else (0.0, 0.0)))
