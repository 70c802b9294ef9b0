"""Memory of a model run: the engine's, plus costs and events."""

import numpy as np

from adapt.core.ordered.chain.bound import BoundChain, BoundOperator, Words
from adapt.core.ordered.chain.names import OperatorKind, Reorder
from adapt.core.ordered.engine.cache_costs import ASSUMED_CACHES
from adapt.core.ordered.engine.costs import Modeled
from adapt.core.ordered.engine.memory import Memory, runs_functions
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.model.cache_times import cache_times
from adapt.core.ordered.model.engine_times import (
    assumed_times,
    lanes_split,
    mean_costs_us,
    measured_times,
    query_times,
)
from adapt.core.ordered.model.events import MODEL_WORKER


def model_memory(chain: BoundChain, settings: RunSettings, model: Modeled, arrivals_ns: Words | None = None) -> Memory:
    """Lay out a run of the model.

    Raises:
        UsageError: the run would take too much memory.
    """
    memory = Memory(chain, settings, 1, 0, model, arrivals_ns=arrivals_ns)
    settings = memory.settings
    _write_header(memory, settings, model)
    caches = ASSUMED_CACHES if model.engine is None else model.engine.caches
    means_us, assumed = mean_costs_us(chain, model.costs_us), assumed_times(model.contention)
    for bound, cost_us, selectivity in zip(chain.operators, model.costs_us, model.selectivities, strict=True):
        record, whole = memory.operators[bound.number], int(selectivity)
        share = min(int((selectivity - whole) * 2**64), 2**64 - 1)
        record["cost_at"] = -1 if cost_us is not None else _cost_place(chain, bound)
        record["cost_ns"] = round((cost_us or 0.0) * 1000)
        record["whole"], record["share"] = whole, np.uint64(share).view(np.int64)
        times = assumed
        if model.engine is not None:
            times = measured_times(
                bound, settings, means_us[bound.number], selectivity, model.engine, len(chain.operators)
            )
        for name, each in (("", times.added), ("crowd_", times.crowd), ("passed_", times.passed)):
            record[f"{name}ps" if name else "added_ps"] = round(1000 * each.tuple)
            record[f"{name}claim_ps"] = round(1000 * each.claim)
        record["lane_ps"], record["crowd_lane_ps"] = round(1000 * times.added.lane), round(1000 * times.crowd.lane)
        record["modeled_lanes"] = lanes_split(bound, settings) if model.engine is not None else 0
        record["full_chunk"] = max(round(times.chunk), 1)
        sized = cache_times(chain, bound, selectivity, caches)
        record["added_ps"] += round(1000 * sized.added)
        record["sent_ps"], record["output_ps"] = round(1000 * times.sent), round(1000 * (times.output + sized.output))
        if bound.operator.state_bytes:
            keyed = bound.operator.kind is OperatorKind.PARTITIONED
            record["owners_at"] = memory.storage.zeros((bound.route.inner if bound.route else bound).keys).ctypes.data
            record["owner_key_at"] = record["key_at"] if keyed else -1
            record["here_ps"], record["moved_ps"] = round(1000 * sized.here), round(1000 * sized.moved)
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
    header["send_ns"] = 0 if model.engine is not None else round(contention.send_us * 1000)
    header["lock_handover_ns"] = round(contention.lock_handover_us * 1000)
    alone, contended = query_times(len(memory.operators), settings, contention, model.engine)
    header["query_ps"], header["contended_query_ps"] = round(1000 * alone), round(1000 * contended)
    stalls = None if model.engine is None else model.engine.stalls
    if stalls is not None:
        for name, values in (("stalls", stalls.us), ("lates", stalls.late_us)):
            ns = memory.storage.zeros(max(len(values), 1))
            ns[: len(values)] = np.rint(1000 * np.array(values)).astype(np.int64)
            header[name], header[f"{name}_at"] = len(values), ns.ctypes.data
        header["stalls"] = len(stalls.us) if stalls.per_s else 0
        header["stall_gap_ns"] = round(1e9 / stalls.per_s) if stalls.per_s else 0
    workers, dues = memory.storage.records(settings.workers, MODEL_WORKER), memory.storage.zeros(settings.workers)
    dues[:] = round(alone + (settings.workers - 1) * contended)  # the first queries
    workers["due_at"] = dues.ctypes.data + 8 * np.arange(settings.workers)
    header["dues_at"], header["model_workers_at"] = dues.ctypes.data, workers.ctypes.data
