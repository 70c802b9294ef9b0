"""Files cut into blocks and read back: the same rows and lines however they are cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import BadInput
from adapt.traces.sources.formats.delimited import Delimited
from adapt.traces.sources.formats.text import pattern_format
from adapt.traces.sources.reading import blocks
from adapt.traces.sources.reading.blocks import cut, read_block
from adapt.traces.sources.reading.files import source_files

PLAIN = Delimited(("x", "y"))
HEADED = Delimited(("x", "y"), header=("x", "y"))
LINES = pattern_format("(?P<x>.*)")


def file_of(tmp_path, content, name="source.csv"):
    path = tmp_path / name
    path.write_bytes(content)
    (file,) = source_files([str(path)])
    return file


def rows_of(file, form, wanted=None, **options):
    wanted = form.columns if wanted is None else wanted
    rows = []
    for block in cut(0, file, form):
        for batch in read_block(block, form, wanted, **options):
            rows += batch.to_pylist()
    return rows


def small_blocks(monkeypatch, size, chunk):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", size)
    monkeypatch.setattr(blocks, "CHUNK_BYTES", chunk)


contents = st.lists(
    st.sampled_from(
        [b"a", b"b", b",", b'"', b"\n", b"\r\n", b"\r", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", "é".encode()]
    ),
    max_size=60,
).map(b"".join)


@given(content=contents, size=st.integers(1, 20), chunk=st.integers(1, 9), form=st.sampled_from([PLAIN, LINES]))
def test_small_blocks_hold_the_rows_and_lines_of_one_block(tmp_path_factory, content, size, chunk, form):
    content = b"a,b\n" + content  # a file that begins like UTF-16 is refused
    file = file_of(tmp_path_factory.mktemp("cut"), content)
    whole = rows_of(file, form, with_text=True)
    with pytest.MonkeyPatch.context() as monkeypatch:
        small_blocks(monkeypatch, size, chunk)
        pieces = cut(0, file, form)
        assert rows_of(file, form, with_text=True) == whole
    assert [piece.offset for piece in pieces] == sorted({piece.offset for piece in pieces})


def test_a_long_file_is_cut_where_records_begin(tmp_path, monkeypatch):
    small_blocks(monkeypatch, 10, 4)
    file = file_of(tmp_path, b'a,"b\nb"\nc,d\ne,f\ng,h\n')
    assert [(block.offset, block.line) for block in cut(0, file, PLAIN)] == [(0, 1), (12, 4)]


def test_every_row_knows_its_file_and_line(tmp_path):
    file = file_of(tmp_path, b"\nx,y\n\n1,2\n")
    assert rows_of(file, HEADED, wanted=("x", "y", "_path")) == [
        {"_file": 0, "_line": 4, "_reason": None, "_text": None, "x": "1", "y": "2", "_path": "source.csv"}
    ]


def test_a_header_is_passed_over_once_in_a_file_of_many_blocks(tmp_path, monkeypatch):
    small_blocks(monkeypatch, 4, 4)
    file = file_of(tmp_path, b"x,y\n1,2\nx,y\n3,4\n")
    assert [(row["_line"], row["x"]) for row in rows_of(file, HEADED)] == [(2, "1"), (3, "x"), (4, "3")]


def test_a_byte_order_mark_is_no_part_of_the_first_value(tmp_path):
    file = file_of(tmp_path, b"\xef\xbb\xbfa,b\n")
    assert rows_of(file, PLAIN)[0]["x"] == "a"


def test_a_row_that_is_not_utf_8_is_refused_and_its_neighbours_kept(tmp_path):
    file = file_of(tmp_path, "é,b\n".encode() + b"c\xff,d\n1\n" + "e,ö\n".encode())
    assert [(row["_line"], row["_reason"], row["_text"], row["x"], row["y"]) for row in rows_of(file, PLAIN)] == [
        (1, None, None, "é", "b"),
        (2, "not UTF-8 text", "c\\xff,d", None, None),
        (3, "1 fields instead of 2", "1", None, None),
        (4, None, None, "e", "ö"),
    ]


@pytest.mark.parametrize("first", [b"x,z\n", b"x\n", b"1,2\n", b"y,x\n"])
def test_a_file_with_another_header_is_refused(tmp_path, first):
    file = file_of(tmp_path, first + b"1,2\n")
    with pytest.raises(BadInput, match=r"does not begin with that of the first file \(x, y\) but with"):
        rows_of(file, HEADED)


def test_a_record_that_never_ends_is_refused_with_its_line(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "LONGEST_RECORD", 100)
    small_blocks(monkeypatch, 1 << 20, 50)
    file = file_of(tmp_path, b"a,b\nc,d\n" + b'"' + b"e" * 300)
    with pytest.raises(BadInput, match=r"source\.csv line 3: a record must not exceed .*a quote that is never closed"):
        rows_of(file, PLAIN)


def test_a_file_that_went_away_is_refused_by_name(tmp_path):
    file = file_of(tmp_path, b"a,b\n")
    (tmp_path / "source.csv").unlink()
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        rows_of(file, PLAIN)
