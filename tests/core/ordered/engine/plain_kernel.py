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

from adapt.core.ordered.chain.names import FunctionName
from adapt.core.ordered.engine import kernel
from adapt.core.ordered.functions import baskets, count, stateless, top, work
from adapt.core.ordered.functions.registry import FUNCTIONS

_ATOMIC = threading.Lock()
_LIBC = ctypes.CDLL(None)
_LIBC.malloc.restype = _LIBC.realloc.restype = ctypes.c_void_p
_LIBC.malloc.argtypes, _LIBC.free.argtypes = [ctypes.c_size_t], [ctypes.c_void_p]
_LIBC.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_WRAP = 1 << 63


def _word(record: int, place: int) -> ctypes.c_int64:
    return ctypes.c_int64.from_address(record + 8 * place)


def _load(record: int, place: int) -> int:
    return _word(record, place).value


def _store(record: int, place: int, word: int) -> None:
    _word(record, place).value = int(word)


def _fetch_add(record: int, place: int, number: int) -> int:
    with _ATOMIC:
        before = _load(record, place)
        _store(record, place, before + number)
        return before


def _exchange(record: int, place: int, word: int) -> int:
    with _ATOMIC:
        before = _load(record, place)
        _store(record, place, word)
        return before


def _replace(record: int, place: int, expected: int, word: int) -> bool:
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
    "release": lambda address: _LIBC.free(address),
}


def plain(module: ModuleType, **more: object) -> SimpleNamespace:
    """A compiled module's functions as plain ones."""
    source = inspect.getsource(module)
    for decorator in ("@compiled", "@inlined", "@flattened"):
        source = source.replace(decorator, "")
    names: dict[str, Any] = {"__name__": module.__name__ + "_plain"}
    exec(compile(source, f"{module.__name__} in plain Python", "exec"), names)
    names |= _ATOMICS | more
    names["np"] = SimpleNamespace(uint64=_uint64, int64=_int64, inf=np.inf, log=np.log, zeros=np.zeros)
    return SimpleNamespace(**names)


def plain_model() -> Callable[[int], None]:
    """`kernel.simulate`, interpreted."""
    names = plain(kernel)

    def simulate(header: int) -> None:
        with np.errstate(over="ignore"):
            names.simulate(header)

    return simulate


def _closing(name: FunctionName) -> int:
    closing = FUNCTIONS[name].closing
    assert closing is not None
    return closing.address


def plain_worker() -> Callable[[int, int], None]:
    """`kernel.work`, interpreted."""
    counting, pairing = plain(top), plain(baskets)
    functions = {
        FUNCTIONS[FunctionName.WORK].compiled.address: plain(work)._work,
        FUNCTIONS[FunctionName.COUNT].compiled.address: plain(count)._count,
        _closing(FunctionName.WINDOW_TOP_100): counting._close,
        FUNCTIONS[FunctionName.WINDOW_TOP_100].compiled.address: counting._count,
        _closing(FunctionName.BASKET_PAIRS): pairing._forget,
        FUNCTIONS[FunctionName.BASKET_PAIRS].compiled.address: pairing._pair,
        FUNCTIONS[FunctionName.HOUR].compiled.address: plain(stateless)._hour,
    }

    def operate(function: int, words: int, partition: int, given: int, outputs: int) -> int:
        return int(functions[function](words, partition, given, outputs))

    names = plain(kernel, operate=operate)

    def worker(header: int, number: int) -> None:
        with np.errstate(over="ignore"):
            names.work(header, number)

    return worker
