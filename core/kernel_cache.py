"""Disk cache of compiled kernels, keyed by the content of their sources.

Entries are in the user's cache folder (`NUMBA_CACHE_DIR` if it is set, else `XDG_CACHE_HOME` or `~/.cache`) as
`adapt/kernels/KERNEL/STAMP/SIGNATURE`. A stamp is a digest of every source that may be compiled into the kernel, so
file paths and times do not matter, and an edit in another file is detected.
"""

import errno
import logging
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from secrets import randbits
from shutil import rmtree
from time import time_ns
from types import ModuleType, SimpleNamespace
from typing import Any

import llvmlite
import numba
from llvmlite import binding
from numba.core import environment
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import IndexDataCacheFile
from numba.core.compiler import CompileResult
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

_config: Any = numba.config
_environments: Any = environment
_dumps: Any = dumps
_runtime: Any = rtsys
_entry_files: Any = IndexDataCacheFile
_user_folders: Any = AppDirs
_rebuilt: Any = CompileResult._rebuild
_identity: Any = FunctionIdentity

# Numba numbers the functions of a process from 1, and LLVM links the first of two symbols of one name: of a cached and
# a new function of one name and number, one would run in place of the other.
_identity._unique_ids = iter(lambda: randbits(64), None)

# Numba would import every module that a part of a kernel is from, SciPy among them: 0.15 s for globals that only code
# in object mode reads.
_environments.importlib = SimpleNamespace(import_module=lambda name: sys.modules.get(name) or ModuleType(name))

_LOG = logging.getLogger(__name__)

_KEPT_STAMPS = 4
"""Versions kept per kernel: the last used ones."""

_STARTED_NS = time_ns()
_VERSIONS = (numba.__version__, llvmlite.__version__, sys.version, "names of wrappers")
_IMPORT = re.compile(r"^\s*(?:from|import)\s+([\w.]+)(?:\s+import\s+(\([^)]*\)|[^\n]*))?", re.MULTILINE)


class KernelCache:
    """The machine code of one function by signature, for numba.

    An entry is two files, each written atomically, so processes may compile at once. If the cache cannot be used (no
    folder, a full disk, a damaged file), the kernel is compiled again.
    """

    def __init__(self, function: Callable[..., Any], stamp: Callable[[], str] | None = None) -> None:
        """Sources are read on first use; `stamp` replaces their digest."""
        self._function, self._given = function, stamp

    def stamp(self) -> str:
        """Digest of the sources of the function."""
        if self._given is not None:
            return self._given()
        return stamp_of(self._function.__module__, self._function.__code__.co_filename)

    def load_overload(self, signature: Any, context: Any) -> Any:
        """The compiled function of a signature; None if not cached."""
        try:
            _runtime.initialize(context)  # all that loading needs of a refresh, which imports SciPy and more
            folder, entry, key = self._entry(signature, context.codegen())
            kept = entry.load(key)
            if kept is None:
                return None
            with suppress(OSError):  # the folder belongs to another user
                folder.touch()
            return _rebuilt(context, *kept)
        except Exception:  # damaged files can raise anything
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Store the machine code of a signature."""
        if result.library.has_dynamic_globals:  # addresses of this process
            return
        try:
            folder, entry, key = self._entry(signature, result.codegen)
            folder.mkdir(parents=True, exist_ok=True)
            (name, kind, (code, _)), *rest = result._reduce()
            entry.save(key, ((name, kind, (code, _names_alone(result.fndesc))), *rest))
            _remove_old_stamps(folder.parent)
        except OSError as error:
            _warn_once(str(error.strerror or error))
        except Exception:  # what cannot be kept is compiled again
            return

    def _entry(self, signature: Any, codegen: Any) -> tuple[Path, Any, tuple[Any, ...]]:
        """The folder of the stamp, the files of a signature, and the key that verifies them."""
        function, code = self._function, self._function.__code__
        stamp = self.stamp()
        closure = _dumps(tuple(cell.cell_contents for cell in function.__closure__ or ()))
        key = (signature, codegen.magic_tuple(), code.co_firstlineno, code.co_code, closure)
        kernel = re.sub(r"[^\w.]", "", f"{function.__module__}.{function.__qualname__}")
        folder = _cache_folder() / "adapt" / "kernels" / kernel / stamp
        return folder, _entry_files(str(folder), sha256(repr(key).encode()).hexdigest()[:16], stamp), key


def _names_alone(function: Any) -> bytes:
    """Bitcode with the names of a kernel and of its wrappers alone.

    To load that of all parts took half of the time; no kernel is linked into another.
    """
    names = (function.llvm_func_name, function.llvm_cpython_wrapper_name, function.llvm_cfunc_wrapper_name)
    return bytes(
        binding.parse_assembly("\n".join(f'define void @"{name}"() {{ ret void }}' for name in names)).as_bitcode()
    )


@cache
def _warn_once(why: str) -> None:
    """Say why kernels are not kept, where a command shows it: not in each of its worker processes."""
    if _LOG.hasHandlers():
        _LOG.warning(
            "compiled code cannot be kept (%s), so every command compiles again: set NUMBA_CACHE_DIR to a writable"
            " folder",
            why,
        )


def _cache_folder() -> Path:
    """The user's cache folder."""
    folder = Path(_config.CACHE_DIR or _user_folders("").user_cache_dir)
    if folder.parts[0].startswith("~"):
        raise FileNotFoundError(errno.ENOENT, "the user has no home folder", str(folder))
    return folder


@cache
def stamp_of(module: str, file: str) -> str:
    """Digest of a module's source, imports and compiler.

    Imports are those from this package or the module's own.
    """
    digests: dict[str, str] = {}
    pending = {module: file}
    while pending:
        name, at = pending.popitem()
        if not Path(at).exists() or Path(at).stat().st_mtime_ns > _STARTED_NS:
            raise RuntimeError(f"{at} was edited")
        source = Path(at).read_bytes()
        digests[name] = sha256(source).hexdigest()
        pending |= {
            found: path
            for found, path in _imported(source.decode(), {module.partition(".")[0], __name__.partition(".")[0]})
            if found not in digests
        }
    return digest(_VERSIONS, sorted(digests.items()))


def digest(*parts: object) -> str:
    """Digest of anything that prints the same in each process."""
    return sha256(repr(parts).encode()).hexdigest()[:16]


def _imported(source: str, packages: set[str]) -> list[tuple[str, str]]:
    """The loaded modules that a source imports from some packages, and their files."""
    names = [
        name
        for module, parts in _IMPORT.findall(source)
        if module.partition(".")[0] in packages
        for name in (module, *(f"{module}.{part}" for part in re.findall(r"\w+", parts)))
    ]
    files = ((name, getattr(sys.modules.get(name), "__file__", None)) for name in names)
    return [(name, file) for name, file in files if file is not None]


def _remove_old_stamps(kernel: Path) -> None:
    """Delete all but the last used stamps of a kernel; a process that still reads one compiles instead."""
    stamps = sorted(kernel.iterdir(), key=lambda stamp: stamp.stat().st_mtime_ns, reverse=True)
    for stamp in stamps[_KEPT_STAMPS:]:
        rmtree(stamp, ignore_errors=True)
