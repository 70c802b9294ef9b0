"""Compiled kernels, kept for all processes, and their atomic words."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
import pytest

from adapt.core import kernel_cache
from adapt.core.atomics import exchange, fetch_add, fixed, load, load_atomic, publish, put, replace, store
from adapt.core.compiled import compiled, record_at
from tests.tiers import soak

SCRIPT = """
import pyarrow as pa
from adapt.core.keys.hashes import HASHES
from adapt.core.keys.names import HashName
print(HASHES[HashName.MURMUR3].modulo(pa.array(["a", "b"]), 7).tolist())
"""

KERNEL = """
from adapt.core.compiled import AtAddress, compiled
from parts.part import scaled

@compiled
def kernel(values):
    return scaled(values[0])

def plain(value):
    return scaled(value)

AT = AtAddress("int64(int64)", plain)
"""
PART = """
from adapt.core.compiled import inlined
from parts.constants import SCALE

@inlined
def scaled(value):
    return SCALE * value
"""
CALL = """
import ctypes, sys
import numpy as np
from parts.kernel import AT, kernel
kinds = sys.argv[1:] or ["int64"]
print(*(kernel(np.array([3], kind)) for kind in kinds), ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(AT.address)(3))
sys.stdout.flush()
"""


def doubled(values, out):
    for row in range(len(values)):
        out[row] = 2 * values[row]


def result_of(kernel):
    out = np.empty(3, np.int64)
    kernel(np.arange(3), out)
    return out.tolist()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A folder of its own for kept kernels."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(folder))
    return folder


def test_nowhere_to_keep_a_kernel_is_no_failure(monkeypatch, caplog):
    kernel_cache._warn_once.cache_clear()
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", "~/.cache")  # what is left of the folder of a user without a home
    for _ in range(2):
        assert result_of(compiled(doubled)) == [0, 2, 4]
    assert not Path("~").exists()
    assert [record.getMessage() for record in caplog.records] == [
        "compiled code cannot be kept (the user has no home folder), so every command compiles again:"
        " set NUMBA_CACHE_DIR to a writable folder"
    ]


@pytest.mark.parametrize("damage", [b"", b"not a kernel"])
@pytest.mark.parametrize("kind", ["*.nbi", "*.nbc"])
def test_a_damaged_cache_is_no_failure(cache, kind, damage):
    result_of(compiled(doubled))
    for file in cache.rglob(kind):
        file.write_bytes(damage)
    assert result_of(compiled(doubled)) == [0, 2, 4]


@soak
def test_processes_that_compile_at_once_agree(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    started = [subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    printed = [process.communicate()[0] for process in started]
    assert printed[0].startswith("[")
    assert len(set(printed)) == 1


@pytest.fixture
def parts(tmp_path):
    """A package whose kernel is made of three files."""
    folder = tmp_path / "first" / "parts"
    folder.mkdir(parents=True)
    for name, source in {"kernel": KERNEL, "part": PART, "constants": "SCALE = 2\n"}.items():
        (folder / f"{name}.py").write_text(source)
    return folder


def started(parts, *arguments, script=CALL, stderr=None):
    kept = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        env=kept | {"XDG_CACHE_HOME": str(parts.parent.parent / "home"), "PYTHONPATH": str(parts.parent)},
    )


def printed_by(parts, *arguments, script=CALL):
    return started(parts, *arguments, script=script).communicate()[0].split()


def kept_by(parts):
    """When each file of machine code was written."""
    kernels = parts.parent.parent / "home" / "adapt" / "kernels"
    return {file: file.stat().st_mtime_ns for file in kernels.rglob("*.nbc")}


def stamps_of(parts):
    return {file.parent.name for file in kept_by(parts) if file.parent.parent.name == "parts.kernel.kernel"}


def test_kernels_are_kept_in_the_folder_of_the_user_and_not_beside_the_source(parts):
    assert printed_by(parts) == ["6", "6"]
    assert {file.parent.parent.name for file in kept_by(parts)} == {"parts.kernel.kernel", "parts.kernel.plain"}
    assert not [*parts.rglob("*.nb?")]


def test_the_same_sources_elsewhere_compile_nothing(parts):
    printed_by(parts)
    kept = kept_by(parts)
    clone = parts.parent.parent / "second" / "parts"
    shutil.copytree(parts, clone, copy_function=shutil.copyfile)
    assert printed_by(clone) == ["6", "6"]
    assert kept_by(clone) == kept


def test_a_kept_kernel_loads_without_the_modules_that_compiled_it(parts):
    (parts / "kernel.py").write_text(KERNEL.replace("values[0]", "values.sum()"))
    script = f"{CALL}print('scipy.linalg' in sys.modules)"
    assert printed_by(parts, script=script) == ["6", "6", "True"]
    assert printed_by(parts, script=script) == ["6", "6", "False"]


def test_an_edit_of_a_part_in_another_file_renews_the_kernel(parts):
    assert printed_by(parts) == ["6", "6"]
    (parts / "part.py").write_text(PART.replace("SCALE *", "10 * SCALE *"))
    assert printed_by(parts) == ["60", "60"]
    (parts / "constants.py").write_text("SCALE = 5\n")
    assert printed_by(parts) == ["150", "150"]


def test_an_edit_after_the_start_of_a_process_keeps_nothing(parts):
    edit = f"import parts.kernel; open({str(parts / 'constants.py')!r}, 'w').write('SCALE = 7')"
    process = started(parts, script=f"import logging; logging.basicConfig(); {edit}{CALL}", stderr=subprocess.PIPE)
    printed, said = process.communicate()
    assert printed.split() == ["6", "6"]
    assert said == ""  # the next process keeps it
    assert not kept_by(parts)
    assert printed_by(parts) == ["21", "21"]


@soak
def test_processes_that_compile_different_signatures_at_once_are_right_and_keep_all(parts):
    kinds = ("int64", "float64", "int32", "uint8")
    at_once = [started(parts, *kinds[at:], *kinds[:at]) for at in range(4)]
    printed = [process.communicate()[0].split() for process in at_once]
    assert [[float(value) for value in values] for values in printed] == [[6] * 5] * 4
    kept = kept_by(parts)
    assert len(kept) == 5
    assert [float(value) for value in printed_by(parts, *kinds)] == [6] * 5
    assert kept_by(parts) == kept


@soak
def test_a_kernel_keeps_the_versions_that_were_used_last(parts):
    printed_by(parts)
    (first,) = stamps_of(parts)
    kernel = parts.parent.parent / "home" / "adapt" / "kernels" / "parts.kernel.kernel"
    for age, name in enumerate(("a", "b", "c", "d", first)):
        (kernel / name).mkdir(exist_ok=True)
        os.utime(kernel / name, (1e9 - age, 1e9 - age))
    printed_by(parts)
    (parts / "constants.py").write_text("SCALE = 3\n")
    printed_by(parts)
    (second,) = stamps_of(parts) - {first}
    assert {folder.name for folder in kernel.iterdir()} == {first, second, "a", "b"}


@soak
def test_a_folder_that_may_only_be_read_is_used(parts):
    printed_by(parts)
    kept = kept_by(parts)
    home = parts.parent.parent / "home"
    for folder in [home, *home.rglob("*")]:
        folder.chmod(0o555 if folder.is_dir() else 0o444)
    assert printed_by(parts) == ["6", "6"]
    assert printed_by(parts, "float64") == ["6.0", "6"]
    for folder in [home, *home.rglob("*")]:
        folder.chmod(0o755)
    assert kept.items() <= kept_by(parts).items()


def test_a_forked_process_runs_what_its_parent_compiled_and_compiles_more(parts):
    fork = """
import os
child = os.fork()
os.write(1, f"{kernel(np.array([4]))} {kernel(np.array([4.0]))}\\n".encode())
if child:
    os.waitpid(child, 0)
"""
    assert printed_by(parts, script=CALL + fork) == ["6", "6", "8", "8.0", "8", "8.0"]


PAIR = np.dtype([("first", np.int64), ("second", np.int64)], align=True)
ORDERED = {"ldar", "ldapr", "stlr", "swpal", "ldaddal", "casal"}


@numba.njit
def _load_atomic(address: int) -> int:
    return load_atomic(address, 1)


@numba.njit
def _publish(address: int) -> None:
    publish(address, 1, 7)


@numba.njit
def _exchange(address: int) -> int:
    return exchange(record_at(address, PAIR, 0), "second", 7)


@numba.njit
def _fetch_add(address: int) -> int:
    return fetch_add(record_at(address, PAIR, 0), "second", 7)


@numba.njit
def _replace(address: int) -> bool:
    return replace(address, 1, 0, 7)


@numba.njit
def _plain(address: int) -> None:
    store(address, 0, load(address, 1))
    put(address, 0, fixed(address, 1))


def on_arm(function: Any) -> set[str]:
    """The instructions of a kernel, compiled for a 64-bit ARM processor."""
    function.compile("(int64,)")
    source = next(iter(function.inspect_llvm().values()))
    kept = [line for line in source.splitlines() if not line.startswith(("target ", "source_filename"))]
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("aarch64-unknown-linux-gnu")
    machine = target.create_target_machine(cpu="neoverse-n1", opt=2)
    module = llvm.parse_assembly("\n".join(['target triple = "aarch64-unknown-linux-gnu"', *kept]))
    return {line.split()[0] for line in machine.emit_assembly(module).splitlines() if line.strip()}


@pytest.mark.parametrize(
    ("function", "instruction"),
    [
        (_load_atomic, "ldar"),
        (_publish, "stlr"),
        (_exchange, "swpal"),
        (_fetch_add, "ldaddal"),
        (_replace, "casal"),
    ],
)
def test_an_atomic_word_acquires_or_releases_on_arm(function: Any, instruction: str) -> None:
    assert on_arm(function) & ORDERED == {instruction}


def test_plain_words_cost_no_order() -> None:
    assert not on_arm(_plain) & ORDERED
