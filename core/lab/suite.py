"""Checks of a policy: possible answers, rest, crashes, memory, determinism, time."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from adapt.core.errors import AdaptError
from adapt.core.lab.conformance import Check, Conformance

Decide: TypeAlias = Callable[[Any], Any]
"""A policy for one run: what it answers to an observation."""

History: TypeAlias = Callable[[Decide], Iterable[str]]
"""What a policy does in each round, in words; empty where it does nothing."""

LIMIT_S = 1.0
"""Most seconds of a decision."""


class TooSlow(BaseException):
    """A decision was stopped; no policy can catch it as an Exception."""


class Stopwatch(Protocol):
    """What measures a decision, and stops one that does not end."""

    def timed(self, decide: Callable[[], Any]) -> tuple[Any, float]:
        """The answer and the seconds it took.

        Raises:
            TooSlow: It did not end.
        """

    def elsewhere(self) -> AbstractContextManager[None]:
        """Another time of day, and another state of global random numbers."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Histories of one check."""

    name: str
    histories: tuple[History, ...]


@dataclass(frozen=True, slots=True)
class Subject:
    """A policy with the histories that it is checked on."""

    name: str
    make: Callable[[], Decide]  # makes a policy for one run
    possible: Trial  # changing loads
    large: Trial  # many workers and partitions
    rests: Trial | None = None  # still loads; None where there is no time
    crashes: Trial | None = None  # workers that go down and come back; likewise
    # little memory, where moves must fit; the same without that; the same with unlimited memory. Empty where memory
    # does not matter
    memory: tuple[History, ...] = ()


@dataclass(frozen=True, slots=True)
class Course:
    """A history as it went."""

    did: tuple[str, ...]  # what was done in each round, in words
    took_s: tuple[float, ...]  # seconds of each decision
    failure: str | None = None  # why it ended early; None if it did not
    stopped: bool = False  # whether a decision was stopped


Courses: TypeAlias = Mapping[str, Sequence[Course]]
"""The histories of each check."""


def checked(
    subject: Subject, watch: Stopwatch, about: dict[str, Any] | None = None, limit_s: float = LIMIT_S
) -> Conformance:
    """Run all checks of a policy.

    Args:
        about: What decides its results, as JSON data.
        limit_s: Most seconds that a decision may take.
    """
    twice = [each for each in (subject.possible, subject.crashes, subject.large) if each is not None]
    trials = [*([] if subject.rests is None else [subject.rests]), *twice]
    first = {trial.name: _courses(subject, trial, watch) for trial in trials}
    with watch.elsewhere():
        again = {trial.name: _courses(subject, trial, watch) for trial in twice}
    possible = _unbroken(subject.possible, first)
    checks = [
        possible,
        *([] if subject.rests is None else [_rests(subject.rests, first, possible)]),
        *([] if subject.crashes is None else [_reached(_unbroken(subject.crashes, first), possible)]),
        *([_memory(subject, watch, possible)] if subject.memory else []),
        _same(trials, first, again),
        _in_time(trials, first, again, limit_s),
    ]
    return Conformance(subject.name, tuple(checks), about or {})


def _courses(subject: Subject, trial: Trial, watch: Stopwatch) -> list[Course]:
    """Histories of a check, up to a stopped decision."""
    courses: list[Course] = []
    for history in trial.histories:
        courses.append(_course(subject, history, watch))
        if courses[-1].stopped:
            break
    return courses


def _course(subject: Subject, history: History, watch: Stopwatch) -> Course:
    did: list[str] = []
    took_s: list[float] = []
    try:
        decide = subject.make()

        def measured(observed: Any) -> Any:
            answer, seconds = watch.timed(lambda: decide(observed))
            took_s.append(seconds)
            return answer

        for each in history(measured):
            did.append(each)
    except TooSlow:
        return Course(tuple(did), tuple(took_s), f"round {len(took_s) + 1}: the decision did not end", stopped=True)
    except AdaptError as error:
        return Course(tuple(did), tuple(took_s), str(error))
    except Exception as error:
        return Course(tuple(did), tuple(took_s), f"round {len(did) + 1}: {type(error).__name__}: {error}")
    return Course(tuple(did), tuple(took_s))


def _unbroken(trial: Trial, courses: Courses) -> Check:
    """Whether every answer could be carried out."""
    return _broken(trial, courses) or Check(trial.name, True, f"in {_rounds(courses[trial.name])}")


def _broken(trial: Trial, courses: Courses) -> Check | None:
    for each in courses[trial.name]:
        if each.failure is not None:
            return Check(trial.name, None if each.stopped else False, each.failure)
    return None


def _reached(check: Check, possible: Check) -> Check:
    """A check, unless it repeats what the first one shows."""
    if check.passed is False and possible.passed is False:
        return Check(check.name, None, f"not reached: {possible.name} fails")
    return check


def _rests(trial: Trial, courses: Courses, possible: Check) -> Check:
    """Whether nothing is done in the last quarter of each history."""
    broken = _broken(trial, courses)
    if broken is not None:
        return _reached(broken, possible)
    for course in courses[trial.name]:
        from_round = len(course.did) * 3 // 4
        late = [at for at in range(from_round, len(course.did)) if course.did[at]]
        if late:
            often = f"in {len(late)} of the last {len(course.did) - from_round} rounds"
            said = f"at constant load it acts {often}; round {late[0] + 1} {course.did[late[0]]}"
            return Check(trial.name, False, said)
    return Check(trial.name, True, f"nothing in the last quarter of {_rounds(courses[trial.name])}")


def _memory(subject: Subject, watch: Stopwatch, possible: Check) -> Check:
    """Whether a policy that looks at memory makes only moves that fit."""
    name = "moves fit in memory"
    fitting, little, plenty = (_course(subject, history, watch) for history in subject.memory)
    if little.did != _course(subject, subject.memory[1], watch).did:
        return Check(name, None, "not reached: it does something else in each run")
    if possible.passed is False and little.failure is not None:
        return _reached(Check(name, False, little.failure), possible)
    if little.did == plenty.did and little.failure == plenty.failure:
        return Check(name, None, "it decides without regard to memory; where memory is limited, its moves may spill")
    if fitting.failure is not None:
        return _reached(Check(name, False, fitting.failure), possible)
    return Check(name, True, f"in {_rounds([fitting])}")


def _same(trials: Sequence[Trial], first: Courses, again: Courses) -> Check:
    """Whether a second run does the same elsewhere."""
    name = "is deterministic"
    for one, other in _pairs(trials, first, again):
        if (one.did, one.failure) != (other.did, other.failure):
            acts = [(*each.did, each.failure or "") for each in (one, other)]
            at = next(at for at in range(len(acts[0])) if acts[0][at : at + 1] != acts[1][at : at + 1])
            begun, ended = (each[at] if at < len(each) and each[at] else "does nothing" for each in acts)
            return Check(name, False, f"round {at + 1} {begun}; the second run, on the same input, {ended}")
    return Check(name, True, "two runs at different times of day did the same")


def _in_time(trials: Sequence[Trial], first: Courses, again: Courses, limit_s: float) -> Check:
    """Whether every decision keeps the limit, in the faster of two runs."""
    name, both = trials[-1].name, (first, again)
    stopped = [each for courses in both for some in courses.values() for each in some if each.stopped]
    if stopped:
        return Check(name, False, str(stopped[0].failure))
    pairs = [
        pair for one, other in _pairs(trials, first, again) for pair in zip(one.took_s, other.took_s, strict=False)
    ]
    longest = max((min(pair) for pair in pairs), default=0.0)
    if longest > limit_s:
        return Check(name, False, f"a decision takes {longest:.3g} s; at most {limit_s:g} s are allowed")
    if _broken(trials[-1], first) is not None:
        return Check(name, None, "not reached: it fails before")
    return Check(name, True, f"every decision takes at most {limit_s:g} s")


def _pairs(trials: Sequence[Trial], first: Courses, again: Courses) -> Iterator[tuple[Course, Course]]:
    for trial in trials:
        if trial.name in again:
            yield from zip(first[trial.name], again[trial.name], strict=False)


def _rounds(courses: Iterable[Course]) -> str:
    """How many rounds were tried."""
    return f"{sum(len(each.did) for each in courses):,} rounds"
