"""One topic, read once and kept until it is ingested."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.errors import BadInput, EnvironmentFailure
from adapt.core.phrases import percent
from adapt.core.units.seals import SEAL, as_json, check_seal, sealed
from adapt.traces.sources.live.address import TopicAddress, TopicOptions
from adapt.traces.sources.live.cluster import Bounds, ClientConfig, Cluster
from adapt.traces.sources.live.reading import Reader, RecordSample, Wanted, sample_effect
from adapt.traces.sources.live.topic_records import (
    RecordFiles,
    TopicRecords,
    check_fields,
    frames_of,
    guessed_format,
    has_schema_id,
    schema_ids,
    stored,
)
from adapt.traces.sources.names import KeyFormat
from adapt.traces.sources.reading.files import Container, SourceFile
from adapt.traces.spark.progress import Progress
from adapt.traces.store import disk
from adapt.traces.store.atomic import replace_whole

_PLAN = "plan.json"

_FIELD = re.compile(r"\bpayload((?:\.\w+)+)")

LOOKED_AT = 1000
"""Records by which the format of keys and fields is judged."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run reads, fixed when it starts.

    Attributes:
        request: The options that it follows.
        topic_id: Identity of the topic; empty if unknown.
        begins: First offset of each partition that has records.
        ends: The offset after the last one.
        first_ms, end_ms: Span of the times, in milliseconds since 1970; None for any.
        rows: Number of records, once everything was read.
    """

    request: Mapping[str, Any]
    topic_id: str
    begins: Mapping[int, int]
    ends: Mapping[int, int]
    first_ms: int | None
    end_ms: int | None
    rows: int | None = None

    @property
    def offsets(self) -> int:
        """Number of offsets between begins and ends."""
        return sum(self.ends.values()) - sum(self.begins.values())

    @classmethod
    def read(cls, folder: Path) -> "Plan | None":
        """The plan of a folder; None without one."""
        try:
            data = json.loads((folder / _PLAN).read_bytes())
            check_seal(data)
            del data[SEAL]
            begins, ends = ({int(at): offset for at, offset in data.pop(name).items()} for name in ("begins", "ends"))
            return cls(begins=begins, ends=ends, **data)
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def write(self, folder: Path) -> None:
        """Keep the plan in its folder."""
        data = {name: getattr(self, name) for name in self.__slots__}
        replace_whole(folder / _PLAN, as_json(sealed(data)))

    def can_go_on(self, topic_id: str, bounds: Mapping[int, Bounds], last: Mapping[int, int]) -> bool:
        """Whether the same topic still has the missing records."""
        at = {partition: max(begin, last.get(partition, -1) + 1) for partition, begin in self.begins.items()}
        left = {partition: offset for partition, offset in at.items() if offset < self.ends[partition]}
        return self.topic_id == topic_id and all(
            partition in bounds and bounds[partition].low <= offset and self.ends[partition] <= bounds[partition].high
            for partition, offset in left.items()
        )


@dataclass(frozen=True, slots=True)
class KeptTopic:
    """Records of a topic on disk."""

    folder: Path  # their folder, to be removed once they are ingested
    files: list[SourceFile]  # one for each partition with records
    form: TopicRecords  # how they are read
    inputs: list[dict[str, Any]]  # topic, partition and offsets of each file, for the manifest
    parameters: dict[str, Any]  # what was read, for the manifest
    notes: list[str]  # what a user should know, in words
    guesses: tuple[str, ...]  # guessed settings, in words
    offsets: int  # number of offsets in the ranges that were read, of records in the sample or not
    # variance of shares by the runs of the sample, over that of single records; None without a sample
    sample_effect: float | None


def read_topic(
    address: TopicAddress,
    options: TopicOptions,
    expressions: Iterable[str],
    folder: Path,
    zone: str,
    progress: Progress,
) -> KeptTopic:
    """Read a topic into a folder, or resume an earlier run.

    Args:
        expressions: What the columns of the trace are made of; parts of a record that none names are not kept.
        folder: A folder for the records, whose parent exists.
        zone: Time zone of times without one.
    """
    text = " ".join(expressions)
    schema = stored([name for name in ("headers", "payload") if re.search(rf"\b{name}\b", text)])
    request = {
        "topic": str(address),
        "from": options.begin,
        "to": options.end,
        "time_zone": zone,
        "sample": str(options.share),
        "max_records": options.max_records,
        "columns": schema.names,
    }
    notes: list[str] = []
    plan = Plan.read(folder)
    if plan is not None and plan.request != request:
        notes.append("starts over: an earlier run kept records that were read with other options")
        plan = None
    if plan is not None and plan.rows is not None and (files := RecordFiles(folder)).rows == plan.rows:
        notes.append(f"uses the {files.rows:,} records that an earlier run kept")
    else:
        cluster = Cluster(address, ClientConfig.read(options.client_config))
        try:
            plan, files = _begun(cluster, plan, request, options.span_ms(zone), folder, notes)
            _read(cluster, address, plan, files, options, schema, progress)
        finally:
            cluster.close()
        plan = replace(plan, rows=files.rows)
        plan.write(folder)
    if not files.rows:
        disk.remove_tree(folder)
        sampled = f"--sample keeps 0 of {plan.offsets:,} records; increase it"
        raise BadInput(f"{address}: {sampled if options.share < 1 else 'no record is left at the offsets of the span'}")
    if options.share == 1 and plan.first_ms is plan.end_ms is None and files.rows < plan.offsets:
        gaps = plan.offsets - files.rows
        notes.append(
            f"{gaps:,} of {plan.offsets:,} offsets hold no record: compacted, deleted, or marks of transactions"
        )
    return _kept(address, options, plan, files, _FIELD.findall(text), notes)


def _begun(
    cluster: Cluster,
    plan: Plan | None,
    request: Mapping[str, Any],
    span_ms: tuple[int | None, int | None],
    folder: Path,
    notes: list[str],
) -> tuple[Plan, RecordFiles]:
    """The plan of an earlier run with its records, if the topic still fits it; else a new one."""
    topic_id, bounds = cluster.topic_id(), cluster.bounds()
    if plan is not None:
        files = RecordFiles(folder)
        if plan.can_go_on(topic_id, bounds, files.last):
            notes.append(f"goes on from the {files.rows:,} records that an earlier run kept")
            return plan, files
        notes.append("starts over: since an earlier run, the topic was created again or lost records")
    begins, ends = _ranges(cluster, bounds, span_ms)
    if not begins:
        held = sum(bound.high - bound.low for bound in bounds.values())
        span = f"its brokers know no record from --from to --to (it holds {held:,})" if held else "the topic is empty"
        raise BadInput(f"{request['topic']} has nothing to read: {span}")
    if request["max_records"] is not None:
        ends = _shared_out(begins, ends, int(request["max_records"]))
    if folder.exists():
        disk.remove_tree(folder)
    disk.make_folder(folder)
    folder.chmod(0o700)  # records may be private
    made = Plan(request, topic_id, begins, ends, *span_ms)
    made.write(folder)
    return made, RecordFiles(folder)


def _ranges(
    cluster: Cluster, bounds: Mapping[int, Bounds], span_ms: tuple[int | None, int | None]
) -> tuple[dict[int, int], dict[int, int]]:
    """First offset and the one after the last, of partitions with records in a span of time."""
    first_ms, end_ms = span_ms
    begins = {partition: bound.low for partition, bound in bounds.items()}
    ends = {partition: bound.high for partition, bound in bounds.items()}
    if first_ms is not None:
        begins = {**ends, **cluster.first_from(first_ms)}
    if end_ms is not None:
        ends.update(cluster.first_from(end_ms))
    some = [partition for partition in bounds if begins[partition] < ends[partition]]
    return {at: begins[at] for at in some}, {at: ends[at] for at in some}


def _shared_out(begins: Mapping[int, int], ends: Mapping[int, int], most: int) -> dict[int, int]:
    """Ends that leave at most this many offsets, the same share of each partition."""
    sizes = {partition: ends[partition] - begins[partition] for partition in begins}
    total = sum(sizes.values())
    if total <= most:
        return dict(ends)
    shares = {partition: size * most // total for partition, size in sizes.items()}
    largest = sorted(sizes, key=lambda partition: (-(sizes[partition] * most % total), partition))
    for partition in largest[: most - sum(shares.values())]:
        shares[partition] += 1
    return {partition: begins[partition] + shares[partition] for partition in begins}


def _read(
    cluster: Cluster,
    address: TopicAddress,
    plan: Plan,
    files: RecordFiles,
    options: TopicOptions,
    schema: pa.Schema,
    progress: Progress,
) -> None:
    """Read what is missing."""
    from confluent_kafka import TopicPartition

    sample = _sample(options, plan)
    if sample is not None and sample.fetch_bytes is not None:
        cluster.fetch_runs(sample.fetch_bytes)
    wanted = Wanted(plan.begins, plan.ends, plan.first_ms, plan.end_ms, sample, schema)
    try:
        Reader(cluster, address.topic, wanted, files, progress).read(TopicPartition)
    except EnvironmentFailure as error:
        kept = f"{files.rows:,} records of up to {plan.offsets:,} are kept"
        raise EnvironmentFailure(f"{error}; {kept}, and the same command goes on from there") from error


def _sample(options: TopicOptions, plan: Plan) -> RecordSample | None:
    return RecordSample(options.share, plan.begins, plan.ends) if options.share < 1 else None


def _kept(
    address: TopicAddress,
    options: TopicOptions,
    plan: Plan,
    files: RecordFiles,
    fields: Sequence[str],
    notes: list[str],
) -> KeptTopic:
    """The records as files of a source."""
    partitions = sorted(files.last)
    paths = [files.path(partition) for partition in partitions]
    key_format, guesses = options.key_format, tuple[str, ...]()
    if key_format is KeyFormat.AUTO:
        key_format = guessed_format(_first(paths, "key"))
        guesses = (f"key format {key_format}",)
    if key_format is KeyFormat.CONFLUENT:
        notes.append(f"schemas of the keys: {_schemas(paths)}")
    form = TopicRecords(key_format, tuple(sorted({tuple(path[1:].split(".")) for path in fields})))
    if form.fields:
        check_fields(_first(paths, "payload"), form.fields)
    span = {name: getattr(plan, name) for name in ("first_ms", "end_ms") if getattr(plan, name) is not None}
    parameters = {
        "topic": str(address),
        **span,
        "sample": float(options.share),
        "max_records": options.max_records,
        "key_format": key_format.value,
    }
    sources = [
        SourceFile(path.absolute(), f"{address.topic}/{partition}", Container.PLAIN, path.stat().st_size)
        for partition, path in zip(partitions, paths, strict=True)
    ]
    sample = _sample(options, plan)
    return KeptTopic(
        files.folder,
        sources,
        form,
        [
            {"name": f"{address}, partition {at}, offsets {begin} to {plan.ends[at] - 1}"}
            for at, begin in plan.begins.items()
            if begin < plan.ends[at]
        ],
        parameters,
        notes,
        guesses,
        plan.offsets,
        None if sample is None else sample_effect(sample, form, sources),
    )


def _each(paths: Sequence[Path], column: str) -> Iterator[pa.Array]:
    """A column of all records, frame by frame."""
    for path in paths:
        with path.open("rb") as file:
            for frame in frames_of(path):
                yield frame.table(file)[column].combine_chunks()


def _first(paths: Sequence[Path], column: str) -> pa.Array:
    """A column of the first records of some partitions."""
    found: list[pa.Array] = []
    for values in _each(paths, column):
        found.append(values.slice(0, LOOKED_AT - sum(map(len, found))))
        if sum(map(len, found)) == LOOKED_AT:
            break
    return pa.concat_arrays(found)


def _schemas(paths: Sequence[Path]) -> str:
    """Numbers of the schemas in Confluent's wire format, with their shares of such keys."""
    counts: Counter[int] = Counter()
    for keys in _each(paths, "key"):
        told = schema_ids(keys.filter(pc.fill_null(has_schema_id(keys), False))).value_counts().to_pylist()
        counts.update({each["values"]: each["counts"] for each in told})
    return ", ".join(f"{number} ({percent(count / counts.total())})" for number, count in counts.most_common())
