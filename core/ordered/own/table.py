"""Table of the states of a partition's keys, in compiled code.

States are in the order in which their keys arrived. At a punctuation, a state that has its first values again is
forgotten.

Not a record of Numba, which a generator would copy.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, lower_setattr_generic, register_model
from numba.np.arrayobj import make_array, populate_array

from adapt.core.atomics import allocate, clear, load, release, store
from adapt.core.compiled import inlined
from adapt.core.random_bits import mixed

TABLE, _USED, ENTRIES, CLOSING, TABLE_WORDS = 0, 1, 2, 3, 8
"""Words of a table: address of its memory, entries in use, capacity, the entry that is being closed; and their number,
a cache line."""
_OWN = 2
"""Leading words of an entry: the key, and its place in the index. The state follows. The index follows the entries,
with two places for each; a place holds the number of an entry, from 1."""
_FIRST_ENTRIES = 8


def entry_words(words: int) -> int:
    """Words of an entry whose state has these words."""
    return _OWN + words


@inlined
def _size(words: int) -> int:
    """Bytes of an entry whose state has these words."""
    return 8 * (_OWN + words)


@inlined
def _place(memory: int, entries: int, size: int, key: int) -> int:
    """The place in the index with a key's entry, or the free place for it."""
    mask, index = 2 * entries - 1, memory + size * entries
    place = int(np.int64(mixed(np.uint64(key)))) & mask
    while True:
        entry = load(index, place)
        if entry == 0 or load(memory + size * (entry - 1), 0) == key:
            return place
        place = (place + 1) & mask


@inlined
def _filled(memory: int, entries: int, size: int, used: int) -> None:
    """Index the entries in use."""
    index = memory + size * entries
    for place in range(2 * entries):
        store(index, place, 0)
    for number in range(used):
        entry = memory + size * number
        place = _place(memory, entries, size, load(entry, 0))
        store(index, place, number + 1)
        store(entry, 1, place)


@inlined
def _grown(table: int, size: int) -> bool:
    """Double a full table; whether there was memory for it."""
    memory, used = load(table, TABLE), load(table, _USED)
    entries = max(2 * load(table, ENTRIES), _FIRST_ENTRIES)
    larger = allocate((size // 8 + 2) * entries)
    if larger == 0:
        return False
    for word in range(size // 8 * used):
        store(larger, word, load(memory, word))
    clear(larger + size * used, (size // 8 + 2) * entries - size // 8 * used)
    _filled(larger, entries, size, used)
    release(memory)
    store(table, TABLE, larger)
    store(table, ENTRIES, entries)
    return True


@inlined
def state_of(table: int, key: int, words: int, first: int) -> int:
    """Address of a key's state; 0 without memory.

    A new state has the first values.
    """
    size = _size(words)
    if load(table, _USED) == load(table, ENTRIES) and not _grown(table, size):
        return 0
    memory, entries, used = load(table, TABLE), load(table, ENTRIES), load(table, _USED)
    place = _place(memory, entries, size, key)
    index = memory + size * entries
    number = load(index, place)
    if number:
        return memory + size * (number - 1) + 8 * _OWN
    entry = memory + size * used
    store(index, place, used + 1)
    store(entry, 0, key)
    store(entry, 1, place)
    for word in range(words):
        store(entry, _OWN + word, load(first, word))
    store(table, _USED, used + 1)
    return entry + 8 * _OWN


@inlined
def states_in(table: int) -> int:
    """Number of states."""
    return load(table, _USED)


@inlined
def state_at(table: int, number: int, words: int) -> int:
    """Address of a state by its number."""
    return load(table, TABLE) + _size(words) * number + 8 * _OWN


@inlined
def is_first(state: int, words: int, first: int) -> bool:
    """Whether a state has its first values."""
    for word in range(words):  # noqa: SIM110 (compiled)
        if load(state, word) != load(first, word):
            return False
    return True


@inlined
def forget_first(table: int, words: int, first: int) -> None:
    """Remove the states with first values; others keep their order."""
    memory, used, size, kept = load(table, TABLE), load(table, _USED), _size(words), 0
    for number in range(used):
        entry = memory + size * number
        if is_first(entry + 8 * _OWN, words, first):
            continue
        if kept < number:
            for word in range(_OWN + words):
                store(memory + size * kept, word, load(entry, word))
        kept += 1
    if kept < used:
        store(table, _USED, kept)
        _filled(memory, load(table, ENTRIES), size, kept)


_types: Any = types
_models: Any = models
_template: Any = AttributeTemplate
_populate: Any = populate_array
_make_array: Any = make_array
_pack: Any = cgutils.pack_array
_WORD = ir.IntType(64)


class StateType(_types.Type):  # type: ignore[misc]
    """The state of a user's class.

    Attributes:
        kind: Its fields, of 64-bit integers and floats and arrays of them.
    """

    def __init__(self, kind: np.dtype[np.void]) -> None:
        """States of one class have one kind."""
        self.kind = kind
        super().__init__(name=f"State({kind.descr})")

    def field(self, name: str) -> tuple[Any, int, int] | None:
        """Type, offset and length of a field.

        The length is 0 for a single value. None: there is no such field.
        """
        fields: Any = self.kind.fields
        if name not in fields:
            return None
        found = fields[name]
        of, length = found[0].subdtype or (found[0], (0,))
        return (types.float64 if of == np.float64 else types.int64), found[1], length[0]


@register_model(StateType)
class _StateModel(_models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, of: Any) -> None:
        super().__init__(manager, of, _WORD)


@infer_getattr
class _StateFields(_template):  # type: ignore[misc]
    key = StateType

    def generic_resolve(self, state: StateType, name: str) -> Any:
        """Type of a field; None for no field."""
        field = state.field(name)
        if field is None:
            return None
        return types.Array(field[0], 1, "C") if field[2] else field[0]


def _pointer(context: Any, builder: Any, address: Any, of: Any, offset: int) -> Any:
    return builder.inttoptr(builder.add(address, _WORD(offset)), context.get_value_type(of).as_pointer())


def _read(context: Any, builder: Any, state: StateType, address: Any, name: str) -> Any:
    field: Any = state.field(name)
    of, offset, length = field
    pointer = _pointer(context, builder, address, of, offset)
    if not length:
        return builder.load(pointer)
    array = _make_array(types.Array(of, 1, "C"))(context, builder)
    _populate(
        array,
        data=pointer,
        shape=_pack(builder, [_WORD(length)]),
        strides=_pack(builder, [_WORD(8)]),
        itemsize=_WORD(8),
        meminfo=None,
    )
    return array._getvalue()


def _write(context: Any, builder: Any, signature: Any, arguments: Any, name: str) -> None:
    of, offset, _ = signature.args[0].field(name)
    builder.store(arguments[1], _pointer(context, builder, arguments[0], of, offset))


_as_reader: Any = lower_getattr_generic(StateType)  # type: ignore[no-untyped-call]
_as_reader(_read)
_as_writer: Any = lower_setattr_generic(StateType)  # type: ignore[no-untyped-call]
_as_writer(_write)


def state_from(kind: np.dtype[np.void]) -> Any:
    """In a kernel, the state at an address."""
    of = StateType(kind)

    def typed(typing: Any, address: Any) -> Any:  # noqa: ARG001 (numba names the parameters)
        return of(types.int64), lambda _, __, ___, arguments: arguments[0]

    return intrinsic(typed)
