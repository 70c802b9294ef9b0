"""Operators of users: declarations, plain and compiled forms, state, windows, faults, in threads and in the model."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, NamedTuple
from unittest.mock import Mock

import numba
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.errors import BadInput
from adapt.core.ordered.chain.bound import BoundChain, bind
from adapt.core.ordered.chain.chain import Chain, Operator, Punctuations
from adapt.core.ordered.chain.names import OperatorKind, WorkQueue
from adapt.core.ordered.chain.own import own_function
from adapt.core.ordered.engine.reference import check_sample, run_serially
from adapt.core.ordered.engine.settings import Contention, RunSettings
from adapt.core.ordered.engine.threads import KEPT, run_by_workers
from adapt.core.ordered.functions import own as function
from adapt.core.ordered.functions.own import obstacles, value_of
from adapt.core.ordered.model.model import run_model
from adapt.core.ordered.replay.arrivals import Ordered
from adapt.core.ordered.replay.replay import replay_ordered

STATELESS, PARTITIONED, STATEFUL = OperatorKind.STATELESS, OperatorKind.PARTITIONED, OperatorKind.STATEFUL
PAUSE = 30
SEVEN = 7


def apart(time: int, last: int) -> bool:
    """A helper that is compiled with its callers."""
    return time - last > PAUSE


class Session(NamedTuple):
    host: str
    start: int
    rows: int
    mean: float


class Sessions:
    """Sessions of a host, given when the next begins or the stream ends."""

    host: str
    start: int
    last: int
    rows: int
    total: float
    recent: Annotated[list[int], 3]

    def step(self, host: str, ts: int, size: float) -> Iterator[Session]:
        if self.rows and apart(ts, self.last):
            for _ in range(1 + self.recent[0] % SEVEN):
                yield Session(self.host, self.start, self.rows, mean=self.total / self.rows)
            self.rows = 0
            self.total = 0
        if not self.rows:
            self.start = ts
        self.host = host
        self.recent[self.rows % 3] = ts
        self.last = ts
        self.rows += 1
        self.total += size

    def close(self, time: int) -> Session | None:
        if not apart(time, self.last):
            return None
        ended = Session(self.host, self.start, self.rows, self.total / self.rows)
        self.host = -1
        self.start = self.last = self.rows = 0
        self.total = 0.0
        for at in range(3):
            self.recent[at] = 0
        return ended


def is_odd(ts) -> bool:
    return ts % 2 == 1


class Length(NamedTuple):
    length: int
    rows: int


def lengths(start, rows, mean) -> Length | None:
    return Length(int(mean * 10), rows) if rows > 1 else None


class Counts:
    """Rows of each length, the key made in the chain."""

    length: int
    rows: int

    def step(self, length, rows) -> None:
        self.length = length
        self.rows += rows

    def close(self) -> Length | None:
        return Length(self.length, self.rows)


def operator(name: str, of: Callable[..., Any], kind: OperatorKind = STATELESS, key: str | None = None) -> Operator:
    keyed = {"key": key, "partitions": 5} if key is not None else {}
    return Operator(name, kind, function=own_function(f"mine:{name}", of), **keyed)  # type: ignore[arg-type]


def columns(rows: int = 3_000, seed: int = 1) -> dict[str, pa.Array]:
    random = np.random.default_rng(seed)
    return {
        "ts": pa.array(np.cumsum(random.integers(0, 4, rows))),
        "host": pa.array([f"h{number}" for number in random.zipf(1.5, rows) % 23]),
        "size": pa.array(random.random(rows)),
    }


def sessions(*more: Operator, rows: int = 3_000) -> BoundChain:
    operators = (operator("odd", is_odd), operator("sessions", Sessions, PARTITIONED, "host"), *more)
    return bind(Chain(operators, Punctuations("ts", 500)), columns(rows))


LONG = (operator("lengths", lengths), operator("counts", Counts, PARTITIONED, "length"))


def plain_sessions(chain_columns: dict[str, pa.Array]) -> list[tuple[int, int, float]]:
    """Start, rows and mean of each session that a later one of its host ends, by hand."""
    found: list[tuple[int, int, float]] = []
    open_: dict[str, list[tuple[int, float]]] = {}
    for ts, host, size in zip(*(column.to_pylist() for column in chain_columns.values()), strict=True):
        if ts % 2 == 0:
            continue
        held = open_.setdefault(host, [])
        if held and ts - held[-1][0] > PAUSE:
            found.append((held[0][0], len(held), sum(one for _, one in held) / len(held)))
            held.clear()
        held.append((ts, size))
    return found + [(held[0][0], len(held), sum(one for _, one in held) / len(held)) for held in open_.values()]


def test_plain_python_finds_the_sessions_that_a_loop_by_hand_finds() -> None:
    chain = sessions()
    rows = run_serially(chain, keep=100_000).kept
    given = {(start, count, np.uint64(mean).view(np.float64)) for _, start, count, mean in rows}
    by_hand = plain_sessions(columns())
    assert {(start, count) for start, count, _ in given} == {(start, count) for start, count, _ in by_hand}
    assert math.isclose(sum(mean for _, _, mean in given), sum(mean for _, _, mean in set(by_hand)), rel_tol=1e-9)


@pytest.mark.parametrize("more", [(), LONG], ids=["sessions", "with a key made in the chain"])
def test_threads_the_compiled_reference_and_the_model_give_the_egress_of_plain_python(
    more: tuple[Operator, ...],
) -> None:
    chain = sessions(*more)
    assert obstacles(chain.operators) == []
    check_sample(chain, 1_000)
    egress = run_serially(chain).egress
    assert egress.tuples > 20
    assert run_serially(chain, compiled=True).egress == egress
    for workers, queue in ((1, WorkQueue.HYBRID), (3, WorkQueue.HYBRID), (2, WorkQueue.PARTITIONED)):
        how = RunSettings(workers, work_queue=queue, chunk=workers, ring_buffer=64, mark_every=7)
        assert run_by_workers(chain, how, pace=1).egress == egress
        model = run_model(chain, how, Contention(0.3, 0.1), np.random.default_rng(1), (1.0,) * (2 + len(more)))
        assert model.run.egress == egress


class Even(NamedTuple):
    ts: int


def doubled(ts) -> Even:
    return Even(2 * ts)


def thrice(ts) -> Iterator[Even]:
    for _ in range(3):
        yield Even(ts)


def test_three_functions_have_three_egresses_in_the_model() -> None:
    found = set()
    for of in (is_odd, doubled, thrice):
        chain = bind(Chain((operator("own", of),)), columns(500))
        done = run_model(chain, RunSettings(4), Contention(), np.random.default_rng(1), (1.0,)).run
        assert done.egress == run_serially(chain).egress
        found.add(done.egress.hash)
    assert len(found) == 3


def test_output_is_taken_in_order_while_workers_wait_for_room() -> None:
    chain = bind(Chain((operator("own", thrice),)), columns(3 * KEPT // 2))
    taken: list[Any] = []
    done = run_by_workers(chain, RunSettings(2), pace=1, taken=taken.append)
    assert all(len(rows) <= KEPT for rows in taken)
    assert np.concatenate(taken)[:, 0].tolist() == np.repeat(chain.tuples[:, 0], 3).tolist()
    assert done.egress.tuples == 9 * KEPT // 2


def test_a_taker_that_fails_ends_the_workers() -> None:
    chain = bind(Chain((operator("own", thrice),)), columns(3 * KEPT))

    def refuse(rows: Any) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        run_by_workers(chain, RunSettings(2), pace=1, taken=refuse)


class Inverse(NamedTuple):
    inverse: int


class Inverses:
    left: int = 1_500

    def step(self, ts) -> Inverse:
        self.left -= 1
        return Inverse(1_000 // self.left)


class Late:
    seen: int

    def step(self, ts) -> Inverse | None:
        self.seen += 1
        return None

    def close(self, time: int) -> Inverse | None:
        return Inverse(time // (self.seen - 1_000))


@pytest.mark.parametrize(("of", "line", "on"), [(Inverses, "left", "on the row ts="), (Late, "seen", "time 1000")])
def test_an_exception_in_a_worker_is_told_with_its_line_and_row(of: type, line: str, on: str) -> None:
    ts = {"ts": pa.array(np.arange(2_000))}
    chain = bind(Chain((operator("own", of, STATEFUL),), Punctuations("ts", 1_000)), ts)
    for run in (
        lambda: run_by_workers(chain, RunSettings(2), pace=1),
        lambda: run_serially(chain, compiled=True),
        lambda: run_model(chain, RunSettings(2), Contention(), np.random.default_rng(1), (1.0,)),
        lambda: run_serially(chain),
    ):
        with pytest.raises(BadInput, match=r"operator 'own': mine:own, line \d+ failed .*ZeroDivisionError") as told:
            run()
        assert on in str(told.value) or "at a punctuation" in str(told.value)


def inverse_at(host: str, ts: int) -> Inverse:
    return Inverse(1 // (ts - 20))


def test_an_exception_shows_the_texts_of_its_row() -> None:
    hosts = pa.array([f"host {number % 7}" for number in range(100)])
    chain = bind(Chain((operator("own", inverse_at),)), {"host": hosts, "ts": pa.array(np.arange(100))})
    for run in (lambda: run_by_workers(chain, RunSettings(2), pace=1), lambda: run_serially(chain)):
        with pytest.raises(BadInput, match="failed on the row host='host 6', ts=20: ZeroDivisionError"):
            run()


@settings(max_examples=25, deadline=None)
@given(
    words=st.lists(st.tuples(st.integers(-(2**62), 2**62), st.floats(allow_nan=False), st.booleans()), min_size=1),
)
def test_every_type_passes_through_both_forms(words: list[tuple[int, float, bool]]) -> None:
    of = dict(zip(("number", "real", "flag"), map(pa.array, zip(*words, strict=True)), strict=True))
    chain = bind(Chain((PASSING,)), of)
    plain = run_serially(chain, keep=1_000)
    assert run_serially(chain, compiled=True).egress == plain.egress
    assert [tuple(row[:1]) for row in plain.kept] == [(number % 2**64,) for number, _, _ in words]


class Passed(NamedTuple):
    number: int
    real: float
    flag: bool
    widened: float


def passing(number: int, real: float, flag: bool) -> Passed:
    return Passed(number, real, flag, number if flag else real)


PASSING = operator("passing", passing)


class Wide(NamedTuple):
    value: int


def not_an_integer(size) -> Wide:
    return Wide(size)


def with_a_list(ts) -> Wide:
    return Wide(len({ts: 1, "a": 2}))


def two_types(ts) -> Wide:
    found = (1, 2)
    if ts > 3:
        found = "a"
    return Wide(len(found))


def sums_up(ts) -> Wide:
    import json

    return Wide(len(json.dumps(ts)))


@pytest.mark.parametrize("of", [not_an_integer, with_a_list, two_types, sums_up])
def test_what_cannot_be_compiled_is_told_in_one_sentence_with_its_line(of: Callable[..., Any]) -> None:
    (told,) = obstacles(bind(Chain((operator("own", of),)), columns(10)).operators)
    first = of.__code__.co_firstlineno
    assert told.startswith("operator 'own': mine:own: line ")
    assert first < int(told.split("line ")[1].split(":")[0]) <= first + 5
    assert "\n" not in told
    assert len(told) < 200


class NoStep:
    rows: int


def no_result(ts):  # type: ignore[no-untyped-def]
    return True


def a_list(ts) -> list[Session]:
    return []


def no_yield(ts) -> Iterator[Wide]:
    return iter([Wide(ts)])


def of_texts(host) -> bool:
    return host == "h1"


class Undeclared:
    rows: int

    def step(self, ts) -> bool:
        self.row = ts  # type: ignore[attr-defined]
        return True


@pytest.mark.parametrize(
    ("of", "sentence"),
    [
        (NoStep, "the class has no method step"),
        (no_result, "annotate the result of no_result"),
        (a_list, "annotate the result of a_list"),
        (no_yield, "no_yield must yield its rows"),
        (of_texts, "a text cannot be compared with a constant"),
        (Undeclared, "self.row is not declared in the class; did you mean 'rows'?"),
        (len, "must be a function, or a class with a method step"),
    ],
)
def test_a_declaration_that_cannot_be_is_refused(of: Any, sentence: str) -> None:
    with pytest.raises(BadInput, match="function 'mine:own'") as refused:
        own_function("mine:own", of)
    assert sentence in str(refused.value)


def typed_wrongly(size: int) -> bool:
    return size > 1


class Named(NamedTuple):
    visitor: str


def renames(host) -> Named:
    return Named(host)


@pytest.mark.parametrize(
    ("of", "kind", "sentence"),
    [
        (typed_wrongly, STATELESS, "parameter 'size' is declared int, but the column is float"),
        (renames, STATELESS, "output 'visitor' is a text, so it must be named after a text column"),
        (Sessions, STATELESS, "needs a partitioned or stateful operator"),
    ],
)
def test_an_operator_that_does_not_fit_its_columns_is_refused(of: Any, kind: OperatorKind, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        bind(Chain((operator("own", of, kind),), Punctuations("ts")), columns(10))


def test_a_difference_from_plain_python_is_told_with_the_row() -> None:
    grown = bind(Chain((operator("own", squared),)), {"ts": pa.array([1, 2, 2**40])})
    with pytest.raises(BadInput, match=r"operator 'own': mine:own gives \(value=-?\d+\) in plain Python .* at ts=1099"):
        check_sample(grown, 10)


def test_all_rows_are_checked_by_default() -> None:
    grown = bind(Chain((operator("own", squared),)), {"ts": pa.array([*range(6_000), 2**40])})
    with pytest.raises(BadInput, match=r"in plain Python but .* compiled, at ts=1099"):
        replay_ordered(grown, Ordered((1,)), clock=lambda: 0, cpu_clock=lambda: 0)


def squared(ts) -> Wide:
    return Wide(ts * ts // 1_000)


def test_code_that_differs_has_machine_code_of_its_own() -> None:
    chains = [bind(Chain((replace(operator("own", of)),)), columns(20)) for of in (is_odd, is_even)]
    assert (
        run_serially(chains[0], compiled=True).egress.tuples + run_serially(chains[1], compiled=True).egress.tuples
        == 20
    )


def is_even(ts) -> bool:
    return ts % 2 == 0


SLOTS = (5, 6, 7)


def put(values: list[int], at: int, value: int) -> None:
    values[at] = value


class Slots:
    """Writes from the end on and, from row 6,000 on, outside of its array."""

    last: Annotated[list[int], 4]
    other: Annotated[list[float], 4]

    def step(self, ts: int) -> Wide:
        put(self.last, -1 - ts % 4 if ts < 6_000 else ts - 10_100, ts)
        self.other[ts % 4] += 0.5
        return Wide(self.last[0] + self.last[-4] + int(self.other[-1]))


class Read:
    seen: Annotated[list[int], 4]

    def step(self, ts: int) -> Wide:
        return Wide(self.seen[ts % 4 if ts < 6_000 else 4])


class Ends:
    seen: Annotated[list[int], 4]

    def step(self, ts: int) -> Wide | None:
        self.seen[ts % 4] = ts + 1
        return None

    def close(self, time: int) -> Wide:
        return Wide(self.seen[time if time < 6_000 else -5])


def constant(ts: int) -> Wide:
    return Wide(SLOTS[-3] + TABLE[-3 if ts < 6_000 else -4])


TABLE = np.array([5, 6, 7])


@pytest.mark.parametrize(
    ("of", "where"), [(Slots, "ts=6000"), (Read, "ts=6000"), (Ends, "punctuation"), (constant, "ts=6000")]
)
def test_an_index_outside_of_an_array_fails_with_its_line(of: Callable[..., Any], where: str) -> None:
    kind = STATEFUL if isinstance(of, type) else STATELESS
    fine, wrong = (
        bind(
            Chain((operator("own", of, kind),), Punctuations("ts", None)),
            {"ts": pa.array(np.arange(first, 6_000 + past))},
        )
        for first, past in ((0 if of is not Ends else 6_000, 0), (0, 100))
    )
    assert run_serially(fine, compiled=True).egress == run_serially(fine).egress
    for run in (
        lambda: run_by_workers(wrong, RunSettings(2), pace=1),
        lambda: run_serially(wrong, compiled=True),
        lambda: check_sample(wrong, len(wrong.tuples)),
        lambda: run_serially(wrong),
    ):
        with pytest.raises(BadInput, match=rf"mine:own, line \d+ failed (on|at) .*{where}.*: IndexError: ") as told:
            run()
        assert "\n" not in str(told.value)


class Kept:
    values: Annotated[list[float], 10_000]

    def step(self, ts: int) -> Wide:
        self.values[ts] = ts
        return Wide(int(self.values[ts // 2]))


def test_a_large_state_is_converted_where_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    converted = Mock(wraps=value_of)
    monkeypatch.setattr(function, "value_of", converted)
    chain = bind(Chain((operator("own", Kept, STATEFUL),)), {"ts": pa.array(np.arange(1_000))})
    check_sample(chain, 1_000)
    assert converted.call_count < 10_000 + 10 * 1_000


def test_progress_of_a_check_is_told() -> None:
    told: list[int] = []
    check_sample(sessions(), 2_500, told.append)
    assert told == [0, 1_000, 2_000, 2_500]


OTHER = """
from enum import IntEnum
LIMIT = 1
class Limit(IntEnum):
    LOW = 1
"""
MINE = """
def made(n):
    def add(ts: int) -> Wide:
        return Wide(ts + n)
    return add
closure = made(1)

def constant(ts: int) -> Wide:
    return Wide(ts + other.LIMIT)

def member(ts: int) -> Wide:
    return Wide(5 if ts + 1 == other.Limit.LOW else 6)

@numba.njit
def plus(ts):
    return ts + 1
def helper(ts: int) -> Wide:
    return Wide(plus(ts))

VALUES = (np.arange(3_000), 0)
VALUES[0][1_500] = 1
def array(ts: int) -> Wide:
    return Wide(VALUES[0][1_500 + ts])

one, two = (lambda ts: ts + 1), (lambda ts: ts + 2)
def lambdas(ts: int) -> Wide:
    return Wide(3 * one(ts) + two(ts))
"""
EDITS = {
    "closure": ("made(1)", "made(2)"),
    "constant": ("LIMIT = 1", "LIMIT = 2"),
    "member": ("LOW = 1", "LOW = 2"),
    "helper": ("return ts + 1", "return ts + 2"),
    "array": ("[1_500] = 1", "[1_500] = 2"),
    "lambdas": ("ts + 1), (lambda ts: ts + 2)", "ts + 2), (lambda ts: ts + 1)"),
}


@pytest.mark.parametrize("edited", EDITS)
def test_an_edit_is_compiled_anew(edited: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    before, after = EDITS[edited]
    for change in (before, after):
        other = ModuleType("other")
        exec(OTHER.replace(before, change), other.__dict__)
        names: dict[str, Any] = {"Wide": Wide, "other": other, "numba": numba, "np": np, "__name__": "mine"}
        exec(MINE.replace(before, change), names)
        chain = bind(Chain((operator("own", names[edited]),)), {"ts": pa.array([0])})
        assert obstacles(chain.operators) == []
        assert run_serially(chain, compiled=True).egress == run_serially(chain).egress
