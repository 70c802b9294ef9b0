"""Formats, delimiters and headers told from small inputs, and said aloud."""

import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapt.core.errors import BadInput, UsageError
from adapt.traces.sources.formats.console import envelopes
from adapt.traces.sources.formats.parquet import ParquetFiles
from adapt.traces.sources.formats.text import log_format
from adapt.traces.sources.names import FormatName
from adapt.traces.sources.reading.files import source_files
from adapt.traces.sources.sniff import ReadOptions, recognize

LOG = '10.0.0.1 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 512\n'


@pytest.fixture
def sniffed(tmp_path):
    """Recognises a content; several are several files."""

    def sniff(*contents, **options):
        for at, content in enumerate(contents):
            (tmp_path / f"{at}.dat").write_bytes(content if isinstance(content, bytes) else content.encode())
        return recognize(source_files([str(tmp_path)]), ReadOptions(**options))

    return sniff


@pytest.mark.parametrize(
    ("content", "delimiter", "said"),
    [
        ("ts,user\n1,a\n2,b\n", ",", "comma"),
        ("ts;user\n1;a,b\n2;c,d\n", ";", "semicolon"),
        ("ts|user\n1|a\n2|b\n", "|", "bar"),
        ("1 2 1082040961\n3 4 1082155839\n", " ", "space"),
        ('ts,user\n1,"a;b;c"\n2,"d;e"\n', ",", "comma"),
    ],
)
def test_the_delimiter_is_the_one_that_parts_lines_evenly(sniffed, content, delimiter, said):
    recognized = sniffed(content)
    assert recognized.form.delimiter == delimiter
    assert f"delimiter {said}" in recognized.guesses


def test_tabs_make_tsv_and_anything_else_csv(sniffed):
    assert "format tsv" in sniffed("a\tb\n1\t2\n").guesses
    assert "format csv" in sniffed("a,b\n1,2\n").guesses


def test_lines_of_a_web_server_are_a_log_even_if_some_are_not(sniffed):
    recognized = sniffed(LOG + "garbage\n" + LOG)
    assert recognized.form == log_format()
    assert recognized.guesses == ["format clf"]


def test_parquet_is_told_by_its_first_bytes(sniffed, tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.dat")
    assert sniffed().form.form == ParquetFiles()


def test_a_packed_file_is_looked_into(sniffed):
    assert sniffed(gzip.compress(b"ts,user\n1,a\n")).form.columns == ("ts", "user")


@pytest.mark.parametrize(
    ("content", "header"),
    [
        ("ts,user\n1,a\n2,b\n", True),
        ("time,who\n2015-05-17T10:00:00Z,ann\n", True),
        ("name,word\nann,x\nbob,y\n", True),
        ("time,who\n", True),
        ("1,a\n2,b\n", False),
        ("2015-05-17T10:00:00Z,ann\n2015-05-18T10:00:00Z,bob\n", False),
        ("a,a\n1,2\n", True),
        ("ann,NA\nbob,3\n", False),
        ("x,ann\ny,bob\nx,carl\n", False),
    ],
)
def test_a_header_is_words_over_something_else(sniffed, content, header):
    recognized = sniffed(content, delimiter=",")
    assert (recognized.form.header is not None) == header
    assert ("a header line" if header else "no header line") in recognized.guesses


def test_without_a_header_columns_are_numbered(sniffed):
    assert sniffed("1,a\n2,b\n").form.columns == ("_c0", "_c1")


def test_names_that_are_given_replace_those_of_the_header(sniffed):
    form = sniffed("ts,user\n1,a\n", columns=("when", "who")).form
    assert (form.columns, form.header) == (("when", "who"), ("ts", "user"))


def test_columns_of_one_name_are_numbered_apart(sniffed):
    assert sniffed("a,a,a_2,\n1,2,3,4\n", header=True).form.columns == ("a", "a_3", "a_2", "_c3")


def test_a_header_may_span_lines_inside_quotes(sniffed):
    form = sniffed('ts,"two\nlines"\n1,2\n', header=True).form
    assert form.header == ("ts", "two\nlines")


def test_a_line_separator_of_unicode_ends_no_line(sniffed):
    assert sniffed("ts,a\u2028b\n1,2\n", header=True).form.columns == ("ts", "a\u2028b")


def test_a_byte_order_mark_is_no_part_of_a_name(sniffed):
    assert sniffed("\ufeffts,user\n1,a\n").form.columns == ("ts", "user")


def test_a_quote_that_swallows_the_sample_does_no_harm(sniffed):
    content = 'ts,user\n1,a\n2,"' + "x" * 100 + "\n" + "3,b\n" * 60_000
    assert sniffed(content).form.columns == ("ts", "user")


def test_utf_16_is_refused_with_the_remedy(sniffed):
    with pytest.raises(BadInput, match="is UTF-16 text; convert it"):
        sniffed("a,b\n".encode("utf-16"))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"delimiter": "::"}, "--delimiter must be one ASCII character (got '::')"),
        ({"delimiter": "§"}, "--delimiter must be one ASCII character (got '§')"),
        ({"quote": "ab"}, "--quote must be one ASCII character (got 'ab')"),
        ({"delimiter": "\n"}, "--delimiter must not be a line end"),
        ({"delimiter": '"'}, "--delimiter and --quote must differ"),
        ({"format": FormatName.CSV, "pattern": "(?P<x>.)"}, "--pattern needs --source-format text (got csv)"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(options, says):
    with pytest.raises(UsageError) as refused:
        ReadOptions(**options)
    assert says in str(refused.value)


@pytest.mark.parametrize("header", [None, True])
def test_a_header_that_is_not_utf_8_is_refused(sniffed, header):
    with pytest.raises(BadInput, match=r"0\.dat: the header is not UTF-8.*iconv -f latin1 -t utf-8"):
        sniffed("id,catégorie,ts\n1,a,2\n2,b,3\n".encode("latin1"), header=header)


@pytest.mark.parametrize("ends", ["", "\n1,2\n"])
def test_a_quote_that_swallows_a_long_first_line_is_refused(sniffed, ends):
    with pytest.raises(BadInput, match=r"0\.dat: a quote in the first line is never closed.*--quote ''"):
        sniffed('a,"' + "b" * 200_000 + ends)


def test_a_byte_order_mark_alone_is_empty_input(sniffed):
    with pytest.raises(BadInput, match="is empty"):
        sniffed(b"\xef\xbb\xbf")


def test_envelopes_of_kcat_are_known_and_their_time_is_in_milliseconds(sniffed):
    recognized = sniffed('{"topic":"t","partition":0,"offset":1,"tstype":"create","ts":5,"key":null,"payload":"x"}\n')
    assert recognized.form == envelopes()
    assert recognized.guesses == ["format kcat"]
