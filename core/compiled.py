"""Compiled kernels: loops over arrays that run at machine speed, in threads and in many processes at once."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

Function = TypeVar("Function", bound=Callable[..., Any])

_WITHIN: dict[str, Any] = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": False}
"""Without what a caller outside compiled code would need, which takes longer to compile than many a part. The last is
said since parts would take it over from who calls them."""


def compiled(function: Function) -> Function:
    """Compile `function` at its first call, without the GIL, and keep the machine code for later processes.

    The code is kept beside the source, or in the user's cache folder if the source is not writable. A cache that
    cannot be written or read (no writable folder, disk full, a damaged file) costs a compilation, never a failure.

    Call a kernel with one combination of array types only: entries of two combinations, written by two processes
    at once, could take each other's file. A kernel's `inlined` parts stand in its own file, since a kept kernel is
    renewed when its file changes, not when another does. A kernel raises nothing and prints nothing.
    """
    uncached = numba.njit(nogil=True)(function)
    try:
        kernel = numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:  # no folder to keep the code in
        kernel = uncached

    @wraps(function)
    def call(*arguments: Any) -> Any:
        nonlocal kernel
        try:
            return kernel(*arguments)
        except Exception:
            # A damaged cache file can raise anything. What is wrong with the kernel itself is raised again here.
            kernel = uncached
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
        try:
            return numba.cfunc(self._signature, cache=True)(self._function)
        except Exception:  # as for kernels: no folder, or a file that is damaged
            return numba.cfunc(self._signature)(self._function)


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
