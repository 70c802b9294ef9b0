"""The ordered engine's own source as systems for the explorer.

Each function of the kernel becomes a generator that stops before each access to words that workers share. The source is
the engine's, and so are the steps; it works on the engine's own memory, of which a search keeps the changes.
"""

import ast
import inspect
import os
from collections.abc import Hashable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from adapt.core.ordered.chain.bound import bind
from adapt.core.ordered.chain.chain import Chain, Operator
from adapt.core.ordered.chain.names import OperatorKind
from adapt.core.ordered.engine.kernel import claiming, layout, reorder_buffer, running, work_queue
from adapt.core.ordered.engine.kernel.layout import HEADER, TALLY
from adapt.core.ordered.engine.memory import Memory
from adapt.core.ordered.engine.settings import RunSettings
from tests.trust.models.explorer import Refused, Searched, explore

Words = dict[int, int]
SHARED = ("load", "load_atomic", "store", "publish", "fetch_add", "exchange", "replace", "give_way")
"""Accesses before which a worker stops."""


class Record:
    """A record of the engine's memory."""

    __slots__ = ("_words", "address", "kind")

    def __init__(self, words: "Memories", address: int, kind: np.dtype[np.void]) -> None:
        object.__setattr__(self, "_words", words)
        object.__setattr__(self, "address", address)
        object.__setattr__(self, "kind", kind)

    def at(self, name: str) -> int:
        """Address of a field."""
        return self.address + self.kind.fields[name][1]

    def __getattr__(self, name: str) -> Any:
        if self.kind.fields[name][0].subdtype is not None:
            return [0] * 64  # counters that nothing reads
        return self._words.read(self.at(name))

    def __setattr__(self, name: str, word: int) -> None:
        self._words.write(self.at(name), word)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and (self.address, self.kind) == (other.address, other.kind)

    def __hash__(self) -> int:
        return hash(self.address)


class Memories:
    """The memory of a run at its start, and what was written since."""

    def __init__(self) -> None:
        self.changed: Words = {}
        self._first: Words = {}

    def read(self, address: int) -> int:
        if address in self.changed:
            return self.changed[address]
        if address not in self._first:
            self._first[address] = _word_at(address)
        return self._first[address]

    def write(self, address: int, word: int) -> None:
        self.changed[address] = int(word)

    def access(self, name: str, record: Any, place: Any, *words: int) -> int | bool:
        """Do what a worker stopped before."""
        address = address_of(record, place)
        before = self.read(address)
        match name:
            case "load" | "load_atomic":
                return before
            case "store" | "publish" | "exchange":
                self.write(address, words[0])
            case "fetch_add":
                self.write(address, before + words[0])
            case "replace":
                if before == words[0]:
                    self.write(address, words[1])
                return before == words[0]
        return before


def _word_at(address: int) -> int:
    """A word of this process; an address of nothing, which a faulty kernel may read, is refused."""
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        try:
            return int.from_bytes(os.pread(memory.fileno(), 8, address), "little", signed=True)
        except (OSError, OverflowError):
            raise Refused(f"a worker reads address {address}, where nothing is") from None


def address_of(record: Any, place: Any) -> int:
    """The address of a word."""
    return record.at(place) if isinstance(record, Record) else record + 8 * place


def _called(node: ast.AST) -> str:
    """The name of the function that a call calls."""
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


class _Stopping(ast.NodeTransformer):
    """Makes calls stop: accesses `yield`, and functions that stop are run by `yield from`.

    The result of each goes into a variable, so that the variables of a generator say all that it knows.
    """

    def __init__(self, stopping: set[str]) -> None:
        self._stopping, self._results = stopping, 0

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        name = _called(node)
        made: ast.expr
        if name in SHARED:
            made = ast.Yield(ast.Tuple([ast.Constant(name), *node.args], ast.Load()))
        elif name in self._stopping:
            made = ast.YieldFrom(node)
        else:
            return node
        self._results += 1
        return ast.NamedExpr(ast.Name(f"_{self._results}", ast.Store()), made)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self._results = 0
        node.decorator_list, node.returns = [], None
        node.body = [each for statement in node.body for each in self._cleared(statement)]
        return node

    def _cleared(self, statement: ast.stmt) -> list[ast.stmt]:
        """A statement, after which its results are forgotten, also within it."""
        first = self._results
        for name in ("body", "orelse"):
            inner = getattr(statement, name, None)
            if inner:
                setattr(statement, name, [each for one in inner for each in self._cleared(one)])
        inside = self._results
        for name, value in ast.iter_fields(statement):
            if isinstance(value, ast.expr):
                setattr(statement, name, self.visit(value))
        used = self._results > inside or inside > first
        forget = [ast.parse(f"_{at + 1} = None").body[0] for at in range(inside, self._results)] if used else []
        if hasattr(statement, "body"):
            statement.body = [*forget, *statement.body]
        return [statement, *forget] if not isinstance(statement, ast.Return) else [statement]


def stepping(memories: Memories, modules: Sequence[ModuleType], faults: Sequence[tuple[str, str]], **more: Any) -> Any:
    """The functions of kernel modules, as generators where they stop; with texts of them replaced."""
    trees, used = {}, set[tuple[str, str]]()
    for module in modules:
        source = inspect.getsource(module)
        for old, new in faults:
            if source.count(old) == 1:
                source, used = source.replace(old, new), used | {(old, new)}
        trees[module] = ast.parse(source)
    assert used == {*faults}, "a fault is put into one place"
    functions = [each for tree in trees.values() for each in tree.body if isinstance(each, ast.FunctionDef)]
    functions = [each for each in functions if each.name not in more]
    calls = {each.name: {_called(node) for node in ast.walk(each)} for each in functions}
    stopping = set(more.pop("stopping"))
    while more_stop := {name for name, used_names in calls.items() if used_names & {*SHARED, *stopping}} - stopping:
        stopping |= more_stop
    plain = {
        "record_at": lambda address, kind, number: Record(memories, address + number * kind.itemsize, kind),
        "record_after": lambda record, number: Record(
            memories, record.address + number * record.kind.itemsize, record.kind
        ),
        "fixed": lambda record, place: memories.access("load", record, place),
        "put": lambda record, place, word: memories.access("store", record, place, word),
        "clock_ns": lambda: 0,
    } | dict.fromkeys(("apart", "short_loops", "rest_us", "fetch_ahead"), lambda *_: None)
    known: dict[str, Any] = {}
    for module, tree in trees.items():
        for each in tree.body:
            if isinstance(each, ast.FunctionDef) and each.name in stopping:
                _Stopping(stopping).visit_FunctionDef(each)
            elif isinstance(each, ast.FunctionDef):
                each.decorator_list = []
        names = dict(vars(module)) | known | plain | more
        exec(compile(ast.fix_missing_locations(tree), f"{module.__name__} in steps", "exec"), names)
        names |= known | plain | more
        known |= {
            name: names[name] for name in calls if getattr(names.get(name), "__module__", "") == names["__name__"]
        }
        for name in more:
            known.pop(name, None)
    return known | plain | more


class Run:
    """A run of one operator whose rows are all there: its memory, its workers, and what must leave."""

    def __init__(
        self, settings: RunSettings, rows: int, partitions: int = 0, faults: Sequence[tuple[str, str]] = ()
    ) -> None:
        """Rows of different keys.

        Args:
            partitions: Those of the operator, which keeps a state for each; 0 for an operator without state.
            faults: Texts of the kernel, and what replaces them.
        """
        keyed = {"key": "key", "partitions": partitions} if partitions else {}
        operator = Operator("one", OperatorKind.PARTITIONED if partitions else OperatorKind.STATELESS, **keyed)
        chain = bind(Chain((operator,)), {"key": pa.array(range(rows)), "cost": pa.array([0.0] * rows)})
        self._memory = Memory(chain, settings, pace=1, keep=rows)
        self.workers, self.rows, self.memories = settings.workers, rows, Memories()
        self.header = Record(self.memories, self._memory.address, HEADER)
        self._known = stepping(
            self.memories,
            (layout, work_queue, reorder_buffer, running, claiming),
            faults,
            stopping=("run_chunk", "step"),
            run_chunk=lambda _, *rest: self._known["chunk"](*rest),
            step=self._step,
            _folded=lambda _, fold, __: fold,  # the hash of the output
            np=SimpleNamespace(uint64=int, int64=int),
        )
        self.operator = self._known["operator_at"](self.header, 0)
        self.words = self.operator.out_words
        feeding, given = self._known["feed_rows"](self.header, self.operator, rows, rows), None
        while True:
            try:
                given = self.memories.access(*feeding.send(given))
            except StopIteration:
                break
        self.memories.changed |= {STATES_AT + 8 * partition: 0 for partition in range(partitions)}
        self.fed = dict(self.memories.changed)
        states, self.expected = dict[int, int](), list[int]()
        for row in range(rows):
            lane = self.memories.read(self.operator.master_at + 8 * row) if partitions else -1
            states[lane] = row if lane < 0 else states.get(lane, 0) * 31 + row + 1
            self.expected.append(states[lane])
        tallies = self.header.tallies_at
        cursors = {tallies + TALLY.itemsize * worker + TALLY.fields["cursor"][1] for worker in range(self.workers)}
        self.unread = {*range(tallies, tallies + TALLY.itemsize * self.workers, 8)} - cursors
        """Counters that no worker reads."""
        self.shared = set[int]()
        """Words that one worker writes and another reads or writes: only before these do workers stop."""
        self.accessed: dict[int, tuple[set[int], set[int]]] = {}
        """By address, the workers that access and that write it."""

    def search(self, most: int = 10**7) -> Searched:
        """Visit all states; again, while words turn out to be shared."""
        while True:
            found = explore(lambda: Workers(self), most)
            shared = {at for at, (users, writers) in self.accessed.items() if writers and len(users) > 1}
            if shared == self.shared:
                return found
            self.shared = shared

    def _step(self, _: int, partition: int, given: int, outputs: int) -> Any:
        """The function: a row's number or, with partitions, all numbers that its partition has seen."""
        number = yield "load", given, 0
        if self.operator.master_at:
            state = STATES_AT + 8 * partition
            number += 1 + 31 * (yield "load", state, 0)
            yield "store", state, 0, number
        yield "store", outputs, 0, number
        return 1

    def worker(self, number: int) -> Any:
        """A worker: takes, runs and sends tuples until all have left."""
        header, operator = self.header, self.operator
        tally = self._known["tally_at"](header, number, 0)
        scratch = header.scratch_at + 8 * header.scratch_words * number
        take = ("take_shared", "take_delegating", "take_partitions")[operator.work_queue]
        while (yield "load_atomic", operator, "next") < self.rows:
            yield from self._known["drain_if_ready"](header, tally, operator)
            if not (yield from self._known[take](header, tally, scratch, operator, 1)):
                yield ("give_way",)


STATES_AT = 1 << 60
"""Words that no array has, one for each partition."""


class Workers:
    """The workers of a run as a system."""

    def __init__(self, run: Run) -> None:
        run.memories.changed = dict(run.fed)
        self._run, self._memories = run, run.memories
        self._workers = {number: run.worker(number) for number in range(run.workers)}
        self._waiting = {number: next(each) for number, each in self._workers.items()}

    def moves(self) -> list[Hashable]:
        return list(self._waiting)

    def do(self, move: Hashable) -> None:
        name, *words = self._waiting.pop(move)
        while True:
            given = None
            if name != "give_way":
                users, writers = self._run.accessed.setdefault(address_of(*words[:2]), (set(), set()))
                users.add(move)
                if name not in ("load", "load_atomic"):
                    writers.add(move)
                given = self._memories.access(name, *words)
            try:
                name, *words = self._workers[move].send(given)
            except StopIteration:
                del self._workers[move]
                return
            if name == "give_way" or address_of(*words[:2]) in self._run.shared:
                self._waiting[move] = (name, *words)
                return

    def state(self) -> Hashable:
        words = frozenset((at, word) for at, word in self._memories.changed.items() if at not in self._run.unread)
        return words, tuple((number, _frames(each)) for number, each in self._workers.items())

    def end(self) -> None:
        run, read = self._run, self._memories.read
        count, width = read(run.header.at("egress_tuples")), run.words - 1
        left = [read(run.header.kept_at + 8 * width * at) for at in range(run.rows)]
        assert (count, left) == (run.rows, run.expected), f"{count} rows left: {left}, not {run.expected}"


def _frames(worker: Any) -> Hashable:
    """Where a generator stands, and its variables."""
    found = []
    while worker is not None:
        frame = worker.gi_frame
        found.append((frame.f_code.co_name, frame.f_lasti, tuple(frame.f_locals.values())))
        worker = worker.gi_yieldfrom
    return tuple(found)
