"""Experiments on ESJ: stages that shed and scale, and messages between workers."""

import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar
from zlib import crc32

import numpy as np
import pyarrow as pa

from adapt.core.elastic.policies.names import ScalingPolicy, Signal
from adapt.core.elastic.policies.registry import Chosen, ChosenScalingPolicy
from adapt.core.elastic.policies.scaler import Patience, ScaleOn
from adapt.core.elastic.policies.thresholds import initial_workers
from adapt.core.elastic.replay.replay import Elastic
from adapt.core.stage.conditions.arrivals import Chunk, Rows
from adapt.core.stage.conditions.names import DropCurve
from adapt.core.stage.conditions.settings import Costs, StageSettings, even_groups, even_owners
from adapt.core.stage.conditions.shed_factor import Overload, ShedFactor, Thresholds
from adapt.core.stage.input.offered_load import Demand
from adapt.core.stage.outcome import Pace
from paper.spread import ROOT

CAPACITY, WINDOW_S = 1000, 1.0
"""W and the time that a worker keeps a tuple: at tau = 1 it takes 1,000 tuples/s."""

PER_WORKER = 16
"""Partitions per worker."""


@dataclass(frozen=True, slots=True)
class Shedding:
    """A stage under a load that changes once a phase.

    Attributes:
        workers: M.
        rates: Tuples per second of each phase.
        phase_s: Length of a phase.
        tau1: Target utilization.
        hot: Share of the tuples in one partition, the others spread evenly.
        pool: Most workers; M, none are added.
        scale_on: Whose utilization the thresholds watch.
        signal: Whether that is of tuples held or offered.
        curve: Drop curve.
        seed: Of the stream.
    """

    alone: ClassVar[bool] = False
    capacity: ClassVar[int] = CAPACITY
    costs: ClassVar[Costs] = Costs(service_s=1e-5, service_sd_s=0.0)
    patience: ClassVar[Patience] = Patience(1.0, 2.0)

    workers: int
    rates: tuple[float, ...]
    phase_s: float = 5.0
    tau1: float = 0.4
    hot: float = 0.0
    pool: int = 0
    scale_on: str = "busiest"
    signal: str = "held"
    curve: str = "linear"
    seed: int = 0

    @property
    def label(self) -> str:
        """Short description."""
        return f"shedding, {self.workers} workers, tau1 {self.tau1:g}, {self.scale_on}, seed {self.seed}"

    @property
    def needs(self) -> Sequence[Any]:
        """None."""
        return ()

    def measure(self, _: Sequence[Any]) -> dict[str, Any]:
        """Share of tuples shed, and workers at the end of each phase."""
        pool = max(self.pool, self.workers)
        partitions = pool * PER_WORKER
        thresholds = Thresholds(tau1=self.tau1)
        settings = StageSettings(
            pool,
            even_owners(pool, PER_WORKER),
            even_groups(partitions, partitions),
            costs=self.costs,
            state_tuples=10,
            overload=Overload(ShedFactor(thresholds.tau2, 0.0, DropCurve(self.curve)), self.capacity, WINDOW_S),
            seed=self.seed,
        )
        elastic = Elastic(
            pool,
            self.workers,
            (
                ChosenScalingPolicy(
                    ScalingPolicy.THRESHOLDS,
                    Chosen(signal=Signal(self.signal), scale_on=ScaleOn.parse(self.scale_on)),
                ),
            ),
            thresholds,
            self.patience,
            period_s=0.5,
        )
        chunk = self._chunk(partitions)
        demand = Demand.from_chunks([chunk], settings)
        run = elastic.replay(Rows(lambda: iter([chunk])), demand, settings, Pace(interval_s=self.phase_s / 5))
        one = run.outcomes[-1 if self.pool else 0]
        return {
            "shed": one.drop_rate,
            "workers": [span.workers for span in one.spans[4 : 5 * len(self.rates) : 5]],
            "most": max(span.most for span in one.spans),
        }

    def _chunk(self, partitions: int) -> Chunk:
        random = np.random.default_rng(self.seed)
        due = [
            at * self.phase_s + np.sort(random.uniform(0, self.phase_s, round(rate * self.phase_s)))
            for at, rate in enumerate(self.rates)
        ]
        times = np.concatenate(due)
        groups = random.integers(0, partitions, len(times))
        groups[random.random(len(times)) < self.hot] = 0
        return Chunk(groups, np.arange(len(times)) % self.workers, times, None)


WEB_LOG = Path(os.environ.get("ADAPT_DATA", ROOT.parent / "shared" / "data")) / "weblog-2015" / "apache_logs"
_SPEEDUP = 2000
_LINE = re.compile(r"(\S+) \S+ \S+ \[([^]]+)\]")


@dataclass(frozen=True, slots=True)
class WebLog(Shedding):
    """A stage under a web server's log, by host: a burst every hour, each of which fills the buffers."""

    capacity: ClassVar[int] = 15
    costs: ClassVar[Costs] = Costs(service_s=45e-6, service_sd_s=0.0)
    patience: ClassVar[Patience] = Patience(2.0, 10.0)

    @property
    def label(self) -> str:
        """Short description."""
        return f"web log, {self.workers} workers, {self.scale_on}"

    def _chunk(self, partitions: int) -> Chunk:
        lines = [_LINE.match(line) for line in WEB_LOG.read_text("utf-8", "replace").splitlines()]
        found = [(datetime.strptime(line[2], "%d/%b/%Y:%H:%M:%S %z").timestamp(), line[1]) for line in lines if line]
        found.sort(key=lambda each: each[0])
        times = np.array([at for at, _ in found])
        groups = np.array([crc32(host.encode()) % partitions for _, host in found])
        return Chunk(groups, np.arange(len(times)) % self.workers, (times - times[0]) / _SPEEDUP, None)


@dataclass(frozen=True, slots=True)
class Sent:
    """Messages between M workers, each of which sends to all.

    Each sender collects the tuples for a receiver for `FLUSH_S`, then writes them as Arrow; the receiver reads them.

    Attributes:
        tau1: Target utilization, from which M follows.
        seed: Of the stream.
    """

    alone: ClassVar[bool] = True

    tau1: float
    seed: int = 0

    @property
    def label(self) -> str:
        """Short description."""
        return f"messages at tau1 {self.tau1:g}, seed {self.seed}"

    @property
    def needs(self) -> Sequence[Any]:
        """None."""
        return ()

    def measure(self, _: Sequence[Any]) -> dict[str, Any]:
        """Workers, messages and bytes per tuple, CPU seconds per tuple."""
        workers = initial_workers(SENT_RATE, SENT_WINDOW_S, SENT_CAPACITY, self.tau1)
        random = np.random.default_rng(self.seed)
        tuples = round(SENT_RATE * SENT_S)
        slot = np.arange(tuples) * round(SENT_S / FLUSH_S) // tuples
        message = (slot * workers + random.integers(0, workers, tuples)) * workers + random.integers(0, workers, tuples)
        order = np.argsort(message, kind="stable")
        starts = np.flatnonzero(np.diff(message[order], prepend=-1))
        rows = pa.record_batch({"key": random.integers(0, 10**6, tuples)[order], "value": random.random(tuples)})
        ends = [*starts[1:].tolist(), tuples]
        began, sent = time.process_time(), 0
        for start, end in zip(starts.tolist(), ends, strict=True):
            buffer = rows.slice(start, end - start).serialize()
            sent += buffer.size
            pa.ipc.read_record_batch(buffer, rows.schema)
        taken = time.process_time() - began
        return {
            "workers": workers,
            "messages": len(starts) / tuples,
            "bytes": sent / tuples,
            "cpu_us": 1e6 * taken / tuples,
        }


SENT_RATE, SENT_WINDOW_S, SENT_CAPACITY = 100_000.0, 60.0, 1_000_000
"""Rate, window and capacity of the messages: M is that of 1,000 tuples/s and W = 10,000."""

SENT_S, FLUSH_S = 1.0, 0.1
"""How long tuples are sent, and how long a sender collects them."""
