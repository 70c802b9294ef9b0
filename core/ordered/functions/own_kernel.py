"""Compiled form of own functions.

A generated function, called per tuple, calls the user's code. The user's function is compiled with its helpers; its
outputs are converted to the declared types. Machine code is cached by the code of the function and of its helpers.

The state of a user's class in a kernel.

Not a record of Numba, which a generator would copy.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from inspect import Signature, signature
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.errors import NumbaError, TypingError, UnsupportedBytecodeError
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, lower_setattr_generic, register_model
from numba.np.arrayobj import make_array, populate_array

from adapt.core.atomics import allocate, load, reallocate, replace, store
from adapt.core.compiled import AtAddress, inlined
from adapt.core.kernel_cache import KernelCache, digest, stamp_of
from adapt.core.ordered.chain.own import Gives, OwnFunction, WordType
from adapt.core.ordered.functions import function as tables
from adapt.core.ordered.functions.function import MOST, NO_MEMORY, OWN, SIGNATURE, STATE, STRIDE

_types: Any = types
_models: Any = models
_template: Any = AttributeTemplate
_populate: Any = populate_array
_make_array: Any = make_array
_pack: Any = cgutils.pack_array


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


FAILED = -3
"""Return value of an own function that raised an exception."""

WHERE, FAULT_WORDS = 0, 1
"""Words of a fault: whether it was in `step` or in `close`; the words of the tuple follow, of which a punctuation has
one, then those of the state."""

IN_STEP, IN_CLOSE = 1, 2

_intrinsic: Any = intrinsic
_WORD, _DOUBLE = ir.IntType(64), ir.DoubleType()

NAN = 0x7FF8000000000000
"""The word of NaN."""


class NotCompiled(Exception):
    """A function that Numba cannot compile.

    The message says why, in which line, and what to write instead.
    """


def _as_float(typing: Any, word: Any) -> Any:  # noqa: ARG001
    """In a kernel, the float with these bits."""
    return types.float64(types.int64), lambda _, builder, __, arguments: builder.bitcast(arguments[0], _DOUBLE)


def _as_word(typing: Any, value: Any) -> Any:  # noqa: ARG001
    """In a kernel, the bits of a float; those of NaN, which processors choose in different ways, are always `NAN`."""

    def made(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        is_nan = builder.fcmp_unordered("uno", arguments[0], arguments[0])
        return builder.select(is_nan, ir.Constant(_WORD, NAN), builder.bitcast(arguments[0], _WORD))

    return types.int64(types.float64), made


def _whole(typing: Any, value: Any) -> Any:  # noqa: ARG001
    """In a kernel, an integer or flag as a word; a float is refused."""
    if not isinstance(value, (types.Integer, types.Boolean)):
        raise TypingError(f"an output declared int or bool is given a {value}")
    return types.int64(value), lambda context, builder, signature, arguments: context.cast(
        builder, arguments[0], signature.args[0], types.int64
    )


def _decimal(typing: Any, value: Any) -> Any:  # noqa: ARG001
    """In a kernel, a number as a float."""
    if not isinstance(value, (types.Integer, types.Boolean, types.Float)):
        raise TypingError(f"an output declared float is given a {value}")
    return types.float64(value), lambda context, builder, signature, arguments: context.cast(
        builder, arguments[0], signature.args[0], types.float64
    )


def _row_of(own: OwnFunction) -> Any:
    """In a kernel, the row that a call gave; no row, which is not read, if the call always gives None."""
    tuple_of: Any = types.BaseTuple.from_types
    of = tuple_of([types.float64 if kind is WordType.FLOAT else types.int64 for _, kind in own.outputs])

    def typed(typing: Any, made: Any) -> Any:  # noqa: ARG001
        def row(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            if isinstance(made, types.NoneType):
                return context.get_constant_null(of)
            return context.cast(builder, arguments[0], signature.args[0], of)

        return of(made), row

    return _intrinsic(typed)


_TOOLS: Mapping[str, Any] = {
    "as_float": _intrinsic(_as_float),
    "as_word": _intrinsic(_as_word),
    "whole": _intrinsic(_whole),
    "decimal": _intrinsic(_decimal),
    "load": load,
    "store": store,
    "replace": replace,
    "state_of": tables.state_of,
    "state_at": tables.state_at,
    "states_in": tables.states_in,
    "is_first": tables.is_first,
    "forget_first": tables.forget_first,
}


@inlined
def _room(words: int, outputs: int, block: int, room: int) -> int:
    """A block with twice the room for outputs, with those written so far; 0 without memory."""
    size = load(words, STRIDE) // 8
    if block:
        return reallocate(block, (2 * room + 1) * size)
    block = allocate((2 * room + 1) * size)
    if block:
        for word in range(room * size - 1):
            store(block, 1 + word, load(outputs, word))
    return block


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a function finds its columns, in words of the tuple."""

    places: tuple[tuple[int, WordType], ...]  # place and type of each parameter
    key_at: int  # place of the key; -1 without one
    fields: int  # words of a tuple


def state_kind(own: OwnFunction) -> np.dtype[np.void]:
    """Layout of a compiled state, in words."""
    kinds = [(f.name, np.float64 if f.type is WordType.FLOAT else np.int64, f.length) for f in own.fields]
    return np.dtype([(name, kind, (length,)) if length else (name, kind) for name, kind, length in kinds])


def compiled_kernels(own: OwnFunction, layout: Layout) -> tuple[AtAddress, AtAddress | None]:
    """The compiled step and close of an own function."""
    if own.obstacle is not None:
        raise NotCompiled(f"{own.name}: {own.obstacle}")
    try:
        step = _at_address(own, own.step, _step_source(own, layout), "step")
        close = None if own.close is None else _at_address(own, own.close, _close_source(own), "close")
        for each in (step, close):
            if each is not None:
                _ = each.address
    except (NumbaError, UnsupportedBytecodeError, NotImplementedError) as error:
        raise NotCompiled(f"{own.name}: {_sentence(str(error), own)}") from error
    return step, close


def _at_address(own: OwnFunction, function: Any, source: str, name: str) -> AtAddress:
    kind = state_kind(own) if own.keeps_state else None
    given = "" if own.output is None else str(signature(own.output))
    decisive = repr((source, kind, given, own.outputs, _code(function, set())))
    names = {**_TOOLS, "user": _translated(function, _constructors(own), {}), "room_for": _room, "row_of": _row_of(own)}
    if kind is not None:
        names["state_from"] = state_from(kind)
    exec(compile(source, f"<{own.name}>", "exec"), names)
    names["run"] = inlined(names["run"])
    called = names["call"]
    called.__module__, called.__qualname__ = __name__, f"{own.name.replace(':', '.')}.{name}"
    return AtAddress(SIGNATURE, called, KernelCache(called, lambda: digest(stamp_of(__name__, __file__), decisive)))


def _code(function: Any, seen: set[object]) -> object:
    """All that decides what a function compiles to: its code, helpers and constants."""
    if function in seen:
        return function.__qualname__
    seen.add(function)
    attributes = frozenset(_names_in(function.__code__))
    closed = [cell.cell_contents for cell in function.__closure__ or ()]
    held = [function.__defaults__, *closed, *sorted(_globals_of(function).items())]
    return _code_of(function.__code__), [_constant(value, attributes, seen) for value in held]


def _code_of(code: CodeType) -> object:
    constants = [_code_of(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts]
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code.hex(), code.co_exceptiontable.hex(), code.co_argcount, code.co_flags, names, constants


def _constant(value: Any, attributes: frozenset[str], seen: set[object]) -> object:
    """What a value is to a function that names these attributes."""
    value = _plain_function(value)
    if isinstance(value, FunctionType):
        return _code(value, seen)
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, tuple):
        return type(value).__name__, [_constant(each, attributes, seen) for each in value]
    if isinstance(value, (ModuleType, type)) and (id(value), attributes) not in seen:
        seen.add((id(value), attributes))
        held = [(name, getattr(value, name)) for name in sorted(attributes) if hasattr(value, name)]
        return value.__name__, [
            (name, _constant(each, attributes, seen)) for name, each in held if not isinstance(each, FunctionType)
        ]
    return repr(value) if not callable(value) else getattr(value, "__name__", repr(value))


def _plain_function(value: Any) -> Any:
    """The Python function of one that the user compiled by Numba."""
    return getattr(value, "py_func", value)


def _names_in(code: CodeType) -> set[str]:
    """Globals and attributes that code names, with the functions within."""
    return set(code.co_names).union(*(_names_in(each) for each in code.co_consts if isinstance(each, CodeType)))


def _globals_of(function: Any) -> dict[str, Any]:
    """Globals that a function names."""
    return {name: function.__globals__[name] for name in _names_in(function.__code__) & function.__globals__.keys()}


def _translated(function: Any, constructors: Mapping[Any, Any], made: dict[Any, Any]) -> Any:
    """A function for Numba, with compiled helpers, and plain tuples for its outputs."""
    if function in made:
        return made[function]
    made[function] = function  # a function that calls itself stays as it is, which Numba refuses
    names = dict(function.__globals__)
    for name, value in _globals_of(function).items():
        value = _plain_function(value)
        if isinstance(value, type) and value in constructors:
            names[name] = constructors[value]
        elif isinstance(value, FunctionType):
            names[name] = _translated(value, constructors, made)
    own = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    made[function] = inlined(own, checked=True)
    return made[function]


def _constructors(own: OwnFunction) -> Mapping[Any, Any]:
    """For the class of the outputs, a function that converts each field to its type."""
    if own.output is None:
        return {}
    parameters = [each.replace(annotation=Signature.empty) for each in signature(own.output).parameters.values()]
    converted = ", ".join(f"{'decimal' if kind is WordType.FLOAT else 'whole'}({name})" for name, kind in own.outputs)
    names = dict(_TOOLS)
    source = f"def output({', '.join(map(str, parameters))}):\n    return ({converted},)\n"
    exec(compile(source, f"<{own.name}>", "exec"), names)
    return {own.output: inlined(names["output"])}


_TAKEN_AS = {
    WordType.INTEGER: "load(given, {})",
    WordType.FLOAT: "as_float(load(given, {}))",
    WordType.FLAG: "load(given, {}) != 0",
    WordType.TEXT: "load(given, {})",
}


def _arguments(own: OwnFunction, layout: Layout) -> str:
    taken = []
    for (_, declared), (place, there) in zip(own.parameters, layout.places, strict=True):
        value = _TAKEN_AS[there].format(place)
        if declared is WordType.FLOAT and there is not WordType.FLOAT:
            value = f"float({value})"
        elif declared is WordType.INTEGER and there is WordType.FLAG:
            value = f"int({value})"
        taken.append(value)
    return ", ".join(taken)


def _written(own: OwnFunction, gives: Gives, call: str, fields: int, indent: str) -> str:
    """Source that writes the outputs of a call."""
    if gives is Gives.NOTHING:
        return f"{indent}{call}\n"
    if gives is Gives.FILTER:
        copies = "".join(f"{indent}    store(outputs, {at}, load(given, {at}))\n" for at in range(fields))
        return f"{indent}if {call}:\n{copies}{indent}    count = 1\n"
    head = (
        f"{indent}for made in {call}:\n"
        if gives is Gives.MANY
        else f"{indent}made = {call}\n{indent}if made is not None:\n"
    )
    names = [f"made_{at}" for at in range(len(own.outputs))]
    values = [
        f"as_word({name})" if kind is WordType.FLOAT else name
        for name, (_, kind) in zip(names, own.outputs, strict=True)
    ]
    inner = f"{indent}    "
    return (
        f"{head}{inner}if count == room:\n"
        f"{inner}    grown = room_for(words, outputs, block, room)\n"
        f"{inner}    if grown == 0:\n"
        f"{inner}        return {NO_MEMORY}\n"
        f"{inner}    block = grown\n{inner}    place = block + 8\n{inner}    room *= 2\n"
        + f"{inner}{', '.join(names)}, = row_of(made)\n"
        + "".join(f"{inner}store(place + count * stride, {at}, {value})\n" for at, value in enumerate(values))
        + f"{inner}count += 1\n"
    )


_START = f"""    count, block, place = 0, 0, outputs
    stride, room = load(words, {STRIDE}), load(words, {MOST})
"""
_END = """    if block:
        store(outputs, 0, block)
    return count
"""
_TABLE = f"table = load(words, {STATE}) + 8 * {tables.TABLE_WORDS} * partition\n"
_FIRST = f"load(words, {OWN})"
"""Address of the first values of a state."""
_HEAD = "(words, partition, given, outputs):\n"


def _call_source(where: int, fields: int, words: int, state: str) -> str:
    """The function that workers call: it notes the tuple and the state if the user's code raises an exception."""
    after = FAULT_WORDS + fields
    copied = "".join(f"            store(fault, {FAULT_WORDS + at}, load(given, {at}))\n" for at in range(fields))
    state = "".join(f"            {line}\n" for line in state.splitlines())
    kept = f"            for word in range({words}):\n                store(fault, {after} + word, load(state, word))\n"
    return (
        f"def call{_HEAD}    try:\n        return run(words, partition, given, outputs)\n    except Exception:\n"
        f"        fault = load(words, {OWN + 1})\n        if replace(fault, {WHERE}, 0, {where}):\n{copied}{state}"
        f"{kept if words else ''}        return {FAILED}\n"
    )


def _step_source(own: OwnFunction, layout: Layout) -> str:
    arguments, fields = _arguments(own, layout), layout.fields
    if not own.keeps_state:
        body = _START + _written(own, own.gives, f"user({arguments})", fields, "    ")
        return f"def run{_HEAD}{body}{_END}\n{_call_source(IN_STEP, fields, 0, '')}"
    words = state_kind(own).itemsize // 8
    key = "0" if layout.key_at < 0 else f"load(given, {layout.key_at})"
    found = f"{_TABLE}state = state_of(table, {key}, {words}, {_FIRST})\n"
    body = "".join(f"    {line}\n" for line in found.splitlines())
    body += f"    if state == 0:\n        return {NO_MEMORY}\n    this = state_from(state)\n{_START}"
    body += _written(own, own.gives, f"user(this, {arguments})", fields, "    ")
    return f"def run{_HEAD}{body}{_END}\n{_call_source(IN_STEP, fields, words, found)}"


def _close_source(own: OwnFunction) -> str:
    words = state_kind(own).itemsize // 8
    call = "user(this, load(given, 0))" if own.takes_time else "user(this)"
    body = (
        f"    {_TABLE}{_START}    for number in range(states_in(table)):\n"
        f"        state = state_at(table, number, {words})\n        store(table, {tables.CLOSING}, number)\n"
        f"        if is_first(state, {words}, {_FIRST}):\n            continue\n"
        "        this = state_from(state)\n"
        + _written(own, own.at_close, call, 1, "        ")
        + f"    forget_first(table, {words}, {_FIRST})\n"
    )
    found = f"{_TABLE}state = state_at(table, load(table, {tables.CLOSING}), {words})\n"
    return f"def run{_HEAD}{body}{_END}\n{_call_source(IN_CLOSE, 1, words, found)}"


_SAYS: tuple[tuple[str, Callable[..., str]], ...] = (
    (r"an output declared .* is given a .*", lambda found: f"{found[0]}; convert it by int() or float()"),
    (
        r"Unknown attribute '(\w+)'",
        lambda found: f"there is no attribute {found[1]!r} for Numba; use math",
    ),
    (
        r"Cannot unify (.+?) and (.+?) for '(\w+?)(?:\.\d+)?'",
        lambda found: f"{found[3]!r} is once {found[1]} and once {found[2]}; give it one type",
    ),
    (
        r"name '(\w+)' is not defined|NameError.*'(\w+)'",
        lambda found: f"{found[1] or found[2]!r} is not defined",
    ),
    (
        r"Cannot determine Numba type of <class '([\w.]+)'>",
        lambda found: f"it uses a {found[1]}; use numbers, fields of self, and functions of this module or of math",
    ),
    (r"unsupported opcode \(IMPORT_NAME\)", lambda _: "it imports a module; import at the top of the file"),
    (
        r"Use of unsupported opcode \((\w+)\)|(?:The )?use of (\w+) (?:is )?(?:not supported|unsupported)",
        lambda found: f"Numba does not support {found[1] or found[2]}; write a plain loop or condition",
    ),
    (
        r"No implementation of function .*?<?(?:built-in function |function )(\w+).* found for signature",
        lambda found: f"{found[1]} does not take these types; operators compute with int, float and bool",
    ),
)


def _sentence(told: str, own: OwnFunction) -> str:
    """What Numba does not compile, in which line, and what to write instead."""
    file = own.step.__code__.co_filename
    lines = re.findall(rf'File "{re.escape(file.rpartition("/")[2])}", line (\d+)|{re.escape(file)} \((\d+)\)', told)
    if not lines:
        lines = re.findall(rf'File "[^"]*{re.escape(file.rpartition("/")[2])}", line (\d+)()', told)
    where = f"line {lines[-1][0] or lines[-1][1]}: " if lines else ""
    for pattern, say in _SAYS:
        found = re.search(pattern, told)
        if found:
            return where + say(found)
    plain = [line.strip() for line in told.splitlines() if line.strip() and "pipeline" not in line]
    return f"{where}{plain[0] if plain else 'Numba cannot compile it'}"
