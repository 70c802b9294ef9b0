import csv
import io
import json
import math
import re
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.cli.terminal.output import Format, Verbosity, narrate, progress, set_verbosity, show
from adapt.cli.terminal.terminal import blocks
from adapt.core.report.transposed import upright
from adapt.core.table import Column, Kind, Table

hostile = st.text(st.characters()) | st.sampled_from(
    [
        "</script>",
        "[red]x[/red]",
        ":smile:",
        "\x1b[31mred",
        "\u202ertl",
        "\ud800",
        "a|b",
        "`|`",
        "\r\n",
        "# x",
        "=1+1",
        "-5",
        "",
        "\x00",
    ]
)
cells = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | hostile
columns = st.lists(
    st.builds(Column, hostile, st.sampled_from(Kind), st.sampled_from(["", "rows/s"])),
    min_size=1,
    max_size=9,
    unique_by=lambda column: column.name,
)


@st.composite
def tables(draw):
    heads = draw(columns)
    rows = draw(st.lists(st.tuples(*(cells for _ in heads)), max_size=5))
    return Table.from_rows(draw(hostile), heads, rows, draw(hostile))


COMPARISON = Table.from_rows(
    "Comparison",
    [Column("scheme"), Column("construction"), Column("channels", Kind.COUNT)]
    + [Column(name, Kind.RATIO) for name in ("imbalance", "best_possible", "r_s", "r_c", "r_n", "r_best")]
    + [Column(name, Kind.RATIO) for name in ("r_best_pinned", "b", "m", "b(1+m)")]
    + [Column("keys_moved", Kind.COUNT), Column("state_moved", Kind.BYTES), Column("build_s", Kind.SECONDS)],
    [("hybrid", "scan", n, *[1.25] * 10, 12_034, 123_456_789, 0.012) for n in (2, 4)]
    + [("uniform", None, 4, *[1.5] * 9, None, 99, 1024, 0.5)],
    note="Floors are what no placement can beat.",
)


class Paper(io.TextIOWrapper):
    """An output that keeps what is printed on it, in an encoding."""

    def __init__(self, encoding="utf-8"):
        self.bytes = io.BytesIO()
        super().__init__(self.bytes, encoding=encoding, newline="")

    def read_back(self):
        self.flush()
        return self.bytes.getvalue().decode(self.encoding)


def printed(tables, format, document=None, encoding="utf-8"):
    paper = Paper(encoding)
    show(tables, format, document, out=paper)
    return paper.read_back()


def acts(character):
    return character != "\n" and unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


@given(tables())
def test_json_holds_the_same_values_and_nothing_that_acts(table):
    text = printed(table, Format.JSON)
    assert not any(map(acts, text))
    read = json.loads(text, parse_constant=lambda name: pytest.fail(name))
    assert read["schema"] == "adapt.tables/1"
    for found, row in zip(read["tables"][0]["rows"], table.rows, strict=True):
        for column, cell in zip(table.columns, row, strict=True):
            assert found[through_json(column.name)] == through_json(cell)


def through_json(cell):
    """What JSON can hold of a cell: two surrogates side by side are one character to it."""
    if isinstance(cell, float) and not math.isfinite(cell):
        return None
    return cell.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") if isinstance(cell, str) else cell


@given(tables())
def test_csv_reads_back_to_the_same_values(table):
    rows = list(csv.reader(io.StringIO(printed(table, Format.CSV), newline=""), strict=True))
    assert len(rows) == 1 + len(table.rows)
    for found, row in zip(rows[1:], table.rows, strict=True):
        assert found == [as_csv(cell) for cell in row]


def as_csv(cell):
    if cell is None or (isinstance(cell, float) and not math.isfinite(cell)):
        return ""
    if isinstance(cell, str):
        text = "".join(f"\\u{ord(c):04x}" if 0xD800 <= ord(c) < 0xE000 else c for c in cell)
        return f"'{text}" if text[:1] in set("=+-@\t\r＋－＝＠") and not is_number(text) else text
    return str(cell).lower() if isinstance(cell, bool) else repr(cell)


def is_number(text):
    return text.isascii() and re.fullmatch(r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?", text) is not None


def test_a_spreadsheet_finds_no_formula():
    keys = ["=cmd|'/c calc'!A1", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "＝1+1", "-5", "+4.5e3", "a=b"]
    read = csv.reader(io.StringIO(printed(Table.from_rows("T", [Column("key")], [(key,) for key in keys]), Format.CSV)))
    found = [row[0] for row in read][1:]
    assert found == [*(f"'{key}" for key in keys[:6]), *keys[6:]]


@given(tables())
def test_markdown_rows_keep_the_column_count(table):
    lines = printed(table, Format.MD).split("\n")
    table = upright(table)
    rows = lines[2 : 4 + len(table.rows)]
    assert len(rows) == 2 + len(table.rows)
    for row in rows:
        bare = row.replace("\\\\", "").replace("\\|", "")
        assert bare.count("|") == len(table.columns) + 1
        assert "<" not in row


@given(tables(), st.sampled_from(Format))
def test_every_format_fits_an_output_of_ascii(table, format):
    printed(table, format, encoding="ascii")


def test_a_document_is_printed_alone_with_null_for_what_is_not_finite():
    text = printed(COMPARISON, Format.JSON, {"schema": "adapt.plan/1", "metrics": {"r_s": math.inf, "b": math.nan}})
    assert json.loads(text) == {"schema": "adapt.plan/1", "metrics": {"r_s": None, "b": None}}


def test_csv_tells_null_from_empty():
    table = Table.from_rows("T", [Column("a"), Column("b")], [(None, ""), ("# x", " y")])
    assert printed(table, Format.CSV) == 'a,b\n,""\n"# x"," y"\n'


def test_markdown_is_read_by_people():
    table = Table.from_rows("Keys", [Column("key"), Column("best_possible", Kind.RATIO)], [("a|b*c", 1.5)])
    assert printed(table, Format.MD) == ("### Keys\n\n| key | best_possible |\n| --- | ---: |\n| a\\|b\\*c | 1.500 |\n")


def test_a_wide_table_is_cut_into_blocks_that_repeat_what_tells_rows_apart(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = printed(COMPARISON, Format.TABLE)
    assert max(map(len, text.split("\n"))) <= 80
    assert text.count("scheme   construction  channels") == 3
    assert "…" not in text
    for shown in ("12,034", "118\u202fMiB", "12\u202fms", "1.250", "–"):
        assert shown in text


@given(st.integers(40, 200))
def test_blocks_fit_and_lose_no_column(width):
    parts = blocks(COMPARISON, width)
    assert all(sum(strip.width for strip in part) + 2 * (len(part) - 1) <= max(width, 46) for part in parts)
    shown = [strip.column.name for part in parts for strip in part]
    assert list(dict.fromkeys(shown)) == [column.name for column in COMPARISON.columns]


BARRED = Table.from_rows(
    "Channels",
    [Column("channel", Kind.COUNT), *(Column(name, Kind.RATIO, bar=True) for name in ("before", "after"))],
    [(3, 2.0, 1.0), (11, 1.0, None), (0, 0.0, 0.5)],
)


@pytest.mark.parametrize("width", [80, 120, 200])
def test_bars_stand_beside_numbers_and_take_the_room_there_is(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    lines = printed(BARRED, Format.TABLE).splitlines()
    assert max(map(len, lines)) <= width
    longest, half, none = (line.count("█") for line in lines[-3:])
    assert longest == pytest.approx(1.5 * min(60, (width - 25) // 2), abs=3)  # 2.0 and 1.0
    assert half == pytest.approx(longest / 3, abs=1)
    assert none == pytest.approx(longest / 6, abs=1)
    assert "2.000" in lines[-3]


def test_bars_and_life_lines_have_plain_forms(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert "2.000 ####" in printed(BARRED, Format.TABLE, encoding="ascii")
    lines = Table.from_rows("Hot", [Column("key"), Column("life_line")], [("a", " ▁▂▃▄▅▆▇█")])
    assert " .:-=+*%#\n" in printed(lines, Format.TABLE, encoding="ascii")


def test_what_leads_stands_before_the_tables_for_people_alone(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    texts = {}
    for format in Format:
        paper = Paper()
        show(BARRED, format, {"schema": "x/1"}, out=paper, lead=[["Verdict: *even*", "All is\x1b well."]])
        texts[format] = paper.read_back()
    assert texts[Format.TABLE].startswith("Verdict: *even*\nAll is\\x1b well.\n\nChannels\n")
    assert texts[Format.MD].startswith("### Verdict: \\*even\\*\n\n- All is\\\\x1b well.\n")
    assert "Verdict" not in texts[Format.CSV] + texts[Format.JSON]


def test_markup_in_keys_is_text(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    table = Table.from_rows("[red]T", [Column("key")], [("[red]x[/red]",), (":smile:",)], "[b]")
    text = printed(table, Format.TABLE)
    assert "[red]x[/red]" in text
    assert ":smile:" in text
    monkeypatch.delenv("FORCE_COLOR")
    assert "\x1b" not in printed(table, Format.TABLE)


def test_narration_goes_to_stderr_unless_quiet(capsys):
    try:
        narrate("wrote a\x1b[31m.trace")
        narrate("detail", Verbosity.VERBOSE)
        set_verbosity(Verbosity.QUIET)
        narrate("unsaid")
    finally:
        set_verbosity(Verbosity.NORMAL)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "wrote a\\x1b[31m.trace\n"


def test_progress_draws_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with progress() as step:
        step("sorting [b]by time[/b]", 1, 2)
    assert "sorting [b]by time[/b]" in screen.getvalue()


def test_importing_the_output_loads_nothing_heavy():
    code = "import adapt.cli.terminal.output, sys; print(*sys.modules)"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    assert not loaded & {"numpy", "pyarrow", "jinja2", "vl_convert", "pyspark", "numba", "rich.table", "rich.progress"}
