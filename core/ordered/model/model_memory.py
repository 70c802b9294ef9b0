"""Memory of a model run: the engine's, plus costs and events."""

import numpy as np

from adapt.core.ordered.chain.bound import BoundChain, BoundOperator, Words
from adapt.core.ordered.chain.names import Reorder
from adapt.core.ordered.engine.contention import Modeled
from adapt.core.ordered.engine.memory import Memory, runs_functions
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.model.events import MODEL_WORKER


def model_memory(chain: BoundChain, settings: RunSettings, model: Modeled, arrivals_ns: Words | None = None) -> Memory:
    """Lay out a run of the model."""
    memory = Memory(chain, settings, 1, 0, model, arrivals_ns=arrivals_ns)
    settings, contention = memory.settings, model.contention
    _write_header(memory, settings, model)
    for bound, cost_us, selectivity in zip(chain.operators, model.costs_us, model.selectivities, strict=True):
        record, whole = memory.operators[bound.number], int(selectivity)
        share = min(int((selectivity - whole) * 2**64), 2**64 - 1)
        record["cost_at"] = -1 if cost_us is not None else _cost_place(chain, bound)
        record["cost_ns"] = round((cost_us or 0.0) * 1000)
        record["whole"], record["share"] = whole, np.uint64(share).view(np.int64)
        record["crowd_ps"] = round(1e6 * contention.contention_us)
        record["output_ps"] = round(1e6 * contention.output_us)
        record["lock_queue_at"] = memory.storage.zeros(settings.workers).ctypes.data
    return memory


def _cost_place(chain: BoundChain, bound: BoundOperator) -> int:
    """The word with a tuple's cost, in tuples as the model passes them."""
    return bound.cost_at if runs_functions(chain) else chain.fields.index(bound.fields[bound.cost_at])


def _write_header(memory: Memory, settings: RunSettings, model: Modeled) -> None:
    header, contention = memory.header, model.contention
    if settings.reorder is Reorder.RETRY:  # a batch must have room in the ring buffer
        header["chunk"] = min(header["chunk"], settings.ring_buffer)
    header["seed"], header["jitter"] = model.seed, int(contention.jitter * 2**20)
    header["send_ns"] = round(contention.send_us * 1000)
    header["lock_handover_ns"] = round(contention.lock_handover_us * 1000)
    # Section 6: the longer the slice, the "lower the contention for querying the scheduler".
    alone = 1000 * (contention.query_us + len(memory.operators) * contention.query_operator_us)
    contended = 1000 * contention.query_contention_us
    header["query_ps"], header["contended_query_ps"] = round(1000 * alone), round(1000 * contended)
    workers, dues = memory.storage.records(settings.workers, MODEL_WORKER), memory.storage.zeros(settings.workers)
    dues[:] = round(alone + (settings.workers - 1) * contended)  # the first queries
    workers["due_at"] = dues.ctypes.data + 8 * np.arange(settings.workers)
    header["dues_at"], header["model_workers_at"] = dues.ctypes.data, workers.ctypes.data
