"""Fault schedule: loads, slowdowns, pauses and crashes of workers, as JSON.

    {"schema": "adapt.faults/1", "detection_s": 0.5, "faults": [
      {"kind": "load", "worker": 1, "start_s": 2, "end_s": 4},
      {"kind": "crash", "worker": 3, "at_s": 5, "back_s": 12},
      {"kind": "slow", "worker": 1, "start_s": 6, "end_s": 8, "speed": 0.5},
      {"kind": "pause", "worker": 0, "start_s": 7, "end_s": 7.5}]}

Faults are sorted by time, and those of one worker must not overlap. A load also takes `burst_s`, `sleep_s` and
`wait_s`. A load or slowdown without `end_s`, and a crash without `back_s`, lasts to the end."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import BadInput, did_you_mean
from adapt.core.stage.records.arrays import Records
from adapt.core.stage.records.world import SEGMENT

BURST_S = 100e-6
"""CPU burst of the paper's external process."""

SLEEP_S = 50e-6
"""Its sleep after a burst."""

WAIT_S = 25e-6
"""Its mean wait for the CPU, half a service time. Calibrated: the operator keeps 75 of 175 us and loses 57 %, as
reported; immediate preemption would leave it 33 %, fair sharing 60 %."""


@dataclass(frozen=True, slots=True)
class ExternalLoad:
    """Another process on a worker's CPU: burst, sleep, wait, repeat.

    Source: Flux, section 4; the wait is a calibration.
    """

    worker: int
    start_s: float
    end_s: float
    burst_s: float = BURST_S
    sleep_s: float = SLEEP_S
    wait_s: float = WAIT_S

    @property
    def kept(self) -> float:
        """The share of the CPU that the operator keeps."""
        run = self.sleep_s + self.wait_s
        return run / (run + self.burst_s)

    def segment(self) -> tuple[float, float, float, float]:
        """Start, CPU seconds per cycle for operator and others, speed."""
        return self.start_s, self.sleep_s + self.wait_s, self.burst_s, 1.0


@dataclass(frozen=True, slots=True)
class SlowDown:
    """A worker at a fraction of its CPU speed; 0 pauses it."""

    worker: int
    start_s: float
    end_s: float
    speed: float

    def segment(self) -> tuple[float, float, float, float]:
        """Start, CPU seconds per cycle for operator and others, speed."""
        return self.start_s, 1.0, 0.0, self.speed


def segments_of(workers: int, disturbances: Sequence[ExternalLoad | SlowDown]) -> tuple[Records, list[int]]:
    """CPU segments of each worker.

    Args:
        disturbances: In any order; those of a worker must not overlap.

    Returns:
        The segments of all workers, worker by worker, and the n + 1 offsets of each worker's segments.
    """
    segments: list[tuple[float, float, float, float]] = []
    firsts = [0]
    for one in disturbances:
        _check(workers, one)
    for worker in range(workers):
        own = sorted((one for one in disturbances if one.worker == worker), key=lambda one: one.start_s)
        for one, following in pairwise(own):
            if following.start_s < one.end_s:
                raise BadInput(
                    f"two disturbances of worker {worker} overlap from {following.start_s:g} to {one.end_s:g} s"
                )
        segments.append((0.0, 1.0, 0.0, 1.0))
        for one in own:
            segments.append(one.segment())
            if one.end_s < np.inf:
                segments.append((one.end_s, 1.0, 0.0, 1.0))
        firsts.append(len(segments))
    return np.array(segments, SEGMENT), firsts


def _check(workers: int, one: ExternalLoad | SlowDown) -> None:
    if not 0 <= one.worker < workers:
        raise BadInput(f"the worker of a disturbance must be from 0 to {workers - 1} (got {one.worker})")
    if not 0 <= one.start_s < one.end_s:
        raise BadInput(
            f"a disturbance must start at 0 s or later and end after its start (got {one.start_s:g} to {one.end_s:g} s"
            f" for worker {one.worker})"
        )
    if isinstance(one, SlowDown):
        if not 0 <= one.speed < np.inf or (one.speed == 0 and one.end_s == np.inf):
            raise BadInput(
                f"the speed of a worker must be finite and above 0, or 0 with an end (got {one.speed:g} for worker"
                f" {one.worker} from {one.start_s:g} s)"
            )
    elif not (one.burst_s > 0 and one.sleep_s + one.wait_s > 0 and min(one.sleep_s, one.wait_s) >= 0):
        raise BadInput(
            f"external load needs a burst above 0 s, and a sleep or wait above 0 s (got {one.burst_s:g},"
            f" {one.sleep_s:g} and {one.wait_s:g} s for worker {one.worker})"
        )


SCHEMA = "adapt.faults/1"

DETECTION_S = 0.5
"""Default failure detection timeout."""


@dataclass(frozen=True, slots=True)
class Crash:
    """A crash: the worker loses memory and disk; it may restart empty."""

    worker: int
    at_s: float
    back_s: float = math.inf


Fault: TypeAlias = ExternalLoad | SlowDown | Crash


@dataclass(frozen=True, slots=True)
class FaultSchedule:
    """Faults sorted by time."""

    faults: tuple[Fault, ...] = ()
    detection_s: float = DETECTION_S  # failure detection timeout: the controller declares a silent worker dead after it

    @property
    def disturbances(self) -> tuple[ExternalLoad | SlowDown, ...]:
        """Loads, slowdowns and pauses."""
        return tuple(one for one in self.faults if not isinstance(one, Crash))

    @property
    def crashes(self) -> tuple[Crash, ...]:
        """Crashes of workers."""
        return tuple(one for one in self.faults if isinstance(one, Crash))

    def document(self) -> dict[str, Any]:
        """The schedule as JSON data, with every field that has a value."""
        return {"schema": SCHEMA, "detection_s": self.detection_s, "faults": [_entry(one) for one in self.faults]}

    def canonical(self) -> str:
        """Canonical JSON text: sorted fields, no spaces, all defaults written out."""
        return json.dumps(self.document(), sort_keys=True, separators=(",", ":"), allow_nan=False)

    def check(self, workers: int, disturbances: Sequence[ExternalLoad | SlowDown] = ()) -> None:
        """Check the schedule against a stage and its other disturbances."""
        for index, fault in enumerate(self.faults):
            if not 0 <= fault.worker < workers:
                raise BadInput(f"faults[{index}].worker must be from 0 to {workers - 1} (got {fault.worker})")
        for index, fault in enumerate(self.faults):
            if isinstance(fault, Crash):
                dead = {one.worker for one in self.crashes if one.at_s <= fault.at_s < one.back_s}
                if len(dead) == workers:
                    raise BadInput(
                        f"faults[{index}] crashes the last of {workers} workers at {fault.at_s:g} s; restart one"
                        f" earlier with back_s"
                    )
                for other in disturbances:
                    if other.worker == fault.worker and other.start_s < fault.back_s and fault.at_s < other.end_s:
                        raise BadInput(
                            f"faults[{index}] crashes worker {fault.worker} at {fault.at_s:g} s, during its disturbance"
                            f" from {other.start_s:g} to {other.end_s:g} s; they must not overlap"
                        )


def parse_faults(text: str | bytes) -> FaultSchedule:
    """Parse a fault schedule.

    Args:
        text: The JSON document; bytes are UTF-8.
    """
    try:
        document = json.loads(text, object_pairs_hook=_without_doubles)
    except UnicodeDecodeError as error:
        raise BadInput(f"the fault schedule is not UTF-8 (byte {error.start}); save it as UTF-8") from error
    except RecursionError as error:
        raise BadInput("the fault schedule is nested too deeply; it must be an object with a list of faults") from error
    except ValueError as error:
        raise BadInput(f"the fault schedule is not JSON: {error}") from error
    where = "the fault schedule"
    fields = _fields(document, where, needed=("schema", "faults"), known=("schema", "detection_s", "faults"))
    if fields["schema"] != SCHEMA:
        raise BadInput(f"the fault schedule's schema must be {SCHEMA!r} (got {_shown(fields['schema'])})")
    detection_s = _number(fields, "detection_s", where, DETECTION_S)
    if detection_s <= 0:
        raise BadInput(f"detection_s of the fault schedule must be above 0 (got {detection_s:g})")
    if not isinstance(fields["faults"], list):
        raise BadInput(f"faults of the fault schedule must be a list (got {_shown(fields['faults'])})")
    faults = tuple(_fault(entry, f"faults[{index}]") for index, entry in enumerate(fields["faults"]))
    _check_times(faults)
    return FaultSchedule(faults, detection_s)


KINDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "crash": (("at_s",), ("back_s",)),
    "slow": (("start_s", "speed"), ("end_s",)),
    "pause": (("start_s", "end_s"), ()),
    "load": (("start_s",), ("end_s", "burst_s", "sleep_s", "wait_s")),
}
"""Required and optional fields of each kind, besides `worker`."""


def _fault(entry: object, where: str) -> Fault:
    if not isinstance(entry, dict):
        raise BadInput(f"{where} must be an object with kind and worker (got {_shown(entry)})")
    kind = entry.get("kind")
    if kind not in list(KINDS):
        what = f"{where}.kind {_shown(kind)} does not exist" if "kind" in entry else f"{where} has no kind"
        raise BadInput(f"{what}{did_you_mean(str(kind), KINDS)}")
    needed, further = KINDS[str(kind)]
    fields = _fields(entry, where, ("kind", "worker", *needed), ("kind", "worker", *needed, *further))
    worker = fields["worker"]
    if isinstance(worker, bool) or not isinstance(worker, int) or worker < 0:
        raise BadInput(f"{where}.worker must be an integer of at least 0 (got {_shown(worker)})")
    first, last = ("at_s", "back_s") if kind == "crash" else ("start_s", "end_s")
    start_s, end_s = _number(fields, first, where), _number(fields, last, where, math.inf)
    if end_s <= start_s:
        raise BadInput(f"{where}.{last} must be after {first} {start_s:g} (got {end_s:g})")
    match kind:
        case "crash":
            return Crash(worker, start_s, end_s)
        case "slow":
            speed = _number(fields, "speed", where)
            if speed == 0:
                raise BadInput(f"{where}.speed must be above 0 (got 0); use kind pause")
            return SlowDown(worker, start_s, end_s, speed)
        case "pause":
            return SlowDown(worker, start_s, end_s, 0.0)
        case _:
            burst_s = _number(fields, "burst_s", where, BURST_S)
            sleep_s, wait_s = _number(fields, "sleep_s", where, SLEEP_S), _number(fields, "wait_s", where, WAIT_S)
            if burst_s == 0 or sleep_s + wait_s == 0:
                raise BadInput(
                    f"{where} needs burst_s above 0, and sleep_s or wait_s above 0 (got {burst_s:g}, {sleep_s:g} and"
                    f" {wait_s:g})"
                )
            return ExternalLoad(worker, start_s, end_s, burst_s, sleep_s, wait_s)


def _entry(fault: Fault) -> dict[str, Any]:
    """A fault as JSON data; an infinite end is omitted."""
    fields = asdict(fault)
    match fault:
        case Crash():
            kind = "crash"
        case SlowDown(speed=0):
            kind = "pause"
            del fields["speed"]
        case SlowDown():
            kind = "slow"
        case _:
            kind = "load"
    fields = {"worker": fault.worker, "kind": kind, **fields}
    return {name: value for name, value in fields.items() if value != math.inf}


def _times(fault: Fault) -> tuple[float, float]:
    return (fault.at_s, fault.back_s) if isinstance(fault, Crash) else (fault.start_s, fault.end_s)


def _check_times(faults: Sequence[Fault]) -> None:
    starts = [_times(one)[0] for one in faults]
    for index, (before, after) in enumerate(pairwise(starts), start=1):
        if after < before:
            raise BadInput(
                f"faults[{index}] starts at {after:g} s, before faults[{index - 1}] at {before:g} s; sort faults by"
                f" time"
            )
    latest: dict[int, int] = {}
    for index, fault in enumerate(faults):
        before_it = latest.get(fault.worker)
        if before_it is not None and starts[index] < (ends := _times(faults[before_it])[1]):
            until = f"until {ends:g} s" if ends < math.inf else "to the end"
            raise BadInput(
                f"faults[{index}] starts at {starts[index]:g} s, but faults[{before_it}] of the same worker"
                f" {fault.worker} lasts {until}; faults of a worker must not overlap"
            )
        latest[fault.worker] = index


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"field {double!r} is given twice in one object")
    return fields


def _fields(entry: object, where: str, needed: Sequence[str], known: Sequence[str]) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise BadInput(f"{where} must be an object with {', '.join(needed)} (got {_shown(entry)})")
    for name in entry:
        if name not in known:
            raise BadInput(f"{where}: field {name!r} does not exist{did_you_mean(name, known)}")
    for name in needed:
        if name not in entry:
            raise BadInput(f"{where} needs a field {name}")
    return entry


def _number(fields: Mapping[str, Any], name: str, where: str, otherwise: float | None = None) -> float:
    """A field that must be a finite number of at least 0."""
    if name not in fields and otherwise is not None:
        return otherwise
    value = fields[name]
    number = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
    if not 0 <= number < math.inf:
        raise BadInput(f"{where}.{name} must be a finite number of at least 0 (got {_shown(value)})")
    return number + 0.0  # no negative zero


def _shown(value: object) -> str:
    """A value as JSON, truncated."""
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "..."


@dataclass(frozen=True, slots=True, eq=False)
class Capacity:
    """Cumulative CPU seconds over time, piecewise linear."""

    times_s: NDArray[np.float64]  # breakpoints from 0, ascending
    cpu_s: NDArray[np.float64]  # CPU seconds until each breakpoint
    rate: float  # CPU seconds per second after the last breakpoint

    @classmethod
    def from_disturbances(cls, workers: int, disturbances: Sequence[ExternalLoad | SlowDown | Crash]) -> "Capacity":
        """Total CPU of all workers under non-overlapping disturbances."""
        changes: dict[float, float] = {0.0: float(workers)}
        for one in disturbances:
            start_s, end_s, kept = _kept(one)
            changes[start_s] = changes.get(start_s, 0.0) - (1 - kept)
            if end_s < np.inf:
                changes[end_s] = changes.get(end_s, 0.0) + (1 - kept)
        times_s = np.array(sorted(changes))
        rates = np.maximum(0.0, np.cumsum([changes[time] for time in times_s.tolist()]))
        cpu_s = np.concatenate([[0.0], np.cumsum(rates[:-1] * np.diff(times_s))])
        return cls(times_s, cpu_s, float(rates[-1]))

    @classmethod
    def of_worker(cls, worker: int, disturbances: Sequence[ExternalLoad | SlowDown | Crash]) -> "Capacity":
        """CPU of one worker."""
        return cls.from_disturbances(1, [one for one in disturbances if one.worker == worker])

    def by(self, time_s: float) -> float:
        """CPU seconds until a time."""
        return float(self.by_each(np.array([time_s]))[0])

    def by_each(self, times_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """CPU seconds until each time, of the same shape."""
        over = np.maximum(0.0, times_s - self.times_s[-1])
        return np.asarray(np.interp(times_s, self.times_s, self.cpu_s) + over * self.rate)

    def until(self, cpu_s: float) -> float:
        """The time when `cpu_s` CPU seconds are reached; infinite if never."""
        over = cpu_s - float(self.cpu_s[-1])
        if over > 0:
            return float(self.times_s[-1]) + over / self.rate if self.rate > 0 else np.inf
        at = int(np.searchsorted(self.cpu_s, cpu_s))
        if at == 0:
            return 0.0
        share = (cpu_s - self.cpu_s[at - 1]) / (self.cpu_s[at] - self.cpu_s[at - 1])
        return float(self.times_s[at - 1] + share * (self.times_s[at] - self.times_s[at - 1]))


def _kept(one: ExternalLoad | SlowDown | Crash) -> tuple[float, float, float]:
    """Start, end and the share of CPU that the worker keeps."""
    match one:
        case Crash():
            return one.at_s, one.back_s, 0.0
        case SlowDown():
            return one.start_s, one.end_s, one.speed
        case _:
            return one.start_s, one.end_s, one.kept
