"""Answers of Prometheus, and text of exporters."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from mmap import ACCESS_READ, mmap
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

from adapt.core.arrays import Floats
from adapt.core.errors import BadInput, UsageError, did_you_mean
from adapt.core.phrases import listed
from adapt.core.values import visible
from adapt.traces.read_errors import readable
from adapt.traces.units.kinds import EXPOSED, SERIES, UNIT_LABELS
from adapt.traces.units.samples import Amount, Samples, Unit

_OPERATOR_LABELS = ("topic", "task_name", "operator_name", "stream", "keyspace", "table")
"""Labels of what has units: they become a part of the name, if it varies."""

_WORKER_LABELS = ("tm_id", "worker", "instance", "pod", "host", "node", "client_id", "member_host")
_PREFERRED = (
    *(r"records_?in_?per_?second", r"records_?in(_total)?$", r"topic_partition_(current_offset|high_water_mark)"),
    *(r"(log_)?end_offset", r"offset", r"messages?_in", r"bytes_?in", r"busy_?time", r"lag"),
)
"""Metrics that are taken first, of several."""

_COUNTER = re.compile(r"(_total|_count|_sum|offset|high_water_mark|records_?in|records_?out|bytes_?(in|out))$", re.I)
_RATE = re.compile(r"(per_?second|_rate|busy|back_?pressure|utili[sz]ation)", re.I)
_LEVEL = re.compile(r"(lag|depth|size|queue|pending|backlog)", re.I)

_VALUES = b',"values":[['
_NEVER_US = 1 << 62  # no time is so far away
_LABEL = re.compile(r'([a-zA-Z_]\w*)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Selector:
    """A metric and values of its labels, as in PromQL: `lag{topic="t"}`."""

    name: str = ""  # empty for any
    labels: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parsed(cls, text: str) -> "Selector":
        """Read what is typed."""
        name, brace, rest = text.partition("{")
        pairs = re.findall(r'\s*([a-zA-Z_]\w*)\s*=\s*(?:"([^"]*)"|([^",}]*))\s*,?', rest.removesuffix("}"))
        if brace and (not rest.endswith("}") or not pairs):
            raise UsageError(f'--count must be NAME or NAME{{LABEL="VALUE"}} (got {text!r})')
        return cls(name.strip(), tuple((label, quoted or plain) for label, quoted, plain in pairs))

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels are those asked for."""
        return all(labels.get(label) == value for label, value in self.labels)


@dataclass(frozen=True, slots=True)
class Labelled:
    """A series: labels, times, values."""

    labels: Mapping[str, str]
    times_us: NDArray[np.int64]
    values: Floats

    @property
    def name(self) -> str:
        """Name of the metric; empty if a query computed it."""
        return self.labels.get("__name__", "")


def read_answer(path: Path) -> list[Labelled]:
    """The series of a range or instant query.

    Of a whole answer, or of the list of series alone.
    The series are read one after the other, so the JSON is never held as objects.
    """
    with readable(path), path.open("rb") as file:
        data = mmap(file.fileno(), 0, access=ACCESS_READ)
    starts = [match.start() for match in SERIES.finditer(data)]
    ends = [*starts[1:], len(data)]
    return [_series(path, data, start, end) for start, end in zip(starts, ends, strict=True)]


def _series(path: Path, data: mmap, start: int, end: int) -> Labelled:
    """One series of an answer: labels as JSON, values as two columns of numbers."""
    at = data.find(_VALUES, start, end)
    if at >= 0:
        try:
            labels = orjson.loads(data[start:at] + b"}")["metric"]
            return Labelled(labels, *_columns(data[at + len(_VALUES) : data.find(b"]]", at, end)]))
        except ValueError:
            pass  # written otherwise
    text = data[start:end].rstrip().rstrip(b",")
    while text:  # what closes the whole document follows the last series
        try:
            found = orjson.loads(text)
            values = found["values"] if "values" in found else [found["value"]]
            times = _in_us(np.array([float(time) for time, _ in values]))
            return Labelled(found["metric"], times, np.array([float(value) for _, value in values]))
        except orjson.JSONDecodeError:
            text = text[: text.rfind(b"}", 0, len(text) - 1) + 1]
        except (KeyError, TypeError, ValueError):
            break
    raise BadInput(f"{path}: a series is not as Prometheus answers, from byte {start:,} on; export it again")


def _columns(pairs: bytes) -> tuple[NDArray[np.int64], Floats]:
    """Times and values of `time,"value"],[time,"value"`."""
    text = pairs.replace(b'"],[', b"\n").replace(b',"', b",").replace(b'"', b"").replace(b" ", b"")
    table = csv.read_csv(
        BytesIO(text),
        read_options=csv.ReadOptions(column_names=["time", "value"], use_threads=False),
        convert_options=csv.ConvertOptions(
            column_types={"time": pa.float64(), "value": pa.float64()}, null_values=["NaN"]
        ),
    )
    return _in_us(table["time"].to_numpy()), table["value"].to_numpy()


def _in_us(seconds: Floats) -> NDArray[np.int64]:
    """Times in microseconds; a ValueError if they are too far away."""
    times = (seconds * 1e6).round()
    if not (np.abs(times) < _NEVER_US).all():
        raise ValueError("times that are too far away")
    return times.astype(np.int64)


def read_exposed(path: Path) -> tuple[list[Labelled], dict[str, str]]:
    """The series of text exposition, and the types of metrics.

    A series without times that occurs again is the next scrape of the same exporter.
    """
    types: dict[str, str] = {}
    samples: dict[tuple[tuple[str, str], ...], list[tuple[int | None, float]]] = defaultdict(list)
    bad = 0
    with readable(path), path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("#"):
                words = line.split()
                if len(words) >= 4 and words[1] == "TYPE":
                    types[words[2]] = words[3]
            elif line.strip():
                found = EXPOSED.match(line.strip())
                if found is None:
                    bad += 1
                    continue
                name, labels, value, time = found.groups()
                given = {label: text.replace('\\"', '"') for label, _, text in _LABEL.findall(labels or "")}
                key = tuple(sorted({**given, "__name__": name}.items()))
                samples[key].append((None if time is None else round(float(time) * 1e3), float(value)))
    if not samples:
        raise BadInput(f"{path} has no metrics in the text format of Prometheus ({bad:,} other lines)")
    made = []
    for labels, each in samples.items():
        times = [number if time is None else time for number, (time, _) in enumerate(each)]
        made.append(Labelled(dict(labels), np.array(times, np.int64), np.array([value for _, value in each])))
    return made, types


def samples_of(
    path: Path, series: Sequence[Labelled], types: Mapping[str, str], selector: Selector, unit: Sequence[str] = ()
) -> Samples:
    """The samples of one metric by unit.

    Args:
        types: Type of each metric that states one.
        selector: The metric, and labels of its series; without a name, the likeliest to be load.
        unit: Labels that name a unit; empty to guess.
    """
    chosen = [each for each in series if selector.holds(each.labels)]
    if not chosen:
        raise UsageError(f"{path} has no series with the labels of --count")
    by_name: dict[str, list[Labelled]] = defaultdict(list)
    for each in chosen:
        by_name[each.name].append(each)
    metric, notes = _metric(path, by_name, selector.name)
    group = by_name[metric]
    labels, more = _unit_labels(path, group, unit)
    notes += more
    amount, said = _amount(metric, types.get(metric, ""), group)
    notes += [said] if said else []
    is_timed = not all((each.times_us < 1 << 32).all() for each in group)
    made = Samples.of_series(metric or "the query", amount, _added(group, labels), is_timed=is_timed, notes=notes)
    lagging = next((name for name in by_name if re.search(r"lag$", name, re.I) and name != metric), None)
    if lagging and amount is not Amount.LEVEL and all(label in by_name[lagging][0].labels for label in labels):
        series_of_lag = _added(by_name[lagging], labels)
        made = made.with_lag(Samples.of_series(lagging, Amount.LEVEL, series_of_lag, is_timed=is_timed))
    return made


def _metric(path: Path, by_name: Mapping[str, Sequence[Labelled]], named: str) -> tuple[str, list[str]]:
    """The metric that is named, or the likeliest to be load by unit."""
    if named:
        if named not in by_name:
            raise UsageError(f"{path} has no metric {named!r}{did_you_mean(named, list(by_name))}")
        return named, []
    several = {name: group for name, group in by_name.items() if len(group) > 1}
    if not several:
        raise BadInput(f"{path} has one series of each metric; export it by unit, such as by partition or subtask")
    if len(several) == 1:
        return next(iter(several)), []
    for pattern in _PREFERRED:
        found = [name for name in several if re.search(pattern, name, re.I)]
        if len(found) == 1:
            return found[0], [f"metric {visible(found[0])}, of {len(several):,}"]
        if found:
            break
    names = [visible(name) for name in (found if found else several)]
    raise UsageError(f"{path} has several metrics, such as {listed(sorted(names)[:4])}; choose one with --count")


def _unit_labels(path: Path, group: Sequence[Labelled], named: Sequence[str]) -> tuple[list[str], list[str]]:
    """Labels that tell units apart, and what was guessed."""
    values: dict[str, set[str]] = defaultdict(set)
    for each in group:
        for label, value in each.labels.items():
            values[label].add(value)
    if named:
        for label in named:
            if label not in values:
                raise UsageError(f"--key {label}: {path} has no such label{did_you_mean(label, list(values))}")
        return list(named), []
    varying = [label for label in values if len(values[label]) > 1 and label != "__name__"]
    unit = next((label for label in UNIT_LABELS if label in varying), varying[0] if len(varying) == 1 else None)
    if unit is None:
        raise UsageError(
            f"{path}: no label is known to name a unit; choose of {listed(sorted(values)[:6])} with --key LABEL"
        )
    labels = [*(label for label in _OPERATOR_LABELS if label in varying), unit]
    names = [tuple(each.labels.get(label, "") for label in labels) for each in group]
    if len(set(names)) < len(names):
        other = [label for label in varying if label not in labels]
        raise UsageError(
            f"{path}: several series have the same {listed(labels)}, and differ by {listed(other[:3] or ['nothing'])};"
            f" choose one by --count 'NAME{{{(other or labels)[0]}=\"...\"}}', or add them up with --key"
            f" {','.join(labels)}"
        )
    return labels, [f"unit from label {listed(labels)}"]


def _amount(metric: str, kind: str, group: Sequence[Labelled]) -> tuple[Amount, str]:
    """What the values of a metric are, and how that was guessed."""
    if kind == "counter":
        return Amount.COUNTER, ""
    if re.search(r"lag", metric, re.I):
        return Amount.LEVEL, f"{metric} is what waits: units are compared by their mean lag"
    for pattern, amount in ((_RATE, Amount.RATE), (_COUNTER, Amount.COUNTER), (_LEVEL, Amount.LEVEL)):
        if pattern.search(metric):
            return amount, ""
    longest = max(len(each.values) for each in group)
    rises = all((np.diff(each.values[np.isfinite(each.values)]) >= 0).all() for each in group)
    if longest >= 3 and rises and any(len(each.values) > 1 and each.values[-1] > each.values[0] for each in group):
        return Amount.COUNTER, "values never fall: they are totals so far"
    return Amount.RATE, "values rise and fall: they are rates" if longest > 1 else ""


def _added(group: Sequence[Labelled], labels: Sequence[str]) -> list[tuple[Unit, NDArray[np.int64], Floats]]:
    """Series by unit; those of one unit are added at the times that they share."""
    by_unit: dict[str, list[Labelled]] = defaultdict(list)
    for each in group:
        by_unit["-".join(each.labels.get(label, "") for label in labels)].append(each)
    made = []
    for name, parts in by_unit.items():
        found = parts[0].labels
        worker = next((found[label] for label in _WORKER_LABELS if label in found and label not in labels), "")
        unit = Unit(name, found.get("topic", ""), worker)
        if len(parts) == 1:
            made.append((unit, parts[0].times_us, parts[0].values))
            continue
        times = np.unique(np.concatenate([each.times_us for each in parts]))
        total = np.zeros(len(times))
        for each in parts:
            order = np.argsort(each.times_us, kind="stable")
            total += np.interp(times, each.times_us[order], each.values[order])
        made.append((unit, times, total))
    return made
