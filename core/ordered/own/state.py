"""The state of a user's class in a kernel.

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
