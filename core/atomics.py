"""Memory by its address, in kernels: plain and atomic words, new ones, a call by address, the clock, giving way.

Kernels of many threads share their memory by addresses, since arrays would be counted up and down by every call, all
threads on one line of the cache. A word has 64 bits. It is named by a record (`record_at`) and the name of its field,
where a name that the record does not have fails to compile; or by an address and the number of words behind it. The
caller keeps the arrays alive that the addresses lie in.
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

_external: Any = cgutils.get_or_insert_function
_on_stack: Any = cgutils.alloca_once
_intrinsic: Any = intrinsic


def _named(record: Any, place: Any) -> tuple[Any, Any]:
    """The types by which a word is named.

    Raises:
        TypingError: the record has no field of that name, or not of a word.
    """
    if not isinstance(record, types.Record):
        return types.int64, types.int64
    name = getattr(place, "literal_value", None)
    if name not in record.fields or record.typeof(name) != types.int64:
        raise TypingError(f"{name!r} is no word of a record with {', '.join(record.fields)}")
    return record, place


def _at(builder: Any, signature: Any, arguments: Any) -> Any:
    """Pointer to the word that the first two arguments name."""
    record, place = signature.args[:2]
    if not isinstance(record, types.Record):
        return builder.gep(builder.inttoptr(arguments[0], _WORD.as_pointer()), [arguments[1]])
    offset = _WORD(record.offset(place.literal_value))
    return builder.bitcast(builder.gep(builder.bitcast(arguments[0], _BYTE), [offset]), _WORD.as_pointer())


def _on_word(name: str, result: Any, build: Callable[..., Any], *operands: str) -> Any:
    """An intrinsic on a word and further words, of which `build` makes code from a builder, a pointer and values."""

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


def _allocate(typing: Any, words: Any) -> Any:  # noqa: ARG001
    """The address of so many new words, written before they are read; 0 if there is no memory."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        called = _external(builder.module, ir.FunctionType(_BYTE, [_WORD]), "malloc")
        return builder.ptrtoint(builder.call(called, [builder.mul(arguments[0], _WORD(8))]), _WORD)

    return types.int64(types.int64), generate


def _reallocate(typing: Any, address: Any, words: Any) -> Any:  # noqa: ARG001
    """As many words with what those at the address hold, in their place or elsewhere; 0 if there is no memory."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        called = _external(builder.module, ir.FunctionType(_BYTE, [_BYTE, _WORD]), "realloc")
        before = builder.inttoptr(arguments[0], _BYTE)
        return builder.ptrtoint(builder.call(called, [before, builder.mul(arguments[1], _WORD(8))]), _WORD)

    return types.int64(types.int64, types.int64), generate


def _release(typing: Any, address: Any) -> Any:  # noqa: ARG001
    """Give words that were allocated back; 0 is no address and does nothing."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        called = _external(builder.module, ir.FunctionType(ir.VoidType(), [_BYTE]), "free")
        builder.call(called, [builder.inttoptr(arguments[0], _BYTE)])
        return context.get_dummy_value()

    return types.void(types.int64), generate


def _apart(typing: Any) -> Any:  # noqa: ARG001
    """Said within a part of a kernel that stays a call: one that is seldom come to, or too long to be there twice."""

    def generate(context: Any, builder: Any, _: Any, __: Any) -> Any:
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), generate


def _short_loops(typing: Any) -> Any:  # noqa: ARG001
    """Said within a part of a kernel whose loops have few rounds: they stay as they are written."""

    def generate(context: Any, builder: Any, _: Any, __: Any) -> Any:
        builder.function.attributes.add("optsize")
        return context.get_dummy_value()

    return types.void(), generate


load: Callable[[int, int], int] = _on_word("load", types.int64, lambda builder, word: builder.load(word, align=8))
"""A word that no other thread writes meanwhile; of a record, its attribute is the same."""

store: Callable[[int, int, int | np.int64], None] = _on_word(
    "store", types.void, lambda builder, word, new: builder.store(new, word, align=8), "new"
)
"""Write a word that no other thread reads or writes meanwhile; likewise."""

put: Callable[[int, int, int | np.int64], None] = _on_word(
    "put", types.void, lambda builder, word, new: builder.store_atomic(new, word, "monotonic", 8), "new"
)
"""As `store`, and never left out, nor made wider: for work that nobody reads, and for loops over a few words.

What a compiler puts before a loop over wide words takes longer than a few words do.
"""

fixed: Callable[[Record | int, str | int], int] = _on_word("fixed", types.int64, _read_fixed)
"""A word that nobody writes while the kernel runs, so that it need not be read again after each store."""

load_atomic: Callable[[Record | int, str | int], int] = _on_word(
    "load_atomic", types.int64, lambda builder, word: builder.load_atomic(word, "seq_cst", 8)
)
"""A word, sequentially consistent."""

publish: Callable[[Record, str, int], None] = _on_word(
    "publish", types.void, lambda builder, word, new: builder.store_atomic(new, word, "release", 8), "new"
)
"""Write a word after all that was written before it: who reads it by `load_atomic` sees that too."""

fetch_add: Callable[[Record, str, int], int] = _on_word(
    "fetch_add", types.int64, lambda builder, word, more: builder.atomic_rmw("add", word, more, "seq_cst"), "more"
)
"""Add to a word; what it was before."""

exchange: Callable[[Record, str, int], int] = _on_word(
    "exchange", types.int64, lambda builder, word, new: builder.atomic_rmw("xchg", word, new, "seq_cst"), "new"
)
"""Write a word; what it was before."""

replace: Callable[[Record | int, str | int, int, int], bool] = _on_word(
    "replace", types.boolean, _compare_and_swap, "expected", "new"
)
"""Write a word if it is still what is expected; whether it was."""

operate: Callable[[int, int, int, int, int], int] = _intrinsic(_operate)
clock_ns: Callable[[], int] = _intrinsic(_clock_ns)
give_way: Callable[[], None] = _intrinsic(_give_way)
rest_us: Callable[[int], None] = _intrinsic(_rest_us)
allocate: Callable[[int], int] = _intrinsic(_allocate)
reallocate: Callable[[int, int], int] = _intrinsic(_reallocate)
release: Callable[[int], None] = _intrinsic(_release)
apart: Callable[[], None] = _intrinsic(_apart)
short_loops: Callable[[], None] = _intrinsic(_short_loops)
