import subprocess
import sys

import numba
import numpy as np
import pytest
from numba.core import caching

from adapt.core.compiled import compiled, fetch_ahead, record_at

SCRIPT = """
import pyarrow as pa
from adapt.core.keys.hashes import HASHES
from adapt.core.keys.names import HashName
print(HASHES[HashName.MURMUR3].modulo(pa.array(["a", "b"]), 7).tolist())
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


def test_a_kernel_is_kept(cache):
    assert result_of(compiled(doubled)) == [0, 2, 4]
    assert list(cache.rglob("*.nbc"))
    assert result_of(compiled(doubled)) == [0, 2, 4]


def test_nowhere_to_keep_a_kernel_is_no_failure(monkeypatch):
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", [])
    assert result_of(compiled(doubled)) == [0, 2, 4]


def test_a_cache_that_cannot_be_written_any_more_is_no_failure(cache):
    kernel = compiled(doubled)
    for folder in cache.iterdir():
        folder.rmdir()
    cache.rmdir()
    cache.write_text("in the way")
    assert result_of(kernel) == [0, 2, 4]


@pytest.mark.parametrize("damage", [b"", b"not a kernel"])
@pytest.mark.parametrize("kind", ["*.nbi", "*.nbc"])
def test_a_damaged_cache_is_no_failure(cache, kind, damage):
    result_of(compiled(doubled))
    for file in cache.rglob(kind):
        file.write_bytes(damage)
    assert result_of(compiled(doubled)) == [0, 2, 4]


def test_what_is_wrong_with_a_kernel_is_raised(cache):
    def wrong(values):
        return values.no_such_thing

    with pytest.raises(numba.core.errors.TypingError, match="no_such_thing"):
        compiled(wrong)(np.arange(3))


def test_processes_that_compile_at_once_agree(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    started = [subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    printed = [process.communicate()[0] for process in started]
    assert printed[0].startswith("[")
    assert len(set(printed)) == 1


def test_asking_ahead_for_a_record_changes_nothing_even_where_there_is_none():
    pair = np.dtype([("left", np.int64), ("right", np.int64)])

    @numba.njit
    def left_of(address, ahead):
        fetch_ahead(address, pair, ahead)
        return record_at(address, pair, 1).left

    records = np.array([(1, 2), (3, 4)], pair)
    assert [left_of(records.ctypes.data, ahead) for ahead in (0, 1, -1, 2**40)] == [3] * 4
