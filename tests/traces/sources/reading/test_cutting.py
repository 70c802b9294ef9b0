"""Long files cut by ranges that are walked side by side: the blocks of one walk, wherever quotes lie."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import BadInput
from adapt.traces.sources.formats.delimited import Delimited
from adapt.traces.sources.formats.text import pattern_format
from adapt.traces.sources.names import FormatName
from adapt.traces.sources.reading import blocks
from adapt.traces.sources.reading.blocks import again, blocks_of_walks, cut, ranges, walk, warn_of_packed
from adapt.traces.sources.reading.files import CHUNK_BYTES, Container, SourceFile, source_files
from tests.tiers import examples, soak

QUOTED, PLAIN, LINES = Delimited(("x", "y")), Delimited(("x", "y"), quote=""), pattern_format("(?P<x>.*)")

contents = st.lists(
    st.sampled_from([b"a", b"bb", b",", b'"', b'"\n', b"\n", b"\r\n", b"\r", b'a,"x\ny"\n', b"a,b\n" * 3]), max_size=80
).map(b"".join)


def file_of(folder, content):
    path = folder / "source.csv"
    path.write_bytes(content)
    (file,) = source_files([str(path)])
    return file


def small(monkeypatch, chunk, chunks, blocks_a_range, guess):
    monkeypatch.setattr(blocks, "CHUNK_BYTES", chunk)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", chunk * chunks)
    monkeypatch.setattr(blocks, "RANGE_BYTES", chunk * chunks * blocks_a_range)
    monkeypatch.setattr(blocks, "GUESS_BYTES", guess)


def side_by_side(file, form):
    """Blocks, and how many walks were done again."""
    asked, walks, done = ranges(file, form), {}, 0
    if len(asked) == 1:
        return cut(0, file, form), 0
    while tasks := again(asked, walks, done):
        walks |= {task.first: walk(file, form, task) for task in tasks}
        done += 1
    return blocks_of_walks(0, file, [walks[first] for first in sorted(walks)]), done - 1


@examples(short=60)
@given(
    content=contents,
    chunk=st.integers(1, 9),
    chunks=st.integers(1, 3),
    blocks_a_range=st.integers(1, 3),
    guess=st.integers(1, 40),
    form=st.sampled_from([QUOTED, PLAIN, LINES]),
)
def test_ranges_side_by_side_give_the_blocks_of_one_walk(
    tmp_path_factory, content, chunk, chunks, blocks_a_range, guess, form
):
    file = file_of(tmp_path_factory.mktemp("cut"), b"a,b\n" + content)
    with pytest.MonkeyPatch.context() as monkeypatch:
        small(monkeypatch, chunk, chunks, blocks_a_range, guess)
        assert side_by_side(file, form)[0] == cut(0, file, form)


def test_a_range_that_begins_in_quotes_is_walked_again(tmp_path, monkeypatch):
    small(monkeypatch, 8, 1, 1, 8)
    file = file_of(tmp_path, b'a,b\na,"' + b"x,y\n" * 20 + b'"\n' + b"c,d\n" * 20)
    found, repaired = side_by_side(file, QUOTED)
    assert found == cut(0, file, QUOTED)
    assert repaired > 0
    plain = file_of(tmp_path, b"a,b\n" * 60)
    assert side_by_side(plain, QUOTED) == (cut(0, plain, QUOTED), 0)


def test_a_record_that_is_too_long_is_an_error_of_its_file_alone(tmp_path, monkeypatch):
    small(monkeypatch, 8, 1, 2, 16)
    monkeypatch.setattr(blocks, "LONGEST_RECORD", 20)
    file = file_of(tmp_path, b"a,b\n" * 30 + b'c,"' + b"x" * 60 + b'"\n')
    with pytest.raises(BadInput, match="line 31: a record must not exceed"):
        side_by_side(file, QUOTED)


def test_a_long_compressed_file_is_announced_with_its_time(caplog, tmp_path):
    big = SourceFile(tmp_path / "b.csv.gz", "b.csv.gz", Container.GZIP, 20 * 10**9)
    with caplog.at_level(logging.WARNING):
        warn_of_packed([big, SourceFile(tmp_path / "a.csv", "a.csv", Container.PLAIN, 20 * 10**12)])
    (said,) = caplog.messages
    assert said.startswith("b.csv.gz is compressed (gzip), so one core reads it alone, for about 17 minutes; ")


@soak
def test_spark_cuts_a_long_file_by_ranges(tmp_path, opened, monkeypatch):
    line = 'k,"' + "x" * 500 + "\n" + "y" * 500 + '"\n'
    path = tmp_path / "in.csv"
    path.write_text("key,n\n" + line * (5 * CHUNK_BYTES // len(line)))
    monkeypatch.setattr(blocks, "RANGE_BYTES", CHUNK_BYTES)
    source = opened(path, format=FormatName.CSV, delimiter=",", header=True)
    lines = [block.line for block in source._blocks]
    assert lines == [1, *(2 * (at * CHUNK_BYTES // len(line)) + 2 for at in range(1, 5))]
    assert source.inputs[0].keys() == {"name", "bytes", "sha256_of_ranges"}
