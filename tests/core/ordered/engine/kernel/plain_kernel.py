"""The worker of the real engine as plain Python: the same source, on the same memory, run by the interpreter.

Python's threads can be made to change places after every few instructions, anywhere in the algorithm: far more often
than processors interrupt each other there.
"""

import ctypes
import inspect
import threading
import time
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from adapt.core import random_bits
from adapt.core.ordered.engine.kernel import claiming, layout, reorder_buffer, running, schedule, work_queue, worker
from adapt.core.ordered.functions import function, sales, work

_ENGINE = random_bits, layout, work_queue, reorder_buffer, running, claiming, schedule, worker

_ATOMIC = threading.Lock()
_LIBC = ctypes.CDLL(None)
_LIBC.malloc.restype = _LIBC.realloc.restype = ctypes.c_void_p
_LIBC.malloc.argtypes, _LIBC.free.argtypes = [ctypes.c_size_t], [ctypes.c_void_p]
_LIBC.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_WRAP = 1 << 63


class _Record:
    """A record in memory, whose fields are read and written there."""

    def __init__(self, address: int, kind: np.dtype[np.void], number: int) -> None:
        self.__dict__["place"] = address + number * kind.itemsize, kind

    def field(self, name: str) -> Any:
        address, kind = self.__dict__["place"]
        of, offset = kind.fields[name][:2]
        words = ctypes.c_int64 if of.subdtype is None else ctypes.c_int64 * of.shape[0]
        return words.from_address(address + offset)

    def __getattr__(self, name: str) -> Any:
        field = self.field(name)
        return getattr(field, "value", field)

    def __setattr__(self, name: str, word: Any) -> None:
        self.field(name).value = int(word)


def _record_after(record: _Record, number: int) -> _Record:
    return _Record(*record.__dict__["place"], number)


def _word(record: int | _Record, place: int | str) -> ctypes.c_int64:
    return record.field(place) if isinstance(record, _Record) else ctypes.c_int64.from_address(record + 8 * place)


def _load(record: Any, place: Any) -> int:
    return _word(record, place).value


def _store(record: Any, place: Any, word: int) -> None:
    _word(record, place).value = int(word)


def _fetch_add(record: Any, place: Any, number: int) -> int:
    with _ATOMIC:
        before = _load(record, place)
        _store(record, place, before + number)
        return before


def _exchange(record: Any, place: Any, word: int) -> int:
    with _ATOMIC:
        before = _load(record, place)
        _store(record, place, word)
        return before


def _replace(record: Any, place: Any, expected: int, word: int) -> bool:
    with _ATOMIC:
        if _load(record, place) != expected:
            return False
        _store(record, place, word)
        return True


def _int64(number: Any) -> int:
    return (int(number) + _WRAP) % (2 * _WRAP) - _WRAP


def _uint64(number: Any) -> np.uint64:
    return np.uint64(int(number) % (2 * _WRAP))


_ATOMICS: dict[str, Callable[..., Any]] = {
    "record_at": _Record,
    "record_after": _record_after,
    "fetch_ahead": lambda *_: None,
    "load": _load,
    "fixed": _load,
    "load_atomic": _load,
    "store": _store,
    "publish": _store,
    "put": _store,
    "fetch_add": _fetch_add,
    "exchange": _exchange,
    "replace": _replace,
    "clock_ns": time.monotonic_ns,
    "give_way": lambda: time.sleep(0),
    "rest_us": lambda us: time.sleep(us / 1e6),
    "apart": lambda: None,
    "short_loops": lambda: None,
    "allocate": lambda words: _LIBC.malloc(8 * words),
    "reallocate": lambda address, words: _LIBC.realloc(address, 8 * words),
    "clear": lambda address, words: ctypes.memset(address, 0, 8 * words),
    "release": lambda address: _LIBC.free(address),
}


def plain(*modules: ModuleType, **more: object) -> SimpleNamespace:
    """The functions of compiled modules as plain ones; a module calls those of modules before it."""
    known: dict[str, Any] = _ATOMICS | more
    names: dict[str, Any] = {}
    for module in modules:
        source = inspect.getsource(module)
        for decorator in ("@compiled", "@inlined", "@flattened"):
            source = source.replace(decorator, "")
        names = {"__name__": module.__name__ + "_plain"}
        exec(compile(source, f"{module.__name__} in plain Python", "exec"), names)
        names |= {name: of.py_func for name, of in names.items() if hasattr(of, "py_func")}  # compiled by a call
        own = {name: of for name, of in names.items() if getattr(of, "__module__", "") == names["__name__"]}
        names |= known
        names["np"] = SimpleNamespace(uint64=_uint64, int64=_int64, inf=np.inf, log=np.log, zeros=np.zeros)
        known |= own
    return SimpleNamespace(**names)


def plain_schedule() -> Callable[[int, np.dtype[np.void]], int]:
    """`choose_operator` of the header at an address, interpreted."""
    names = plain(layout, work_queue, claiming, schedule, **_UNUSED)
    return lambda address, kind: names.choose_operator(_Record(address, kind, 0), 0)


_UNUSED = dict.fromkeys(("count_ahead", "run_claimed", "send"))


def plain_worker() -> Callable[[int, int, bool], bool]:
    """`worker.work`, interpreted."""
    selling, working = plain(random_bits, function, sales), plain(work, mixed_bits=plain(random_bits).mixed)
    closings = {sales._RANKING.address: selling._rank, sales._FORGETTING.address: selling._forget}
    loops = {
        running.chunk_form(compiled).address: plain(*_ENGINE[1:5], step=step).chunk
        for compiled, step in (
            (work._WORK, working._work),
            (work._COUNT, working._count),
            (sales._COUNTING, selling._count_word),
            (sales._PAIRING, selling._pair),
            (sales._HOUR, selling._hour),
        )
    }

    def operate(function: int, words: int, partition: int, given: int, outputs: int) -> int:
        return int(closings[function](words, partition, given, outputs))

    def run_chunk(function: int, *arguments: int) -> int:
        return int(loops[function](*arguments))

    names = plain(*_ENGINE, operate=operate, run_chunk=run_chunk)

    def worker(header: int, number: int) -> None:
        with np.errstate(over="ignore"):
            names.work(header, number)

    return worker
