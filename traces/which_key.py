"""Judge columns as keys, in one pass over a temporary trace."""

import json
import re
from collections.abc import Iterable, Sequence
from collections.abc import Mapping as Columns
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.advice.candidates import Coded, Measured, Piece, Together, with_time
from adapt.core.advice.which_key import Judged, WhichKey, judged, ranked
from adapt.core.engines.engine import OtherKeys
from adapt.core.engines.names import Engine
from adapt.core.engines.placement import EnginePartitioner
from adapt.core.engines.registry import definition_of, placement_of
from adapt.core.errors import BadInput, UsageError, did_you_mean
from adapt.core.keys.partitioner import random_keys
from adapt.core.out_of_sample.windows import rows_a_pane
from adapt.core.stream import KeyType, several
from adapt.core.verdict.remedies import Remedy
from adapt.traces.counting.key_columns import KEY_TYPES, read_as, stored_keys
from adapt.traces.ingest.ingest import IngestOptions, ingest
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.ingest.rejects import MaxRejects
from adapt.traces.locations.location import TOPIC_SCHEME, location
from adapt.traces.series import stream_of, traces_of
from adapt.traces.sources.formats.json_lines import JsonLines
from adapt.traces.sources.frames import frame_schema, is_frame
from adapt.traces.sources.reading.files import STDIN, source_files
from adapt.traces.sources.reading.records import RecordFormat
from adapt.traces.sources.sniff import ReadOptions, json_fields, offered_columns, recognize
from adapt.traces.spark.progress import Progress
from adapt.traces.spark.session import Spark
from adapt.traces.store.trace import Trace, open_trace

AUTO = "auto"
"""All columns of the source, and pairs of the needed ones."""

MOST_COLUMNS = 200
"""Most columns that `auto` takes."""

FEWEST_WINDOWS = 6
"""With fewer windows, candidates are judged on all rows."""

MOST_SALTS = 8
"""Most salts of the needed column that `auto` tries."""

MOST_CELLS = 20_000_000
"""Most values that are judged without being asked for."""

SAMPLED = 2000
"""About how many rows the correlation with time is computed from."""

OPTIONS = IngestOptions(max_rejects=MaxRejects.parse("1%"))
"""Of a source with more rows that cannot be read, nothing is judged."""

_UNFIT = re.compile(r"--(?:keep 'c(\d+)'|key) has type (.+?)[;,:]")
"""Refusal of a column whose type is only known once all rows are read."""

_SALTED = re.compile(r"(.+)#([2-9]|[1-9]\d{1,2})")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of the candidates."""

    candidates: str  # columns, pairs A+B and salted columns A#8, separated by commas; or `auto`
    needs: tuple[str, ...]  # columns of which rows with equal values must share a worker
    engine: Engine
    channels: int  # workers
    time: str = ""  # column of the time; guessed if empty


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A candidate: its columns, and into how many keys each of its keys is divided."""

    name: str
    columns: tuple[str, ...]
    salts: int = 1


def which_key(sources: Sequence[Any], question: Question, spark: Spark, progress: Progress) -> WhichKey:
    """Judge candidate keys of a source and recommend one.

    Args:
        sources: Files, folders and globs, or one data frame; or a trace, of which the columns it keeps are judged.

    Raises:
        UsageError: the candidates or needs are not columns of the source.
        BadInput: no candidate meets the needs, or all are unique by row.
    """
    if any(isinstance(each, str) and (each == STDIN or each.startswith(TOPIC_SCHEME)) for each in sources):
        raise UsageError(f"{sources[0]} cannot be read twice; ingest it with --keep COLUMN and give the trace")
    places = [location(each) for each in sources if isinstance(each, str)]
    if places and all(map(traces_of, places)):
        return _of_trace(open_trace(stream_of(*places)), question)
    names, types = _offered(sources)
    is_auto, unfit = question.candidates == AUTO, dict[str, str]()
    if is_auto and len(names) > MOST_COLUMNS:
        raise UsageError(
            f"--candidates auto takes at most {MOST_COLUMNS} columns (the source has {len(names):,}); name candidates"
        )
    for name, kind in types.items() if is_auto else ():
        if kind not in KEY_TYPES or pa.types.is_timestamp(kind):  # times are no keys, and only Spark keeps some
            unfit[name] = str(kind).removesuffix("<item: null>")
    while True:
        chosen = _chosen(question, [name for name in names if name not in unfit])
        wanted = _columns(chosen, question.needs)
        for name in wanted:
            _check_type(name, types.get(name, pa.string()))
        kept = {name: f"c{at}" for at, name in enumerate(wanted)}
        with TemporaryDirectory(prefix="adapt-which-key-") as folder:
            mapping = Mapping(
                _quoted(wanted[0]),
                time=question.time,
                keep=tuple(f"{alias}={_quoted(name)}" for name, alias in kept.items()),
            )
            try:
                made = ingest(
                    sources, Path(folder) / "candidates.trace", mapping, OPTIONS, spark_options=spark, progress=progress
                )
            except UsageError as error:
                found = _UNFIT.match(str(error))
                if not is_auto or found is None:
                    raise UsageError(_named_again(str(error), kept)) from error
                unfit[wanted[int(found[1] or 0)]] = found[2]
                continue
            read = _types_in(made.trace, kept.values())
            for name in (name for name in wanted if read[kept[name]] not in KEY_TYPES):
                if not is_auto or name in question.needs:
                    _check_type(name, read[kept[name]])
                unfit[name] = str(read[kept.pop(name)])
            chosen = _some([each for each in chosen if unfit.keys().isdisjoint(each.columns)])
            return _judged(made.trace, kept, chosen, question, tuple(f"{name} ({unfit[name]})" for name in unfit))


def judged_beside(
    trace: Trace, sources: Sequence[Any], question: Question, spark: Spark, progress: Progress
) -> WhichKey | None:
    """Judge other columns of a trace, or of its source.

    None without other columns, or where they have more than `MOST_CELLS` values.

    Args:
        sources: What the trace was made from; empty if that is not to be read again.
    """
    with suppress(UsageError, BadInput):
        kept = len(columns_of(trace))
        if kept > 1 and trace.rows * kept <= MOST_CELLS:
            return _of_trace(trace, replace(question, time=""))
        if kept == 1 and sources and trace.rows * len(_offered(sources)[0]) <= MOST_CELLS:
            return which_key(sources, question, spark, progress)
    return None


def of_another_key(remedy: Remedy, judged: WhichKey, imbalance: float) -> Remedy:
    """The remedy with the recommended key, if that has a lower imbalance."""
    found = judged.recommended
    remedy = replace(remedy, candidates=len(judged.candidates))
    if found is None or found.later >= imbalance:
        return remedy
    remedy = replace(remedy, key=found.key)
    if not judged.later_windows:
        return replace(remedy, imbalance=found.later)
    return replace(remedy, later=found.later, worst=found.worst)


def columns_of(trace: Trace) -> list[str]:
    """Columns of a trace that may be keys."""
    return [name for name in trace.columns if name not in ("ts", "cost_us", "bytes", "partition")]


def _of_trace(trace: Trace, question: Question) -> WhichKey:
    """Judge the columns that a trace keeps, and its key."""
    if question.time:
        raise UsageError(f"{trace.path} is a trace, where --time has no effect; omit it, or give a raw file")
    own = columns_of(trace)
    types = _types_in(trace, own)
    fit = [name for name in own if types[name] in KEY_TYPES]
    chosen = _chosen(question, fit if question.candidates == AUTO else own)
    wanted = _columns(chosen, question.needs)
    for name in wanted:
        _check_type(name, types[name])
    skipped = tuple(f"{name} ({types[name]})" for name in own if name not in fit)
    return _judged(trace, {each: each for each in wanted}, chosen, question, skipped)


def _offered(sources: Sequence[Any]) -> tuple[tuple[str, ...], Columns[str, pa.DataType]]:
    """The columns of a source, and the types of those that are not text."""
    if is_frame(sources[0]):
        schema = frame_schema(sources[0])
        return tuple(schema.names), dict(zip(schema.names, map(read_as, schema.types), strict=True))
    files = source_files(sources)
    form = recognize(files, ReadOptions()).form
    if isinstance(form, JsonLines):
        fields = json_fields(files, form)
        return tuple(fields), {name: pa.list_(pa.null()) for name, is_array in fields.items() if is_array}
    names = offered_columns(sources)
    if isinstance(form, RecordFormat):
        return names, {}
    types = {name: read_as(kind) for name, kind in form.types.items()}
    return (tuple(types) or names), types


def _chosen(question: Question, names: Sequence[str]) -> list[_Candidate]:
    """The candidates, each once, checked to be columns."""
    for name in question.needs:
        if name not in names:
            raise UsageError(f"--needs {name!r} does not exist or cannot be a key{did_you_mean(name, names)}")
    if question.candidates != AUTO:
        return [_parsed(text, names) for text in dict.fromkeys(map(str.strip, question.candidates.split(",")))]
    found = _some([_Candidate(name, (name,)) for name in names])
    found += [_Candidate("+".join(pair), pair) for pair in combinations(question.needs, 2)]
    salts = min(MOST_SALTS, question.channels)
    return found + [_Candidate(f"{name}#{salts}", (name,), salts) for name in question.needs if salts > 1]


def _some(found: list[_Candidate]) -> list[_Candidate]:
    """The candidates, of which there must be some."""
    if not found:
        raise BadInput("the source has no columns that can be keys; ingest it with --keep COLUMN")
    return found


def _types_in(trace: Trace, names: Iterable[str]) -> Columns[str, pa.DataType]:
    return {each.name: each.type for each in next(trace.batches([*names])).schema}


def _parsed(text: str, names: Sequence[str]) -> _Candidate:
    if text in names:
        return _Candidate(text, (text,))
    salted = _SALTED.fullmatch(text)
    columns = (salted[1],) if salted else tuple(text.split("+"))
    for name in columns:
        if name not in names:
            raise UsageError(f"candidate {name!r} does not exist{did_you_mean(name, names)}")
    if len(columns) > 2:
        raise UsageError(f"candidate {text!r} has {len(columns)} columns; give at most two, as A+B")
    if len(set(columns)) < len(columns):
        raise UsageError(f"candidate {text!r} has the same column twice; give two columns, as A+B")
    return _Candidate(text, columns, int(salted[2]) if salted else 1)


def _columns(chosen: Sequence[_Candidate], needs: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*(name for each in chosen for name in each.columns), *needs]))


def _check_type(name: str, kind: pa.DataType) -> None:
    if kind not in KEY_TYPES:
        what = "nested" if pa.types.is_nested(kind) else f"of type {kind}"
        raise UsageError(f"candidate {name!r} is {what}; a key must be text, a whole number, a boolean or a time")


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[\w.`]+", name) else f"`{name}`"


def _named_again(message: str, kept: Columns[str, str]) -> str:
    """A message of the ingest about kept columns, with their own names."""
    for name, alias in kept.items():
        message = message.replace(f"--keep {alias!r}", f"candidate {name!r}")
    return message.replace("--key", f"candidate {next(iter(kept))!r}", 1).replace("a kept column", "a key")


def _judged(
    trace: Trace, kept: Columns[str, str], chosen: Sequence[_Candidate], question: Question, skipped: tuple[str, ...]
) -> WhichKey:
    """Judge candidates in one pass over a trace.

    Args:
        kept: Columns of the trace by their names in the source.
    """
    pane = rows_a_pane(trace.rows)
    windows = 1 if pane is None or "ts" not in trace.columns else -(-trace.rows // pane)
    if windows < FEWEST_WINDOWS or pane is None:
        windows, pane = 1, trace.rows
    later = windows // 2
    columns = {name: _Column(alias, "ts" in trace.columns) for name, alias in kept.items()}
    found = {each: Measured(np.zeros((windows, question.channels)), later, each.salts) for each in chosen}
    placements: dict[_Candidate, EnginePartitioner] = {}
    definition = definition_of(question.engine)
    at_random, is_text = definition.at_random, definition.other_keys is not OtherKeys.EXACT
    together, first, stride = Together(), 0, max(1, trace.rows // SAMPLED)
    for batch in trace.batches(list(kept.values())):
        end = first + len(batch)
        pieces: list[Piece] = [
            (window, slice(max(window * pane - first, 0), min((window + 1) * pane, end) - first))
            for window in range(first // pane, (end - 1) // pane + 1)
        ]
        for each in columns.values():
            each.read(batch, range(-first % stride, len(batch), stride), first)
        if question.needs:
            needed = columns[question.needs[0]].coded
            for name in question.needs[1:]:
                needed = Coded.joined(needed, columns[name].coded)[0]
            together.add(needed, {name: each.coded for name, each in columns.items()})
        for candidate in chosen if first == 0 else ():
            try:
                placements[candidate] = _placement(candidate, columns, trace, question)
            except UsageError:
                if question.candidates != AUTO:
                    raise
                del found[candidate]
                skipped += (f"{candidate.name} ({columns[candidate.columns[0]].values.type})",)
        for candidate, measured in found.items():
            keys, coded = _keys(candidate, columns, is_text=is_text)
            salted = [keys] if candidate.salts == 1 else _salted(keys, candidate.salts)
            channels = [placements[candidate].channels_of(each) for each in salted]
            measured.add(coded, channels, random_keys(at_random, keys), pieces)
        first = end
    needs = "+".join(question.needs)
    rises = {name: each.correlation() for name, each in columns.items()}
    judgements: list[Judged] = []
    for candidate, measured in found.items():
        is_kept, correlations = together.broken.isdisjoint(candidate.columns), [rises[at] for at in candidate.columns]
        as_key = _as_key(candidate, _source_names(trace, kept, candidate.columns), is_text=is_text)
        judgements.append(judged(candidate.name, candidate.columns, measured, correlations, is_kept, needs, as_key))
        if question.candidates != AUTO and judgements[-1].against == "constant":
            raise BadInput(f"candidate {candidate.name!r} has one value in all {trace.rows:,} rows; omit it")
    return WhichKey(
        ranked(judgements, needs),
        needs,
        question.engine.value,
        question.channels,
        windows - later if windows > 1 else 0,
        together.is_exact,
        skipped,
        trace.reading.guesses,
    )


class _Column:
    """A column of the trace: its rows in the batch as codes, and a sample of its values."""

    def __init__(self, name: str, timed: bool) -> None:
        self.name, self._timed = name, timed
        self.values: pa.Array
        self.stored: pa.Array
        self.coded: Coded
        self._sample: list[pa.Array] = []
        self._places: list[NDArray[np.int64]] = []

    def read(self, batch: pa.RecordBatch, sampled: range, first: int) -> None:
        """Code the rows of a batch."""
        column = batch.column(self.name)
        encoded = column.dictionary_encode(null_encoding="encode")
        self.values, self.stored = encoded.dictionary, stored_keys(encoded.dictionary)
        self.coded = Coded.of(self.stored, encoded.indices.to_numpy().astype(np.int64))
        places = np.array(sampled, np.int64)
        self._sample.append(column.take(pa.array(places)))
        self._places.append(places + first)

    def correlation(self) -> float | None:
        """Correlation with time; None without times."""
        return with_time(self._sample, self._places) if self._timed else None


def _keys(candidate: _Candidate, columns: Columns[str, _Column], *, is_text: bool) -> tuple[pa.Array, Coded]:
    """Distinct keys of a candidate as a trace stores them, and the codes of the rows.

    Args:
        is_text: Whether a pair is one text, as `_as_key` makes it; null if a column is.
    """
    first, *more = (columns[name] for name in candidate.columns)
    if not more:
        return first.stored, first.coded
    coded, *rows = Coded.joined(first.coded, more[0].coded)
    stored = list(zip((first.stored, more[0].stored), map(pa.array, rows), strict=True))
    if is_text:
        texts = pc.binary_join_element_wise(*(each.cast(pa.string()).take(at) for each, at in stored), "|")
        encoded = texts.dictionary_encode(null_encoding="encode")
        codes = encoded.indices.to_numpy().astype(np.int64)[coded.codes]
        return encoded.dictionary, Coded.of(encoded.dictionary, codes)
    parts = [
        pa.array([json.dumps(value, ensure_ascii=False) for value in each.to_pylist()], pa.string()).take(at)
        for each, at in stored
    ]
    return pc.binary_join_element_wise("[", pc.binary_join_element_wise(*parts, ","), "]", ""), coded


def _as_key(candidate: _Candidate, names: Sequence[str], *, is_text: bool) -> str:
    """What to give as `--key` for a candidate; empty for salts."""
    if candidate.salts > 1:
        return ""
    return f"concat({names[0]}, '|', {names[1]})" if is_text and len(names) > 1 else ", ".join(names)


def _source_names(trace: Trace, kept: Columns[str, str], columns: Sequence[str]) -> list[str]:
    """Columns as the source names them; the key of a given trace by its expression."""
    own = {"key": trace.key_columns} if kept.get("key") == "key" else {}
    return [own[name][0] if len(own.get(name, ())) == 1 else _quoted(name) for name in columns]


def _salted(keys: pa.Array, salts: int) -> list[pa.Array]:
    texts = pc.fill_null(keys.cast(pa.string()), "")
    return [pc.binary_join_element_wise(texts, f"#{salt}", "") for salt in range(salts)]


def _placement(
    candidate: _Candidate, columns: Columns[str, _Column], trace: Trace, question: Question
) -> EnginePartitioner:
    """The engine's placement of the keys of a candidate."""
    if candidate.salts > 1:
        return placement_of(question.engine, question.channels)
    kinds = [
        trace.key_type if columns[name].name == "key" else KEY_TYPES[columns[name].values.type]
        for name in candidate.columns
    ]
    if len(kinds) > 1 and any(each.columns for each in kinds):
        raise UsageError(f"candidate {candidate.name!r} joins a key of several columns; give single columns")
    is_exact = definition_of(question.engine).other_keys is OtherKeys.EXACT
    pair = KeyType(several(kinds)) if is_exact and len(kinds) > 1 else None
    return placement_of(question.engine, question.channels, None, pair if len(kinds) > 1 else kinds[0])
