"""Memory by its address, in kernels: plain and atomic words, new ones, a call by address, the clock, giving way.

Kernels of many threads share their memory by addresses, since arrays would be counted up and down by every call, all
threads on one line of the cache. A word has 64 bits. It is named by a record (`record_at`) and the name of its field,
where a name that the record does not have fails to compile; or by an address and the number of words behind it. The
caller keeps the arrays alive that the addresses lie in.
"""

import sys
from collections.abc import Callable
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
_on_word: Any = intrinsic(prefer_literal=True)


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


def _load(typing: Any, record: Any, place: Any) -> Any:  # noqa: ARG001 (numba names the parameters; so below)
    """A word that no other thread writes meanwhile."""

    def generate(_: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_at(builder, signature, arguments), align=8)

    return types.int64(*_named(record, place)), generate


def _store(typing: Any, record: Any, place: Any, word: Any) -> Any:  # noqa: ARG001
    """Write a word that no other thread reads or writes meanwhile."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _at(builder, signature, arguments), align=8)
        return context.get_dummy_value()

    return types.void(*_named(record, place), types.int64), generate


def _fixed(typing: Any, record: Any, place: Any) -> Any:  # noqa: ARG001
    """A word that nobody writes while the kernel runs, so that it need not be read again after each store."""

    def generate(_: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = builder.load(_at(builder, signature, arguments), align=8)
        word.set_metadata("invariant.load", builder.module.add_metadata([]))
        return word

    return types.int64(*_named(record, place)), generate


def _load_atomic(typing: Any, record: Any, place: Any) -> Any:  # noqa: ARG001
    """A word, sequentially consistent."""

    def generate(_: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_at(builder, signature, arguments), "seq_cst", 8)

    return types.int64(*_named(record, place)), generate


def _publish(typing: Any, record: Any, place: Any, word: Any) -> Any:  # noqa: ARG001
    """Write a word after all that was written before it: who reads it by `load_atomic` sees that too."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[2], _at(builder, signature, arguments), "release", 8)
        return context.get_dummy_value()

    return types.void(*_named(record, place), types.int64), generate


def _fetch_add(typing: Any, record: Any, place: Any, number: Any) -> Any:  # noqa: ARG001
    """Add to a word; what it was before."""

    def generate(_: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.atomic_rmw("add", _at(builder, signature, arguments), arguments[2], "seq_cst")

    return types.int64(*_named(record, place), types.int64), generate


def _exchange(typing: Any, record: Any, place: Any, word: Any) -> Any:  # noqa: ARG001
    """Write a word; what it was before."""

    def generate(_: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.atomic_rmw("xchg", _at(builder, signature, arguments), arguments[2], "seq_cst")

    return types.int64(*_named(record, place), types.int64), generate


def _replace(typing: Any, record: Any, place: Any, expected: Any, word: Any) -> Any:  # noqa: ARG001
    """Write a word if it is still what is expected; whether it was."""

    def generate(_: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _at(builder, signature, arguments)
        found = builder.cmpxchg(place, arguments[2], arguments[3], "seq_cst", "seq_cst")
        return builder.extract_value(found, 1)

    return types.boolean(*_named(record, place), types.int64, types.int64), generate


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


def _put(typing: Any, record: Any, place: Any, word: Any) -> Any:  # noqa: ARG001
    """As `store`, and never left out, nor made wider: for work that nobody reads, and for loops over a few words.

    What a compiler puts before a loop over wide words takes longer than a few words do.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[2], _at(builder, signature, arguments), "monotonic", 8)
        return context.get_dummy_value()

    return types.void(*_named(record, place), types.int64), generate


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


load: Callable[[int, int], int] = _on_word(_load)
store: Callable[[int, int, int | np.int64], None] = _on_word(_store)
fixed: Callable[[Record | int, str | int], int] = _on_word(_fixed)
load_atomic: Callable[[Record | int, str | int], int] = _on_word(_load_atomic)
publish: Callable[[Record, str, int], None] = _on_word(_publish)
fetch_add: Callable[[Record, str, int], int] = _on_word(_fetch_add)
exchange: Callable[[Record, str, int], int] = _on_word(_exchange)
replace: Callable[[Record | int, str | int, int, int], bool] = _on_word(_replace)
operate: Callable[[int, int, int, int, int], int] = _intrinsic(_operate)
clock_ns: Callable[[], int] = _intrinsic(_clock_ns)
give_way: Callable[[], None] = _intrinsic(_give_way)
rest_us: Callable[[int], None] = _intrinsic(_rest_us)
put: Callable[[int, int, int | np.int64], None] = _on_word(_put)
allocate: Callable[[int], int] = _intrinsic(_allocate)
reallocate: Callable[[int, int], int] = _intrinsic(_reallocate)
release: Callable[[int], None] = _intrinsic(_release)
apart: Callable[[], None] = _intrinsic(_apart)
short_loops: Callable[[], None] = _intrinsic(_short_loops)
