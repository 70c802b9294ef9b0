"""Atomic words: each gives the instructions of its order on ARM, where plain accesses change places."""

from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
import pytest

from adapt.core.atomics import exchange, fetch_add, fixed, load, load_atomic, publish, put, replace, store
from adapt.core.compiled import record_at

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
