"""A fault schedule: what goes wrong at which worker and when, as a JSON document that is stored with a run.

    {"schema": "adapt.faults/1", "detection_s": 0.5, "faults": [
      {"kind": "load", "worker": 1, "start_s": 2, "end_s": 4},
      {"kind": "crash", "worker": 3, "at_s": 5, "back_s": 12},
      {"kind": "slow", "worker": 1, "start_s": 6, "end_s": 8, "speed": 0.5},
      {"kind": "pause", "worker": 0, "start_s": 7, "end_s": 7.5}]}

Faults stand in the order of their times, and those of one worker do not overlap. A load takes also `burst_s`, `sleep_s`
and `wait_s`; a load or slow-down without an end, and a crash without a way back, last for ever.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, TypeAlias

from adapt.core.errors import BadInput, near_miss
from adapt.core.stage.conditions.disturbances import BURST_S, SLEEP_S, WAIT_S, ExternalLoad, SlowDown

SCHEMA = "adapt.faults/1"

DETECTION_S = 0.5
"""How long after a crash the controller takes a worker for dead, if nothing else is said."""


@dataclass(frozen=True, slots=True)
class Crash:
    """A worker dies, with all that is in its memory and on its disk; it may come back, with nothing."""

    worker: int
    at_s: float
    back_s: float = math.inf


Fault: TypeAlias = ExternalLoad | SlowDown | Crash


@dataclass(frozen=True, slots=True)
class FaultSchedule:
    """Faults in the order of their times.

    Attributes:
        faults: What goes wrong.
        detection_s: The controller takes a worker for dead when it has not heard from it for so long.
    """

    faults: tuple[Fault, ...] = ()
    detection_s: float = DETECTION_S

    @property
    def disturbances(self) -> tuple[ExternalLoad | SlowDown, ...]:
        """What takes CPU from workers that live."""
        return tuple(one for one in self.faults if not isinstance(one, Crash))

    @property
    def crashes(self) -> tuple[Crash, ...]:
        """What kills workers."""
        return tuple(one for one in self.faults if isinstance(one, Crash))

    def document(self) -> dict[str, Any]:
        """The schedule as plain data, with every field that has a value."""
        return {"schema": SCHEMA, "detection_s": self.detection_s, "faults": [_entry(one) for one in self.faults]}

    def canonical(self) -> str:
        """The one text of this schedule: sorted fields, no spaces, all defaults written out."""
        return json.dumps(self.document(), sort_keys=True, separators=(",", ":"), allow_nan=False)

    def check(self, workers: int, disturbances: Sequence[ExternalLoad | SlowDown] = ()) -> None:
        """See whether a stage can have these faults, beside disturbances that it has anyway.

        Raises:
            BadInput: a fault is of no worker, or at some time no worker is alive.
        """
        for index, fault in enumerate(self.faults):
            if not 0 <= fault.worker < workers:
                raise BadInput(
                    f"faults[{index}].worker is {fault.worker}, but workers run from 0 to {workers - 1}; name one of them"
                )
        for index, fault in enumerate(self.faults):
            if isinstance(fault, Crash):
                dead = {one.worker for one in self.crashes if one.at_s <= fault.at_s < one.back_s}
                if len(dead) == workers:
                    raise BadInput(
                        f"faults[{index}] kills the last of {workers} workers at {fault.at_s:g} s; let one of them be back "
                        "before, with back_s"
                    )
                for other in disturbances:
                    if other.worker == fault.worker and other.start_s < fault.back_s and fault.at_s < other.end_s:
                        raise BadInput(
                            f"faults[{index}] kills worker {fault.worker} at {fault.at_s:g} s, while it is disturbed from "
                            f"{other.start_s:g} to {other.end_s:g} s; let one end where the other starts"
                        )


def parse_faults(text: str | bytes) -> FaultSchedule:
    """Read a fault schedule.

    Args:
        text: The JSON document, in UTF-8 if it is bytes.

    Raises:
        BadInput: it is not such a document; the sentence names the entry and its field.
    """
    try:
        document = json.loads(text, object_pairs_hook=_without_doubles)
    except UnicodeDecodeError as error:
        raise BadInput(f"the fault schedule is not UTF-8 (byte {error.start}); save it as UTF-8") from error
    except RecursionError as error:
        raise BadInput("the fault schedule is nested too deeply; it is an object with a list of faults") from error
    except ValueError as error:
        raise BadInput(f"the fault schedule is not JSON: {error}; mend it there") from error
    where = "the fault schedule"
    fields = _fields(document, where, needed=("schema", "faults"), known=("schema", "detection_s", "faults"))
    if fields["schema"] != SCHEMA:
        raise BadInput(f"the fault schedule's schema is {_shown(fields['schema'])}; this program reads {SCHEMA!r}")
    detection_s = _number(fields, "detection_s", where, DETECTION_S)
    if detection_s <= 0:
        raise BadInput(f"detection_s of the fault schedule is {detection_s:g}; a crash is detected after more than 0 s")
    if not isinstance(fields["faults"], list):
        raise BadInput(f"faults of the fault schedule is {_shown(fields['faults'])}; give a list of faults")
    faults = tuple(_fault(entry, f"faults[{index}]") for index, entry in enumerate(fields["faults"]))
    _check_times(faults)
    return FaultSchedule(faults, detection_s)


KINDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "crash": (("at_s",), ("back_s",)),
    "slow": (("start_s", "speed"), ("end_s",)),
    "pause": (("start_s", "end_s"), ()),
    "load": (("start_s",), ("end_s", "burst_s", "sleep_s", "wait_s")),
}
"""Of every kind, the fields that it needs beside its worker and those that it may have."""


def _fault(entry: object, where: str) -> Fault:
    if not isinstance(entry, dict):
        raise BadInput(f"{where} is {_shown(entry)}; give an object with kind and worker")
    kind = entry.get("kind")
    if kind not in list(KINDS):
        hint = near_miss(kind, KINDS) if isinstance(kind, str) else ""
        what = f"{where}.kind is {_shown(kind)}" if "kind" in entry else f"{where} has no kind"
        raise BadInput(f"{what}; give one of {', '.join(KINDS)}{hint}")
    needed, further = KINDS[str(kind)]
    fields = _fields(entry, where, ("kind", "worker", *needed), ("kind", "worker", *needed, *further))
    worker = fields["worker"]
    if isinstance(worker, bool) or not isinstance(worker, int) or worker < 0:
        raise BadInput(f"{where}.worker is {_shown(worker)}; give the number of a worker, from 0")
    first, last = ("at_s", "back_s") if kind == "crash" else ("start_s", "end_s")
    start_s, end_s = _number(fields, first, where), _number(fields, last, where, math.inf)
    if end_s <= start_s:
        raise BadInput(f"{where}.{last} is {end_s:g}, not after {first} {start_s:g}; give a later time")
    match kind:
        case "crash":
            return Crash(worker, start_s, end_s)
        case "slow":
            speed = _number(fields, "speed", where)
            if speed == 0:
                raise BadInput(f"{where}.speed is 0; give a speed above 0, or kind pause with an end")
            return SlowDown(worker, start_s, end_s, speed)
        case "pause":
            return SlowDown(worker, start_s, end_s, 0.0)
        case _:
            burst_s = _number(fields, "burst_s", where, BURST_S)
            sleep_s, wait_s = _number(fields, "sleep_s", where, SLEEP_S), _number(fields, "wait_s", where, WAIT_S)
            if burst_s == 0 or sleep_s + wait_s == 0:
                raise BadInput(
                    f"{where} works for burst_s {burst_s:g} after sleep_s {sleep_s:g} and wait_s {wait_s:g}; give a "
                    "burst above 0, and a sleep or a wait above 0"
                )
            return ExternalLoad(worker, start_s, end_s, burst_s, sleep_s, wait_s)


def _entry(fault: Fault) -> dict[str, Any]:
    """A fault as plain data; what lasts for ever has no end."""
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
                f"faults[{index}] starts at {after:g} s, before faults[{index - 1}] at {before:g} s; put them in the "
                "order of their times"
            )
    latest: dict[int, int] = {}
    for index, fault in enumerate(faults):
        before_it = latest.get(fault.worker)
        if before_it is not None and starts[index] < (ends := _times(faults[before_it])[1]):
            until = f"until {ends:g} s" if ends < math.inf else "for ever"
            raise BadInput(
                f"faults[{index}] starts at {starts[index]:g} s, but faults[{before_it}] of the same worker {fault.worker} "
                f"lasts {until}; let one end where the next starts"
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
        raise BadInput(f"{where} is {_shown(entry)}; give an object with {', '.join(needed)}")
    for name in entry:
        if name not in known:
            raise BadInput(f"{where} has a field {name!r}; leave it out, known are {', '.join(known)}")
    for name in needed:
        if name not in entry:
            raise BadInput(f"{where} has no {name}; add it")
    return entry


def _number(fields: Mapping[str, Any], name: str, where: str, otherwise: float | None = None) -> float:
    """A field that is a finite number from 0 up."""
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
        raise BadInput(f"{where}.{name} is {_shown(value)}; give a finite number from 0 up")
    return number + 0.0  # no negative zero


def _shown(value: object) -> str:
    """A value as JSON, cut short."""
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "..."
