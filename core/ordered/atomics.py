"""Memory by its address, in kernels: plain and atomic words, a call by address, the clock, giving way.

Kernels of many threads share their memory by addresses, since arrays would be counted up and down by every call, all
threads on one line of the cache. All words are of 64 bits. The caller keeps the arrays alive that the addresses lie in.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_WORD = ir.IntType(64)
_INT = ir.IntType(32)
_CLOCK_MONOTONIC = 1

_external: Any = cgutils.get_or_insert_function
_on_stack: Any = cgutils.alloca_once


def _place(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, _WORD.as_pointer())


def _load(typing: Any, address: Any) -> Any:  # noqa: ARG001 (numba names the parameters; so below)
    """The word at an address that no other thread writes meanwhile."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.load(_place(builder, arguments[0]), align=8)

    return types.int64(types.int64), generate


def _store(typing: Any, address: Any, word: Any) -> Any:  # noqa: ARG001
    """Write a word that no other thread reads or writes meanwhile."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        builder.store(arguments[1], _place(builder, arguments[0]), align=8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


def _load_atomic(typing: Any, address: Any) -> Any:  # noqa: ARG001
    """The word at an address, sequentially consistent."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.load_atomic(_place(builder, arguments[0]), "seq_cst", 8)

    return types.int64(types.int64), generate


def _publish(typing: Any, address: Any, word: Any) -> Any:  # noqa: ARG001
    """Write a word after all that was written before it: who reads it by `load_atomic` sees that too."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[1], _place(builder, arguments[0]), "release", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


def _fetch_add(typing: Any, address: Any, number: Any) -> Any:  # noqa: ARG001
    """Add to a word; what it was before."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.atomic_rmw("add", _place(builder, arguments[0]), arguments[1], "seq_cst")

    return types.int64(types.int64, types.int64), generate


def _exchange(typing: Any, address: Any, word: Any) -> Any:  # noqa: ARG001
    """Write a word; what it was before."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.atomic_rmw("xchg", _place(builder, arguments[0]), arguments[1], "seq_cst")

    return types.int64(types.int64, types.int64), generate


def _replace(typing: Any, address: Any, expected: Any, word: Any) -> Any:  # noqa: ARG001
    """Write a word if it is still what is expected; whether it was."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        place = _place(builder, arguments[0])
        found = builder.cmpxchg(place, arguments[1], arguments[2], "seq_cst", "seq_cst")
        return builder.extract_value(found, 1)

    return types.boolean(types.int64, types.int64, types.int64), generate


def _operate(typing: Any, function: Any, words: Any, partition: Any, given: Any, outputs: Any) -> Any:  # noqa: ARG001
    """Call an operator's compiled function by its address."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        called = builder.inttoptr(arguments[0], ir.FunctionType(_WORD, [_WORD] * 4).as_pointer())
        return builder.call(called, arguments[1:])

    return types.int64(types.int64, types.int64, types.int64, types.int64, types.int64), generate


def _clock_ns(typing: Any) -> Any:  # noqa: ARG001
    """Nanoseconds of the machine's monotonic clock."""

    def generate(_: Any, builder: Any, __: Any, ___: Any) -> Any:
        kind = ir.FunctionType(_INT, [_INT, _WORD.as_pointer()])
        read = _external(builder.module, kind, "clock_gettime")
        time = _on_stack(builder, _WORD, size=2)
        builder.call(read, [_INT(_CLOCK_MONOTONIC), time])
        seconds = builder.load(time)
        rest = builder.load(builder.gep(time, [_INT(1)]))
        return builder.add(builder.mul(seconds, _WORD(1_000_000_000)), rest)

    return types.int64(), generate


def _give_way(typing: Any) -> Any:  # noqa: ARG001
    """Let another thread run."""

    def generate(context: Any, builder: Any, _: Any, __: Any) -> Any:
        called = _external(builder.module, ir.FunctionType(_INT, []), "sched_yield")
        builder.call(called, [])
        return context.get_dummy_value()

    return types.void(), generate


def _rest_us(typing: Any, us: Any) -> Any:  # noqa: ARG001
    """Sleep for some microseconds."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        called = _external(builder.module, ir.FunctionType(_INT, [_INT]), "usleep")
        builder.call(called, [builder.trunc(arguments[0], _INT)])
        return context.get_dummy_value()

    return types.void(types.int64), generate


def _sink(typing: Any, address: Any, word: Any) -> Any:  # noqa: ARG001
    """Write a word that nobody reads, so that the work it is made of is done."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[1], _place(builder, arguments[0]), "monotonic", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


load: Any = intrinsic(_load)
store: Any = intrinsic(_store)
load_atomic: Any = intrinsic(_load_atomic)
publish: Any = intrinsic(_publish)
fetch_add: Any = intrinsic(_fetch_add)
exchange: Any = intrinsic(_exchange)
replace: Any = intrinsic(_replace)
operate: Any = intrinsic(_operate)
clock_ns: Any = intrinsic(_clock_ns)
give_way: Any = intrinsic(_give_way)
rest_us: Any = intrinsic(_rest_us)
sink: Any = intrinsic(_sink)
