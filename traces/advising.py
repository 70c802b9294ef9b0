"""Advise on the division of work and on hot keys, without Spark."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from adapt.core.advice.tables import (
    MOST_UNITS,
    HotKey,
    division_table,
    keys_table,
    region_table,
    useful_table,
)
from adapt.core.counting.frequencies import Frequencies
from adapt.core.counting.tables import NULL_KEY
from adapt.core.engines.names import AnyScheme, Engine
from adapt.core.engines.registry import definition_of
from adapt.core.errors import BadInput, UsageError, near_miss
from adapt.core.keys.key_text import key_to_text
from adapt.core.keys.partitioner import Partitioner
from adapt.core.partitioning.measures.plan_settings import PlanSettings
from adapt.core.table import Displayed, Table
from adapt.traces.counting.counts_table import read_counts
from adapt.traces.locations.run_folders import is_artefact
from adapt.traces.read_errors import readable
from adapt.traces.store.frequencies import read_frequencies
from adapt.traces.store.manifest import read_manifest
from adapt.traces.store.trace import open_trace

SCHEMA = "adapt.advice/1"

MOST_KEYS = 10
"""Most hot keys listed by default."""

KNOWN_KEYS = 10_000
"""Hottest counted keys that can be named; colder ones need no salts."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job to advise on."""

    parallelism: int  # number of workers: subtasks or consumers
    max_parallelism: int | None = None  # Flink's key groups. None: Flink's default
    partitions: int | None = None  # partitions of the Kafka topic. None: no advice on Kafka
    engine: AnyScheme = Engine.FLINK  # engine whose hash places salted keys
    max_imbalance: Fraction = Fraction(6, 5)  # tolerated load of a hot key's worker over the mean load

    def __post_init__(self) -> None:
        if self.partitions is not None and not 1 <= self.partitions <= MOST_UNITS:
            raise UsageError(f"--partitions must be between 1 and {MOST_UNITS:,} (got {self.partitions})")
        PlanSettings(max_imbalance=float(self.max_imbalance))
        self.partitioner()
        definition_of(Engine.FLINK).placement(self.parallelism, self.max_parallelism)

    def partitioner(self) -> Partitioner:
        """The engine's partitioner at this parallelism."""
        if not isinstance(self.engine, Engine):
            raise UsageError(f"--engine must be an engine (got {self.engine}): {', '.join(Engine)}")
        return definition_of(self.engine).placement(self.parallelism, self.max_parallelism)

    def division(self, engine: Engine, number: int | None) -> Table:
        """Division of units of work (None: the default) over workers."""
        definition = definition_of(engine)
        return division_table(definition.title, definition.units, self.parallelism, number)


@dataclass(frozen=True, slots=True, repr=False)
class Advice(Displayed):
    """Advice as tables."""

    # flink, kafka, own: division of work; Flink's unless another engine was given, Kafka's only if partitions were
    # given, and that of the engine by its default number of units, if it has one
    flink: Table | None = None
    kafka: Table | None = None
    useful: Table | None = None  # useful, keys: useful workers and salts, if keys are known
    keys: Table | None = None
    region: Table | None = None  # key columns that the operators of a region share, if any are given
    own: Table | None = None

    def tables(self) -> list[Table]:
        """All tables."""
        told = (self.region, self.own, self.flink, self.kafka, self.useful, self.keys)
        return [table for table in told if table is not None]

    def as_data(self) -> dict[str, Any]:
        """One JSON document."""
        parts = {"flink": self.flink, "kafka": self.kafka, "useful": self.useful, "keys": self.keys}
        parts |= {"region": self.region, "own": self.own}
        return {"schema": SCHEMA, **{name: None if table is None else table.records() for name, table in parts.items()}}

    def displayed(self) -> list[Table]:
        """All tables."""
        return self.tables()


@dataclass(frozen=True, slots=True)
class Weighed:
    """Hot keys and the total load."""

    keys: tuple[HotKey, ...]
    total: int


def advise(
    job: Job, source: Path | None = None, keys: Sequence[str] = (), operators: Mapping[str, Sequence[str]] | None = None
) -> Advice:
    """Advise on a job.

    Args:
        source: A trace (whose profile counts every row as 1), counted keys, or a CSV of key,count.
        keys: Keys to salt. Default: every key too hot for one worker.
        operators: Key columns of each operator of a parallel region.
    """
    region = region_table(operators) if operators else None
    is_flinks = job.engine in (Engine.FLINK, Engine.FLINK_SQL) or job.max_parallelism is not None
    flink = job.division(Engine.FLINK, job.max_parallelism) if is_flinks else None
    engine = None if is_flinks or not isinstance(job.engine, Engine) else job.engine
    own = job.division(engine, None) if engine is not None and definition_of(engine).units.default else None
    kafka = None if job.partitions is None else job.division(Engine.KAFKA, job.partitions)
    if source is None:
        if keys:
            raise UsageError(f"--key {keys[0]!r} needs a trace, counted keys or a CSV of key,count")
        return Advice(flink, kafka, region=region, own=own)
    weighed = weighed_keys(source)
    if not weighed.keys:
        raise BadInput(f"{source} has no keys")
    chosen = [_named(key, weighed, source) for key in keys] or [
        key for key in weighed.keys if key.high * job.parallelism > job.max_imbalance * weighed.total
    ][:MOST_KEYS]
    useful = useful_table(weighed.keys, weighed.total, job.parallelism)
    table = keys_table(chosen, weighed.total, job.parallelism, job.engine, job.partitioner(), job.max_imbalance)
    return Advice(flink, kafka, useful, table, region, own)


def weighed_keys(source: Path) -> Weighed:
    """Hot keys of a trace, counted keys or a CSV, hottest first."""
    with readable(source):
        if not is_artefact(source):
            return _of_frequencies(read_counts(source).frequencies)
        if not source.exists():
            raise BadInput(f"{source} does not exist; give a trace, counted keys, or a CSV of key,count")
    kind = read_manifest(source).kind
    if kind == "frequencies":
        return _of_frequencies(read_frequencies(source)[0])
    trace = open_trace(source)
    missed = int(trace.profile["top_missed"])
    keys = [HotKey(NULL_KEY if key is None else key, rows, rows + missed) for key, rows in trace.profile["top_keys"]]
    return Weighed(tuple(keys), trace.rows)


def _of_frequencies(frequencies: Frequencies) -> Weighed:
    """Bounds are rounded outward to integers."""
    known = frequencies.keys[:KNOWN_KEYS].to_pylist()
    rows = zip(known, frequencies.count_low, frequencies.count_high, strict=False)
    keys = [
        HotKey(NULL_KEY if key is None else key_to_text(key), math.floor(low), math.ceil(high))
        for key, low, high in rows
    ]
    return Weighed(tuple(keys), max(1, round(frequencies.total)))


def _named(name: str, weighed: Weighed, source: Path) -> HotKey:
    for key in weighed.keys:
        if key.key == name:
            return key
    hint = near_miss(name, [key.key for key in weighed.keys])
    raise BadInput(
        f"{source} has no count of key {name!r}{hint}{' Count' if hint else '; count'} it with"
        f" `adapt partition count {source} --key {name} -o FREQ`"
    )
