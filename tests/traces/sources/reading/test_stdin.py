"""What is piped in is a source like a file."""

import gzip
import io
import lzma
import sys

import pytest

from adapt.core.errors import UsageError
from adapt.traces.sources.reading.files import source_files, unpacked


class Piped(io.TextIOWrapper):
    """Standard input, from a pipe or from a keyboard."""

    def __init__(self, content, keyboard=False):
        super().__init__(io.BytesIO(content))
        self._keyboard = keyboard

    def isatty(self):
        return self._keyboard


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_what_is_piped_in_is_read_whatever_it_is_packed_with(tmp_path, monkeypatch, pack):
    monkeypatch.setattr(sys, "stdin", Piped(pack(b"a,b\n" * 1000)))
    (file,) = source_files(["-"], tmp_path / "kept")
    assert file.label == "stdin"
    with unpacked(file) as stream:
        assert stream.read() == b"a,b\n" * 1000


def test_standard_input_takes_its_place_among_the_sources(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", Piped(b"x\n"))
    (tmp_path / "a.csv").write_text("a\n")
    (tmp_path / "b.csv").write_text("b\n")
    found = source_files([str(tmp_path / "b.csv"), "-", str(tmp_path / "a.csv")], tmp_path / "kept")
    assert [file.label for file in found] == ["b.csv", "stdin", "a.csv"]


@pytest.mark.parametrize("stdin", [Piped(b"", keyboard=True), None])
def test_standard_input_with_nothing_piped_in_is_refused_not_waited_for(tmp_path, monkeypatch, stdin):
    monkeypatch.setattr(sys, "stdin", stdin)
    with pytest.raises(UsageError, match="nothing is piped into it"):
        source_files(["-"], tmp_path / "kept")


def test_standard_input_can_be_read_once(tmp_path):
    with pytest.raises(UsageError, match="given twice"):
        source_files(["-", "-"], tmp_path / "kept")
