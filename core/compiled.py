"""Compiled kernels: fast loops over arrays, without the GIL, cached on disk."""

from collections.abc import Callable
from ctypes import PYFUNCTYPE, c_char_p, c_int64
from functools import cached_property, wraps
from types import FunctionType
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.ccallback import CFunc
from numba.core.sigutils import normalize_signature
from numba.extending import intrinsic
from numba.np.numpy_support import carray
from numpy.typing import NDArray

from adapt.core.kernel_cache import KernelCache, digest

Function = TypeVar("Function", bound=Callable[..., Any])

_cfunc: Any = CFunc
_normalized: Any = normalize_signature

_WITHIN: dict[str, Any] = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": False}
"""Without wrappers for callers outside compiled code, which take long to compile. The last flag would otherwise be
inherited from callers."""


def compiled(function: Function) -> Function:
    """Compile `function` on first call, GIL-free, cached on disk.

    See `KernelCache`: a change in any source of the kernel or its parts recompiles it. `inlined` parts may be in other
    files, and argument types may vary. Kernels do not raise or print.
    """
    kernel: Any = numba.njit(nogil=True)(function)
    kernel._cache = KernelCache(function)

    @wraps(function)
    def call(*arguments: Any) -> Any:
        return kernel(*arguments)

    call.__dict__["kernel"] = kernel
    return cast(Function, call)


def load(function: Callable[..., Any], *arguments: Any) -> None:
    """Load a kernel for arguments like these without calling it."""
    function.__dict__["kernel"].compile(tuple(map(numba.typeof, arguments)))


def inlined(function: Function, *, checked: bool = False) -> Function:
    """A part of kernels, compiled into them; `checked` checks bounds of arrays."""
    return cast(Function, numba.njit(**_WITHIN, boundscheck=checked)(function))


def flattened(function: Function) -> Function:
    """As `inlined`, but never a call: for work per tuple.

    For few callers, as each compiles its own copy.
    """
    return cast(Function, numba.njit(**{**_WITHIN, "forceinline": True})(function))


class Record:
    """A record in a kernel (`record_at`), for type checkers: fields are words."""

    def __getattr__(self, name: str) -> int:
        """Read a field."""
        raise NotImplementedError(name)

    def __setattr__(self, name: str, word: int | np.int64) -> None:
        """Write a field."""
        raise NotImplementedError(name)


class AtAddress:
    """A compiled function called by address, from kernels and C.

    It does not raise or print.
    """

    def __init__(self, signature: str, function: Callable[..., Any], cache: KernelCache | None = None) -> None:
        """Compile on first use of the address; the signature has numba's syntax."""
        self._signature, self._function, self._cache = signature, function, cache or KernelCache(function)
        self._made: Any = None

    @property
    def address(self) -> int:
        """The address, valid while this object lives."""
        if self._made is None:
            self._made = self._make()
        return int(self._made.address)

    def within(self, signature: str, caller: Callable[..., Any], name: str) -> "AtAddress":
        """A compiled caller, in which the global `name` is this function."""
        inner = flattened(self._function)  # a call per tuple is up to 15 % of its time
        function = FunctionType(caller.__code__, {**caller.__globals__, name: inner}, caller.__name__)
        function.__module__ = self._function.__module__
        function.__qualname__ = f"{self._function.__qualname__}.{caller.__name__}"
        stamps = self._cache.stamp, KernelCache(caller).stamp
        cache = KernelCache(function, lambda: digest(*(stamp() for stamp in stamps)))
        return AtAddress(signature, function, cache)

    def _make(self) -> Any:
        made = _cfunc(self._function, _normalized(self._signature), locals={}, options={})
        made._cache = self._cache
        made.compile()
        return made


class OfBytes:
    """A compiled function of some bytes, called without arrays.

    A call takes less time than arrays take to make. It does not raise or print.
    """

    def __init__(self, function: Callable[[NDArray[np.uint8], int, int], Any]) -> None:
        """Compile a function of data, start and end on first use."""
        self._made = AtAddress(_OF_BYTES, function).within(_OF_BYTES, _of_bytes, "_function")

    @cached_property
    def _call(self) -> Callable[[bytes, int], int]:
        return PYFUNCTYPE(c_int64, c_char_p, c_int64)(self._made.address)

    def __call__(self, data: bytes) -> int:
        """The result for some bytes."""
        return self._call(data, len(data))


_OF_BYTES = "int64(CPointer(uint8), int64)"
_function: Any = None


def _of_bytes(address: Any, length: int) -> Any:
    return _function(carray(address, (length,)), 0, length)


def _record_at(typing: Any, address: Any, kind: Any, number: Any) -> Any:  # noqa: ARG001 (numba names the parameters)
    """In a kernel, the record with an index in the array of structured dtype at an address.

    For kernels whose parts share many arrays: reference-counting twenty arrays per call would take longer than the
    work. The caller keeps the arrays alive.
    """
    signature = kind.dtype(types.int64, kind, types.int64)

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        first, index = arguments[0], arguments[2]
        size = ir.Constant(first.type, kind.dtype.size)
        return builder.inttoptr(builder.add(first, builder.mul(index, size)), context.get_value_type(kind.dtype))

    return signature, generate


record_at: Any = intrinsic(_record_at)


def _record_after(typing: Any, record: Any, number: Any) -> Any:  # noqa: ARG001 (as above)
    """In a kernel, the record at an offset in records from another."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.gep(arguments[0], [arguments[1]])

    return record(record, types.int64), generate


record_after: Any = intrinsic(_record_after)


def _fetch_ahead(typing: Any, address: Any, kind: Any, number: Any) -> Any:  # noqa: ARG001 (as above)
    """In a kernel, prefetch the record that `record_at` would return.

    A hint that changes no result.
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


def _bits_of(_: Any, number: Any) -> Any:  # noqa: ARG001 (numba counts the parameters)
    """In a kernel, the bits of a double as an integer."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


bits_of: Any = intrinsic(_bits_of)
