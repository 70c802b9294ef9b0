"""Classes and functions of users, by `module:name` or entry point."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from importlib import import_module, invalidate_caches
from importlib.metadata import entry_points
from inspect import getsource
from pathlib import Path
from sysconfig import get_path
from types import ModuleType
from typing import Any

from adapt.core.errors import UsageError, did_you_mean
from adapt.core.own.own_code import OPTIONS, OwnCode, typed_options

GROUPS = {"policy": "adapt.policies", "scheme": "adapt.schemes"}
"""The groups of entry points in which installed packages offer their own."""

_imported = set[str]()
"""Modules that were imported here; the next call imports them as they then are."""

_searched = set[str]()
"""Folders that were added to Python's path here."""

_INSTALLED = "site-packages"


def own_codes(kind: str, given: Sequence[tuple[str, Mapping[str, str]]]) -> tuple[OwnCode, ...]:
    """Users' classes or functions as typed, with their parameters.

    A module is looked up on Python's path, then in the current folder.

    Args:
        kind: policy or scheme.
    """
    _forget()
    if any(":" in name for name, _ in given):
        _look_here()
    return tuple(_made(kind, name, options, f"--{kind} {name}", f"--{kind} {name}:") for name, options in given)


def own_code(kind: str, name: str, options: Mapping[str, str], where: str) -> OwnCode | None:
    """A class or function that a file names.

    Modules that `own_codes` imported stay as they are.

    Args:
        kind: policy or scheme.
        options: Values of its parameters.
        where: The field that names it, for messages.

    Returns:
        None if the name is neither `module:name` nor one that an installed package offers.
    """
    if not is_own(kind, name):
        return None
    if ":" in name:
        _look_here()
    return _made(kind, name, options, f"{where} {name}", f"{OPTIONS} ")


def is_own(kind: str, name: str) -> bool:
    """Whether a name is `module:name`, or one that an installed package offers."""
    return ":" in name or name in offered(kind)


def offered(kind: str) -> list[str]:
    """Names that installed packages offer."""
    return sorted({each.name for each in entry_points(group=GROUPS[kind])})


def _made(kind: str, typed: str, options: Mapping[str, str], where: str, before: str) -> OwnCode:
    found = _found(kind, typed, where)
    return replace(found, options=typed_options(found.name, found.call, options, before))


def _found(kind: str, typed: str, where: str) -> OwnCode:
    name = typed
    if ":" not in typed:
        points = {each.name: each.value for each in entry_points(group=GROUPS[kind])}
        if typed not in points:
            raise UsageError(f"{where} does not exist{did_you_mean(typed, points)}")
        name = points[typed].partition("[")[0].strip()
    module_name, _, attribute = name.partition(":")
    module = _module(where, module_name)
    call: Any = module
    for part in attribute.split("."):
        call = getattr(call, part, None)
    if not callable(call):
        known = [each for each, value in vars(module).items() if _is_of(module, each, value)]
        hidden = "" if _is_local(module) else "; it is an installed module: give yours another name"
        raise UsageError(
            f"{where}: {module_name} has no class or function {attribute!r}{did_you_mean(attribute, known)}{hidden}"
        )
    return OwnCode(kind, name, str(getattr(module, "__file__", "")), _source(module, call), call)


def _is_of(module: ModuleType, name: str, value: Callable[..., Any]) -> bool:
    """Whether a module defines this class or function for others."""
    return not name.startswith("_") and callable(value) and getattr(value, "__module__", None) == module.__name__


def _forget() -> None:
    """Forget the modules and folders of earlier calls."""
    for name in _imported:
        sys.modules.pop(name, None)
    sys.path[:] = [each for each in sys.path if each not in _searched]
    _imported.clear()
    _searched.clear()


def _look_here() -> None:
    """Look in the current folder last, so that no file there hides another module."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
        _searched.add(here)
    invalidate_caches()


def _module(where: str, name: str) -> ModuleType:
    before = set(sys.modules)
    try:
        module = import_module(name)
    except Exception as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise UsageError(
            f"{where}: the module {name!r} cannot be imported ({said}); modules are looked up on Python's path"
            " and in the current folder"
        ) from error
    finally:
        _imported.update(each for each in set(sys.modules) - before if _is_local(sys.modules[each]))
    return module


def _is_local(module: ModuleType) -> bool:
    """Whether a module is the user's, not of an installed package."""
    file = Path(_file(module))
    installed = _INSTALLED in file.parts or file.is_relative_to(get_path("stdlib"))
    return bool(_file(module)) and not installed and module.__name__.partition(".")[0] != "adapt"


def _source(module: ModuleType, call: Callable[..., Any]) -> str:
    """SHA-256 of a module and of those that it imports; at a prompt, of the class or function."""
    digest, files = sha256(), sorted(filter(None, map(_file, _beside(module))))
    for path in map(Path, files):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    if not files:
        with suppress(OSError, TypeError):
            digest.update(getsource(call).encode())
    return digest.hexdigest()


def _beside(module: ModuleType) -> list[ModuleType]:
    """A module and the modules of its package or folder that it imports."""
    top = module.__name__.partition(".")[0]
    folder = Path(_file(module)).parent

    def belongs(other: ModuleType) -> bool:
        file = Path(_file(other))
        same = other.__name__.partition(".")[0] == top
        return bool(_file(other)) and (same or (file.is_relative_to(folder) and _INSTALLED not in file.parts))

    found, waiting = {module.__name__: module}, [module]
    while waiting:
        for name in _names_in(waiting.pop()):
            one = sys.modules.get(name)
            if one is not None and name not in found and belongs(one):
                found[name] = one
                waiting.append(one)
    return list(found.values())


def _names_in(module: ModuleType) -> Iterator[str]:
    """Names of modules from which a module holds anything."""
    for value in list(vars(module).values()):
        name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if isinstance(name, str):
            yield name


def _file(module: ModuleType) -> str:
    """The source file of a module; empty without one."""
    file = getattr(module, "__file__", None) or ""
    return file if Path(file).is_file() else ""


def ship(own: OwnCode) -> None:
    """Let Spark send a user's code to its tasks."""
    from pyspark import cloudpickle

    for module in _beside(sys.modules[own.name.partition(":")[0]]):
        if _is_local(module):
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
