"""Advice for a job by numbers alone, and for its heavy keys by what a trace or counted keys tell of them; no Spark."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from adapt.core.advice.tables import MOST_UNITS, HeavyKey, division_table, keys_table, useful_table
from adapt.core.counting.frequencies import Frequencies
from adapt.core.counting.tables import NULL_KEY
from adapt.core.engines.names import AnyScheme, Engine
from adapt.core.engines.registry import definition_of
from adapt.core.errors import BadInput, UsageError, near_miss
from adapt.core.keys.key_text import key_to_text
from adapt.core.keys.partitioner import Partitioner
from adapt.core.stream import KeyType
from adapt.core.table import Table
from adapt.traces.read_errors import readable
from adapt.traces.store.frequencies import read_counts, read_frequencies
from adapt.traces.store.manifest import read_manifest
from adapt.traces.store.trace import open_trace

SCHEMA = "adapt.advice/1"

MOST_KEYS = 10
"""Heavy keys that are named unasked."""

KNOWN_KEYS = 10_000
"""Heaviest counted keys that can be asked for; lighter ones need no salts."""


@dataclass(frozen=True, slots=True)
class Job:
    """What advice is wanted for.

    Attributes:
        parallelism: Subtasks, or consumers, or channels.
        max_parallelism: Flink's key groups; None takes Flink's default.
        partitions: Of the Kafka topic; None says nothing of Kafka.
        engine: Whose hash places salted keys.
        tolerance: The most load of a channel over the mean that a key alone may make.

    Raises:
        UsageError: a number is out of range.
    """

    parallelism: int
    max_parallelism: int | None = None
    partitions: int | None = None
    engine: AnyScheme = Engine.FLINK
    tolerance: Fraction = Fraction(6, 5)

    def __post_init__(self) -> None:
        if self.partitions is not None and not 1 <= self.partitions <= MOST_UNITS:
            raise UsageError(f"{self.partitions} partitions: a topic has from 1 to {MOST_UNITS:,}")
        if self.tolerance < 1:
            raise UsageError(f"a tolerance of {float(self.tolerance):g}: some channel has the mean; give 1 or more")
        self.partitioner()
        definition_of(Engine.FLINK).placement(self.parallelism, self.max_parallelism)

    def partitioner(self) -> Partitioner:
        """The engine's placement over so many channels."""
        if not isinstance(self.engine, Engine):
            raise UsageError(f"there is no advice for {self.engine}; take {', '.join(Engine)}")
        return definition_of(self.engine).placement(self.parallelism, self.max_parallelism)

    def division(self, engine: Engine, number: int | None) -> Table:
        """How so many units of an engine's work (None, its default) divide over the workers."""
        definition = definition_of(engine)
        return division_table(definition.title, definition.units, self.parallelism, number)


@dataclass(frozen=True, slots=True)
class Advice:
    """Advice as tables.

    Attributes:
        flink, kafka: How work divides; Kafka only where partitions were given.
        useful, keys: What the keys ask for, where they are known.
    """

    flink: Table
    kafka: Table | None = None
    useful: Table | None = None
    keys: Table | None = None

    def tables(self) -> list[Table]:
        """All of it."""
        return [table for table in (self.flink, self.kafka, self.useful, self.keys) if table is not None]

    def as_data(self) -> dict[str, Any]:
        """All of it as one JSON document."""
        parts = {"flink": self.flink, "kafka": self.kafka, "useful": self.useful, "keys": self.keys}
        return {"schema": SCHEMA, **{name: None if table is None else table.records() for name, table in parts.items()}}

    def _repr_html_(self) -> str:
        """All tables, for a notebook."""
        return "".join(table._repr_html_() for table in self.tables())


@dataclass(frozen=True, slots=True)
class Weighed:
    """Heavy keys and what all keys weigh together."""

    keys: tuple[HeavyKey, ...]
    total: int


def advise(job: Job, source: Path | None = None, keys: Sequence[str] = ()) -> Advice:
    """Advice for a job.

    Args:
        source: A trace (its profile is read, rows weigh 1 each), counted keys, or a CSV of key,count.
        keys: Keys of it to tell the salts of; if none are named, those too heavy for a channel.

    Raises:
        UsageError: keys are named without a source.
        BadInput: the source cannot be read, or does not tell of a key.
    """
    flink = job.division(Engine.FLINK, job.max_parallelism)
    kafka = None if job.partitions is None else job.division(Engine.KAFKA, job.partitions)
    if source is None:
        if keys:
            raise UsageError(
                f"--key {keys[0]!r} needs a trace, counted keys or a CSV of key,count: what does it weigh?"
            )
        return Advice(flink, kafka)
    weighed = weighed_keys(source)
    if not weighed.keys:
        raise BadInput(f"{source} has no keys")
    chosen = [_named(key, weighed, source) for key in keys] or [
        key for key in weighed.keys if key.high * job.parallelism > job.tolerance * weighed.total
    ][:MOST_KEYS]
    useful = useful_table(weighed.keys[0], weighed.total, job.parallelism)
    table = keys_table(chosen, weighed.total, job.parallelism, job.engine, job.partitioner(), job.tolerance)
    return Advice(flink, kafka, useful, table)


def weighed_keys(source: Path) -> Weighed:
    """The heavy keys of a trace's profile, of counted keys or of a CSV; heaviest first.

    Raises:
        BadInput: it is none of these.
    """
    with readable(source):
        if source.is_file():
            return _of_frequencies(read_counts(source, KeyType.STRING))
        if not source.exists():
            raise BadInput(f"{source} does not exist; give a trace, counted keys, or a CSV of key,count")
    kind = read_manifest(source).kind
    if kind == "frequencies":
        return _of_frequencies(read_frequencies(source)[0])
    trace = open_trace(source)
    missed = int(trace.profile["top_missed"])
    keys = [HeavyKey(NULL_KEY if key is None else key, rows, rows + missed) for key, rows in trace.profile["top_keys"]]
    return Weighed(tuple(keys), trace.rows)


def _of_frequencies(frequencies: Frequencies) -> Weighed:
    """Weights that are no whole numbers are rounded, low ones down and high ones up."""
    known = frequencies.keys[:KNOWN_KEYS].to_pylist()
    rows = zip(known, frequencies.count_low, frequencies.count_high, strict=False)
    keys = [
        HeavyKey(NULL_KEY if key is None else key_to_text(key), math.floor(low), math.ceil(high))
        for key, low, high in rows
    ]
    return Weighed(tuple(keys), max(1, round(frequencies.total)))


def _named(name: str, weighed: Weighed, source: Path) -> HeavyKey:
    for key in weighed.keys:
        if key.key == name:
            return key
    hint = near_miss(name, [key.key for key in weighed.keys])
    raise BadInput(
        f"{source} does not tell of the key {name!r}{hint}; `adapt partition count {source} --key {name}` counts it,"
        " and -o keeps the counts"
    )
