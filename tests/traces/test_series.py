"""Several traces are one stream in time."""

from pathlib import Path

import pytest

from adapt.core.errors import BadInput
from adapt.traces.counting.count_cache import counted
from adapt.traces.series import stream_of
from tests.traces.small_traces import write_trace


def _rows(first: int, last: int) -> dict[str, list[int] | list[str]]:
    return {"ts": list(range(first, last)), "key": [f"k{at % 7}" for at in range(first, last)]}


def test_traces_of_a_folder_count_as_one_trace(tmp_path: Path) -> None:
    (tmp_path / "days").mkdir()
    for name, first in (("b", 0), ("a", 1000)):
        write_trace(tmp_path / "days" / f"{name}.trace", _rows(first, first + 1000))
    whole = write_trace(tmp_path / "whole.trace", _rows(0, 2000))
    for said in ("days", "days/*.trace"):
        found = counted(stream_of(tmp_path / said)).frequencies
        assert found.rows == 2000
        assert found.as_counted() == counted(whole.path).frequencies.as_counted()
        assert found.keys.equals(counted(whole.path).frequencies.keys)


def test_traces_that_overlap_are_refused_with_their_names(tmp_path: Path) -> None:
    for name, first in (("a", 0), ("b", 500)):
        write_trace(tmp_path / f"{name}.trace", _rows(first, first + 1000))
    with pytest.raises(BadInput, match=r"a\.trace and .*b\.trace overlap in time"):
        stream_of(tmp_path / "*.trace")
