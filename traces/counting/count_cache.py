"""Counted keys of a trace (cached), an artefact or a CSV."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from adapt.core.arrays import Floats
from adapt.core.counting.frequencies import Frequencies
from adapt.core.counting.names import CountMethod
from adapt.core.errors import BadInput, EnvironmentFailure, UsageError
from adapt.core.out_of_sample.windows import CountedPanes
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.stream import KeyType, Weight
from adapt.core.units.seals import hash_of
from adapt.traces.block_cache import cache_of, make_cache, note_use
from adapt.traces.counting.channel_loads import channel_loads
from adapt.traces.counting.count import Counting, count_trace
from adapt.traces.counting.measured import check_measurable, with_columns
from adapt.traces.counting.pane_cache import counted_panes, kept_panes
from adapt.traces.counting.weights import chosen_weight, default_weight
from adapt.traces.read_errors import readable
from adapt.traces.spark.names import RunnerName
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.spark.runner import runner_for
from adapt.traces.spark.session import Spark
from adapt.traces.store.frequencies import read_counts, read_frequencies, write_frequencies
from adapt.traces.store.manifest import Provenance, file_sha256, program_versions, read_manifest
from adapt.traces.store.trace import Trace, open_trace


@dataclass(frozen=True, slots=True)
class Counted:
    """Counted keys and their source."""

    frequencies: Frequencies  # the counted keys
    fingerprint: str  # content hash of the trace, or of the artefact or file of counts
    source: dict[str, Any]  # the input as a manifest records it
    # where a trace was counted, now or when its counts were cached; None if it is not a trace
    runner: str | None = None


def counted(
    path: Path,
    counting: Counting | None = None,
    *,
    key_type: KeyType | None = None,
    measure: Sequence[str] = (),
    spark_options: Spark = None,
    progress: Progress = silent,
) -> Counted:
    """Counted keys of a trace, an artefact, or a CSV of `key,count`.

    A trace is counted once per set of options; the counts are cached next to it by content hash.

    Args:
        path: The trace, artefact or CSV.
        counting: How to count a trace; lossy by default.
        key_type: The type of the keys in a CSV (default: string).
        measure: Columns to sum per key: `count`, `cost` and `bytes` of a trace, headings of a CSV, the measured columns
            of an artefact.
    """
    how = counting or Counting()
    with readable(path):
        if path.is_file():
            _refuse_options(how, path)
            sha256 = file_sha256(path)
            source = {"name": path.name, "bytes": path.stat().st_size, "sha256": sha256}
            return Counted(read_counts(path, key_type or KeyType.STRING, measure), sha256, source)
        if not path.exists():
            raise BadInput(f"{path} does not exist; give a trace, counted keys, or a CSV of key,count")
    manifest = read_manifest(path)
    source = manifest.as_input(path.name)
    if key_type is not None:
        raise UsageError(f"--key-type needs a CSV of counts; {path} records the type of its keys")
    if manifest.kind == "trace":
        found, ran = _kept_or_counted(open_trace(path), how, tuple(measure), spark_options, progress)
        return Counted(found, manifest.content_hash, source, ran)
    if manifest.kind == "frequencies":
        frequencies, _ = read_frequencies(path)
        if how.weight not in (None, frequencies.weight):
            raise UsageError(
                f"--weight {how.weight}: {path} holds counts by {frequencies.weight}; count the trace again"
            )
        _refuse_unmeasured(frequencies, measure, path)
        _refuse_options(replace(how, weight=None), path)
        trace_hash = next((str(item["content_hash"]) for item in manifest.made.inputs if "content_hash" in item), None)
        return Counted(frequencies, trace_hash or manifest.content_hash, source)
    raise BadInput(f"{path} is a {manifest.kind}; give a trace, counted keys, or a CSV of key,count")


def panes_of(
    source: Path, counted: Counted, *, spark_options: Spark = None, progress: Progress = silent
) -> CountedPanes:
    """The panes of a counted trace; cached ones only for an artefact."""
    folder, weight = cache_of(source), counted.frequencies.weight
    if source.is_file():
        return CountedPanes()
    if read_manifest(source).kind != "trace":
        return CountedPanes(kept_panes(folder, counted.fingerprint, weight, counted.frequencies.key_type))
    return windows_of(open_trace(source), weight, spark_options=spark_options, progress=progress)


def windows_of(
    trace: Trace, weight: Weight | None = None, *, spark_options: Spark = None, progress: Progress = silent
) -> CountedPanes:
    """The panes of a trace, and the way to route its rows."""
    folder = cache_of(trace.path)
    panes = counted_panes(trace, folder, weight, spark_options=spark_options, progress=progress)

    def route(today: Plan) -> Floats | None:
        return channel_loads(trace, today, folder, weight, spark_options=spark_options, progress=progress)

    return CountedPanes(panes, route)


def _refuse_options(how: Counting, path: Path) -> None:
    exact = how.method is CountMethod.EXACT or None
    given = {"weight": how.weight, "exact": exact, "epsilon": how.epsilon, "support": how.support, "window": how.window}
    for option, value in given.items():
        if value is not None:
            raise UsageError(f"--{option} needs a trace; {path} already holds counts")


def _refuse_unmeasured(frequencies: Frequencies, measure: Sequence[str], path: Path) -> None:
    for source in measure:
        try:
            frequencies.column(source)
        except UsageError as error:
            raise UsageError(f"{path}: {error}; count the trace again with --measure {source}") from error


def _what_decides(trace: Trace, how: Counting, measure: Sequence[str]) -> dict[str, Any]:
    """All options that distinguish two counts of a trace."""
    return {
        **({"measured": sorted(measure)} if measure else {}),
        "version": program_versions()["adapt-streams"],
        "method": how.method.value,
        "epsilon": how.epsilon_on(trace),
        "weight": chosen_weight(trace, how.weight).value,
        "support": how.support,
        "window": how.window and [how.window.length.size, how.window.length.in_rows, how.window.counters],
    }


def _kept_or_counted(
    trace: Trace, how: Counting, measure: Sequence[str], spark_options: Spark, progress: Progress
) -> tuple[Frequencies, str | None]:
    """Cached counts, or new ones, which are cached if possible; and where they were counted.

    Counts with measured columns build on cached ones without.
    """
    check_measurable(trace, measure)
    name = hash_of([trace.manifest.content_hash, _what_decides(trace, how, measure)])
    kept = cache_of(trace.path) / f"{name[:32]}.freq"
    with suppress(BadInput):  # not cached, or damaged
        frequencies, manifest = read_frequencies(kept)
        if manifest.made.inputs[0]["content_hash"] == trace.manifest.content_hash:
            note_use(kept)
            return frequencies, manifest.made.runner
    ran = runner_for(how.rows_on(trace), spark_options, progress).name.value
    if measure:
        counted, _ = _kept_or_counted(trace, how, (), spark_options, progress)
        frequencies = with_columns(trace, counted, measure, spark_options=spark_options, progress=progress)
    else:
        frequencies = count_trace(trace, how, spark_options=spark_options, progress=progress)
    command = "adapt.traces.counting.count_cache.counted"
    made = Provenance(command, how.parameters(frequencies), [trace.as_input], runner=ran)
    with suppress(EnvironmentFailure, OSError):  # without a cache, the next run counts again
        make_cache(kept.parent)
        write_frequencies(frequencies, kept, made, force=True)
    return frequencies, ran


def count_ahead(trace: Trace, *, spark_options: Spark = None, progress: Progress = silent) -> None:
    """Cache the default counts of a new trace, unless it is short."""
    if runner_for(trace.rows, spark_options, progress).name is RunnerName.IN_PROCESS:
        return
    folder = cache_of(trace.path)
    for weight in dict.fromkeys([Weight.COUNT, default_weight(trace)]):
        with suppress(BadInput):  # weights that cannot be added up; the command that needs them says so
            _kept_or_counted(trace, Counting(weight=weight), (), spark_options, progress)
            counted_panes(trace, folder, weight, spark_options=spark_options, progress=progress)
