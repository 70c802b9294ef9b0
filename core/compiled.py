"""Compiled kernels: loops over arrays that run at machine speed, in threads and in many processes at once."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.ccallback import CFunc
from numba.core.sigutils import normalize_signature
from numba.extending import intrinsic

from adapt.core.kernel_cache import KernelCache

Function = TypeVar("Function", bound=Callable[..., Any])

_cfunc: Any = CFunc
_normalized: Any = normalize_signature

_WITHIN: dict[str, Any] = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": False}
"""Without what a caller outside compiled code would need, which takes longer to compile than many a part. The last is
said since parts would take it over from who calls them."""


def compiled(function: Function) -> Function:
    """Compile `function` at its first call, without the GIL, and keep the machine code for later processes.

    See `KernelCache`: the code is renewed when a source changes that the kernel or its parts come from. Its `inlined`
    parts may be in other files, and it may be called with arrays of several types. A kernel raises nothing and prints
    nothing.
    """
    kernel: Any = numba.njit(nogil=True)(function)
    kernel._cache = KernelCache(function)

    @wraps(function)
    def call(*arguments: Any) -> Any:
        return kernel(*arguments)

    return cast(Function, call)


def inlined(function: Function) -> Function:
    """A part of kernels: callable from them only, compiled into them, never kept by itself."""
    return cast(Function, numba.njit(**_WITHIN)(function))


def flattened(function: Function) -> Function:
    """As `inlined`, and never left as a call: for what a kernel does tuple by tuple, where a call takes as long.

    To be used where there are few callers, since each has a copy that must be compiled.
    """
    return cast(Function, numba.njit(**{**_WITHIN, "forceinline": True})(function))


class Record:
    """A record in a kernel (`record_at`), as type checkers see it: its fields are words."""

    def __getattr__(self, name: str) -> int:
        """A plain read of a field."""
        raise NotImplementedError(name)

    def __setattr__(self, name: str, word: int | np.int64) -> None:
        """A plain write of a field."""
        raise NotImplementedError(name)


class AtAddress:
    """A function compiled to be called by its address, from kernels and from C; kept as `compiled` keeps kernels.

    It raises nothing and prints nothing.
    """

    def __init__(self, signature: str, function: Callable[..., Any]) -> None:
        """Compiled when the address is first asked for; the signature is written as numba reads it."""
        self._signature, self._function = signature, function
        self._made: Any = None

    @property
    def address(self) -> int:
        """Where it is, for as long as this object lives."""
        if self._made is None:
            self._made = self._make()
        return int(self._made.address)

    def _make(self) -> Any:
        made = _cfunc(self._function, _normalized(self._signature), locals={}, options={})
        made._cache = KernelCache(self._function)
        made.compile()
        return made


def _record_at(typing: Any, address: Any, kind: Any, number: Any) -> Any:  # noqa: ARG001 (numba names the parameters)
    """In a kernel, the record of a kind (a structured dtype) with a number, in the array that begins at an address.

    For kernels whose parts share many arrays. Given as arrays, every call of a part would count twenty references up
    and down again, which takes longer than the work; an address is a number. The caller keeps the arrays alive.
    """
    signature = kind.dtype(types.int64, kind, types.int64)

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        first, index = arguments[0], arguments[2]
        size = ir.Constant(first.type, kind.dtype.size)
        return builder.inttoptr(builder.add(first, builder.mul(index, size)), context.get_value_type(kind.dtype))

    return signature, generate


record_at: Any = intrinsic(_record_at)


def _record_after(typing: Any, record: Any, number: Any) -> Any:  # noqa: ARG001 (as above)
    """In a kernel, the record that is so many records of its kind behind one, or before it."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.gep(arguments[0], [arguments[1]])

    return record(record, types.int64), generate


record_after: Any = intrinsic(_record_after)


def _fetch_ahead(typing: Any, address: Any, kind: Any, number: Any) -> Any:  # noqa: ARG001 (as above)
    """In a kernel, ask for the record that `record_at` would give, so that it is in the cache when it is wanted.

    A hint: it changes no result, whatever the number.
    """
    signature = types.void(types.int64, kind, types.int64)

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        first, index = arguments[0], arguments[2]
        flag, byte = ir.IntType(32), ir.IntType(8).as_pointer()
        prefetch = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        )
        place = builder.inttoptr(builder.add(first, builder.mul(index, ir.Constant(first.type, kind.dtype.size))), byte)
        builder.call(prefetch, [place, flag(0), flag(3), flag(1)])

    return signature, generate


fetch_ahead: Any = intrinsic(_fetch_ahead)
