"""Memory by address in kernels: plain and atomic words, allocation, clock, yield.

Kernels of many threads share memory by addresses, as arrays would be reference-counted by every call, all threads on
one cache line. A word has 64 bits. It is named by a record (`record_at`) and a field, checked at compile time, or by an
address and an offset in words. The caller keeps the underlying arrays alive.

Orders, which hold on x86-64 and on ARM (there `ldar`, `stlr`, and `casal`, `swpal`, `ldaddal` or loops of `ldaxr` and
`stlxr`): `load_atomic` acquires, `publish` releases, and `fetch_add`, `exchange` and `replace` do both; all but
`publish` are sequentially consistent. `load`, `store`, `put` and `fixed` order nothing.
"""

import sys
from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from adapt.core.compiled import Record

_WORD = ir.IntType(64)
_BYTE = ir.IntType(8).as_pointer()
_INT = ir.IntType(32)
_CLOCK_MONOTONIC = 6 if sys.platform == "darwin" else 1

STACK_WORDS = 128
"""Words of `on_stack`."""

_external: Any = cgutils.get_or_insert_function
_on_stack: Any = cgutils.alloca_once
_intrinsic: Any = intrinsic


def _named(record: Any, place: Any) -> tuple[Any, Any]:
    """The types that name a word."""
    if not isinstance(record, types.Record):
        return types.int64, types.int64
    name = getattr(place, "literal_value", None)
    if name not in record.fields or record.typeof(name) != types.int64:
        raise TypingError(f"{name!r} is not a word of a record with {', '.join(record.fields)}")
    return record, place


def _at(builder: Any, signature: Any, arguments: Any) -> Any:
    """Pointer to the word that the first two arguments name."""
    record, place = signature.args[:2]
    if not isinstance(record, types.Record):
        return builder.gep(builder.inttoptr(arguments[0], _WORD.as_pointer()), [arguments[1]])
    offset = _WORD(record.offset(place.literal_value))
    return builder.bitcast(builder.gep(builder.bitcast(arguments[0], _BYTE), [offset]), _WORD.as_pointer())


def _on_word(name: str, result: Any, build: Callable[..., Any], *operands: str) -> Any:
    """An intrinsic on a word; `build` generates code from a builder, a pointer and values."""

    def typed(_: Any, record: Any, place: Any, *words: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            built = build(builder, _at(builder, signature, arguments), *arguments[2:])
            return context.get_dummy_value() if result is types.void else built

        return result(*_named(record, place), *(types.int64 for _ in words)), generate

    typed.__name__ = name
    parameters = [Parameter(part, Parameter.POSITIONAL_ONLY) for part in ("typing", "record", "place", *operands)]
    typed.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return intrinsic(prefer_literal=True)(typed)


def _read_fixed(builder: Any, word: Any) -> Any:
    value = builder.load(word, align=8)
    value.set_metadata("invariant.load", builder.module.add_metadata([]))
    return value


def _compare_and_swap(builder: Any, word: Any, expected: Any, new: Any) -> Any:
    return builder.extract_value(builder.cmpxchg(word, expected, new, "seq_cst", "seq_cst"), 1)


def _operate(typing: Any, function: Any, words: Any, partition: Any, given: Any, outputs: Any) -> Any:  # noqa: ARG001
    """Call the compiled function of an operator by address."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        called = builder.inttoptr(arguments[0], ir.FunctionType(_WORD, [_WORD] * 4).as_pointer())
        return builder.call(called, arguments[1:])

    return types.int64(types.int64, types.int64, types.int64, types.int64, types.int64), generate


def _run_chunk(
    typing: Any,  # noqa: ARG001
    function: Any,  # noqa: ARG001
    operator: Any,  # noqa: ARG001
    partition: Any,  # noqa: ARG001
    serials: Any,  # noqa: ARG001
    first: Any,  # noqa: ARG001
    tuples: Any,  # noqa: ARG001
    room: Any,  # noqa: ARG001
) -> Any:
    """Call the loop over a chunk of tuples of an operator by address."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        called = builder.inttoptr(arguments[0], ir.FunctionType(_WORD, [_WORD] * 6).as_pointer())
        return builder.call(called, arguments[1:])

    return types.int64(*[types.int64] * 7), generate


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


def _allocate(typing: Any, words: Any) -> Any:  # noqa: ARG001
    """The address of newly allocated words, uninitialized; 0 without memory."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        called = _external(builder.module, ir.FunctionType(_BYTE, [_WORD]), "malloc")
        return builder.ptrtoint(builder.call(called, [builder.mul(arguments[0], _WORD(8))]), _WORD)

    return types.int64(types.int64), generate


def _reallocate(typing: Any, address: Any, words: Any) -> Any:  # noqa: ARG001
    """Resize allocated words, keeping their content; 0 without memory."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        called = _external(builder.module, ir.FunctionType(_BYTE, [_BYTE, _WORD]), "realloc")
        before = builder.inttoptr(arguments[0], _BYTE)
        return builder.ptrtoint(builder.call(called, [before, builder.mul(arguments[1], _WORD(8))]), _WORD)

    return types.int64(types.int64, types.int64), generate


def _clear(typing: Any, address: Any, words: Any) -> Any:  # noqa: ARG001
    """Set words to 0."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        called = _external(builder.module, ir.FunctionType(_BYTE, [_BYTE, _INT, _WORD]), "memset")
        place = builder.inttoptr(arguments[0], _BYTE)
        builder.call(called, [place, _INT(0), builder.mul(arguments[1], _WORD(8))])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


def _release(typing: Any, address: Any) -> Any:  # noqa: ARG001
    """Free allocated words; does nothing for address 0."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        called = _external(builder.module, ir.FunctionType(ir.VoidType(), [_BYTE]), "free")
        builder.call(called, [builder.inttoptr(arguments[0], _BYTE)])
        return context.get_dummy_value()

    return types.void(types.int64), generate


def _apart(typing: Any) -> Any:  # noqa: ARG001
    """Mark a part of a kernel as a call, not inlined: rarely used, or too long to duplicate."""

    def generate(context: Any, builder: Any, _: Any, __: Any) -> Any:
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), generate


def _on_stack_here(typing: Any) -> Any:  # noqa: ARG001
    """Address of 128 words on the stack, the same in each call."""

    def generate(_: Any, builder: Any, __: Any, ___: Any) -> Any:
        return builder.ptrtoint(_on_stack(builder, ir.ArrayType(_WORD, STACK_WORDS)), _WORD)

    return types.int64(), generate


def _short_loops(typing: Any) -> Any:  # noqa: ARG001
    """Mark a part of a kernel with short loops, which are not unrolled."""

    def generate(context: Any, builder: Any, _: Any, __: Any) -> Any:
        builder.function.attributes.add("optsize")
        return context.get_dummy_value()

    return types.void(), generate


load: Callable[[int, int], int] = _on_word("load", types.int64, lambda builder, word: builder.load(word, align=8))
"""Read a word that no other thread writes; same as a record's attribute."""

store: Callable[[int, int, int | np.int64], None] = _on_word(
    "store", types.void, lambda builder, word, new: builder.store(new, word, align=8), "new"
)
"""Write a word that no other thread reads or writes; likewise."""

put: Callable[[int, int, int | np.int64], None] = _on_word(
    "put", types.void, lambda builder, word, new: builder.store_atomic(new, word, "monotonic", 8), "new"
)
"""As `store`, but never optimized away or vectorized; for unread results, and for loops over a few words."""

fixed: Callable[[Record | int, str | int], int] = _on_word("fixed", types.int64, _read_fixed)
"""Read a word that is constant while the kernel runs, so it is not reloaded after stores."""

load_atomic: Callable[[Record | int, str | int], int] = _on_word(
    "load_atomic", types.int64, lambda builder, word: builder.load_atomic(word, "seq_cst", 8)
)
"""Read a word with acquire order, sequentially consistent: later accesses stay behind it."""

publish: Callable[[Record | int, str | int, int], None] = _on_word(
    "publish", types.void, lambda builder, word, new: builder.store_atomic(new, word, "release", 8), "new"
)
"""Write a word with release order: who reads it by `load_atomic` sees all earlier reads and writes done."""

fetch_add: Callable[[Record, str, int], int] = _on_word(
    "fetch_add", types.int64, lambda builder, word, more: builder.atomic_rmw("add", word, more, "seq_cst"), "more"
)
"""Add to a word, with acquire and release order, and return its old value."""

exchange: Callable[[Record, str, int], int] = _on_word(
    "exchange", types.int64, lambda builder, word, new: builder.atomic_rmw("xchg", word, new, "seq_cst"), "new"
)
"""Write a word, with acquire and release order, and return its old value."""

replace: Callable[[Record | int, str | int, int, int], bool] = _on_word(
    "replace", types.boolean, _compare_and_swap, "expected", "new"
)
"""Compare-and-swap a word, with acquire and release order; whether it succeeded. A failure acquires."""

on_stack: Callable[[], int] = _intrinsic(_on_stack_here)
operate: Callable[[int, int, int, int, int], int] = _intrinsic(_operate)
run_chunk: Callable[[int, int, int, int, int, int, int], int] = _intrinsic(_run_chunk)
clock_ns: Callable[[], int] = _intrinsic(_clock_ns)
give_way: Callable[[], None] = _intrinsic(_give_way)
rest_us: Callable[[int], None] = _intrinsic(_rest_us)
allocate: Callable[[int], int] = _intrinsic(_allocate)
reallocate: Callable[[int, int], int] = _intrinsic(_reallocate)
clear: Callable[[int, int], None] = _intrinsic(_clear)
release: Callable[[int], None] = _intrinsic(_release)
apart: Callable[[], None] = _intrinsic(_apart)
short_loops: Callable[[], None] = _intrinsic(_short_loops)
